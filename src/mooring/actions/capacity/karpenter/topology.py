"""Spread, affinity and anti-affinity in the simulation: how many pods each domain has, and which domains are left.

A domain is a value of the term's topology key. Host names are kept as columns, over the rows of nodes that exist and
over planned nodes; other keys have few domains and are kept as counts by name.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from mooring.actions.capacity.karpenter.memo import Memo
from mooring.actions.capacity.karpenter.shapes import (
    ANTI_AFFINITY,
    SPREAD,
    LabelClass,
    NodeFilter,
    Shape,
    TopologyTerm,
)
from mooring.actions.capacity.karpenter.type_columns import Mask
from mooring.model.api.nodes import Taint
from mooring.model.capacity.labels import HOSTNAME
from mooring.model.capacity.requirements import ANY, Requirement, Requirements

Counts = npt.NDArray[np.int64]


def takes_part(node_filter: NodeFilter, requirements: Requirements, taints: tuple[Taint, ...], memo: Memo) -> bool:
    """Tell whether nodes like these count for a spread constraint."""
    if node_filter.honors_affinity and node_filter.terms:
        number = memo.number(requirements)
        if not any(memo.node_accepts(number, memo.number(term)) for term in node_filter.terms):
            return False
    return not node_filter.honors_taints or memo.tolerates(node_filter.tolerations, taints)


class Group:
    """One term, with the pods that it counts."""

    def __init__(
        self,
        term: TopologyTerm,
        min_domains: int | None,
        domains: dict[str, int],
        rows: Counts,
        selections: dict[LabelClass, bool],
    ) -> None:
        self.term = term
        self.key = term.key
        self.min_domains = min_domains
        self.is_by_host = term.key == HOSTNAME
        self.domains = domains
        """Pods by domain; for host names, only domains that have any."""
        self.rows = rows
        """Pods on each row, if the key is the host name."""
        self.claims: Counts = np.zeros(16, np.int64)
        self.is_counting = any(self.domains.values())
        self._selects = selections

    def selects(self, labels: LabelClass) -> bool:
        answer = self._selects.get(labels)
        if answer is None:
            answer = self._selects[labels] = self.term.selects(labels[0], dict(labels[1]))
        return answer

    def record(self, domain: str) -> None:
        self.domains[domain] = self.domains.get(domain, 0) + 1
        self.is_counting = True

    def record_claim(self, claim: int, hostname: str) -> None:
        if claim >= len(self.claims):
            self.claims = np.concatenate([self.claims, np.zeros(max(claim, 16), np.int64)])
        self.claims[claim] += 1
        self.record(hostname)

    def claim_counts(self, count: int) -> Counts:
        if count > len(self.claims):
            self.claims = np.concatenate([self.claims, np.zeros(count, np.int64)])
        return self.claims[:count]

    # By host name: which of several nodes are left, at once.

    def hosts_left(self, counts: Counts, shape: Shape) -> Mask:
        """The nodes, by the pods that are counted on each, that this term allows."""
        match self.term.kind:
            case "spread":
                mask = counts + self.selects(shape.kind.labels) <= self.term.max_skew
            case "anti-affinity":
                mask = counts == 0
            case _:
                mask = (counts > 0) | self._can_begin(shape, shape.strict.allowed(HOSTNAME))
        left: Mask = mask
        return left

    def _can_begin(self, shape: Shape, pod_domains: Requirement) -> bool:
        """Tell whether a pod that selects itself may be the first: no domain that it can use has such a pod."""
        if not self.selects(shape.kind.labels):
            return False
        return not self.is_counting or not any(
            count and pod_domains.has(domain) for domain, count in self.domains.items()
        )

    # By any other key: which domains are left.

    def domains_left(self, shape: Shape, node_domains: Requirement) -> frozenset[str]:
        """The domains that a pod on a node with these domains can be in."""
        pod_domains = shape.strict.allowed(self.key)
        match self.term.kind:
            case "spread":
                return self._spread(shape, pod_domains, node_domains)
            case "anti-affinity":
                return frozenset(
                    domain
                    for domain, count in self.domains.items()
                    if not count and node_domains.has(domain) and pod_domains.has(domain)
                )
            case _:
                return self._affinity(shape, pod_domains, node_domains)

    def _spread(self, shape: Shape, pod_domains: Requirement, node_domains: Requirement) -> frozenset[str]:
        supported = [count for domain, count in self.domains.items() if pod_domains.has(domain)]
        lowest = min(supported, default=2**31 - 1)
        if self.min_domains is not None and len(supported) < self.min_domains:
            lowest = 0
        own = int(self.selects(shape.kind.labels))
        allowed = [
            (count, domain)
            for domain, count in self.domains.items()
            if node_domains.has(domain) and count + own - lowest <= self.term.max_skew
        ]
        return frozenset((min(allowed)[1],)) if allowed else frozenset()

    def _affinity(self, shape: Shape, pod_domains: Requirement, node_domains: Requirement) -> frozenset[str]:
        found = frozenset(
            domain
            for domain, count in self.domains.items()
            if count and pod_domains.has(domain) and node_domains.has(domain)
        )
        if found or not self._can_begin(shape, pod_domains):
            return found
        both = [domain for domain in self.domains if pod_domains.has(domain) and node_domains.has(domain)]
        # A domain that the node cannot be in is offered, too: it is refused when requirements are put together.
        either = both or [domain for domain in self.domains if pod_domains.has(domain)]
        return frozenset((min(either),)) if either else frozenset()


class Topology:
    """The groups of one simulation, and which of them matter to which pods."""

    def __init__(self, memo: Memo) -> None:
        self._memo = memo
        self.groups: dict[TopologyTerm, Group] = {}
        self.inverse: dict[TopologyTerm, Group] = {}
        """Anti-affinity the other way round: the pods that have the term are counted, and keep away pods that it
        selects."""
        self._selecting: dict[LabelClass, tuple[int, list[Group]]] = {}
        self._repelled: dict[LabelClass, tuple[int, list[Group]]] = {}
        self._relevant: dict[int, tuple[int, tuple[list[Group], list[Group]]]] = {}

    def _selecting_groups(self, labels: LabelClass) -> list[Group]:
        known = self._selecting.get(labels)
        if known is None or known[0] != len(self.groups):
            found = [group for group in self.groups.values() if group.selects(labels)]
            known = self._selecting[labels] = (len(self.groups), found)
        return known[1]

    def _repelling_groups(self, labels: LabelClass) -> list[Group]:
        known = self._repelled.get(labels)
        if known is None or known[0] != len(self.inverse):
            found = [group for group in self.inverse.values() if group.selects(labels)]
            known = self._repelled[labels] = (len(self.inverse), found)
        return known[1]

    def groups_for(self, shape: Shape) -> tuple[list[Group], list[Group]]:
        """The groups that constrain a pod: those by host name, and the others."""
        known = self._relevant.get(shape.number)
        if known is None or known[0] != len(self.inverse):
            own = [self.groups[term] for term, _ in shape.terms]
            found = [*own, *self._repelling_groups(shape.kind.labels)]
            by_host = [group for group in found if group.is_by_host]
            known = (len(self.inverse), (by_host, [group for group in found if not group.is_by_host]))
            self._relevant[shape.number] = known
        return known[1]

    def narrow(self, shape: Shape, groups: Iterable[Group], requirements: int) -> int | None:
        """Choose domains for a pod on a node with these requirements; None if there are none left."""
        memo = self._memo
        given = memo[requirements]
        number = requirements
        for group in groups:
            domains = group.domains_left(shape, given.allowed(group.key))
            if not domains:
                return None
            number = memo.require(number, group.key, Requirement(domains))
        return number

    def record(
        self,
        shape: Shape,
        taints: tuple[Taint, ...],
        requirements: int,
        *,
        row: int | None,
        claim: int | None,
        hostname: str,
    ) -> None:
        """Count a pod that was placed on a row or on a planned node."""
        given = self._memo[requirements]
        with_host: Requirements | None = None
        for group in self._selecting_groups(shape.kind.labels):
            if group.term.kind == SPREAD:
                reads_host = any(HOSTNAME in term for term in group.term.node_filter.terms)
                if reads_host and with_host is None:
                    with_host = given.replaced(HOSTNAME, Requirement(frozenset((hostname,))))
                seen = with_host if reads_host and with_host is not None else given
                if not takes_part(group.term.node_filter, seen, taints, self._memo):
                    continue
            _record(group, given, group.term.kind == ANTI_AFFINITY, row, claim, hostname)
        for term in dict.fromkeys(shape.kind.anti_affinity):
            _record(self.inverse[term], given, True, row, claim, hostname)


def _record(
    group: Group, requirements: Requirements, everywhere: bool, row: int | None, claim: int | None, hostname: str
) -> None:
    if group.is_by_host:
        if row is not None:
            group.rows[row] += 1
            group.record(hostname)
        elif claim is not None:
            group.record_claim(claim, hostname)
        return
    allowed = requirements.get(group.key, ANY)
    if everywhere:
        for domain in allowed.values:
            group.record(domain)
    else:
        value = allowed.only_value
        if value is not None:
            group.record(value)
