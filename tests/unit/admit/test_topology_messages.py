"""What is said of a pod set that has no place in a topology, in the numbers that Kueue gives."""

from typing import Any

from mooring.testing.topology_conformance import answer_scenario

Json = dict[str, Any]
CPU = {"cpu": "1"}


def flavor(name: str) -> Json:
    spec = {"nodeLabels": {"pool": "a"}, "topologyName": "dc"}
    return {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def node(name: str, **allocatable: str) -> Json:
    labels = {"pool": "a", "rack": "r1", "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod_set(name: str, count: int, requests: Json) -> Json:
    containers = [{"name": "c", "image": "i", "resources": {"requests": requests}}]
    return {
        "name": name,
        "count": count,
        "topologyRequest": {"unconstrained": True},
        "template": {"spec": {"restartPolicy": "Never", "containers": containers}},
    }


def message(pod_sets: list[Json], nodes: list[Json], pods: list[Json] = [], **quotas: str) -> str:  # noqa: B006
    """What is said of a workload with these pod sets; quotas are of CPU, by flavor, and there is memory enough."""
    flavors = [
        {
            "name": name,
            "resources": [{"name": "cpu", "nominalQuota": quota}, {"name": "memory", "nominalQuota": "100Gi"}],
        }
        for name, quota in quotas.items()
    ]
    version = "kueue.x-k8s.io/v1beta2"
    scenario: Json = {
        "id": "one",
        "now": "2026-01-01T00:00:00Z",
        "namespaces": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}],
        "nodes": nodes,
        "pods": pods,
        "topologies": [
            {
                "apiVersion": version,
                "kind": "Topology",
                "metadata": {"name": "dc"},
                "spec": {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]},
            }
        ],
        "resourceFlavors": [{"apiVersion": version, **flavor(name)} for name in quotas],
        "cohorts": [],
        "clusterQueues": [
            {
                "apiVersion": version,
                "kind": "ClusterQueue",
                "metadata": {"name": "queue"},
                "spec": {
                    "namespaceSelector": {},
                    "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": flavors}],
                },
            }
        ],
        "localQueues": [
            {
                "apiVersion": version,
                "kind": "LocalQueue",
                "metadata": {"name": "queue", "namespace": "default"},
                "spec": {"clusterQueue": "queue"},
            }
        ],
        "workloads": [
            {
                "apiVersion": version,
                "kind": "Workload",
                "metadata": {
                    "name": "work",
                    "namespace": "default",
                    "uid": "1",
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": {"queueName": "queue", "podSets": pod_sets},
            }
        ],
    }
    answer = answer_scenario(scenario)
    found: str = answer["cycles"][0]["outcomes"]["default/work"]["message"]
    return found


def test_a_pod_set_of_another_flavor_on_the_same_nodes_takes_no_room_in_the_message() -> None:
    pod_sets = [pod_set("first", 2, CPU), pod_set("second", 5, CPU)]
    said = message(pod_sets, [node("n1", cpu="4", memory="8Gi", pods="10")], f1="2", f2="5")

    assert said == 'couldn\'t assign flavors to pod set second: topology "dc" allows to fit only 4 out of 5 pod(s)'


def test_a_pod_set_of_the_same_flavor_takes_room_in_the_message() -> None:
    pod_sets = [pod_set("first", 2, CPU), pod_set("second", 5, CPU)]
    said = message(pod_sets, [node("n1", cpu="4", memory="8Gi", pods="10")], f1="9")

    assert said == 'couldn\'t assign flavors to pod set second: topology "dc" allows to fit only 2 out of 5 pod(s)'


def test_what_is_in_the_way_only_because_nodes_are_shared_is_said_as_it_is() -> None:
    pod_sets = [pod_set("first", 2, CPU), pod_set("second", 4, CPU)]
    said = message(pod_sets, [node("n1", cpu="4", memory="8Gi", pods="10")], f1="2", f2="4")

    assert said == 'couldn\'t assign flavors to pod set second: topology "dc" allows to fit only 2 out of 4 pod(s)'


def test_of_two_resources_that_are_short_the_first_by_name_is_named_even_if_the_other_is_overdrawn() -> None:
    big = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "big", "namespace": "default"},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "4", "memory": "12Gi"}}}],
        },
        "status": {"phase": "Running"},
    }
    said = message(
        [pod_set("main", 2, {"cpu": "1", "memory": "1Gi"})],
        [node("n1", cpu="4", memory="8Gi", pods="10"), node("n2", cpu="1", memory="8Gi", pods="10")],
        [big],
        f1="9",
    )

    assert said == (
        'couldn\'t assign flavors to pod set main: topology "dc" allows to fit only 1 out of 2 pod(s). '
        'Total nodes: 2; excluded: resource "cpu": 1'
    )
