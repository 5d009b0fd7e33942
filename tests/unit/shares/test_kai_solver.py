"""KAI's rounds on plain values: who moves, who is evicted, and who stays."""

from collections.abc import Sequence

import pytest

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.kai.queues import GPU
from mooring.actions.shares.kai.solver.jobs import ONE_GPU, Amount, Job, Node, Status, Task
from mooring.actions.shares.kai.solver.room import WHOLE, Occupant, Room
from mooring.actions.shares.kai.solver.rounds import KaiAction, open_session, run_round
from mooring.actions.shares.resources import UNLIMITED
from mooring.model.values.requests import CPU, MEMORY

ALL = tuple(KaiAction)


def node(name: str, gpus: int) -> Node:
    return Node(name, Amount(gpus * ONE_GPU, 10**9, 10**12))


def queue(name: str, parent: str = "", quota: int = 0, limit: int | None = None, **more: float) -> QueueSpec:
    return QueueSpec(
        name,
        parent,
        deserved={GPU: quota * ONE_GPU, CPU: UNLIMITED, MEMORY: UNLIMITED},
        capability={} if limit is None else {GPU: limit * ONE_GPU},
        weights={GPU: 1.0, CPU: 1.0, MEMORY: 1.0},
        created=float(len(name)),
        **more,  # type: ignore[arg-type]
    )


def job(
    name: str,
    gpus: float,
    *places: str,
    waiting: int = 0,
    of: str = "q",
    priority: int = 50,
    minimum: int | None = None,
    runs_for: float | None = 3600.0,
    preemptible: bool = True,
) -> Job:
    """A job that runs on these nodes, one task each, and of which so many tasks wait besides."""
    amount = Amount(round(gpus * ONE_GPU), 1000, 10**9)
    homes = [*places, *[""] * waiting]
    tasks = tuple(
        Task(f"{name}-{at}", amount, *(home.split("/", 1) if "/" in home else (home,))) for at, home in enumerate(homes)
    )
    minimum = len(tasks) if minimum is None else minimum
    created = float(name.strip("abcdefghijklmnopqrstuvwxyz") or 0)
    return Job(name, of, tasks, minimum, priority, preemptible, created=created, runs_for_seconds=runs_for)


def outcomes(
    nodes: Sequence[Node],
    jobs: Sequence[Job],
    actions: Sequence[KaiAction] = ALL,
    queues: Sequence[QueueSpec] = (queue("q", quota=100),),
) -> dict[str, list[str]]:
    decided = run_round(open_session(nodes, queues, jobs), actions)
    return {uid: [f"{each.word} {each.node}".strip() for each in found] for uid, found in decided.items()}


def test_a_job_moves_only_if_it_has_another_place() -> None:
    running = [job("r1", 1, "a"), job("r2", 1, "b"), job("n3", 4, waiting=1)]

    moved = outcomes([node("a", 4), node("b", 4)], running, [KaiAction.CONSOLIDATION])
    too_full = outcomes([node("a", 4), node("b", 4)], [*running, job("r4", 3, "a")], [KaiAction.CONSOLIDATION])

    assert moved == {"r1": ["running a"], "r2": ["moved a"], "n3": ["nominated b"]}
    assert too_full["n3"] == ["pending"]


def test_what_an_elastic_job_has_beyond_its_minimum_goes_first() -> None:
    running = [job("r1", 1, "a", "a", "a", minimum=1), job("r2", 1, "a"), job("n3", 2, waiting=1, priority=75)]

    found = outcomes([node("a", 4)], running, [KaiAction.PREEMPT])

    assert found == {
        "r1": ["running a", "evicted", "evicted"],
        "r2": ["running a"],
        "n3": ["nominated a"],
    }


@pytest.mark.parametrize(
    ("runs_for", "expected"), [(599.0, "running a"), (600.0, "evicted")], ids=["too short", "long enough"]
)
def test_a_job_that_has_not_run_for_its_minimum_is_not_preempted(runs_for: float, expected: str) -> None:
    queues = [queue("q", quota=100, preempt_runtime_seconds=600.0)]

    found = outcomes(
        [node("a", 1)],
        [job("r1", 1, "a", runs_for=runs_for), job("n2", 1, waiting=1, priority=75)],
        [KaiAction.PREEMPT],
        queues,
    )

    assert found["r1"] == [expected]


