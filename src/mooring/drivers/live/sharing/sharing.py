"""What a scheduler does about nodes that others use as well: it claims what it decided before it binds it.

Cycles go on while claims are being written; what they decide is in the next write. Who was faster on a node is told by
its claims (`node_claims.py`): what does not fit beside those any more is a conflict, and is decided again.
"""

import asyncio
import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from mooring.drivers.live.api.client import ApiError
from mooring.drivers.live.sharing.node_claims import KEPT_SECONDS, Claim, NodeClaims
from mooring.drivers.live.sharing.node_use import NodeUse
from mooring.engine.cycle import Scheduler
from mooring.model.api.pods import Pod, Volume
from mooring.model.decisions import Bind
from mooring.model.events import Event, PodLost, PodSeen
from mooring.model.gangs.membership import membership
from mooring.model.keys import PodKey
from mooring.model.values.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from mooring.state.cluster import Cluster
from mooring.state.nodes import PLACES
from mooring.state.shapes import Shape

AMOUNTS = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""Of these, whatever is left can be given to anybody; of others it may matter which."""
SPACING_SECONDS = 0.1
"""For each other scheduler that has claims, how long to wait between two writes of ours: one that is refused, because
another came first, costs as much as one that is not."""
REFUSED_SECONDS = 2.0
"""How long to wait where claims may not be written: nothing can be bound before somebody sees to that."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decided:
    """A bind that is not claimed yet, and what was known when it was decided."""

    decision: Bind
    pod: Pod
    claim: Claim
    news: int
    """How many claims of others had come."""
    version: int
    """How far pods had been followed."""


