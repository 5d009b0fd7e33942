"""On `mooring up`, an autoscaler's recommendation reaches running pods through their resize subresource."""

import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from running import tls_context

Object = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
AUTOSCALERS = "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"


class Server:
    """Asks a control plane of its own process."""

    def __init__(self, kubeconfig: Object) -> None:
        address = urlsplit(kubeconfig["clusters"][0]["cluster"]["server"])
        assert address.hostname is not None
        self._connection = http.client.HTTPSConnection(
            address.hostname, address.port, context=tls_context(kubeconfig), timeout=30
        )

    def ask(self, method: str, path: str, body: Object | None = None) -> Object:
        form = "application/merge-patch+json" if method == "PATCH" else "application/json"
        text = json.dumps(body) if body is not None else None
        self._connection.request(method, path, text, {"Content-Type": form})
        answer = self._connection.getresponse()
        found = json.loads(answer.read())
        assert answer.status < 300, found
        assert isinstance(found, dict)
        return found

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "mooring", "up", "--in-memory", "--nodes", "1", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--kubeconfig", str(kubeconfig)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("Ctrl-C"):
            break
    found = Server(yaml.safe_load(kubeconfig.read_text()))
    yield found
    found.close()
    process.send_signal(signal.SIGINT)
    process.wait(60)
    process.stdout.close()


def wait_for(what: Callable[[], bool], seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.2)


def granted(server: Server) -> list[Object]:
    """What the kubelets have given to the containers of each pod that runs."""
    pods = server.ask("GET", PODS)["items"]
    statuses = [one for pod in pods for one in pod["status"].get("containerStatuses") or ()]
    return [one.get("allocatedResources") or {} for one in statuses]


def test_running_pods_get_what_their_autoscaler_recommends(server: Server) -> None:
    container = {"name": "app", "image": "web", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}}, "template": template}
    server.ask("POST", "/apis/apps/v1/namespaces/default/statefulsets", {"metadata": {"name": "web"}, "spec": spec})
    wait_for(lambda: granted(server) == [{"cpu": "1", "memory": "1Gi"}] * 2)
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}
    policy = {"updateMode": "InPlace"}
    autoscaler = {"metadata": {"name": "web"}, "spec": {"targetRef": target, "updatePolicy": policy}}
    server.ask(
        "POST", AUTOSCALERS, {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", **autoscaler}
    )
    amounts = {"cpu": "250m", "memory": "512Mi"}
    one = {"containerName": "app", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
    recommended = {"recommendation": {"containerRecommendations": [one]}}

    server.ask("PATCH", f"{AUTOSCALERS}/web/status", {"status": recommended})

    wait_for(lambda: [found.get("cpu") for found in granted(server)] == ["250m", "250m"])
    pods = server.ask("GET", PODS)["items"]
    assert [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods] == ["250m", "250m"]
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods] == [0, 0]
