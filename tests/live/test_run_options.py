"""The options of `mooring run`, each seen to do what its help says."""

import json
from pathlib import Path

import pytest
import yaml
from control_plane import free_port, until
from kube import Kube, node, pod
from test_asking import mooring
from test_failures import get

QUICK = ("--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms")
PLUGIN = """\
from mooring.plugin import Change, Depends, Filter


class NeverOnN0(Filter):
    depends_on = Depends.NODE
    helped_by = Change.NODE
    reason = "node(s) were n0"

    def filter(self, pod, nodes):
        return ~nodes.has_label("kubernetes.io/hostname", "n0")
"""


def test_a_pool_of_several_values_has_the_nodes_of_each(cluster: Kube) -> None:
    cluster.create(*(node(name, cpu=1, labels={"pool": name}) for name in ("batch", "serving", "other")))
    cluster.run("--node-pool", "pool=batch", "--node-pool", "pool=serving")
    cluster.create(*(pod(f"p{i}", cpu="800m") for i in range(3)))
    until(lambda: cluster.by_node() == {"batch": 1, "serving": 1, "": 1}, 30)


def test_a_pool_without_nodes_is_said_in_the_log_and_by_readiness(cluster: Kube) -> None:
    address = f"127.0.0.1:{free_port()}"
    cluster.create(node("n0", labels={"pool": "batch"}))
    scheduler = cluster.run("--node-pool=pool=bach", f"--health-address={address}")
    scheduler.wait_until_it_says("no node has pool=bach (--node-pool): no pod can be placed")
    code, text = get(f"{address}/readyz")
    assert code == 200
    assert "[~]node-pool no node has pool=bach" in text.splitlines()
    cluster.create(node("n1", labels={"pool": "bach"}))
    until(lambda: "node-pool" not in get(f"{address}/readyz")[1], 20)


def test_volumes_are_waited_for_as_long_as_their_plugin_is_told(cluster: Kube, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: 1}}]\n"
    )
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "nobody-provides"},
        "provisioner": "example.com/nobody",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "storageClassName": "nobody-provides",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    cluster.delete(storage, claim)
    cluster.create(storage, claim, node("n0"))
    scheduler = cluster.run(f"--config={config}")
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    cluster.create(pod("one", volumes=[volume]))
    note = 'running PreBind plugin "VolumeBinding": timed out waiting for PersistentVolumeClaim data to be bound'
    until(lambda: ("FailedScheduling", note) in cluster.events("one"), 30, scheduler.tail)
    cluster.delete(storage, claim)


def two_contexts(cluster: Kube, path: Path) -> Path:
    """A kubeconfig whose current context leads nowhere, and another one to the cluster."""
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    context = next(each for each in document["contexts"] if each["name"] == document["current-context"])["context"]
    document["clusters"].append({"name": "away", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}})
    document["contexts"] = [
        {"name": "here", "context": context},
        {"name": "away", "context": {**context, "cluster": "away"}},
    ]
    document["current-context"] = "away"
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_context_says_which_cluster_of_a_kubeconfig_is_meant(cluster: Kube, tmp_path: Path) -> None:
    cluster.kubeconfig = two_contexts(cluster, tmp_path / "two.kubeconfig")
    cluster.create(node("n0", cpu=2), pod("large", cpu="9"))
    given = (f"--kubeconfig={cluster.kubeconfig}", "--context=here", "-o", "json")
    shown = json.loads(mooring("schedule", "--dry-run", *given).stdout)
    assert [each["pod"] for each in shown["waiting"]] == ["large"]
    assert "1 Insufficient cpu" in json.loads(mooring("explain", "large", *given).stdout)["message"]
    assert mooring("queues", *given).returncode == 0
    refused = mooring("queues", *given[:1], "--context=nowhere")
    assert refused.returncode == 2 and "nowhere" in refused.stderr
    assert mooring("queues", f"--kubeconfig={cluster.kubeconfig}").returncode == 1  # the current one
    cluster.run("--context=here")
    cluster.create(pod("small"))
    cluster.wait_until_bound(["small"])


def test_a_context_without_a_kubeconfig_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text("")
    found = mooring("queues", "-f", str(tmp_path), "--context=here")
    assert (found.returncode, found.stderr) == (2, "error: --context: expected --kubeconfig with it, found none\n")


def test_the_lease_is_where_it_is_said_to_be(cluster: Kube) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/elsewhere"
    name = ("--leader-elect-resource-name=elsewhere", "--leader-elect-resource-namespace=default")
    scheduler = cluster.run(*name, *QUICK, leads=True)
    scheduler.wait_until_it_says("scheduling for")
    assert cluster.call("GET", path)["spec"]["holderIdentity"] != ""
    assert scheduler.stop() == 0
    cluster.call("DELETE", path)


def test_who_loses_the_lease_ends_with_1(cluster: Kube) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/stolen"
    name = ("--leader-elect-resource-name=stolen", "--leader-elect-resource-namespace=default")
    scheduler = cluster.run(*name, *QUICK, leads=True)
    scheduler.wait_until_it_says("scheduling for")
    thief = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}}
    cluster.call("PATCH", path, thief, "application/merge-patch+json")
    until(lambda: not scheduler.is_running, 20, scheduler.tail)
    assert scheduler.stop() == 1
    assert scheduler.tail().splitlines()[-1] == "error: the lease default/stolen was lost"
    assert cluster.call("GET", path)["spec"]["holderIdentity"] == "thief"
    cluster.call("DELETE", path)


def test_a_plugin_of_ones_own_has_its_say(cluster: Kube, tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(PLUGIN)
    cluster.create(node("n0"), node("n1", cpu=1))
    cluster.run(f"--plugin={plugin}")
    cluster.create(*(pod(f"p{i}", cpu="400m") for i in range(3)))
    until(lambda: cluster.by_node() == {"n1": 2, "": 1}, 30)


def test_a_seed_breaks_ties_as_it_does_offline(cluster: Kube) -> None:
    cluster.create(*(node(f"n{i}") for i in range(8)), pod("one"))

    def chosen(seed: int) -> str:
        given = (f"--kubeconfig={cluster.kubeconfig}", "--dry-run", f"--seed={seed}", "-o", "json")
        place: str = json.loads(mooring("schedule", *given).stdout)["placements"][0]["node"]
        return place

    usual = chosen(0)
    seed = next(seed for seed in range(1, 20) if chosen(seed) != usual)
    expected = chosen(seed)
    cluster.run(f"--seed={seed}")
    assert cluster.wait_until_bound(["one"]) == {"one": expected}


@pytest.mark.parametrize(("given", "levels"), [("0", set()), ("1", {"INFO"}), ("4", {"INFO", "DEBUG"})])
def test_how_much_is_logged_is_said_by_v(cluster: Kube, given: str, levels: set[str]) -> None:
    cluster.create(node("n0"), pod("one"))
    scheduler = cluster.run("-v", given)
    cluster.wait_until_bound(["one"])
    assert scheduler.stop() == 0
    text = scheduler.log.read_text()
    found = {level for level in ("DEBUG", "INFO") if f" {level} " in text}
    assert found == levels
    assert cluster.token not in text
