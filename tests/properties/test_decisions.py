"""What holds of every cycle's decisions, whatever came before."""

from collections import Counter, defaultdict
from typing import Any

import pytest
from drawing import choices, worlds
from hypothesis import given
from hypothesis import strategies as st
from stories import assembled

from examples import examples
from mooring.engine.cycle import Scheduler
from mooring.engine.evaluate import evaluate
from mooring.model.decisions import Bind, Decision, Wait
from mooring.model.events import Event, NodeSeen, ObjectSeen, PodSeen
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import pod_requests
from mooring.testing.builders import make_node, make_pod, make_profile
from mooring.testing.random_clusters import Choose, Template, World, random_node, random_template, seeded

STEPS = st.lists(st.integers(1, 5), min_size=1, max_size=5)


def start(world: World, profile: dict[str, Any] | None = None) -> Scheduler:
    scheduler = assembled(profile).new_scheduler()
    scheduler.handle(*map(ObjectSeen, world.related), *map(NodeSeen, world.nodes.values()))
    return scheduler


def advance(scheduler: Scheduler, world: World, events: list[Event], now: float) -> list[Decision]:
    scheduler.handle(*events)
    decisions = scheduler.cycle(now)
    scheduler.handle(*world.carry_out(decisions))
    return decisions


@given(world=worlds(), steps=STEPS)
def test_no_decision_overloads_a_node(world: World, steps: list[int]) -> None:
    scheduler = start(world)

    for now, events in enumerate(steps, start=1):
        decisions = advance(scheduler, world, world.events(events), now)

        chosen = {decision.node for decision in decisions if isinstance(decision, Bind)}
        for name in chosen:
            running = [pod for pod in world.pods.values() if pod.spec.node_name == name]
            ours = {decision.pod for decision in decisions if isinstance(decision, Bind) and decision.node == name}
            taken = Counter[str]()
            asked = set[str]()
            for pod in running:
                requests = pod_requests(pod)
                taken.update(requests)
                asked |= {resource for resource, amount in requests.items() if amount and pod.key in ours}
            has = world.nodes[name].status.allocatable or {}
            short = {
                resource: taken[resource]
                for resource in asked
                if taken[resource] > parse_quantity(has.get(resource, 0))
            }
            assert not short, f"{name} has {has} and was given {short} (billionths) by {sorted(ours)}"
            assert len(running) <= int(has["pods"]), f"{name} takes {has['pods']} pods and was given {len(running)}"


@given(world=worlds(), steps=STEPS)
def test_pods_that_wait_have_no_feasible_node_at_the_end_of_a_cycle(world: World, steps: list[int]) -> None:
    scheduler = start(world)

    for now, events in enumerate(steps, start=1):
        advance(scheduler, world, world.events(events), now)

        for parked in scheduler.queue.parked():
            for entry in parked.entries:
                feasible = evaluate(entry.profile, scheduler.cluster, entry.record.shape).feasible
                names = [scheduler.cluster.nodes.name(row) for row in feasible.tolist()]
                assert not names, f"{entry.record.key} waits after cycle {now}, and {names} would take it"


@given(seed=st.integers(0, 100_000))
@examples(40)
def test_the_same_events_give_the_same_decisions_twice(seed: int) -> None:
    told = []
    for _ in range(2):
        choose = seeded(seed)
        world = World(choose, [random_template(choose) for _ in range(3)])
        world.nodes = {f"node-{index}": random_node(choose, f"node-{index}") for index in range(12)}
        scheduler = start(world)
        told.append([advance(scheduler, world, world.events(4), now) for now in range(1, 6)])

    assert told[0] == told[1]


@given(
    choose=choices(), seed=st.randoms(use_true_random=False), counts=st.lists(st.integers(1, 8), min_size=1, max_size=4)
)
def test_the_order_of_the_nodes_changes_nothing(choose: Choose, seed: Any, counts: list[int]) -> None:
    templates = [random_template(choose) for _ in counts]
    nodes = [random_node(choose, f"node-{index}") for index in range(8)]
    pods = [
        t.pod(f"pod-{i}-{j}") for i, (t, count) in enumerate(zip(templates, counts, strict=True)) for j in range(count)
    ]
    shuffled = nodes.copy()
    seed.shuffle(shuffled)

    decided = []
    for order in (nodes, shuffled):
        scheduler = assembled(None).new_scheduler()
        scheduler.handle(*map(NodeSeen, order), *map(PodSeen, pods))
        decided.append(scheduler.cycle(1.0))

    assert decided[0] == decided[1]


@given(
    choose=choices(),
    priorities=st.lists(st.integers(0, 3), min_size=2, max_size=24),
    size=st.sampled_from([1, 3, 64]),
)
def test_no_pod_is_placed_before_one_of_higher_priority(choose: Choose, priorities: list[int], size: int) -> None:
    """Of pods that ask for the same, the more urgent get the room; and what is placed is placed in order."""
    profile = make_profile(args={"Batching": {"mode": "Fixed", "size": size}})
    scheduler = assembled(profile).new_scheduler()
    nodes = [make_node(f"node-{index}", cpu=1 + choose(3)) for index in range(3)]
    pods = [make_pod(f"pod-{i}", cpu=1, priority=priority) for i, priority in enumerate(priorities)]
    scheduler.handle(*map(NodeSeen, nodes), *map(PodSeen, pods))

    decisions = scheduler.cycle(1.0)

    in_order = sorted(range(len(pods)), key=lambda index: (-priorities[index], index))
    expected = [pods[index].key for index in in_order]
    assert [decision.pod for decision in decisions if isinstance(decision, Bind | Wait)] == expected
    kinds = [type(decision) for decision in decisions]
    assert kinds == sorted(kinds, key=lambda kind: kind is not Bind), "a pod was placed after one that had to wait"


@pytest.mark.parametrize("size", [2, 7, 64])
@given(choose=choices(), counts=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_batches_of_any_size_place_pods_as_one_by_one(size: int, choose: Choose, counts: list[int]) -> None:
    """Pods that say nothing of other pods: for those, whoever comes later cannot help whoever came before."""
    templates = [_without_pod_terms(random_template(choose)) for _ in counts]
    nodes = [random_node(choose, f"node-{index}") for index in range(6)]
    pods = [
        t.pod(f"pod-{i}-{j}") for i, (t, count) in enumerate(zip(templates, counts, strict=True)) for j in range(count)
    ]

    placed: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for batch in (1, size):
        profile = make_profile(args={"Batching": {"mode": "Fixed", "size": batch}})
        scheduler = assembled(profile).new_scheduler()
        scheduler.handle(*map(NodeSeen, nodes), *map(PodSeen, pods))
        placed[batch] = {d.pod: d.node for d in scheduler.cycle(1.0) if isinstance(d, Bind)}

    assert placed[size] == placed[1]


def _without_pod_terms(template: Template) -> Template:
    return Template({name: value for name, value in template.given.items() if name not in ("affinity", "spread")})
