"""Claims to devices (resource.k8s.io): a node will do where all claims of a pod are, or can be, allocated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import (
    SKIP,
    Change,
    Codes,
    Depends,
    PreFilter,
    PreScore,
    Reserve,
    Scores,
    Skip,
    normalize_by_highest,
)
from mooring.engine.shortcuts import BesidesAmounts, ForeseenRoom
from mooring.engine.verdict import Rejection
from mooring.model.api.claims import ResourceClaim
from mooring.model.api.meta import KubeObject
from mooring.model.api.nodes import Node
from mooring.model.devices.naming import AskedClaim
from mooring.model.events import Event
from mooring.model.values.durations import parse_duration
from mooring.model.values.selectors import NodeTerm, compile_node_selector, matches_any_term
from mooring.plugins.device_remedies import device_remedies
from mooring.plugins.resource_scoring import Problem
from mooring.state.devices.allocator import CANNOT_ALLOCATE, STEPS_PER_SECOND
from mooring.state.devices.answers import ClaimAnswers
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView

NOT_AVAILABLE = "resourceclaim not available on the node"


class DynamicResourcesArgs(KubeObject, forbid_unknown_fields=True):
    """DynamicResourcesArgs of KubeSchedulerConfiguration, and one setting that is ours."""

    api_version: str = ""
    kind: str = ""
    filter_timeout: str = "10s"
    """How long to try to allocate devices of one node; 10,000 steps of the search stand for a second."""
    binding_timeout: str = "600s"
    """How long a driver waits for a device's binding conditions."""
    allocation_strategy: str = "FirstFit"
    """FirstFit takes devices in the order in which drivers list them; Packed breaks up as few as possible."""

    def validate(self) -> Iterator[Problem]:
        for name, text in (("filterTimeout", self.filter_timeout), ("bindingTimeout", self.binding_timeout)):
            if parse_duration(text) is None:
                yield name, "a duration such as 10s", text
        if self.allocation_strategy not in STRATEGIES:
            yield "allocationStrategy", f"one of {', '.join(STRATEGIES)}", self.allocation_strategy


