"""What KAI's rounds decide, on any cluster: no node is overfull, gangs are whole, and only those go who may."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.kai.queues import GPU
from mooring.actions.shares.kai.solver.jobs import ONE_GPU, Amount, Job, Node, Task, total_of
from mooring.actions.shares.kai.solver.rounds import Decisions, KaiAction, open_session, run_round
from mooring.actions.shares.resources import UNLIMITED
from mooring.model.values.requests import CPU, MEMORY

QUEUES = ("red", "green", "blue")
STAYS = ("running", "bound", "nominated", "moved")


@dataclass(frozen=True)
class World:
    """Nodes, queues and jobs that fit on them."""

    nodes: Sequence[Node]
    queues: Sequence[QueueSpec]
    jobs: Sequence[Job]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=4))
    nodes = [Node(f"node{at}", Amount(gpus * ONE_GPU, 10**9, 20)) for at, gpus in enumerate(sizes)]
    queues = [
        QueueSpec(
            name,
            deserved={GPU: draw(st.integers(0, 6)) * ONE_GPU, CPU: UNLIMITED, MEMORY: UNLIMITED},
            capability={GPU: 8 * ONE_GPU} if draw(st.booleans()) else {},
            weights={GPU: 1.0, CPU: 1.0, MEMORY: 1.0},
            priority=draw(st.sampled_from([100, 200])),
            created=float(at),
        )
        for at, name in enumerate(QUEUES)
    ]
    free = {node.name: node.total.gpus for node in nodes}
    jobs = [_draw_job(draw, at, free) for at in range(draw(st.integers(1, 8)))]
    return World(nodes, queues, jobs)


def _draw_job(draw: st.DrawFn, at: int, free: dict[str, int]) -> Job:
    gpus = draw(st.sampled_from([500, 1000, 1000, 2000, 4000]))
    amount, count = Amount(gpus, 1, 1), draw(st.integers(1, 3))
    name, tasks = f"job{at}", []
    runs = draw(st.booleans())
    for index in range(count):
        homes = [node for node, left in free.items() if left >= max(gpus, ONE_GPU)] if runs else []
        home = draw(st.sampled_from(homes)) if homes else ""
        if home:
            free[home] -= max(gpus, ONE_GPU)  # each part on a GPU of its own
        tasks.append(Task(f"{name}-{index}", amount, home, f"{home}-{name}-{index}" if home and gpus < ONE_GPU else ""))
    running = sum(bool(task.node) for task in tasks)
    return Job(
        name,
        draw(st.sampled_from(QUEUES)),
        tuple(tasks),
        minimum=draw(st.integers(1, running)) if running else count,
        priority=draw(st.sampled_from([50, 75])),
        is_preemptible=draw(st.booleans()),
        created=float(at),
        runs_for_seconds=60.0 if running else None,
    )


def decide(world: World, actions: Sequence[KaiAction]) -> Decisions:
    return run_round(open_session(world.nodes, world.queues, world.jobs), actions)


ACTIONS = st.lists(st.sampled_from(KaiAction), min_size=1, max_size=4)


@examples(150)
@given(worlds(), ACTIONS)
def test_no_node_holds_more_than_it_has_once_everybody_is_in_place(world: World, actions: list[KaiAction]) -> None:
    decided = decide(world, actions)

    for node in world.nodes:
        there = [
            task.amount
            for job in world.jobs
            for task, outcome in zip(job.tasks, decided[job.uid], strict=True)
            if outcome.word in STAYS and outcome.node == node.name
        ]
        assert total_of(there).fits(node.total)


@examples(150)
@given(worlds(), ACTIONS)
def test_gangs_start_whole_and_only_those_go_who_may(world: World, actions: list[KaiAction]) -> None:
    decided = decide(world, actions)

    for job in world.jobs:
        words = [outcome.word for outcome in decided[job.uid]]
        if not any(task.node for task in job.tasks):
            in_place = sum(word in STAYS for word in words)
            assert in_place == 0 or in_place >= job.minimum
        if not job.is_preemptible:
            assert "moved" not in words and "evicted" not in words


@examples(150)
@given(worlds())
def test_consolidation_leaves_nobody_without_a_place(world: World) -> None:
    decided = decide(world, [KaiAction.CONSOLIDATION])

    placed = {uid for uid, found in decided.items() if any(outcome.word == "nominated" for outcome in found)}
    assert not any(outcome.word == "evicted" for found in decided.values() for outcome in found)
    assert all(job.is_preemptible for job in world.jobs if job.uid in placed)
    if not placed:
        assert not any(outcome.word == "moved" for found in decided.values() for outcome in found)


@examples(100)
@given(worlds())
def test_a_job_is_preempted_only_by_a_more_important_one_of_its_queue(world: World) -> None:
    decided = decide(world, [KaiAction.PREEMPT])

    for job in world.jobs:
        if any(outcome.word in ("evicted", "moved") for outcome in decided[job.uid]):
            assert any(
                other.queue == job.queue
                and other.priority > job.priority
                and any(outcome.word == "nominated" for outcome in decided[other.uid])
                for other in world.jobs
            )


@examples(100)
@given(worlds(), ACTIONS, st.randoms(use_true_random=False))
def test_the_order_in_which_nodes_are_given_changes_nothing(
    world: World, actions: list[KaiAction], random: object
) -> None:
    nodes = list(world.nodes)
    random.shuffle(nodes)  # type: ignore[attr-defined]

    assert decide(World(nodes, world.queues, world.jobs), actions) == decide(world, actions)
