"""Nodes are bought and given back in virtual time, at the prices of the catalogue."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scenario_parts import cluster, job

from mooring.report.simulation.metrics import metrics_of
from mooring.report.simulation.results import Run

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
---
apiVersion: config.mooring.dev/v1alpha1
kind: CapacityPolicy
consolidationIntervalSeconds: 10
consolidate: %(consolidate)s
---
apiVersion: mooring.dev/v1alpha1
kind: InstanceTypeCatalogue
provider: {launchSeconds: %(seconds)d, registerSeconds: 10}
instanceTypes:
- {name: c-8, capacity: {cpu: 8, memory: 32Gi}, offerings: [{zone: zone-a, price: 3.6}]}
"""
POOL: dict[str, Any] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {
        "template": {"spec": {"requirements": []}},
        "disruption": {"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]},
    },
}


def simulated(run: Callable[..., Run], folder: Path, *, seconds: int = 20, consolidate: bool = True) -> Run:
    config = folder / "scheduler.yaml"
    config.write_text(CONFIG % {"seconds": seconds, "consolidate": str(consolidate).lower()})
    return run(
        horizon="3600s",
        cluster=cluster(POOL),
        work=[job("train", at=["0s", "1800s"], duration="600s", cpu=7)],
        policies=[{"name": "default", "config": str(config)}],
    )


def test_a_node_comes_for_each_job_and_costs_until_it_goes(run: Callable[..., Run], tmp_path: Path) -> None:
    found = simulated(run, tmp_path)
    assert len(list(found.nodes.node)) == 2
    first, second = found.stays.bound.tolist()
    assert 30 <= first <= 40
    assert 1830 <= second <= 1840
    # Two nodes, each for the ten minutes of its job, half a minute of consolidateAfter and at most 20 seconds more.
    assert metrics_of(found).cost == pytest.approx(2 * 640 / 3600 * 3.6, abs=0.05)


@pytest.mark.parametrize(("seconds", "waits"), [(20, 30), (200, 210)])
def test_nodes_that_take_longer_to_come_are_waited_for(
    run: Callable[..., Run], tmp_path: Path, seconds: int, waits: int
) -> None:
    assert waits <= simulated(run, tmp_path, seconds=seconds).stays.bound.tolist()[0] <= waits + 10


def test_without_consolidation_one_node_stays_and_is_paid_for(run: Callable[..., Run], tmp_path: Path) -> None:
    found = simulated(run, tmp_path, consolidate=False)
    assert len(list(found.nodes.node)) == 1
    assert metrics_of(found).cost == pytest.approx(3570 / 3600 * 3.6, abs=0.05)
