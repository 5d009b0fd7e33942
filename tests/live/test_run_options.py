"""The options of `mooring run`, each seen to do what its help says."""

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
