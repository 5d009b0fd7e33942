"""Many runs: on one core, on several, on a Dask cluster; some of them fail, and some are done already."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scenario_parts import cluster, job, node

from mooring.drivers.sim.experiment import Where, run_all
from mooring.drivers.sim.runs import Prepared
from mooring.observe.progress import Progress
from mooring.report.simulation.files import dump_run, load_run
from mooring.report.simulation.metrics import metrics_of
from mooring.report.simulation.results import Run
from mooring.report.simulation.summary import Failed

HERE = Where(jobs=1, backend="threading")
SEEDS = (1, 2, 3, 4)


@pytest.fixture
def two_policies(prepare: Callable[..., Prepared]) -> Prepared:
    return prepare(
        horizon="20m",
        cluster=cluster(node("a"), node("b", cpu=16)),
        work=[job("w", every="exponential(10s)", at=[], duration="exponential(60s)", cpu=3, priority=0)],
        faults={"nodeFailures": [{"every": "exponential(10m)", "repair": "exponential(1m)"}]},
        policies=[{"name": "spread"}, {"name": "pack", "scores": ["BestFit"]}],
    )


def run(prepared: Prepared, where: Where = HERE, kept: Path | None = None) -> tuple[list[Run], list[Failed]]:
    return run_all(prepared, list(prepared.policies), SEEDS, where, kept, Progress())


@pytest.fixture(scope="module")
def dask_address() -> Iterator[str]:
    """A Dask cluster of two worker processes on this machine."""
    from distributed import LocalCluster

    start: Any = LocalCluster
    with start(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as found:
        yield found.scheduler_address


@pytest.mark.filterwarnings("default")
def test_two_policies_by_four_seeds_are_the_same_on_a_dask_cluster(two_policies: Prepared, dask_address: str) -> None:
    alone, _ = run(two_policies)

    runs, failed = run(two_policies, Where(jobs=2, backend="dask", scheduler=dask_address))

    assert failed == []
    assert [(each.policy, each.seed) for each in runs] == [(p, s) for p in ("spread", "pack") for s in SEEDS]
    assert [dump_run(each) for each in runs] == [dump_run(each) for each in alone]
    assert [metrics_of(each) for each in runs] == [metrics_of(each) for each in alone]


@pytest.mark.filterwarnings("default")
def test_two_policies_by_four_seeds_are_the_same_on_a_ray_cluster(two_policies: Prepared) -> None:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    alone, _ = run(two_policies)
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        found.add_node(num_cpus=1)
        runs, failed = run(two_policies, Where(jobs=2, backend="ray", scheduler=found.address))
    finally:
        found.shutdown()

    assert failed == []
    assert [dump_run(each) for each in runs] == [dump_run(each) for each in alone]


@pytest.mark.filterwarnings("default")
def test_processes_on_this_machine_give_the_same(two_policies: Prepared) -> None:
    alone, _ = run(two_policies)

    runs, failed = run(two_policies, Where(jobs=2))

    assert failed == []
    assert [dump_run(each) for each in runs] == [dump_run(each) for each in alone]


def test_seeds_differ_and_policies_differ(two_policies: Prepared) -> None:
    runs, _ = run(two_policies)

    assert len({dump_run(replace(each, policy="", seed=0)) for each in runs}) == len(runs)


def test_policies_see_the_same_work_for_the_same_seed(two_policies: Prepared) -> None:
    runs, _ = run(two_policies)

    arrived = {(each.policy, each.seed): each.jobs.submitted.tolist() for each in runs}
    assert all(arrived["spread", seed] == arrived["pack", seed] for seed in SEEDS)


@pytest.fixture
def one_is_broken(prepare: Callable[..., Prepared], tmp_path: Path) -> Prepared:
    (tmp_path / "broken.py").write_text(
        "from mooring.plugin import Score\n\n\n"
        "class Broken(Score):\n"
        "    def score(self, pod, nodes):\n"
        "        raise ValueError('no such rack')\n"
    )
    return prepare(
        horizon="1m",
        cluster=cluster(node("a"), node("b")),
        work=[job("w", cpu=1)],
        policies=[{"name": "broken", "plugins": ["broken.py"]}, {"name": "fine"}],
    )


@pytest.mark.faults
def test_a_run_that_fails_says_which_and_the_others_go_on(one_is_broken: Prepared, tmp_path: Path) -> None:
    runs, failed = run(one_is_broken)

    assert [(each.policy, each.seed) for each in runs] == [("fine", seed) for seed in SEEDS]
    said = f"{tmp_path / 'broken.py'}: line 6: plugin Broken: score: ValueError: no such rack"
    assert failed == [Failed("broken", seed, said) for seed in SEEDS]


@pytest.mark.faults
def test_a_repeated_command_takes_up_what_is_missing(one_is_broken: Prepared, tmp_path: Path) -> None:
    kept = tmp_path / "results"
    runs, _ = run(one_is_broken, kept=kept)
    files = sorted((kept / "runs").iterdir())
    assert len(files) == len(SEEDS)
    marked = load_run(files[0].read_bytes())
    files[0].write_bytes(dump_run(replace(marked, horizon=777.0)))  # so that one sees where it comes from
    files[1].unlink()

    again, failed = run(one_is_broken, kept=kept)

    assert [each.horizon for each in again].count(777.0) == 1
    assert sorted((kept / "runs").iterdir()) == files
    assert len(again) == len(runs)
    assert [(each.policy, each.seed) for each in failed] == [("broken", seed) for seed in SEEDS]


def test_what_a_run_depends_on_decides_whether_it_is_taken_up(prepare: Callable[..., Prepared], tmp_path: Path) -> None:
    parts: dict[str, Any] = {"horizon": "1m", "cluster": cluster(), "work": [job("w")]}
    kept = tmp_path / "results"
    run(prepare(**parts), kept=kept)
    before = set((kept / "runs").iterdir())

    run(prepare(**parts, policies=[{"name": "default"}, {"name": "other"}]), kept=kept)
    with_another_policy = set((kept / "runs").iterdir()) - before
    run(prepare(**{**parts, "work": [job("w", duration="7s")]}), kept=kept)
    with_other_work = set((kept / "runs").iterdir()) - before - with_another_policy

    assert (len(before), len(with_another_policy), len(with_other_work)) == (4, 4, 4)
