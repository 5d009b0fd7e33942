"""Usage of simulated nodes: served under metrics.k8s.io, shown by `kubectl top`, and read by the scheduler."""

import json
from collections.abc import Iterator

import pytest
from running import Running, running
from with_kubectl import KUBECTL, Kubectl, Refused, cluster_up, eventually

METRICS = "/apis/metrics.k8s.io/v1beta1"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: LoadAwareScheduling, weight: 100}]}}
---
apiVersion: config.mooring.dev/v1alpha1
kind: LoadSources
metricsServer: {intervalSeconds: INTERVAL}
"""
NODES = """
apiVersion: v1
kind: Node
metadata: {name: a, labels: {zone: north}, annotations: {mooring.dev/usage-cpu: 3900m, mooring.dev/usage-memory: 1Gi}}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}
---
apiVersion: v1
kind: Node
metadata: {name: b, labels: {zone: south}}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}
"""


def pod(name: str, **annotations: str) -> str:
    """A pod that requests 500m and 1Gi; annotations by their names after the prefix, with _ for -."""
    marks = {f"mooring.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    containers = [{"name": "main", "image": "pause", "resources": resources}, {"name": "side", "image": "pause"}]
    metadata = {"name": name, "labels": {"app": name}, "annotations": marks}
    spec = {"containers": containers, "terminationGracePeriodSeconds": 0}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="no kubectl here")


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("usage")
    nodes, config = folder / "nodes.yaml", folder / "config.yaml"
    nodes.write_text(NODES)
    config.write_text(CONFIG.replace("INTERVAL", "0.5"))
    with cluster_up(folder, "-f", str(nodes), "--config", str(config)) as run:
        yield run


def table(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:]}


@needs_kubectl
def test_kubectl_top_shows_what_simulated_nodes_and_pods_use(kubectl: Kubectl) -> None:
    kubectl("apply -f -", pod("plain"))
    kubectl("apply -f -", pod("told", usage_cpu="50%", usage_memory="300Mi", **{"usage_cpu.side": "20m"}))
    kubectl("wait --for=condition=Ready pod/plain pod/told --timeout=60s")

    assert table(kubectl("top pods")) == {"plain": ["500m", "1024Mi"], "told": ["270m", "600Mi"]}
    assert table(kubectl("top pods -l app=told")) == {"told": ["270m", "600Mi"]}
    assert table(kubectl("top pod plain -n default")) == {"plain": ["500m", "1024Mi"]}
    by_container = [line.split()[1:] for line in kubectl("top pods told --containers").splitlines()[1:]]
    assert by_container == [["main", "250m", "300Mi"], ["side", "20m", "300Mi"]]
    nodes = table(kubectl("top nodes"))
    assert nodes["a"] == ["3900m", "97%", "1024Mi", "12%"]
    assert nodes["b"] == ["770m", "19%", "1624Mi", "19%"]
    assert list(table(kubectl("top nodes -l zone=south"))) == ["b"]
    assert list(table(kubectl("get nodes.metrics.k8s.io"))) == ["a", "b"]
    assert json.loads(kubectl("get nodes.metrics.k8s.io a -o json"))["usage"] == {"cpu": "3900m", "memory": "1048576Ki"}
    kubectl("delete pod plain told")


@needs_kubectl
def test_the_scheduler_of_mooring_up_goes_by_it(kubectl: Kubectl) -> None:
    """Node a is full by measurement alone, until it is idle and b is full."""
    for number in range(3):
        kubectl("apply -f -", pod(f"first-{number}", usage_cpu="10m"))
    kubectl("wait --for=condition=Ready pod/first-0 pod/first-1 pod/first-2 --timeout=60s")
    assert kubectl("get pods -o jsonpath={.items[*].spec.nodeName}").split() == ["b"] * 3
    kubectl("annotate node a mooring.dev/usage-cpu=0 --overwrite")
    kubectl("annotate node b mooring.dev/usage-cpu=3900m")
    eventually(lambda: table(kubectl("top nodes"))["a"][0] == "0m")

    def lands_on_a() -> bool:
        """Until the scheduler has asked again, a pod may still go to b."""
        kubectl("apply -f -", pod("next", usage_cpu="10m"))
        kubectl("wait --for=condition=PodScheduled pod/next --timeout=60s")
        found = kubectl("get pod next -o jsonpath={.spec.nodeName}") == "a"
        kubectl("delete pod next first-0 first-1 first-2 --ignore-not-found --now")
        return found

    eventually(lands_on_a)
    kubectl("annotate node a mooring.dev/usage-cpu=3900m --overwrite")
    kubectl("annotate node b mooring.dev/usage-cpu-")


@needs_kubectl
def test_what_does_not_run_or_answer_is_not_measured(kubectl: Kubectl) -> None:
    kubectl("annotate node b mooring.dev/failed=true")
    assert list(table(kubectl("top nodes"))) == ["a", "b"]
    assert table(kubectl("top nodes"))["b"][0] == "<unknown>"
    kubectl("annotate node b mooring.dev/failed-")
    with pytest.raises(Refused, match="not found"):
        kubectl("top pod nothing")
    kubectl("apply -f -", pod("starting", start_delay="1h"))
    with pytest.raises(Refused, match="not found"):
        kubectl("get pods.metrics.k8s.io starting")
    kubectl("delete pod starting --now")
    kubectl("apply -f -", pod("unclear", usage_cpu="much"))
    eventually(lambda: "annotation mooring.dev/usage-cpu: expected an amount" in kubectl("get events"))
    kubectl("delete pod unclear --now")


@pytest.fixture
def server() -> Iterator[Running]:
    with running() as found:
        yield found


def test_metrics_are_read_only_and_found_by_discovery(server: Running) -> None:
    client = server.client()
    resources = client.ask("GET", METRICS)[1]["resources"]
    assert [(one["name"], one["kind"], one["verbs"]) for one in resources] == [
        ("nodes", "NodeMetrics", ["get", "list"]),
        ("pods", "PodMetrics", ["get", "list"]),
    ]
    assert client.ask("GET", f"{METRICS}/nodes")[1]["kind"] == "NodeMetricsList"
    assert client.ask("DELETE", f"{METRICS}/nodes/a")[0] == 405
    assert client.ask("POST", f"{METRICS}/nodes", {"metadata": {"name": "a"}})[0] == 405
    assert client.ask("GET", f"{METRICS}/nodes/nothing")[0] == 404
    assert client.ask("GET", f"{METRICS}/pods?labelSelector=((")[0] == 400
    reader = server.account("team", "reader", role="view", everywhere=True)
    assert reader.ask("GET", f"{METRICS}/nodes")[0] == 200
    nobody = server.account("team2", "nobody", rules=[])
    assert nobody.ask("GET", f"{METRICS}/pods")[0] == 403


def test_a_large_answer_equals_the_sum_of_its_parts(server: Running) -> None:
    """Many pods are read in a thread: what nodes use is what their pods use."""
    client = server.client()
    assert client.ask("POST", "/api/v1/nodes", json.loads(node_with_room("big")))[0] == 201
    for number in range(120):
        made = json.loads(pod(f"p{number}", usage_cpu=f"{number}m", usage_memory="1Mi"))
        made["spec"]["nodeName"] = "big"
        assert client.ask("POST", "/api/v1/namespaces/default/pods", made)[0] == 201
    path = f"{METRICS}/namespaces/default/pods"
    eventually(lambda: len(client.ask("GET", path)[1]["items"]) == 120)
    usage = client.ask("GET", f"{METRICS}/nodes/big")[1]["usage"]
    assert usage == {"cpu": f"{2 * sum(range(120))}m", "memory": f"{240 * 1024}Ki"}
    client.ask("DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0")
    eventually(lambda: client.ask("GET", f"{METRICS}/nodes/big")[1]["usage"]["cpu"] == "0m")


def node_with_room(name: str) -> str:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    metadata = {"name": name, "annotations": {"mooring.dev/simulated": "true"}}
    status = {"capacity": amounts, "allocatable": amounts}
    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
