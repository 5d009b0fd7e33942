"""Every metric against a value worked out by hand."""

from collections.abc import Callable

import numpy as np
import pytest
from scenario_parts import cluster, job, node

from mooring.report.simulation.metrics import Spread, compare, jain, metrics_of, spread
from mooring.report.simulation.results import Run, size_class

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

    assert found.queueing == Spread(count=2, mean=45.0, p50=0.0, p95=90.0, p99=90.0)  # 0 s and 90 s
    assert found.completion == Spread(count=2, mean=120.0, p50=100.0, p95=140.0, p99=140.0)  # 100 s and 140 s
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
    assert spread(np.arange(1.0, 101.0)) == Spread(count=100, mean=50.5, p50=50.0, p95=95.0, p99=99.0)
    assert spread(np.zeros(0)) == Spread(count=0, mean=0.0, p50=0.0, p95=0.0, p99=0.0)


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
