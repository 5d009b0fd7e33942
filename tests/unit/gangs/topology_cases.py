"""What tests of domains share: a small topology, columns in one line, and why there is no place."""

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.topology.domains import TooSmall
from mooring.model.topology.requests import TopologyRequest
from mooring.state.topology import TopologyTree
from mooring.testing.topology_builders import make_tree

BLOCK, RACK = "example.com/block", "example.com/rack"
IN_RACK, IN_BLOCK = TopologyRequest(required=RACK), TopologyRequest(required=BLOCK)


def column(*fits: int) -> NDArray[np.int64]:
    return np.array(fits, np.int64)


def small() -> TopologyTree:
    """Two blocks of two racks of two nodes: rows 0 and 1 in a/1, 2 and 3 in a/2, 4 and 5 in b/1, 6 and 7 in b/2."""
    return make_tree([BLOCK, RACK], [(block, rack) for block in "ab" for rack in "12" for _ in range(2)])


def reason(answer: object) -> str:
    assert isinstance(answer, TooSmall), answer
    return answer.message