def test_a_queue_within_its_quota_reclaims_across_a_tree_of_three_levels() -> None:
    queues = [
        queue("company"),
        queue("ours", "company", quota=2),
        queue("q", "ours", quota=2),
        queue("theirs", "company", quota=2),
        queue("greedy", "theirs", quota=2),
    ]
    running = [job(f"r{at}", 1, "a", of="greedy") for at in range(4)]

    found = outcomes([node("a", 4)], [*running, job("n9", 1, waiting=3)], [KaiAction.RECLAIM], queues)
    fair = outcomes([node("a", 4)], [*running, job("n9", 1, waiting=2)], [KaiAction.RECLAIM], queues)

    assert found["n9"] == ["pending"] * 3, "three would be beyond its quota and its share"
    assert fair["n9"] == ["nominated a"] * 2
    assert [fair[f"r{at}"][0] for at in range(4)] == ["running a", "running a", "evicted", "evicted"]


def test_no_queue_gets_beyond_its_limit() -> None:
    found = outcomes([node("a", 8)], [job("n1", 1, waiting=5, minimum=1)], queues=[queue("q", quota=100, limit=3)])

    assert sorted(found["n1"]) == ["bound a"] * 3 + ["pending"] * 2


def test_half_a_gpu_goes_to_the_fullest_gpu_with_room() -> None:
    running = [job("r1", 0.2, "a/g0"), job("r2", 0.5, "a/g1"), job("n3", 0.5, waiting=1)]
    session = open_session([node("a", 2)], [queue("q", quota=100)], running)

    run_round(session, [KaiAction.ALLOCATE])

    assert session.states["n3-0"].gpu == "g1"


def test_a_session_is_as_before_once_it_is_rolled_back() -> None:
    running = [job("r1", 0.5, "a/g0"), job("r2", 1, "b"), job("n3", 1, waiting=1)]
    session = open_session([node("a", 2), node("b", 2)], [queue("q", quota=100)], running)
    before = dict(session.rooms), dict(session.states), dict(session.holdings)

    checkpoint = session.checkpoint()
    for uid in ("r1", "r2"):
        session.evict(session.jobs[uid].tasks[0])
    session.nominate(session.jobs["r1"].tasks[0], "b", "b/new")
    session.nominate(session.jobs["r2"].tasks[0], "b", WHOLE)
    session.bind(session.jobs["n3"].tasks[0], "a", WHOLE)
    session.rollback(checkpoint)

    assert (session.rooms, session.states, session.holdings) == before


def test_a_task_that_is_placed_where_it_was_stays() -> None:
    session = open_session([node("a", 2)], [queue("q", quota=100)], [job("r1", 1, "a")])
    task = session.jobs["r1"].tasks[0]
    before = session.rooms["a"]

    session.evict(task)
    assert (session.rooms["a"].idle.gpus, session.rooms["a"].releasing.gpus) == (ONE_GPU, ONE_GPU)
    session.nominate(task, "a", WHOLE)

    assert (session.states[task.uid].status, session.rooms["a"]) == (Status.RUNNING, before)


def test_a_shared_gpu_that_all_leave_counts_as_a_whole_one() -> None:
    part = Amount(ONE_GPU // 2, 0, 0)
    room = Room("a", Amount(ONE_GPU, 0, 0), idle=Amount(ONE_GPU, 0, 0))

    shared = room.put("x", Occupant(part, Status.RUNNING, "g")).put("y", Occupant(part, Status.RUNNING, "g"))
    one_leaves = shared.take("x").put("x", Occupant(part, Status.RELEASING, "g"))
    both_leave = one_leaves.take("y").put("y", Occupant(part, Status.RELEASING, "g"))

    assert [found.free.gpus for found in (room, shared, one_leaves, both_leave)] == [ONE_GPU, 0, 0, ONE_GPU]
    assert (one_leaves.releasing_gpus(), both_leave.take("x").take("y").idle) == (ONE_GPU // 2, room.idle)