class Sharing(NodeUse):
    """Holds decisions back until they are claimed."""

    follows_watches = True

    def __init__(
        self,
        claims: NodeClaims,
        scheduler: Callable[[], Scheduler],
        pods_version: Callable[[], int],
        find: Callable[[str], Pod | None],
    ) -> None:
        """`pods_version` is how far pods have been followed, `find` gives one as it was last seen."""
        super().__init__()
        self.claims = claims
        self._scheduler, self._pods_version, self._find = scheduler, pods_version, find
        self._news = self._seen = self._applied = 0
        self._held: dict[str, Decided] = {}
        """By pod, as they were decided. Of one that is decided on again, another had claimed it and let it go: only the
        last counts, or it would be bound twice, and taken for not bound when the second is refused."""
        self._wake = asyncio.Event()
        claims.on_foreign = self._see_claims

    def __len__(self) -> int:
        """How many binds are not claimed yet."""
        return len(self._held)

    @property
    def expects_binds(self) -> bool:
        """Whether anybody is about to bind a pod, as far as we know."""
        return bool(self._held) or self.claims.others_write

    @property
    def is_current(self) -> bool:
        """Whether pods have been followed as far as whoever claims something must have."""
        return self._pods_version() >= self.claims.needed_version

    def room(self, most: int) -> int:
        return most - len(self) if self.is_current else 0

    def take_in(self, events: Iterable[Event]) -> list[Event]:
        """What happened, with the pods that others are about to bind as if they had. What is decided next knows it."""
        events = list(events)
        changed = [event.pod.key for event in events if isinstance(event, PodSeen)]
        self.claims.tidy(self._is_counted, [*changed, *(event.key for event in events if isinstance(event, PodLost))])
        self._news, self._seen = self.claims.news_count, max(self._seen, self._pods_version())
        return [self._overlaid(event) for event in events]

    def _is_counted(self, claim: Claim) -> bool:
        """Whether the scheduler has applied that a pod is bound: it is told now, and acts on it in its next cycle."""
        record = self._scheduler().cluster.pods.records.get(PodKey(claim.pod))
        return (
            record is not None
            and record.pod.metadata.uid == claim.uid
            and bool(record.node_name)
            and not record.assumed
        )

    def _overlaid(self, event: Event) -> Event:
        if not isinstance(event, PodSeen) or event.pod.spec.node_name:
            return event
        claim = self.claims.foreign.get(event.pod.key)
        if claim is None or claim.uid != event.pod.metadata.uid:
            return event
        return PodSeen(_placed(event.pod, claim.node))

    def _see_claims(self, new: list[Claim], failed: list[Claim]) -> None:
        """Tell the scheduler where others are about to bind pods, or that they are not after all. A pod that is not
        seen yet is told of when it is; one that we were about to bind ourselves is theirs now."""
        for claim in new:
            pod = self._find(claim.pod)
            if pod is not None and pod.metadata.uid == claim.uid:
                self.tell(PodSeen(_placed(pod, claim.node)))
        records = self._scheduler().cluster.pods.records
        for claim in failed:
            pod, record = self._find(claim.pod), records.get(PodKey(claim.pod))
            if pod is not None and pod.metadata.uid == claim.uid and (record is None or not record.assumed):
                self.tell(PodSeen(pod))

    # Claiming.

    def hold(self, decision: Bind, pod: Pod) -> None:
        """Bind this when it is claimed."""
        self._applied = self._seen  # what was told before a cycle is in the cluster when that has decided
        self._held.pop(decision.pod, None)
        self._held[decision.pod] = Decided(decision, pod, _claim_of(decision, pod), self._news, self._seen)
        self._wake.set()

    def withdraw(self, decision: Bind, pod: Pod) -> None:
        """It is known not to be bound."""
        self.claims.withdraw(_claim_of(decision, pod))

    def may_bind(self, decision: Bind, pod: Pod) -> bool:
        """Whether a bind may be sent at once."""
        return bool(self.claims.may_bind(_claim_of(decision, pod)))

    async def wait_to_bind(self, decision: Bind, pod: Pod) -> bool:
        """Wait until a bind may be sent; False if it may not any more."""
        claim = _claim_of(decision, pod)
        while (may_bind := self.claims.may_bind(claim)) is None:
            await asyncio.sleep(0.1)
        return may_bind

    async def run(self) -> None:
        """Claim what is held, as long as nobody cancels it."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(KEPT_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            if not self._held and self.claims.has_something_to_write:
                await self._write([])  # say that we are there, and take out what others need not read any more
            while self._held:
                await self._claim()
                await asyncio.sleep(SPACING_SECONDS * self.claims.others)
            with contextlib.suppress(ApiError):  # it is asked again
                await self.claims.look_after_the_gone()

    async def _claim(self) -> None:
        """Claim all that is held in one write, but what came too late."""
        self._give_back_late()
        batch = list(self._held.values())
        if batch and await self._write(batch):
            for each in batch:
                is_last = self._held.get(each.decision.pod) is each
                if is_last:
                    del self._held[each.decision.pod]
                if is_last and self._is_there(each):
                    self.bind(each.decision)
                else:
                    self.claims.withdraw(each.claim)
        self.claims.forget_news(min((each.news for each in self._held.values()), default=self._news))

    async def _write(self, batch: list[Decided]) -> bool:
        try:
            return await self.claims.write([each.claim for each in batch])
        except ApiError as error:
            _log.warning("what is about to be bound cannot be written down: %s", error.message)
            await asyncio.sleep(REFUSED_SECONDS)
            return False

    def _give_back_late(self) -> None:
        if any(each.version < self.claims.horizon for each in self._held.values()):
            self._apply()
        self._held = {pod: each for pod, each in self._held.items() if self._is_there(each)}
        late = set(map(id, self._late()))
        spoilt = {_group_of(each.pod) for each in self._held.values() if id(each) in late} - {""}
        for pod, each in list(self._held.items()):
            if id(each) in late or _group_of(each.pod) in spoilt:
                del self._held[pod]
                self.conflict(each.decision, each.pod)
                claim = self._claim_of_another(each)
                if claim is not None:
                    self.tell(PodSeen(_placed(each.pod, claim.node)))

    def _apply(self) -> None:
        """Let the scheduler take in what it was told: while more is held than is decided at once, it runs no cycles."""
        self._scheduler().catch_up(time.time())
        self._applied = self._seen

    def _claim_of_another(self, each: Decided) -> Claim | None:
        """Where another scheduler is about to bind the very pod, if one is."""
        found = self.claims.foreign.get(each.decision.pod)
        return found if found is not None and found.uid == each.claim.uid else None

    def _is_there(self, each: Decided) -> bool:
        """Whether it is still to be bound: a pod may go while it waits, or be bound by somebody else."""
        record = self._scheduler().cluster.pods.records.get(PodKey(each.decision.pod))
        if record is None or record.pod.metadata.uid != each.claim.uid:
            return False
        return record.assumed and record.node_name == each.decision.node

    def _late(self) -> list[Decided]:
        """What is held and does not fit beside what others have claimed; those decided last go first."""
        cluster, claims = self._scheduler().cluster, self.claims
        held = list(self._held.values())
        nodes = {each.decision.node for each in held}
        theirs: defaultdict[str, dict[Claim, int]] = defaultdict(dict)
        for claim in claims.foreign.values():
            if claim.node in nodes and not claims.is_gone(claim):
                theirs[claim.node][claim] = 0
        for number, claim in claims.news_since(min((each.news for each in held), default=claims.news_count)):
            if claim.node in nodes and not claims.is_gone(claim):
                theirs[claim.node][claim] = number
        full = _overfull(cluster, nodes)
        free: dict[str, dict[str, int] | None] = {}
        late: list[Decided] = []
        for each in reversed(held):
            node, is_old = each.decision.node, each.version < claims.horizon
            if self._claim_of_another(each) is not None or (is_old and self._applied < claims.horizon):
                late.append(each)
            elif is_old or node in theirs or node in full:
                if node not in free:
                    free[node] = _room(cluster, node, theirs[node])
                room = free[node]
                record = cluster.pods.records.get(PodKey(each.decision.pod))
                news = [claim for claim, number in theirs[node].items() if number > each.news]
                if room is None or record is None or not _only_amounts_matter(cluster, each, news, is_old):
                    late.append(each)
                elif any(left < 0 for left in room.values()):
                    late.append(each)
                    for name in AMOUNTS:
                        room[name] += record.shape.request(name)
                    room[PLACES] += 1
        return late


def bound_at(pod: Pod | None, claim: Claim) -> int | None:
    """At which version a pod that another scheduler claimed was seen on a node; 0 if on none, None if there is none."""
    if pod is None or pod.metadata.uid != claim.uid:
        return None
    return int(pod.metadata.resource_version) if pod.spec.node_name else 0


def _overfull(cluster: Cluster, nodes: Iterable[str]) -> set[str]:
    """Those that have less than what we know to be on them: others bind there who claim nothing, or they shrank."""
    names = [name for name in nodes if name in cluster.nodes.row_of]
    rows = [cluster.nodes.row_of[name] for name in names]
    is_over = np.zeros(len(rows), bool)
    for amount in (*AMOUNTS, PLACES):
        is_over |= cluster.nodes.allocatable(amount)[rows] < cluster.nodes.requested(amount)[rows]
    return {name for name, over in zip(names, is_over, strict=True) if over}


def _room(cluster: Cluster, node: str, claims: Iterable[Claim]) -> dict[str, int] | None:
    """What is left on a node beside what we have decided and others have claimed; None if that cannot be said."""
    nodes = cluster.nodes
    row = nodes.row_of.get(node)
    if row is None:
        return None
    room = {name: int(nodes.allocatable(name)[row] - nodes.requested(name)[row]) for name in (*AMOUNTS, PLACES)}
    for claim in claims:
        record = cluster.pods.records.get(PodKey(claim.pod))
        if record is None or record.pod.metadata.uid != claim.uid:
            return None
        if record.row == row:
            continue  # it is counted already
        if not _is_plain(record.shape):
            return None
        for name in AMOUNTS:
            room[name] -= record.shape.request(name)
        room[PLACES] -= 1
    return room


def _only_amounts_matter(cluster: Cluster, each: Decided, news: list[Claim], is_old: bool) -> bool:
    """Whether what came to its node since it was decided is beside it only with what both take; `is_old`: some of that
    may have come without a claim that we read."""
    if is_old and not _are_plain_since(cluster, each.decision.node, each.version):
        return False
    return not (news or is_old) or _are_plain(cluster, [each.claim, *news])


def _are_plain(cluster: Cluster, claims: Iterable[Claim]) -> bool:
    """Whether all these pods only take amounts."""
    records = cluster.pods.records
    return all((record := records.get(PodKey(claim.pod))) is not None and _is_plain(record.shape) for claim in claims)


def _are_plain_since(cluster: Cluster, node: str, version: int) -> bool:
    """Whether all that came to a node, or changed there, after this version of pods only take amounts."""
    on_node = cluster.pods.on(cluster.nodes.row_of[node])
    return all(
        _is_plain(record.shape) for record in on_node if int(record.pod.metadata.resource_version or 0) > version
    )


def _is_plain(shape: Shape) -> bool:
    """Whether a pod only takes amounts of its node, so that another one beside it matters only by what it takes."""
    spec, affinity = shape.spec, shape.affinity
    return (
        shape.requests.keys() <= set(AMOUNTS)
        and not shape.host_ports
        and not shape.claims
        and not any(_is_of_node(volume) for volume in spec.volumes or ())
        and shape.card_request is None
        and (affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None))
    )


def _is_of_node(volume: Volume) -> bool:
    """Whether it matters on which node a volume is: not for what is only written into a directory, as tokens are."""
    return any(value is not None for name, value in structs.asdict(volume).items() if name not in ("name", "image"))


def _claim_of(decision: Bind, pod: Pod) -> Claim:
    return Claim(decision.pod, pod.metadata.uid, decision.node, int(pod.metadata.resource_version or 0))


def _group_of(pod: Pod) -> str:
    """The gang of a pod, which is bound as a whole; nothing if it is in none."""
    found = membership(pod)
    return found.gang if found is not None else ""


def _placed(pod: Pod, node: str) -> Pod:
    """A pod as if it were on that node."""
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name=node))
