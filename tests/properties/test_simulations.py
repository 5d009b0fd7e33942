"""Whatever the scenario: the same seed gives the same run, nothing is over-allocated, gangs are whole, no job is
forgotten."""

import math
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mooring.drivers.sim.reading import read_scenario
from mooring.drivers.sim.runs import simulate
from mooring.report.simulation.files import dump_run, load_run
from mooring.report.simulation.results import FAILED, FINISHED, RUNNING, WAITING, Run

HORIZON = 600


def make_node(name: str, cpu: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "5"}},
    }


@st.composite
def works(draw: st.DrawFn, number: int) -> dict[str, Any]:
    at = sorted(draw(st.lists(st.integers(0, HORIZON - 50), min_size=1, max_size=5)))
    form = draw(st.sampled_from(["Pod", "Job", "PodGroup"]))
    found: dict[str, Any] = {
        "name": f"w{number}",
        "at": [f"{second}s" for second in at],
        "as": form,
        "pods": draw(st.integers(1, 3)),
        "priority": draw(st.sampled_from([0, 0, 10, 100])),
        "requests": {"cpu": draw(st.integers(1, 6))},
        "duration": draw(st.sampled_from(["1s", "40s", "exponential(60s)", "uniform(10s, 200s)", "never"])),
    }
    if draw(st.booleans()):
        found["checkpoints"] = {"interval": "20s", "onEviction": draw(st.booleans())}
    return found


@st.composite
def scenarios(draw: st.DrawFn, *, with_faults: bool) -> dict[str, Any]:
    nodes = [make_node(f"n{index}", draw(st.integers(2, 10))) for index in range(draw(st.integers(1, 4)))]
    work = [draw(works(number)) for number in range(draw(st.integers(1, 4)))]
    found: dict[str, Any] = {
        "apiVersion": "config.mooring.dev/v1alpha1",
        "kind": "Simulation",
        "horizon": f"{HORIZON}s",
        "sampleEvery": "100s",
        "interval": draw(st.sampled_from(["0s", "0s", "7s"])),
        "cluster": {"objects": nodes, "timings": {"start": draw(st.sampled_from(["0s", "3s"]))}},
        "work": work,
    }
    if with_faults:
        found["faults"] = {
            "nodeFailures": [{"every": "exponential(300s)", "repair": "exponential(60s)"}],
            "spotReclaims": [{"every": "exponential(400s)", "notice": "5s", "back": "50s"}],
            "detection": "10s",
        }
        found["changes"] = [{"at": "100s", "cordon": {"names": ["n0"]}}, {"at": "200s", "uncordon": {}}]
    return found


def run(scenario: dict[str, Any], seed: int) -> Run:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_text(yaml.safe_dump(scenario))
        return simulate(read_scenario(path), "default", seed)


@examples(25)
@given(scenarios(with_faults=True), st.integers(0, 3))
def test_the_same_scenario_and_seed_give_the_same_run_bit_for_bit(scenario: dict[str, Any], seed: int) -> None:
    first = dump_run(run(scenario, seed))

    assert dump_run(run(scenario, seed)) == first
    assert dump_run(load_run(first)) == first


@examples(40)
@given(scenarios(with_faults=True), st.integers(0, 3))
def test_no_node_is_over_allocated_at_any_virtual_time(scenario: dict[str, Any], seed: int) -> None:
    found = run(scenario, seed)

    stays = found.stays
    changes: dict[int, list[tuple[float, int, float]]] = defaultdict(list)
    for node, bound, ended, cpus in zip(stays.node, stays.bound, stays.ended, stays.cpus, strict=True):
        changes[int(node)].append((float(bound), 1, float(cpus)))
        changes[int(node)].append((math.inf if math.isnan(ended) else float(ended), 0, -float(cpus)))
    for node, moments in changes.items():
        taken = 0.0
        for _, _, by in sorted(moments):  # at one moment, those that leave go first
            taken += by
            assert taken <= found.nodes.cpus[node]


@examples(40)
@given(scenarios(with_faults=False), st.integers(0, 3))
def test_gangs_start_whole_or_not_at_all(scenario: dict[str, Any], seed: int) -> None:
    found = run(scenario, seed)

    gangs = {f"default/{work['name']}-": work["pods"] for work in scenario["work"] if work["as"] == "PodGroup"}
    bound = Counter(
        (found.jobs.job[job], float(at)) for job, at in zip(found.stays.job, found.stays.bound, strict=True)
    )
    for (job, _), count in bound.items():
        whole = next((pods for prefix, pods in gangs.items() if job.startswith(prefix)), None)
        assert whole is None or count == whole


@examples(40)
@given(scenarios(with_faults=True), st.integers(0, 3))
def test_every_job_ends_or_is_said_to_run_or_wait(scenario: dict[str, Any], seed: int) -> None:
    found = run(scenario, seed)

    jobs = found.jobs
    assert len(jobs) == sum(len(work["at"]) for work in scenario["work"])
    for state, ended in zip(jobs.state, jobs.ended.tolist(), strict=True):
        assert (state in (FINISHED, FAILED)) == (not math.isnan(ended))
        assert state in (FINISHED, FAILED, RUNNING, WAITING)
    last = found.samples
    assert last.jobs_running[-1] + last.jobs_waiting[-1] == sum(jobs.state == RUNNING) + sum(jobs.state == WAITING)
    assert last.pods_running[-1] == sum(found.stays.outcome == "Running")


@examples(40)
@given(scenarios(with_faults=True), st.integers(0, 3))
def test_work_lost_is_never_negative_nor_more_than_was_done(scenario: dict[str, Any], seed: int) -> None:
    found = run(scenario, seed)

    stays = found.stays
    ended = [HORIZON if math.isnan(end) else end for end in stays.ended.tolist()]
    done: defaultdict[int, float] = defaultdict(float)
    for job, started, end in zip(stays.job.tolist(), stays.started.tolist(), ended, strict=True):
        done[job] += 0.0 if math.isnan(started) else end - started
    for job, lost in enumerate(found.jobs.lost.tolist()):
        assert 0.0 <= lost <= done[job] + 1e-6


@examples(25)
@given(scenarios(with_faults=True), st.integers(0, 3))
def test_what_is_allocated_adds_up_to_the_stays(scenario: dict[str, Any], seed: int) -> None:
    found = run(scenario, seed)

    stays = found.stays
    by_stays = float(((found.held_until() - stays.bound) * stays.cpus).sum())
    cpu = found.totals.resource.index("cpu")
    assert math.isclose(found.totals.allocated[cpu], by_stays, rel_tol=1e-9, abs_tol=1e-6)
    assert found.totals.used[cpu] <= found.totals.allocated[cpu] + 1e-6


@examples(40)
@given(scenarios(with_faults=True), st.integers(0, 3))
def test_no_more_is_allocated_than_nodes_that_are_up_have(scenario: dict[str, Any], seed: int) -> None:
    found = run(scenario, seed)

    assert (found.amounts.allocated <= found.amounts.capacity + 1e-9).all()
    assert (found.samples.nodes_used <= found.samples.nodes_up).all()
    assert (found.queues.dominant_share <= 1.0).all()
    for allocated, capacity in zip(found.totals.allocated, found.totals.capacity, strict=True):
        assert allocated <= capacity + 1e-6
