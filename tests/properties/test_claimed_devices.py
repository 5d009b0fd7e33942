"""Claims: no device given out twice, no counter overdrawn, what is tried leaves no trace, and caches change nothing."""

from typing import Any

from drawing import choices
from hypothesis import given
from hypothesis import strategies as st
from test_rollback import release_and_restore

from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind, Decision, Evict
from mooring.model.events import GangSeen, PodLost, PodSeen
from mooring.model.loading.manifests import build_manifests
from mooring.state.cluster import Cluster
from mooring.testing.builders import make_profile, make_scheduler
from mooring.testing.claim_worlds import ClaimWorld, wrong_with_devices

STRATEGIES = st.sampled_from(("FirstFit", "Packed"))


def scheduler_of(world: ClaimWorld, strategy: str, *, cached: bool = True) -> Scheduler:
    profile = make_profile(args={"DynamicResources": {"allocationStrategy": strategy}})
    return make_scheduler(nodes=world.nodes, related=world.related, profile=profile, cached=cached)


def run(scheduler: Scheduler, steps: list[list[PodSeen | PodLost]]) -> list[list[Decision]]:
    """Let things happen, and carry out what is decided."""
    made = []
    for now, events in enumerate(steps):
        scheduler.handle(*events)
        decisions = scheduler.cycle(100.0 * now)
        made.append(decisions)
        scheduler.handle(*(PodLost(found.pod) for found in decisions if isinstance(found, Evict)))
    return made


@st.composite
def stories(draw: st.DrawFn) -> tuple[ClaimWorld, list[list[PodSeen | PodLost]]]:
    choose = draw(choices())
    world = ClaimWorld(choose, nodes=draw(st.integers(1, 4)))
    steps: list[list[PodSeen | PodLost]] = []
    names: list[str] = []
    for step in range(draw(st.integers(1, 4))):
        events: list[PodSeen | PodLost] = []
        for index in range(choose(5)):
            name = f"p{step}-{index}"
            names.append(name)
            events.append(PodSeen(world.pod(name, priority=choose(3))))
        if names and choose(2):
            events.append(PodLost(f"default/{names.pop(choose(len(names)))}"))
        steps.append(events)
    return world, steps


def fingerprint(cluster: Cluster) -> Any:
    return (
        dict(cluster.devices.held),
        {row: cluster.devices.of_row(row).taken for row in cluster.devices.on_row},
        {
            key: (cluster.claims.state(key).allocation, cluster.claims.state(key).users)
            for record in cluster.pods.records.values()
            for key, _ in cluster.claims.claims_of(record.pod)
        },
        {record.key: record.row for record in cluster.pods.records.values()},
    )


@given(stories(), STRATEGIES)
def test_nobody_gets_what_another_has_and_every_claim_is_met(
    story: tuple[ClaimWorld, list[list[PodSeen | PodLost]]], strategy: str
) -> None:
    world, steps = story
    scheduler = scheduler_of(world, strategy)

    run(scheduler, steps)
    scheduler.cycle(10_000.0)

    assert list(wrong_with_devices(scheduler.cluster)) == []


@given(stories(), STRATEGIES)
def test_kept_answers_give_the_same_decisions_as_none(
    story: tuple[ClaimWorld, list[list[PodSeen | PodLost]]], strategy: str
) -> None:
    world, steps = story

    assert run(scheduler_of(world, strategy), steps) == run(scheduler_of(world, strategy, cached=False), steps)


@given(stories(), choices())
def test_what_is_tried_out_leaves_no_trace(
    story: tuple[ClaimWorld, list[list[PodSeen | PodLost]]], choose: Any
) -> None:
    world, steps = story
    scheduler = scheduler_of(world, "FirstFit")
    run(scheduler, steps)
    cluster = scheduler.cluster
    cluster.observe(*(PodSeen(world.pod(f"more-{index}")) for index in range(3)))
    before = fingerprint(cluster)

    with cluster.what_if():
        for _ in range(6):
            records = list(cluster.pods.records.values())
            record = records[choose(len(records))]
            if record.row >= 0:
                cluster.release(record.key)
            elif not record.node_name:
                cluster.assume(record.key, int(cluster.nodes.live_rows()[choose(len(cluster.nodes))]))

    assert fingerprint(cluster) == before
    with cluster.what_if():
        release_and_restore(cluster, choose)
        assert fingerprint(cluster) == before
    assert fingerprint(cluster) == before


def gang_of(world: ClaimWorld, size: int) -> list[GangSeen | PodSeen]:
    document = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"minMember": size},
    }
    pods = [world.pod(f"member-{index}") for index in range(size)]
    for pod in pods:
        pod.metadata.labels = {"pod-group.scheduling.sigs.k8s.io": "gang"}
    return [*map(GangSeen, build_manifests([document], source="gang").gangs), *map(PodSeen, pods)]


@given(stories(), st.integers(2, 4), st.booleans())
def test_a_gang_gets_all_of_its_devices_or_none(
    story: tuple[ClaimWorld, list[list[PodSeen | PodLost]]], size: int, cached: bool
) -> None:
    world, steps = story
    scheduler = scheduler_of(world, "FirstFit", cached=cached)
    run(scheduler, steps[:1])
    scheduler.handle(*gang_of(world, size))

    decisions = scheduler.cycle(1_000.0)

    bound = [found.pod for found in decisions if isinstance(found, Bind) and "member" in found.pod]
    assert len(bound) in (0, size)
    assert list(wrong_with_devices(scheduler.cluster)) == []


@given(stories())
def test_a_binding_carries_exactly_what_its_claims_hold(
    story: tuple[ClaimWorld, list[list[PodSeen | PodLost]]],
) -> None:
    world, steps = story
    scheduler = scheduler_of(world, "FirstFit")

    for decisions in run(scheduler, steps):
        for bind in decisions:
            if isinstance(bind, Bind):
                assert [claim.allocation is not None for claim in bind.claims] == [True]
