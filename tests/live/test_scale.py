"""A thousand nodes, five thousand pods of several shapes, gangs and priorities on a real API server.

`MOORING_SCALE_PODS` makes it smaller or larger.
"""

import os

import pytest
from judge import Judge
from kube import Kube, Object, condition, node, pod
from test_chaos import gang, members

pytestmark = pytest.mark.live

PODS = int(os.environ.get("MOORING_SCALE_PODS", "5000"))
NODES = PODS // 5


def test_all_pods_of_a_large_cluster_are_placed_and_say_so(kube: Kube) -> None:
    kube.create(*(node(f"n{i:04}", cpu=16, labels={"topology.kubernetes.io/zone": f"z{i % 3}"}) for i in range(NODES)))
    classes = [("low", 10), ("middle", 100), ("high", 1000)]
    for name, value in classes:
        version = "scheduling.k8s.io/v1"
        kube.create({"apiVersion": version, "kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    kube.run()
    sizes = {f"gang-{i}": 8 for i in range(PODS // 50)}
    kube.create(*(gang(name, size) for name, size in sizes.items()))
    pods: list[Object] = [each for name, size in sizes.items() for each in members(name, size, cpu="1")]
    shapes = ("100m", "250m", "500m", "1", "2")
    for number in range(PODS - len(pods)):
        found = pod(f"web-{number}", cpu=shapes[number % 5], priorityClassName=classes[number % 3][0])
        if number % 7 == 0:
            found["spec"]["nodeSelector"] = {"topology.kubernetes.io/zone": f"z{number % 3}"}
        pods.append(found)
    kube.create(*pods)
    kube.wait_until_bound((found["metadata"]["name"] for found in pods), 600)
    assert Judge(kube, sizes).complaints() == []
    shown = kube.pods()["gang-0-0"]
    scheduled = condition(shown, "PodScheduled")
    assert scheduled is not None and scheduled["status"] == "True"
    group = kube.call("GET", "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/gang-0")
    initially = condition(group, "PodGroupInitiallyScheduled")
    assert initially is not None and initially["status"] == "True"
