"""The nodes of one flavor by the levels of its topology, as columns over the lowest domains, the leaves."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.actions.admit.topology.usage import DomainUsage, domain_key, is_node_level
from mooring.model.api.nodes import Node
from mooring.model.api.pods import PodSpec, Toleration
from mooring.model.values.selectors import compile_equality, compile_node_selector, matches_any_term
from mooring.model.values.tolerations import untolerated
from mooring.state.remembered import Derived
from mooring.state.topology import TopologyTree

Column = NDArray[np.int64]
FreeOf = Callable[[str], Column]
"""By row, how much of a resource is left besides what pods use that were not assigned any domain."""

Exclusions = Mapping[str, int]
"""By reason, how many leaves are out of question."""


class Matching:
    """The leaves on which pods may run that select nodes in one way, and why not on the others."""

    __slots__ = ("excluded", "mask")

    def __init__(self, mask: NDArray[np.bool_] | None, excluded: Exclusions) -> None:
        self.mask = mask
        """None: all of them."""
        self.excluded = excluded


class FlavorTopology:
    """A flavor's topology as its nodes are now; another is made when nodes change."""

    def __init__(
        self,
        flavor: str,
        topology: str,
        tree: TopologyTree,
        nodes: Sequence[Node | None],
        free_of: FreeOf,
        usage: DomainUsage,
        tolerations: Sequence[Toleration] = (),
    ) -> None:
        """`nodes` are all nodes by row; the tree has those that are the flavor's."""
        self.flavor, self.topology, self.tree = flavor, topology, tree
        self.levels = tree.levels
        self.has_nodes_as_leaves = is_node_level(tree.levels)
        self._nodes = nodes
        self._free_of = free_of
        self._usage = usage
        self._tolerations = tuple(tolerations)
        self._free: Derived[str, Column] = Derived()
        self._matching: Derived[int, Matching] = Derived()
        self.values = [tree.path(tree.leaf, leaf) for leaf in range(tree.count(tree.leaf))]
        """Of each leaf, the values of all levels."""
        self.usage_index = np.array(
            [usage.index(domain_key(flavor, tree.levels, values)) for values in self.values], np.intp
        )
        self.leaf_of = {int(index): leaf for leaf, index in enumerate(self.usage_index)}
        """By the place in the usage of domains."""

    def __len__(self) -> int:
        return len(self.values)

    def forget_free(self) -> None:
        """Pods without a domain of their own came or went."""
        self._free.forget()

    def free(self, resource: str) -> Column:
        """By leaf, what is left for pods with a topology, be it used by such or not; it may be less than nothing."""
        return self._free.of(resource, self._find_free, resource)

    def _find_free(self, resource: str) -> Column:
        by_row = self._free_of(resource)[self.tree.rows]
        starts = self.tree.starts[self.tree.leaf]
        return np.add.reduceat(by_row, starts) if len(starts) else np.zeros(0, np.int64)

    def remaining(self, resource: str, *, is_empty: bool = False) -> Column:
        """By leaf, what is left; on an empty cluster, as if no workload had been assigned any domain."""
        free = self.free(resource)
        return free.copy() if is_empty else free - self._usage.column(resource)[self.usage_index]

    def remaining_at(self, leaf: int, resource: str) -> int:
        used = self._usage.column(resource)[self.usage_index[leaf]]
        return int(self.free(resource)[leaf]) - int(used)

    def matching(self, selection: int, spec: PodSpec) -> Matching:
        """Which leaves pods may use; equal numbers mean equal selections. Only nodes are looked at, not their sums."""
        if not self.has_nodes_as_leaves:
            return Matching(None, {})
        return self._matching.of(selection, self._match, spec)

    def _match(self, spec: PodSpec) -> Matching:
        tolerations = [*(spec.tolerations or ()), *self._tolerations]
        selector = compile_equality(spec.node_selector or {})
        affinity = spec.affinity.node_affinity if spec.affinity else None
        required = affinity.required if affinity else None
        terms = None if required is None else compile_node_selector(required)
        excluded: Counter[str] = Counter()
        mask = np.ones(len(self), np.bool_)
        for leaf, row in enumerate(self.tree.rows[self.tree.starts[self.tree.leaf]].tolist()):
            node = self._nodes[row]
            assert node is not None
            labels = node.metadata.labels or {}
            reason = ""
            left = untolerated(tolerations, node.spec.taints or ()) if node.spec.taints else ()
            if left:
                value = f"={left[0].value}" if left[0].value else ""
                reason = f'taint "{left[0].key}{value}:{left[0].effect}"'
            elif not selector.matches(labels):
                reason = "nodeSelector"
            elif terms is not None and not matches_any_term(terms, node.metadata.name, labels):
                reason = "affinity"
            if reason:
                mask[leaf] = False
                excluded[reason] += 1
        return Matching(mask if excluded else None, excluded)
