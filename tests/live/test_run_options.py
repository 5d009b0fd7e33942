"""The options of `mooring run`, each seen to do what its help says."""

from pathlib import Path

from control_plane import free_port, until
from kube import Kube, node, pod
from test_failures import get


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
