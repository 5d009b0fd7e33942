"""Answer recorded scenarios of KAI's allocate, consolidation, reclaim and preempt. See tests/golden-kai/README.md."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.kai.queues import GPU
from mooring.actions.shares.kai.solver.jobs import ONE_GPU, Amount, Job, Node, Outcome, Task
from mooring.actions.shares.kai.solver.rounds import Decisions, KaiAction, open_session, run_round
from mooring.actions.shares.resources import UNLIMITED
from mooring.model.api.kai_queue import DEFAULT_PRIORITY
from mooring.model.values.requests import CPU, MEMORY

Json = dict[str, Any]

CPU_OF_NODE = 20_000_000
"""Thousandths: far more than is ever asked for."""
MEMORY_OF_NODE = 20 * 10**9
CPU_OF_TASK, MEMORY_OF_TASK = 1000, 10**9
FIRM_PRIORITY = 100
"""Jobs of this priority cannot be evicted, unless they say otherwise."""
RUNS_FOR_SECONDS = 60.0
THE_DEPARTMENT = "department"
"""The one that is there if a scenario names none."""


def is_kai(scenario: Json) -> bool:
    """Tell a scenario of KAI's actions from the others."""
    return "jobs" in scenario and "actions" in scenario


def answer_scenario(scenario: Json) -> Json:
    """Decide one scenario, in the form of its `expect`."""
    nodes = [
        Node(name, Amount(found["gpus"] * ONE_GPU, CPU_OF_NODE, MEMORY_OF_NODE))
        for name, found in scenario["nodes"].items()
    ]
    queues = _read_queues(scenario)
    jobs = [_read_job(job) for job in scenario["jobs"]]
    homes = {job.uid: [task.node for task in job.tasks] for job in jobs}
    actions = [KaiAction(name) for name in scenario["actions"]]
    rounds = []
    for _ in range(scenario["rounds"]):
        decisions = run_round(open_session(nodes, queues, jobs), actions)
        rounds.append({name: [_describe(outcome) for outcome in found] for name, found in decisions.items()})
        jobs = [_next_round(job, decisions) for job in jobs]
    return {"id": scenario["id"], "rounds": rounds, "homes": homes}


def _read_queues(scenario: Json) -> list[QueueSpec]:
    departments = scenario.get("departments") or [{"name": THE_DEPARTMENT, "quota": None}]
    found = [_read_queue(queue, "", float(age), weight=queue["quota"] or 0.0) for age, queue in enumerate(departments)]
    return found + [
        _read_queue(queue, queue.get("parent", THE_DEPARTMENT), float(age), weight=queue["weight"])
        for age, queue in enumerate(scenario["queues"])
    ]


def _read_queue(queue: Json, parent: str, created: float, *, weight: float) -> QueueSpec:
    quota, limit = queue["quota"], queue.get("limit")
    return QueueSpec(
        queue["name"],
        parent,
        priority=queue.get("priority", DEFAULT_PRIORITY),
        created=created,
        deserved={
            GPU: UNLIMITED if quota is None else round(quota * ONE_GPU),
            CPU: UNLIMITED,
            MEMORY: UNLIMITED,
        },
        capability={} if limit is None else {GPU: round(limit * ONE_GPU)},
        weights={GPU: weight, CPU: 1.0, MEMORY: 1.0},
        minimum_runtime_seconds=queue.get("reclaimMinRuntime"),
        preempt_runtime_seconds=queue.get("preemptMinRuntime"),
    )


def _read_job(job: Json) -> Job:
    amount = Amount(round(job["gpus"] * ONE_GPU), CPU_OF_TASK, MEMORY_OF_TASK)
    tasks = tuple(
        Task(f"{job['name']}-{index}", amount, task.get("node") or "", task.get("gpu") or "")
        for index, task in enumerate(job["tasks"])
    )
    by_priority = "preemptible" if job["priority"] < FIRM_PRIORITY else "non-preemptible"
    runs_for = RUNS_FOR_SECONDS if any(task.node for task in tasks) else None
    return Job(
        job["name"],
        job["queue"],
        tasks,
        minimum=job.get("min", len(tasks)),
        priority=job["priority"],
        is_preemptible=(job.get("preemptibility") or by_priority) == "preemptible",
        created=-60.0 * job["age"],
        runs_for_seconds=job.get("started", runs_for),
    )


def _describe(outcome: Outcome) -> list[str]:
    return [outcome.word, outcome.node] if outcome.node else [outcome.word]


def _next_round(job: Job, decisions: Decisions) -> Job:
    """A job as it is once bound tasks run, and those evicted or nominated wait."""
    stays = [outcome if outcome.word in ("running", "bound") else Outcome("pending") for outcome in decisions[job.uid]]
    tasks = [replace(task, node=found.node, gpu=found.gpu) for task, found in zip(job.tasks, stays, strict=True)]
    return replace(job, tasks=tuple(tasks))


def differences(expected: Json, answer: Json) -> Iterator[tuple[str, Any, Any]]:
    """The rounds in which what becomes of a job differs. Tasks that were alike may be named in any order."""
    want_rounds, have_rounds = expected["rounds"], answer["rounds"]
    if len(want_rounds) != len(have_rounds):
        yield "rounds", len(want_rounds), len(have_rounds)
        return
    for number, (want, have) in enumerate(zip(want_rounds, have_rounds, strict=True), start=1):
        for name, homes in answer["homes"].items():
            before = homes if number == 1 else [""] * len(homes)
            if _by_home(want[name], before) != _by_home(have[name], before):
                yield f"round {number}, {name}", want[name], have[name]


def _by_home(outcomes: list[list[str]], homes: list[str]) -> list[tuple[str, list[str]]]:
    return sorted(zip(homes, outcomes, strict=True))
