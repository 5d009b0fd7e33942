"""On tiny clusters a gang is placed exactly if there is a way to place its members one after the other at all."""

from typing import Any

from drawing import choices
from gang_stories import no_preemption
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mooring.engine.evaluate import evaluate
from mooring.engine.profile import Profile
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind
from mooring.model.events import GangSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import PLAIN_KIND
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.testing.builders import (
    HOSTNAME,
    ZONE,
    make_affinity,
    make_node,
    make_pod,
    make_pod_term,
    make_scheduler,
    make_spread,
)
from mooring.testing.random_clusters import Choose, one_in, one_of

ROLES = ("leader", "worker", "helper")


def random_members(choose: Choose, count: int) -> list[Pod]:
    """Members of up to three kinds, some of which insist on being near others of the gang, or apart, or spread."""
    kinds: list[dict[str, Any]] = []
    for role in ROLES[: 1 + choose(3)]:
        given: dict[str, Any] = {"labels": {"role": role}, "gpu": choose(4), "cpu": 1 + choose(3)}
        term = [make_pod_term(one_of(choose, (ZONE, HOSTNAME)), labels={"role": one_of(choose, ROLES)})]
        match choose(6):
            case 1 | 2:
                given["affinity"] = make_affinity(near=term)
            case 3:
                given["affinity"] = make_affinity(away=term)
            case 4:
                given["spread"] = [make_spread(ZONE, labels={"role": role})]
        kinds.append(given)
    annotations = {"mooring.dev/gang-name": "train"}
    return [make_pod(f"train-{i}", annotations=annotations, **one_of(choose, kinds)) for i in range(count)]


def can_be_placed(cluster: Cluster, profile: Profile, left: list[PodRecord], seen: set[Any]) -> bool:
    """Try every order of members and every row for each, by the plain filters; equal situations once."""
    if not left:
        return True
    shapes, rows = cluster.pods.bound()
    situation = tuple(sorted(zip(shapes.tolist(), rows.tolist(), strict=True)))
    if situation in seen:
        return False
    seen.add(situation)
    for record in {found.shape.id: found for found in left}.values():
        others = [found for found in left if found is not record]
        for row in evaluate(profile, cluster, record.shape).feasible.tolist():
            cluster.assume(record.key, row)
            found = can_be_placed(cluster, profile, others, seen)
            cluster.release(record.key)
            if found:
                return True
    return False


@given(choose=choices(), nodes=st.integers(1, 4), count=st.integers(1, 5))
@examples(200)
def test_a_gang_is_placed_if_and_only_if_that_is_possible(choose: Choose, nodes: int, count: int) -> None:
    made = [
        make_node(f"n{i}", gpu=choose(6), cpu=one_of(choose, (8, 3, 2)), zone=f"zone-{choose(2)}") for i in range(nodes)
    ]
    busy = []
    for i in range(choose(3)):
        away = make_affinity(away=[make_pod_term(HOSTNAME, labels={"role": one_of(choose, ROLES)})])
        near = {"role": one_of(choose, ROLES)} if one_in(choose, 2) else {}
        affinity = away if one_in(choose, 2) else None
        busy.append(make_pod(f"busy-{i}", node=f"n{choose(nodes)}", cpu=1, labels=near, affinity=affinity))
    members = random_members(choose, count)
    scheduler = make_scheduler(nodes=made, pods=[*busy, *members], profile=no_preemption())
    scheduler.handle(GangSeen(Gang(gang_key(PLAIN_KIND, "default", "train"), "default/train", count)))
    profile = next(iter(scheduler.profiles.values()))
    records = [scheduler.cluster.pods.records[pod.key] for pod in members]
    is_possible = can_be_placed(scheduler.cluster, profile, records, set())

    placed = [found for found in scheduler.cycle(1.0) if isinstance(found, Bind)]

    assert len(placed) == (count if is_possible else 0)
