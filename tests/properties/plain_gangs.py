"""Gangs in random clusters, and what is right about preempting them, asked pod by pod from nothing."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from plain_preemption import protects

from mooring.actions.preempt.pods.search import refusals
from mooring.engine.profile import Profile
from mooring.model.api.pods import Pod
from mooring.model.events import GangSeen
from mooring.model.gangs.gang import Gang, Role
from mooring.model.gangs.membership import VOLCANO_GROUPS, VOLCANO_ROLE
from mooring.model.keys import NO_GANG, GangKey, PodKey
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord
from mooring.state.pods import PodRecord
from mooring.testing.builders import make_cluster, make_node, make_pod
from mooring.testing.random_clusters import APPS, Choose, one_in, one_of

URGENT = 25
Assignment = Sequence[tuple[PodRecord, int]]


def gang_key(name: str) -> GangKey:
    return GangKey(f"PodGroup.scheduling.volcano.sh/default/{name}")


def make_member(name: str, gang: str, *, role: str = "", **given: Any) -> Pod:
    annotations = {VOLCANO_GROUPS[1]: gang} | ({VOLCANO_ROLE: role} if role else {})
    return make_pod(name, annotations=annotations | given.pop("annotations", {}), **given)


def random_gang(choose: Choose, name: str, size: int, *, parent: GangKey = NO_GANG) -> Gang:
    return Gang(
        gang_key(name),
        f"default/{name}",
        1 + choose(size),
        roles=(Role("leader", 1),) if one_in(choose, 4) else (),
        priority=one_of(choose, (None, None, 0, 10, 30)),
        evicted_whole=not one_in(choose, 6),
        parent=parent,
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
            "priority": one_of(choose, (0, 10, 20, 10, 0, 20, 0, 30)),
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
            parent = gang_key("outer") if one_in(choose, 3) else NO_GANG
            cluster.observe(GangSeen(random_gang(choose, f"gang-{index}", size, parent=parent)))
    if one_in(choose, 2):
        priority = one_of(choose, (None, 10))
        cluster.observe(
            GangSeen(Gang(gang_key("outer"), "default/outer", 1 + choose(3), of_gangs=True, priority=priority))
        )
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


Placing = Callable[[Cluster], Assignment | None]


def plain_placing(profile: Profile, records: Sequence[PodRecord], rows: set[int] | None = None) -> Placing:
    """Places pods one by one on the first row, perhaps of some, that takes them."""

    def place(cluster: Cluster) -> Assignment | None:
        with cluster.what_if() as trial:
            for record in records:
                feasible = refusals(profile, cluster, record.shape).feasible.tolist()
                found = next((row for row in feasible if rows is None or row in rows), None)
                if found is None:
                    return None
                cluster.assume(record.key, found)
            trial.keep()
        return [(record, record.row) for record in records]

    return place


def placing_in_one_domain(profile: Profile, records: Sequence[PodRecord], domains: Sequence[int]) -> Placing:
    """Places all pods in the first domain that takes them; `domains` are by row, negative for none."""
    by_domain: dict[int, set[int]] = {}
    for row, domain in enumerate(domains):
        if domain >= 0:
            by_domain.setdefault(domain, set()).add(row)

    def place(cluster: Cluster) -> Assignment | None:
        tried = (plain_placing(profile, records, rows)(cluster) for rows in by_domain.values())
        return next((found for found in tried if found is not None), None)

    return place


# Who goes with whom.


def staying(gang: GangRecord) -> list[PodRecord]:
    return [record for record in gang.bound() if not record.shape.terminating]


def root_of(cluster: Cluster, record: PodRecord) -> GangRecord | None:
    """The outermost gang of a pod, if anybody has declared it."""
    gang = cluster.gangs.of(record.key)
    root = None if gang is None else cluster.gangs.root_of(gang)
    return root if root is not None and root.gang is not None else None


def victim_priority(cluster: Cluster, record: PodRecord) -> int:
    root = root_of(cluster, record)
    if root is None or root.gang is None:
        return record.priority
    if root.gang.priority is not None:
        return root.gang.priority
    members = [member for part in cluster.gangs.parts_of(root) for member in part.members.values()]
    return max(member.priority for member in members if member.row >= 0)


def core_of(part: GangRecord) -> set[PodKey]:
    """Those of a gang that cannot go one by one."""
    present = staying(part)
    return {record.key for record in present} - {free.key for free in part.surplus(present)}


def inner_and_rest(cluster: Cluster, root: GangRecord) -> tuple[list[GangRecord], list[GangRecord]]:
    """The gangs inside a gang that it can do without, and the others."""
    parts = list(cluster.gangs.parts_of(root))
    assert root.gang is not None
    whole = [part for part in parts if part.is_whole(staying(part))] if root.gang.of_gangs else []
    inner = whole[root.gang.minimum :]
    return inner, [part for part in parts if part not in inner]


def units_of(cluster: Cluster, victims: Sequence[PodRecord]) -> list[list[PodRecord]]:
    """Victims by what goes together: those of a gang that loses some of its core, else each by itself."""
    keys = {record.key for record in victims}
    units: dict[str, list[PodRecord]] = {}
    for record in victims:
        root, part = root_of(cluster, record), cluster.gangs.of(record.key)
        unit: str = record.key
        if root is not None and part is not None and record in staying(part):
            inner, rest = inner_and_rest(cluster, root)
            if any(not keys.isdisjoint(core_of(needed)) for needed in rest):
                unit = root.key
            elif part in inner and not keys.isdisjoint(core_of(part)):
                unit = part.key
        units.setdefault(unit, []).append(record)
    return list(units.values())


def check_no_gang_is_broken(cluster: Cluster, victims: Sequence[PodRecord]) -> None:
    """A gang of which anybody goes lacks nobody that it did not lack before, or goes as a whole."""
    keys = {record.key for record in victims}
    for gang in cluster.gangs.records.values():
        if gang.gang is None:
            continue
        parts = list(cluster.gangs.parts_of(gang))
        present = [record for part in parts for record in staying(part)]
        left = [record for record in present if record.key not in keys]
        if not left or len(left) == len(present):
            continue
        if gang.gang.of_gangs:
            whole = sum(part.is_whole(staying(part)) for part in parts)
            still = sum(part.is_whole([r for r in staying(part) if r.key not in keys]) for part in parts)
            assert still >= min(whole, gang.gang.minimum) or not_whole_by_choice(parts), f"{gang.key} is broken"
        elif gang.gang.evicted_whole:
            assert gang.lacks(left) == gang.lacks(present), f"{gang.key} is left with {[r.key for r in left]}"


def not_whole_by_choice(parts: Sequence[GangRecord]) -> bool:
    """Whether some gang inside lets its members go one by one."""
    return any(part.gang is not None and not part.gang.evicted_whole for part in parts)


def candidate_units(cluster: Cluster, priority: int, own: str = "") -> list[list[PodRecord]]:
    """All that might go for somebody of this priority: pods by themselves, and whole gangs."""
    units: dict[str, list[PodRecord]] = {}
    for record in cluster.pods.records.values():
        gang, root = cluster.gangs.of(record.key), root_of(cluster, record)
        if record.row < 0 or victim_priority(cluster, record) >= priority or (gang is not None and gang.key == own):
            continue
        goes_alone = gang is None or root is None or record not in staying(gang)
        units.setdefault(record.key if goes_alone or root is None else root.key, []).append(record)
    return list(units.values())


def is_protected_by_budget(cluster: Cluster, record: PodRecord) -> bool:
    return any(protects(budget, record.pod) for budget in cluster.related.disruption_budgets.values())


@contextmanager
def without(cluster: Cluster, victims: Sequence[PodRecord]) -> Iterator[None]:
    """Take pods away for as long as the block lasts."""
    with cluster.what_if():
        for record in victims:
            if record.row >= 0:
                cluster.release(record.key)
        yield
