"""From a chosen node to a pod that may be bound: reserve, permit, prepare, bind, tell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mooring.engine.asking import ask_pre_filter, faults_of
from mooring.engine.permits import PermitHold
from mooring.engine.plugin import SKIP, AfterChoice, Permit, Plugin, PreFilter, Reserve
from mooring.engine.profile import Profile
from mooring.engine.queue.queue import Entry
from mooring.engine.verdict import Rejection, Verdict, Wait
from mooring.errors import WrongAnswer
from mooring.model.decisions import Bind
from mooring.model.devices.card_dialects import written_for
from mooring.model.numa.nodes import ALLOCATION
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.shapes import Shape
from mooring.state.views import PodView

Step = TypeVar("Step", bound=AfterChoice)


def decisions_to_bind(cluster: Cluster, records: Sequence[PodRecord]) -> list[Bind]:
    """Bind pods where they have taken their places, and write down which devices, CPUs and memory they have there."""
    claiming = [record for record in records if record.shape.claims]
    if claiming or cluster.numa.is_used or cluster.card_holders.is_used:
        return [decision_to_bind(cluster, record) for record in records]
    return [Bind(record.key, record.node_name) for record in records]


def decision_to_bind(cluster: Cluster, record: PodRecord) -> Bind:
    """The same of one pod."""
    annotations, labels = dict[str, str](), dict[str, str]()
    claims = cluster.claims.reservations(record) if record.shape.claims else ()
    request = record.shape.card_request
    shares = cluster.card_holders.shares_of(record.key) if request is not None else ()
    if request is not None and shares:
        cards = cluster.nodes.cards.cards(record.row)
        annotations, labels = written_for(record.node_name, cards, request, shares)
    aligned = cluster.numa.share_of(record.key)
    if aligned is not None:
        annotations[ALLOCATION] = aligned.text
    instances = cluster.card_holders.instances_for(record) if shares else ()
    return Bind(record.key, record.node_name, tuple(annotations.items()), tuple(labels.items()), claims, instances)


def needs_steps(profile: Profile, shape: Shape) -> bool:
    """Whether any plugin has something to do for such a pod once its node is chosen."""
    return any(True for _ in _concerned(_all_steps(profile), shape))


def _all_steps(profile: Profile) -> tuple[AfterChoice, ...]:
    return (*profile.reserve, *profile.permit, *profile.pre_bind, *profile.bind, *profile.post_bind)


def _concerned(plugins: Sequence[Step], shape: Shape) -> Iterator[Step]:
    """The plugins that have something to do for such a pod."""
    for plugin in plugins:
        with faults_of(plugin, "applies_to"):
            applies = plugin.applies_to(shape)
        if applies:
            yield plugin


@dataclass(frozen=True, slots=True)
class Chosen:
    """A pod that has taken its place on a row, on its way through the steps."""

    profile: Profile
    cluster: Cluster
    record: PodRecord
    row: int
    gathered: Mapping[str, Any]
    """By plugin, what those that gather before they filter have for the pod, for their own steps."""

    @classmethod
    def of(cls, profile: Profile, cluster: Cluster, record: PodRecord) -> "Chosen":
        return cls(profile, cluster, record, record.row, _gather(profile, cluster, record))

    def concerned(self, plugins: Sequence[Step]) -> Iterator[Step]:
        return _concerned(plugins, self.record.shape)

    def seen_by(self, plugin: Plugin) -> PodView:
        return PodView.of(self.record, self.gathered.get(plugin.name))


def _gather(profile: Profile, cluster: Cluster, record: PodRecord) -> dict[str, Any]:
    """What plugins with steps to take gather for a pod, as if it had not taken its place yet."""
    gathering = [plugin for plugin in _concerned(_all_steps(profile), record.shape) if isinstance(plugin, PreFilter)]
    if not gathering:
        return {}
    with cluster.what_if():
        if record.row != UNBOUND:
            cluster.release(record.key)
        found = {plugin: ask_pre_filter(plugin, record.shape, cluster) for plugin in dict.fromkeys(gathering)}
    return {plugin.name: had for plugin, had in found.items() if had is not SKIP and not isinstance(had, Rejection)}


def take_steps(profile: Profile, cluster: Cluster, record: PodRecord) -> Verdict | None:
    """Take an assumed pod through every step; who asks undoes it all, by a trial, if a plugin refuses or raises."""
    chosen = Chosen.of(profile, cluster, record)
    refused = reserve(chosen)
    for step in AFTER_RESERVE:
        refused = refused or step(chosen)
    return refused


def reserve(chosen: Chosen) -> Verdict | None:
    """Let plugins take what they need for a pod. A trial that is not kept gives it back, the last first."""
    cluster = chosen.cluster
    cluster.keep_gathered(chosen.record, chosen.gathered)
    for plugin in chosen.concerned(chosen.profile.reserve):
        cluster.log.note(_give_back, plugin, chosen)
        with faults_of(plugin, "reserve"):
            changes = plugin.reserve(chosen.seen_by(plugin), cluster.view, chosen.row)
        if isinstance(changes, Rejection):
            return Verdict(plugin.name, changes)
        cluster.assume_changes(changes)
    return None


def unreserve(profile: Profile, cluster: Cluster, record: PodRecord) -> None:
    """A pod was not bound after all: let plugins give back what they reserved for it, the last first."""
    chosen = Chosen(profile, cluster, record, record.row, record.gathered or {})
    for plugin in reversed(list(chosen.concerned(profile.reserve))):
        _give_back(plugin, chosen)


def _give_back(plugin: Reserve, chosen: Chosen) -> None:
    with faults_of(plugin, "unreserve"):
        changes = plugin.unreserve(chosen.seen_by(plugin), chosen.cluster.view, chosen.row)
    chosen.cluster.assume_changes(changes)


def permit(chosen: Chosen) -> Verdict | None:
    """Ask who may refuse a pod with a reservation, or let it wait: a refusal counts more, then the shortest wait."""
    held: Verdict | None = None
    for plugin in chosen.concerned(chosen.profile.permit):
        with faults_of(plugin, "permit"):
            answer = _checked(plugin.permit(chosen.seen_by(plugin), chosen.cluster.view, chosen.row))
        if isinstance(answer, Rejection):
            return Verdict(plugin.name, answer)
        if answer is not None:
            held = shorter(held, _hold(plugin, answer))
    return held


def _checked(answer: Rejection | Wait | None) -> Rejection | Wait | None:
    if answer is not None and not isinstance(answer, Rejection | Wait):
        raise WrongAnswer(expected="a Rejection, a Wait or None", found=repr(answer))
    if isinstance(answer, Wait) and not answer.seconds > 0:
        raise WrongAnswer(expected="to wait for some time", found=repr(answer))
    return answer


def _hold(plugin: Permit, answer: Wait) -> Verdict:
    why = f": {answer.reason}" if answer.reason else ""
    message = f"waits for the permission of {plugin.name}, {answer.seconds:g} s at most{why}"
    return Verdict(plugin.name, Rejection((message,)), answer.seconds)


def shorter(one: Verdict | None, other: Verdict) -> Verdict:
    """Of two that let a pod wait, the one whose patience ends first."""
    if one is None or one.hold_seconds is None or other.hold_seconds is None:
        return other
    return one if one.hold_seconds <= other.hold_seconds else other


def prepare(chosen: Chosen) -> Verdict | None:
    for plugin in chosen.concerned(chosen.profile.pre_bind):
        with faults_of(plugin, "pre_bind"):
            rejection = plugin.pre_bind(chosen.seen_by(plugin), chosen.cluster.view, chosen.row)
        if rejection is not None:
            return Verdict(plugin.name, rejection)
    return None


def bind(chosen: Chosen) -> Verdict | None:
    profile, view = chosen.profile, chosen.cluster.view
    for plugin in profile.bind:
        with faults_of(plugin, "bind"):
            is_taken = plugin.bind(chosen.seen_by(plugin), view, chosen.row)
        if is_taken:
            break
    else:
        names = ", ".join(plugin.name for plugin in profile.bind)
        return Verdict(profile.bind[-1].name, Rejection((f"no bind plugin took the pod: {names}",)))
    for post_bind in chosen.concerned(profile.post_bind):
        with faults_of(post_bind, "post_bind"):
            post_bind.post_bind(chosen.seen_by(post_bind), view, chosen.row)
    return None


AFTER_RESERVE = (permit, prepare, bind)
"""The steps for which plugins have nothing to give back; pods that start together take each of them together."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Takes assumed pods through the steps; in a rehearsal, which only asks whether there is room, nobody takes any.

    What plugins reserved is given back by the trial in which it was, unless that is kept.
    """

    cluster: Cluster
    is_rehearsal: bool = False
    holds: list[PermitHold] = field(default_factory=list)
    """Whoever was let wait: filled in by who tries them together."""
    _chosen: dict[str, Chosen] = field(default_factory=dict)

    def reserve(self, entry: Entry) -> Verdict | None:
        """Reserve for an assumed pod, or say who refuses it."""
        if self.is_rehearsal:
            return None
        chosen = self._chosen[entry.record.key] = Chosen.of(entry.profile, self.cluster, entry.record)
        return reserve(chosen)

    def bind(self, entries: Sequence[Entry]) -> Verdict | None:
        """Take the pods through the remaining steps; the first refusal ends it, then a step that lets one wait."""
        for step in AFTER_RESERVE if not self.is_rehearsal else ():
            held: Verdict | None = None
            for entry in entries:
                refused = step(self._chosen[entry.record.key])
                if refused is not None and refused.hold_seconds is None:
                    return refused
                if refused is not None:
                    held = shorter(held, refused)
            if held is not None:
                return held
        return None
