"""Filters that can tell, for many nodes at once, what they would say if some of a node's own pods were gone."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import Codes, Mask, PreFilter
from mooring.state.effects import ShapeEffects
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape

Gone = Callable[[ShapeEffects], NDArray[np.int64]]
"""What the pods that are supposed to be gone from each row add up to, by what each shape counts for."""


class SupposingFilter(PreFilter):
    """A filter by counts of pods. Preemption asks it about all nodes at once, others about one node after the other."""

    def filter_without(self, pod: Shape, nodes: NodeRows, prepared: Any, gone: Gone) -> Mask | Codes:
        """As `filter`, each row being asked about by itself: without some pods of its own, all others as they are."""
        raise NotImplementedError
