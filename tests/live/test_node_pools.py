"""Node pools on a live cluster: dedicated, spilled over and back, and kept for a priority class."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from control_plane import until
from kube import Kube, Object, node, pod

REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint: {{enabled: [{{name: NodePools, weight: 100}}]}}
    pluginConfig:
      - name: NodePools
        args: {{pools: [{{name: ours, nodeLabels: {{pool: ours}}, {pool}}}]}}
"""
OWN = {"team": "ours"}


@pytest.fixture
def replica_sets(cluster: Kube, request: pytest.FixtureRequest) -> Iterator["ReplicaSets"]:
    sets = ReplicaSets(cluster, by_hand=request.node.callspec.params["cluster"] == "real")
    yield sets
    cluster.call("DELETE", REPLICA_SETS)


class ReplicaSets:
    """ReplicaSets of one pod each; where nobody runs their controller, the test does its work."""

    def __init__(self, cluster: Kube, *, by_hand: bool) -> None:
        self._cluster, self._by_hand = cluster, by_hand
        self._made = 0
        self._sets: list[Object] = []

    def create(self, name: str, cpu: str) -> None:
        labels = {**OWN, "set": name}
        template = {key: value for key, value in pod("any", cpu, labels=labels).items() if key in ("metadata", "spec")}
        template["metadata"] = {"labels": labels}
        spec = {"replicas": 1, "selector": {"matchLabels": {"set": name}}, "template": template}
        metadata = {"name": name, "namespace": "default"}
        made = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}
        self._sets.append(self._cluster.call("POST", REPLICA_SETS, made))

    def node_of(self, name: str) -> str:
        """Where the pod of a set is, once there is one that stays and has a node."""
        self._cluster.finish_deletions()
        found = [
            each for each in self._cluster.pods().values() if each["metadata"].get("labels", {}).get("set") == name
        ]
        staying = [each for each in found if "deletionTimestamp" not in each["metadata"]]
        if not staying and self._by_hand:
            self._make(name)
        return "".join(each["spec"].get("nodeName", "") for each in staying)

    def _make(self, name: str) -> None:
        owner = next(each for each in self._sets if each["metadata"]["name"] == name)
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True}
        self._made += 1
        metadata = {
            "name": f"{name}-{self._made}",
            "namespace": "default",
            "labels": owner["spec"]["template"]["metadata"]["labels"],
            "ownerReferences": [reference | {"uid": owner["metadata"]["uid"]}],
        }
        spec: Any = owner["spec"]["template"]["spec"]
        self._cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def run_with(cluster: Kube, pool: str) -> None:
    """Start a scheduler for a node of the pool `ours` and one of nobody's, of 4 cores each."""
    cluster.create(node("ours", cpu=4, labels={"pool": "ours"}), node("other", cpu=4))
    config: Path = cluster.directory / "scheduler.yaml"
    config.write_text(CONFIG.format(pool=pool))
    cluster.run(f"--config={config}")


def why_waits(cluster: Kube, name: str) -> str:
    """The message of a pod's PodScheduled condition, without what is said of preemption."""
    conditions = cluster.pods()[name].get("status", {}).get("conditions", [])
    messages = [each.get("message", "") for each in conditions if each["type"] == "PodScheduled"]
    return "".join(messages).partition(" preemption:")[0]


def wait_until_it_waits(cluster: Kube, name: str, message: str) -> None:
    until(lambda: why_waits(cluster, name) == message, 60, lambda: why_waits(cluster, name))


def test_a_dedicated_pool_takes_its_own_alone_and_keeps_them(cluster: Kube) -> None:
    run_with(cluster, "podLabels: {team: ours}, policy: Dedicated")

    cluster.create(pod("mine", "3", labels=OWN), pod("theirs", "3"))
    assert cluster.wait_until_bound(["mine", "theirs"]) == {"mine": "ours", "theirs": "other"}
    cluster.create(pod("mine-too", "1500m", labels=OWN), pod("theirs-too", "1500m"))
    few = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were outside of the pod's dedicated pool."
    wait_until_it_waits(cluster, "mine-too", "0/2 nodes are available: 2 Insufficient cpu.")
    cluster.delete(cluster.pods()["theirs"] | {"apiVersion": "v1", "kind": "Pod"})
    assert cluster.wait_until_bound(["theirs-too"]) == {"theirs-too": "other"}
    wait_until_it_waits(cluster, "mine-too", few)