MANY = 2**31 - 1
"""More pods than any node takes."""
FIRST_FIT, PACKED = "FirstFit", "Packed"
STRATEGIES = (FIRST_FIT, PACKED)


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims, as far as they do not depend on the node."""

    cluster: ClusterView
    answers: ClaimAnswers | None
    """For those that are to be allocated; None if all are."""
    specs: tuple[int, ...]
    """What those ask for."""
    allocated_on: tuple[tuple[NodeTerm, ...], ...]
    """Where the others can be used; those that can be used everywhere are left out."""
    mixed: AskedClaim | None = None
    """The claim for extended resources, if some nodes offer them themselves: what it asks for depends on the node."""


class DynamicResources(ForeseenRoom, BesidesAmounts, PreFilter, PreScore, Reserve):
    depends_on = Depends.NODE | Depends.NODE_USAGE | Depends.RELATED
    helped_by = Change.POD_GONE | Change.NODE | Change.RELATED
    args_type = DynamicResourcesArgs
    skip_is_settled = True
    reads = frozenset(("claims",))
    unresolvable = True
    normalizes = True
    foresees = True

    def __init__(self, args: DynamicResourcesArgs | None = None) -> None:
        super().__init__(args)
        self._reasons = ["", NOT_AVAILABLE]

    @property
    def packs(self) -> bool:
        return bool(self.args.allocation_strategy == PACKED)

    @property
    def most_steps(self) -> int:
        """After how many steps the search for devices of one node is given up."""
        return int((parse_duration(self.args.filter_timeout) or 0) * STEPS_PER_SECOND)

    @property
    def binding_seconds(self) -> float:
        """How long devices may take to have their binding conditions."""
        return float(parse_duration(self.args.binding_timeout) or 0)

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> PodClaims | Skip | Rejection:
        if not pod.claims:
            return SKIP
        claims = cluster.claims
        specs, allocated_on = list[int](), list[tuple[NodeTerm, ...]]()
        mixed: AskedClaim | None = None
        for asked in pod.claims:
            if asked.resources and claims.extended.is_mixed:
                mixed = asked
                continue
            if asked.missing:
                return Rejection((asked.missing,), unresolvable=True)
            state = claims.state(asked.key)
            if asked.key and state.allocation is not None:
                if state.allocation.node_selector is not None:
                    allocated_on.append(compile_node_selector(state.allocation.node_selector))
                continue
            specs.append(asked.spec if not asked.key else claims.number_of(_claim(cluster, asked.key).spec))
        for number in specs:
            compiled = claims.compiled(number)
            if isinstance(compiled, str):
                return Rejection((compiled,), unresolvable=True)
        answers = claims.answers(tuple(specs)) if specs or mixed is not None else None
        rows = cluster.rows()
        asked_about = rows.index[~rows.unschedulable]  # kube-scheduler does not come as far as cordoned ones
        broken = answers.what_is_broken(cluster.devices.codes(asked_about)) if answers is not None else ""
        if broken:
            return Rejection((broken,), unresolvable=True)
        return PodClaims(cluster, answers, tuple(specs), tuple(allocated_on), mixed)

    def filter(self, pod: Shape, nodes: NodeRows, prepared: PodClaims) -> Codes:
        codes = np.zeros(len(nodes), np.int64)
        if prepared.mixed is not None:
            codes = self._mixed_codes(pod, nodes, prepared, prepared.mixed)
        elif prepared.answers is not None:
            codes = self._as_codes(prepared.answers, prepared.answers.refusals(_states(nodes, prepared)))
            claims = prepared.cluster.claims
            for position in np.flatnonzero(codes).tolist():
                row = int(nodes.index[position])
                codes[position] += claims.has_pods_on(row)
                if nodes.further_pods is None and claims.fits_together(row, prepared.specs):
                    codes[position] = 0
        if prepared.allocated_on:
            reaches = np.array([_reaches(node, prepared.allocated_on) for node in nodes.nodes], np.bool_)
            codes = np.where((codes == 0) & ~reaches, 2 * self._reasons.index(NOT_AVAILABLE), codes)
        return codes

    def _mixed_codes(self, pod: Shape, nodes: NodeRows, prepared: PodClaims, mixed: AskedClaim) -> Codes:
        """As `filter`, where the claim for extended resources is another on each node."""
        claims, codes = prepared.cluster.claims, np.zeros(len(nodes), np.int64)
        states = _states(nodes, prepared)
        for position, row in enumerate(nodes.index.tolist()):
            number = claims.extended_spec(mixed, pod.sample, row)
            specs = prepared.specs if number is None else (*prepared.specs, number)
            if specs:
                answers = claims.answers(specs)
                codes[position] = self._as_codes(answers, answers.refusals(states[position : position + 1]))[0]
        return codes

    def _as_codes(self, answers: ClaimAnswers, refusals: Codes) -> Codes:
        """Reasons by our own numbers, twice: one more where evicting pods that have devices could help."""
        for reason in answers.reasons:
            if reason not in self._reasons:
                self._reasons.append(reason)
        ours = np.array([2 * self._reasons.index(reason) for reason in answers.reasons], np.int64)
        found: Codes = ours[refusals]
        return found

    def room(self, pod: Shape, nodes: NodeRows, prepared: PodClaims) -> NDArray[np.int64]:
        if prepared.mixed or prepared.answers is None or any(asked.key for asked in pod.claims or ()):
            return np.where(self.filter(pod, nodes, prepared) == 0, MANY, 0)
        return prepared.answers.room(_states(nodes, prepared))

    def is_concerned_by(self, other: Shape) -> bool:
        return other.card_request is not None or other.claims is not None

    def rejection(self, pod: Shape, code: int) -> Rejection:
        return Rejection((self._reasons[code // 2],), unresolvable=code % 2 == 0)

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: PodClaims) -> Iterator[tuple[str, NDArray[np.intp]]]:
        refused = np.flatnonzero(self.filter(pod, nodes, prepared))
        if prepared.answers is not None and len(refused):
            devices, claims = prepared.cluster.devices, prepared.answers.claims
            yield from device_remedies(devices, claims, _states(nodes, prepared), refused)

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> PodClaims | Skip:
        """Only alternatives have a score: without any, all nodes are worth the same."""
        gathered = self.pre_filter(pod, cluster)
        if not isinstance(gathered, PodClaims) or gathered.answers is None or not gathered.answers.has_alternatives:
            return SKIP
        return gathered

    def score(self, pod: Shape, nodes: NodeRows, prepared: PodClaims) -> Scores:
        assert prepared.answers is not None
        return prepared.answers.scores(_states(nodes, prepared))

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        return normalize_by_highest(raw, highest)

    def applies_to(self, pod: Shape) -> bool:
        """Whether pods have to be placed one by one: devices themselves are taken with a pod's place."""
        return any(asked.key or asked.is_alone or asked.resources for asked in pod.claims or ())

    def reserve(self, pod: PodView, cluster: ClusterView, row: int) -> Sequence[Event] | Rejection:
        if not cluster.claims.has_devices(pod.pod):
            return Rejection((CANNOT_ALLOCATE,))
        return ()


def _claim(cluster: ClusterView, key: str) -> ResourceClaim:
    return cluster.related.resource_claims[key]


def _states(nodes: NodeRows, prepared: PodClaims) -> NDArray[np.int32]:
    """The device states of rows, after the further pods that are supposed there."""
    codes = prepared.cluster.devices.codes(nodes.index)
    if nodes.further_pods is not None and prepared.answers is not None:
        codes = prepared.answers.after(codes, nodes.further_pods)
    return codes


def _reaches(node: Node, allocated_on: tuple[tuple[NodeTerm, ...], ...]) -> bool:
    labels = node.metadata.labels or {}
    return all(matches_any_term(terms, node.metadata.name, labels) for terms in allocated_on)
