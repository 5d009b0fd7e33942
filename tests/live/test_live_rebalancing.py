"""Rebalancing a live cluster: a pod leaves by the Eviction API, and its successor gets the node that is held for it."""

from collections.abc import Iterator

import pytest
from control_plane import until
from kube import Kube, node
from test_node_pools import REPLICA_SETS, ReplicaSets

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
---
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig: [{name: RemovePodsViolatingNodeTaints, args: {}}]
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
---
apiVersion: config.mooring.dev/v1alpha1
kind: RebalancePolicy
intervalSeconds: 1
"""


@pytest.fixture
def sets(cluster: Kube, request: pytest.FixtureRequest) -> Iterator[ReplicaSets]:
    yield ReplicaSets(cluster, by_hand=request.node.callspec.params["cluster"] == "real")
    cluster.call("DELETE", REPLICA_SETS)


def test_pods_leave_a_node_that_is_tainted(cluster: Kube, sets: ReplicaSets) -> None:
    config = cluster.directory / "scheduler.yaml"
    config.write_text(CONFIG)
    cluster.create(node("old", cpu=4))
    cluster.run(f"--config={config}")
    sets.create("web", "2")
    until(lambda: sets.node_of("web") == "old", 60)
    before = set(cluster.pods())

    cluster.create(node("new", cpu=4))
    taints = {"spec": {"taints": [{"key": "old", "effect": "NoSchedule"}]}}
    cluster.call("PATCH", "/api/v1/nodes/old", taints, content_type="application/merge-patch+json")

    until(lambda: sets.node_of("web") == "new", 60)
    assert not before & set(cluster.pods())
    until(lambda: any(reason == "Evicted" for name in before for reason, _ in cluster.events(name)), 30)
