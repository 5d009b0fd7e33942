"""Every metric against a value worked out by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scenario_parts import cluster, cluster_queue, job, node

from mooring.report.simulation.metrics import Spread, Times, compare, jain, metrics_of, spread
from mooring.report.simulation.results import Run, size_class
from mooring.report.simulation.summary import make_summary
from mooring.report.simulation.texts import key_figures

Simulate = Callable[..., Run]


@pytest.fixture
def two_jobs(run: Simulate) -> Run:
    """One node with 8 CPUs: `a` has all of them from 0 s to 100 s, `b` comes at 10 s and runs from 100 s to 150 s."""
    return run(
        horizon="200s",
        sampleEvery="50s",
        cluster=cluster(prices=[{"perHour": 36}]),
        work=[
            job("a", namespace="one"),
            job("b", at="10s", duration="50s", namespace="two", priority=-5),
        ],
    )


def test_allocation_is_what_pods_request_of_what_there_is_over_time(two_jobs: Run) -> None:
    cpu = metrics_of(two_jobs).resources[0]

    # 8 CPUs for 150 s of 200 s.
    assert (cpu.resource, cpu.model, cpu.allocation, cpu.utilisation) == ("cpu", "", 0.75, 0.75)


def test_queueing_completion_and_slowdown(two_jobs: Run) -> None:
    found = metrics_of(two_jobs)

    assert found.queueing == Spread(count=2, censored=0, mean=45.0, p50=0.0, p95=90.0, p99=90.0)  # 0 s and 90 s
    assert found.completion == Spread(
        count=2, censored=0, mean=120.0, p50=100.0, p95=140.0, p99=140.0
    )  # 100 s and 140 s
    assert found.slowdown.mean == pytest.approx((1.0 + 140 / 50) / 2)
    assert (found.jobs, found.finished, found.failed, found.running, found.waiting) == (2, 2, 0, 0, 0)


def test_times_are_told_by_queue_size_class_and_priority(two_jobs: Run) -> None:
    found = metrics_of(two_jobs)

    assert [(each.name, each.jobs, each.queueing.mean) for each in found.queues] == [("one", 1, 0.0), ("two", 1, 90.0)]
    assert [(each.name, each.completion.mean) for each in found.size_classes] == [("0", 120.0)]
    assert [(each.name, each.completion.mean) for each in found.priorities] == [("-5", 140.0), ("0", 100.0)]


def test_fairness_is_jains_index_of_dominant_shares(two_jobs: Run) -> None:
    found = metrics_of(two_jobs)

    # 800 and 400 of 1,600 CPU-seconds.
    assert [each.share for each in found.queues] == [0.5, 0.25]
    assert found.fairness == pytest.approx(0.75**2 / (2 * (0.5**2 + 0.25**2)))


def test_cost_is_the_price_of_nodes_for_as_long_as_they_are_up(two_jobs: Run) -> None:
    found = metrics_of(two_jobs)

    assert found.cost == pytest.approx(36 * 200 / 3600)
    assert two_jobs.samples.cost.tolist() == pytest.approx([0.0, 0.5, 1.0, 1.5, 2.0])
    assert (found.nodes_up, found.nodes_used, found.nodes_needed) == (1.0, 0.75, 1)


def test_samples_show_what_was_decided_at_their_moment(two_jobs: Run) -> None:
    samples = two_jobs.samples

    assert samples.time.tolist() == [0.0, 50.0, 100.0, 150.0, 200.0]
    assert samples.pods_running.tolist() == [1, 1, 1, 0, 0]
    assert samples.pods_waiting.tolist() == [0, 1, 0, 0, 0]
    assert samples.jobs_waiting.tolist() == [0, 1, 0, 0, 0]
    assert samples.nodes_used.tolist() == [1, 1, 1, 0, 0]


def test_shares_of_queues_over_time(two_jobs: Run) -> None:
    queues = two_jobs.queues
    rows = zip(queues.time.tolist(), queues.queue, queues.dominant_share.tolist(), queues.cpus.tolist(), strict=True)

    assert [row for row in rows if row[0] == 100.0] == [(100.0, "one", 0.0, 0.0), (100.0, "two", 1.0, 8.0)]


def test_gpus_are_told_by_model(run: Simulate) -> None:
    product = "nvidia.com/gpu.product"
    found = run(
        horizon="100s",
        cluster=cluster(node("a", gpus=4, labels={product: "A100"}), node("b", gpus=4, labels={product: "T4"})),
        work=[job("a", duration="50s", requests={"cpu": 1, "nvidia.com/gpu": 2}, nodeLabels={product: "A100"})],
    )

    uses = {(use.resource, use.model): use.allocation for use in metrics_of(found).resources}
    assert uses[("gpu", "")] == 2 * 50 / (8 * 100)
    assert uses[("gpu", "A100")] == 2 * 50 / (4 * 100)
    assert uses[("gpu", "T4")] == 0.0
    assert found.jobs.size_class.tolist() == ["2-8"]


def test_idle_gpus_without_cpu_for_them_are_fragments(run: Simulate) -> None:
    typical = [{"cpuMilli": 4000, "gpuMilli": 1000, "gpuCount": 1}]
    found = run(
        horizon="100s",
        sampleEvery="50s",
        cluster=cluster(node(cpu=8, gpus=8)),
        work=[job("a", duration="50s", requests={"cpu": 6, "nvidia.com/gpu": 2})],
        typicalPods=typical,
    )

    # With 2 CPUs left no typical pod fits: the 6 idle GPUs are of no use. With 8 CPUs all of them are.
    assert found.samples.fragmentation.tolist() == [6.0, 0.0, 0.0]
    assert metrics_of(found).fragmentation == 3.0


def test_work_lost_is_told_in_hours_of_pods_and_gpus(run: Simulate) -> None:
    gpus = {"cpu": 8, "nvidia.com/gpu": 4}
    found = run(
        horizon="3h",
        cluster=cluster(node(gpus=4)),
        work=[
            job("low", duration="2h", requests=gpus),
            job("high", at="30m", duration="10m", requests=gpus, priority=9),
        ],
    )

    metrics = metrics_of(found)
    assert (metrics.work_lost_hours, metrics.gpu_hours_lost) == (0.5, 2.0)
    assert (metrics.preemptions, metrics.evictions) == (1, 1)


def test_percentiles_are_values_that_occurred() -> None:
    values = np.arange(1.0, 101.0)

    assert spread(Times(values, values > 98.0)) == Spread(
        count=100, censored=2, mean=50.5, p50=50.0, p95=95.0, p99=99.0
    )
    nothing = np.zeros(0)
    assert spread(Times(nothing, nothing > 0)) == Spread(count=0, censored=0, mean=0.0, p50=0.0, p95=0.0, p99=0.0)


def test_jains_index_is_one_for_equals_and_least_for_one_who_has_all() -> None:
    assert (jain([0.2, 0.2]), jain([1.0, 0.0, 0.0, 0.0]), jain([])) == (1.0, 0.25, 1.0)


def test_size_classes_go_by_gpus() -> None:
    assert [size_class(gpus) for gpus in (0, 0.5, 1, 1.5, 8, 9, 64, 65)] == [
        *("0", "<1", "1", "1"),
        *("2-8", "9-64", "9-64", ">64"),
    ]


def test_policies_are_compared_by_means_over_seeds(two_jobs: Run) -> None:
    metrics = metrics_of(two_jobs)

    (found,) = compare([metrics, metrics])

    assert (found.policy, found.seeds, found.values["queueing mean"], found.deviations["queueing mean"]) == (
        *("default", 2),
        *(45.0, 0.0),
    )


def test_pods_on_a_node_that_failed_hold_nothing_of_what_is_up(run: Simulate) -> None:
    found = run(
        horizon="200s",
        cluster=cluster(node("a"), node("b")),
        work=[job("a", at=["0s", "0s"], duration="never", namespace="one")],
        changes=[{"at": "100s", "fail": {"names": ["a"]}}],
    )

    metrics = metrics_of(found)
    assert metrics.resources[0].allocation == 1.0  # 16 CPUs for 100 s, then the 8 that are left
    assert [each.share for each in metrics.queues] == [1.0]
    assert (found.samples.nodes_up[-1], found.samples.nodes_used[-1], found.queues.dominant_share[-1]) == (1, 1, 1.0)
    assert sorted(found.held_until().tolist()) == [100.0, 200.0]


def test_a_node_that_changes_has_what_it_says_then(run: Simulate) -> None:
    found = run(
        horizon="200s",
        cluster=cluster(node("a", cpu=8)),
        work=[job("a", at=["0s", "0s"], duration="never")],
        changes=[{"at": "100s", "objects": [node("a", cpu=16)]}],
    )

    assert metrics_of(found).resources[0].allocation == 1.0
    assert found.amounts.capacity[found.amounts.resource == "cpu"].tolist()[-1] == 16.0


@pytest.fixture
def starved(run: Simulate) -> Run:
    """One node with 8 CPUs: `a` has all of them from 0 s to 100 s, then `b` until after the end; `c` never starts."""
    return run(
        horizon="200s",
        cluster=cluster(),
        work=[
            job("a"),
            job("b", at="20s", duration="400s"),
            job("c", at="60s", duration="80s"),
            job("d", at="70s", duration="never"),
        ],
    )


def test_jobs_that_never_start_count_with_the_time_that_they_have_waited(starved: Run) -> None:
    found = metrics_of(starved)

    # 0 s and 80 s; 140 s and 130 s until the end.
    assert found.queueing == Spread(count=4, censored=2, mean=87.5, p50=80.0, p95=140.0, p99=140.0)
    (of_size,) = found.size_classes
    assert (of_size.jobs, of_size.waiting, of_size.queueing) == (4, 2, found.queueing)


def test_jobs_that_do_not_finish_count_with_the_time_so_far(starved: Run) -> None:
    found = metrics_of(starved)

    # 100 s; `b` 180 s and `c` 140 s until the end. What works without end has no completion time.
    assert found.completion == Spread(count=3, censored=2, mean=140.0, p50=140.0, p95=180.0, p99=180.0)
    assert (found.slowdown.count, found.slowdown.censored) == (3, 2)
    assert found.slowdown.mean == pytest.approx((1.0 + 1.0 + 140 / 80) / 3)


def test_a_comparison_says_of_how_many_jobs_a_mean_is_the_least_possible(starved: Run) -> None:
    (found,) = compare([metrics_of(starved)])

    assert found.censored == {
        **dict.fromkeys(("queueing mean", "queueing p95", "completion mean", "completion p95", "slowdown mean"), 2.0)
    }
    cells = {row[0]: row[1] for row in key_figures(make_summary("s", [metrics_of(starved)], ())).rows}
    assert (cells["queueing mean"], cells["queueing p95"]) == ("≥ 1m28s (2 open)", "≥ 2m20s (2 open)")
    assert cells["slowdown mean"] == "≥ 1.25 (2 open)"


def test_queues_of_one_name_in_two_namespaces_are_two(run: Simulate) -> None:
    other = [{**found, "metadata": {**found["metadata"], "namespace": "two"}} for found in cluster_queue("team", 8)[2:]]
    found = run(
        horizon="100s",
        cluster=cluster(node(), *cluster_queue("team", 8), *other),
        work=[
            job("a", queue="team", cpu=6, duration="never"),
            job("b", queue="team", cpu=2, duration="never", namespace="two"),
        ],
    )

    metrics = metrics_of(found)
    assert [(each.name, each.share) for each in metrics.queues] == [("default/team", 0.75), ("two/team", 0.25)]
    assert metrics.fairness == pytest.approx(1 / (2 * (0.75**2 + 0.25**2)))


def test_jobs_of_one_name_in_two_namespaces_work_as_each_of_them_says(run: Simulate) -> None:
    def batch(namespace: str, seconds: int, completions: int) -> dict[str, Any]:
        container = {
            "name": "main",
            "image": "busybox",
            "command": ["sleep", str(seconds)],
            "resources": {"requests": {"cpu": "1"}},
        }
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        spec = {"parallelism": 1, "completions": completions, "template": template}
        metadata = {"name": "same", "namespace": namespace}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}

    found = run(horizon="100s", cluster=cluster(node(), batch("one", 10, 1), batch("two", 20, 3)), work=[])

    assert dict(zip(found.jobs.job, found.jobs.ended.tolist(), strict=True)) == {"one/same": 10.0, "two/same": 60.0}
