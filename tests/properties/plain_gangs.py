"""Gangs in random clusters, and what is right about preempting them, asked pod by pod from nothing."""

from collections.abc import Callable, Sequence
from typing import Any

from plain_preemption import protects

from mooring.actions.preempt.search import refusals
from mooring.engine.profile import Profile
from mooring.model.events import GangSeen
from mooring.model.gangs import Gang, Role
from mooring.model.membership import VOLCANO_GROUPS, VOLCANO_ROLE
from mooring.model.pods import Pod
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord
from mooring.state.pods import PodRecord
from mooring.testing.builders import make_cluster, make_node, make_pod
from mooring.testing.random_clusters import APPS, Choose, one_in, one_of

URGENT = 25
Assignment = Sequence[tuple[PodRecord, int]]


def gang_key(name: str) -> str:
    return f"PodGroup.scheduling.volcano.sh/default/{name}"


def make_member(name: str, gang: str, *, role: str = "", **given: Any) -> Pod:
    annotations = {VOLCANO_GROUPS[1]: gang} | ({VOLCANO_ROLE: role} if role else {})
    return make_pod(name, annotations=annotations | given.pop("annotations", {}), **given)


def random_gang(choose: Choose, name: str, size: int) -> Gang:
    return Gang(
        gang_key(name),
        f"default/{name}",
        1 + choose(size),
        roles=(Role("leader", 1),) if one_in(choose, 4) else (),
        priority=one_of(choose, (None, None, 0, 10, 30)),
        evicted_whole=not one_in(choose, 6),
    )


def random_start(choose: Choose) -> str | None:
    return None if one_in(choose, 6) else f"2026-01-01T0{choose(9)}:00:00Z"


def crowded_with_gangs(choose: Choose, *, nodes: int, pods: int, gangs: int, terms: Sequence[Any] = ()) -> Cluster:
    """Nodes full of pods by themselves and of gangs; `terms` are more that some pods say."""
    made = [make_node(f"node-{i}", cpu=2 + choose(3), memory="8Gi", gpu=choose(3)) for i in range(nodes)]
    running: list[Pod] = []

    def run(pod: Pod) -> None:
        pod.status.start_time = random_start(choose)
        running.append(pod)

    def given() -> dict[str, Any]:
        more = dict(one_of(choose, ({}, *terms)))
        return {
            "cpu": one_of(choose, ("500m", "1", "1500m")),
            "gpu": choose(2),
            "priority": choose(4) * 10,
            "labels": {"app": one_of(choose, APPS)},
            "node": f"node-{choose(nodes)}",
            "terminating": one_in(choose, 20),
        } | more

    for index in range(pods):
        run(make_pod(f"pod-{index}", **given()))
    sizes = [1 + choose(4) for _ in range(gangs)]
    for index, size in enumerate(sizes):
        for member in range(size):
            role = "leader" if member == 0 else "worker"
            run(make_member(f"gang-{index}-{member}", f"gang-{index}", role=role, **given()))
    cluster = make_cluster(nodes=made, pods=running)
    for index, size in enumerate(sizes):
        if not one_in(choose, 8):
            cluster.observe(GangSeen(random_gang(choose, f"gang-{index}", size)))
    return cluster


def fits_everywhere(profile: Profile, cluster: Cluster, assignment: Assignment) -> bool:
    """Whether each member that is in its place could come there, with all others in theirs."""
    for record, row in assignment:
        cluster.release(record.key)
        fits = row in refusals(profile, cluster, record.shape).feasible.tolist()
        cluster.assume(record.key, row)
        if not fits:
            return False
    return True


def plain_placing(profile: Profile, records: Sequence[PodRecord]) -> Callable[[Cluster], Assignment | None]:
    """Places pods one by one on the first row that takes them."""

    def place(cluster: Cluster) -> Assignment | None:
        checkpoint = cluster.checkpoint()
        for record in records:
            feasible = refusals(profile, cluster, record.shape).feasible
            if not len(feasible):
                cluster.rollback(checkpoint)
                return None
            cluster.assume(record.key, int(feasible[0]))
        cluster.commit(checkpoint)
        return [(record, record.row) for record in records]

    return place


# Who goes with whom.


def staying(gang: GangRecord) -> list[PodRecord]:
    return [record for record in gang.bound() if not record.shape.terminating]


def victim_priority(cluster: Cluster, record: PodRecord) -> int:
    gang = cluster.gangs.of(record.key)
    if gang is None or gang.gang is None:
        return record.priority
    if gang.gang.priority is not None:
        return gang.gang.priority
    return max(member.priority for member in gang.members.values() if member.row >= 0)


def units_of(cluster: Cluster, victims: Sequence[PodRecord]) -> list[list[PodRecord]]:
    """Victims by what goes together: the pods of a gang that loses some of its core, else each by itself."""
    keys = {record.key for record in victims}
    whole: dict[str, list[PodRecord]] = {}
    alone: list[list[PodRecord]] = []
    for record in victims:
        gang = cluster.gangs.of(record.key)
        if gang is None or gang.gang is None or record not in staying(gang):
            alone.append([record])
            continue
        present = staying(gang)
        surplus = {free.key for free in gang.surplus(present)}
        if any(member.key in keys and member.key not in surplus for member in present):
            whole.setdefault(gang.key, []).append(record)
        else:
            alone.append([record])
    return [*whole.values(), *alone]


def check_no_gang_is_broken(cluster: Cluster, victims: Sequence[PodRecord]) -> None:
    """A gang of which anybody goes lacks nobody that it did not lack before, or goes as a whole."""
    keys = {record.key for record in victims}
    for gang in cluster.gangs.records.values():
        present = staying(gang)
        left = [record for record in present if record.key not in keys]
        if gang.gang is None or not gang.gang.evicted_whole or len(left) == len(present):
            continue
        assert not left or gang.lacks(left) == gang.lacks(present), f"{gang.key} is left with {[r.key for r in left]}"


def candidate_units(cluster: Cluster, priority: int, own: str = "") -> list[list[PodRecord]]:
    """All that might go for somebody of this priority: pods by themselves, and whole gangs."""
    units: list[list[PodRecord]] = []
    for record in cluster.pods.records.values():
        gang = cluster.gangs.of(record.key)
        if record.row < 0 or victim_priority(cluster, record) >= priority or (gang is not None and gang.key == own):
            continue
        if gang is None or gang.gang is None or record not in staying(gang):
            units.append([record])
    for gang in cluster.gangs.records.values():
        present = staying(gang)
        if gang.gang is not None and gang.key != own and present:
            if victim_priority(cluster, present[0]) < priority:
                units.append(present)
    return units


def is_protected_by_budget(cluster: Cluster, record: PodRecord) -> bool:
    return any(protects(budget, record.pod) for budget in cluster.related.disruption_budgets.values())


def without(cluster: Cluster, victims: Sequence[PodRecord]) -> Any:
    """Take pods away; return the checkpoint to roll back to."""
    checkpoint = cluster.checkpoint()
    for record in victims:
        if record.row >= 0:
            cluster.release(record.key)
    return checkpoint
