"""Nodes that already have the pod's images, weighed by size and by how widely an image is spread."""

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE, SKIP, Depends, PreScore, Scores, Skip
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

MEBIBYTE = 1024 * 1024
SMALLEST = 23 * MEBIBYTE
"""Below this, having an image saves next to nothing."""
LARGEST_PER_CONTAINER = 1000 * MEBIBYTE


class ImageLocality(PreScore):
    depends_on = Depends.NODE
    skip_is_settled = True
    reads = frozenset(("images",))

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> NDArray[np.int64] | Skip:
        """The score of every row."""
        names = [normalized_name(name) for name in pod.images]
        present = np.zeros(cluster.end, np.int64)
        for name in names:
            image = cluster.image(name)
            if image is not None:
                # A widely spread image counts fully: otherwise one warm node would draw all pods.
                present[list(image.rows)] += int(float(image.size_bytes) * (len(image.rows) / cluster.node_count))
        if not present.any():
            return SKIP
        largest = LARGEST_PER_CONTAINER * len(names)
        return MAX_SCORE * (np.clip(present, SMALLEST, largest) - SMALLEST) // (largest - SMALLEST)

    def score(self, pod: Shape, nodes: NodeRows, prepared: NDArray[np.int64]) -> Scores:
        return prepared[nodes.index]


def normalized_name(image: str) -> str:
    """An image without a tag means its latest."""
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"