def test_pods_spill_over_and_go_back_when_there_is_room(cluster: Kube, replica_sets: ReplicaSets) -> None:
    run_with(cluster, "podLabels: {team: ours}, movesBack: true")

    first = pod("first", "3", labels=OWN)
    cluster.create(first)
    assert cluster.wait_until_bound(["first"]) == {"first": "ours"}
    replica_sets.create("web", "2")
    until(lambda: replica_sets.node_of("web") == "other", 60)
    spilled = set(cluster.pods())
    cluster.delete(first)
    until(lambda: replica_sets.node_of("web") == "ours", 60)
    assert not spilled & set(cluster.pods())
    until(lambda: any(reason == "Evicted" for name in spilled for reason, _ in cluster.events(name)), 30)


def test_a_move_that_a_budget_of_the_api_server_refuses_is_reported_and_undone(
    cluster: Kube, replica_sets: ReplicaSets, request: pytest.FixtureRequest
) -> None:
    """The API server knows that the status of the budget is older than the budget; nothing else does."""
    if request.node.callspec.params["cluster"] != "real":
        pytest.skip("on the embedded control plane the status of a budget is always current")
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    run_with(cluster, "podLabels: {team: ours}, movesBack: true")
    first = pod("first", "3", labels=OWN)
    cluster.create(first)
    cluster.wait_until_bound(["first"])
    replica_sets.create("web", "2")
    until(lambda: replica_sets.node_of("web") == "other", 60)
    (name,) = set(cluster.pods()) - {"first"}
    ready = {"type": "Ready", "status": "True"}
    running = {"status": {"phase": "Running", "conditions": [ready]}}
    path = f"/api/v1/namespaces/default/pods/{name}/status"
    cluster.call("PATCH", path, running, "application/strategic-merge-patch+json")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"set": "web"}}}
    made = cluster.call(
        "POST",
        budgets,
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec},
    )
    try:
        counts = dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 1)
        cluster.call("PUT", f"{budgets}/b/status", made | {"status": {**counts, "observedGeneration": 0}})
        cluster.delete(first)
        until(lambda: any(reason == "EvictionRefused" for reason, _ in cluster.events(name)), 60)
        assert [note for reason, note in cluster.events(name) if reason == "EvictionRefused"] == [
            "Cannot evict pod as it would violate the pod's disruption budget. "
            "The disruption budget b is still being processed by the server."
        ]
        assert cluster.pods()[name]["spec"]["nodeName"] == "other"
        assert "deletionTimestamp" not in cluster.pods()[name]["metadata"]
        # The room is nobody's: another pod gets it.
        cluster.create(pod("next", "3", labels=OWN))
        assert cluster.wait_until_bound(["next"]) == {"next": "ours"}
    finally:
        cluster.call("DELETE", f"{budgets}/b")


def test_without_the_setting_whoever_spilled_over_stays(cluster: Kube, replica_sets: ReplicaSets) -> None:
    run_with(cluster, "podLabels: {team: ours}")

    first = pod("first", "3", labels=OWN)
    cluster.create(first)
    cluster.wait_until_bound(["first"])
    replica_sets.create("web", "2")
    until(lambda: replica_sets.node_of("web") == "other", 60)
    cluster.delete(first)
    cluster.create(pod("after", "1", labels=OWN))  # once that is placed, the deletion has been seen
    assert cluster.wait_until_bound(["after"]) == {"after": "ours"}
    assert replica_sets.node_of("web") == "other"


def test_a_part_of_each_node_is_kept_for_a_priority_class(cluster: Kube) -> None:
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 0}
    cluster.create(urgent)
    run_with(cluster, "priorityClasses: [urgent], policy: Reserved, reservedPercent: 50")

    cluster.create(pod("a", "4"))
    assert cluster.wait_until_bound(["a"]) == {"a": "other"}
    cluster.create(pod("b", "2"))
    assert cluster.wait_until_bound(["b"]) == {"b": "ours"}
    cluster.create(pod("c", "1"))
    kept = "1 Insufficient cpu, 1 node(s) kept the rest of their capacity for their pool."
    wait_until_it_waits(cluster, "c", f"0/2 nodes are available: {kept}")
    cluster.create(pod("d", "2", priorityClassName="urgent"))
    assert cluster.wait_until_bound(["d"]) == {"d": "ours"}
