"""Prefer the cheapest node.

mooring schedule -f examples/plugins/cluster.yaml --plugin examples/plugins/cheapest_node.py
"""

import numpy as np

from mooring.plugin import Depends, NodeRows, Score, Scores, Shape, normalize_by_highest

PRICE = "example.com/cents-per-hour"


class CheapestNode(Score):
    depends_on = Depends.NODE
    normalizes = True

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        prices = np.array([*map(int, nodes.label_values(PRICE)), 0], np.int64)  # the last for nodes without a price
        return prices[nodes.label_codes(PRICE)]

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        return normalize_by_highest(raw, highest, reverse=True)
