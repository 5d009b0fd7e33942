"""The same events give the same decisions in the simulator and on the embedded control plane.

One story is told to both: to the simulator as a scenario, to the control plane step by step over HTTPS, with `mooring
run` scheduling it from a process of its own. What was bound and evicted is compared step by step.
"""

import base64
import http.client
import json
import ssl
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from scenario_parts import node

from mooring.drivers.sim.reading import read_scenario
from mooring.drivers.sim.runs import simulate
from mooring.model.decisions import Bind, Decision, Evict

Object = dict[str, Any]
PATIENCE_SECONDS = 120.0
START = "2026-01-01T00:00:00Z"
RUNS_SECONDS = 25
"""How long the first pod runs: the steps up to its end must be over by then, also on a busy machine."""


class Step(NamedTuple):
    at: int
    """In the simulation."""
    binds: int
    """How many pods have been bound by then, in all: what the control plane is waited for."""
    objects: tuple[Object, ...] = ()
    cordon: str = ""


def pod(name: str, cpu: int, priority: str = "", duration: str = "", **metadata: Any) -> Object:
    annotations = {"mooring.dev/duration": duration} if duration else {}
    container = {"name": "main", "image": "registry.k8s.io/pause", "resources": {"requests": {"cpu": str(cpu)}}}
    spec: Object = {"restartPolicy": "Never", "containers": [container]}
    if priority:
        spec["priorityClassName"] = priority
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations, **metadata},
        "spec": spec,
    }


def deployment(name: str, replicas: int, cpu: int) -> Object:
    template = pod(name, cpu)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {**template["spec"], "restartPolicy": "Always"},
            },
        },
    }


def member(name: str, cpu: int) -> Object:
    gang = {"mooring.dev/gang-name": "gang", "mooring.dev/gang-minimum": "2"}
    return pod(name, cpu, annotations=gang)


CLUSTER = (
    node("a", cpu=8),
    node("b", cpu=8),
    node("c", cpu=4),
    *(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("urgent", 1000), ("usual", 100))
    ),
)
STORY = (
    Step(5, 3, (deployment("web", 3, 3),)),
    Step(10, 5, (pod("solo-1", 4, "usual", f"{RUNS_SECONDS}s"), pod("solo-2", 3, "usual"))),
    Step(12, 5, (member("gang-0", 6), member("gang-1", 6))),  # waits as a whole
    Step(14, 6, (pod("urgent", 4, "urgent"),)),  # evicts a pod of web, which its owner makes anew
    Step(40, 7),  # solo-1 has ended: there is room for it again
    Step(50, 9, (node("d", cpu=16),)),  # and for the gang
    Step(60, 10, (pod("late", 1),), cordon="d"),
)


def name_of(key: str) -> str:
    """A pod's name without what controllers add by chance."""
    name = key.removeprefix("default/")
    return "web" if name.startswith("web-") else name


def told(decision: Decision) -> tuple[str, str, str] | None:
    match decision:
        case Bind(key, where):
            return "Bind", name_of(key), where
        case Evict(key, where):
            return "Evict", name_of(key), where
    return None


def simulated(folder: Path) -> list[tuple[str, str, str]]:
    """What the simulator decides."""
    work, changes = [], []
    for number, step in enumerate(STORY):
        nodes = [found for found in step.objects if found["kind"] == "Node"]
        others = [found for found in step.objects if found["kind"] != "Node"]
        if nodes or step.cordon:
            cordon = {"cordon": {"names": [step.cordon]}} if step.cordon else {}
            changes.append({"at": f"{step.at}s", "objects": nodes, **cordon})
        if others:  # what happens by itself is no step of the scenario
            work.append({"name": f"step-{number}", "at": [f"{step.at}s"], "objects": others})
    path = folder / "scenario.yaml"
    scenario = {
        "apiVersion": "config.mooring.dev/v1alpha1",
        "kind": "Simulation",
        "horizon": "2m",
        "start": START,
        "cluster": {"objects": list(CLUSTER)},
        "work": work,
        "changes": changes,
    }
    path.write_text(yaml.safe_dump(scenario))
    decisions: list[tuple[str, str, str]] = []

    def watch(_: float, made: list[Decision]) -> None:
        decisions.extend(line for decision in made if (line := told(decision)) is not None)

    simulate(read_scenario(path), "default", 0, watch=watch)
    return decisions


class ControlPlane:
    """`mooring up` without its scheduler, and `mooring run` beside it with a log of decisions."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._log = folder, folder / "decisions.log"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        folder = self._folder
        kubeconfig = folder / "kubeconfig"
        cluster = folder / "cluster.yaml"
        cluster.write_text(yaml.safe_dump_all(CLUSTER))
        self._start("up", "--no-scheduler", "--in-memory", "--port", "0", "-f", cluster, "--kubeconfig", kubeconfig)
        self._until(kubeconfig.exists)
        self._connect(yaml.safe_load(kubeconfig.read_text()))
        self._until(lambda: len(self.ask("GET", "/api/v1/nodes")["items"]) == 3)
        options = ("--leader-elect=false", "--decision-log", self._log)
        self._start("run", "--kubeconfig", kubeconfig, *options)

    def _start(self, *arguments: str | Path) -> None:
        command = [sys.executable, "-m", "mooring", *map(str, arguments)]
        self._processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def _connect(self, kubeconfig: Object) -> None:
        found, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        authority = base64.b64decode(found["certificate-authority-data"]).decode()
        client = self._folder / "client.pem"
        client.write_bytes(
            base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])
        )
        self._context = ssl.create_default_context(cadata=authority)
        self._context.load_cert_chain(client)
        self._address = urllib.parse.urlsplit(found["server"]).netloc

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPSConnection(self._address, context=self._context, timeout=30)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": kind})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        assert response.status < 300, answer
        return answer

    def tell(self, step: Step) -> None:
        if step.cordon:
            self.ask("PATCH", f"/api/v1/nodes/{step.cordon}", {"spec": {"unschedulable": True}})
        paths = {"Pod": "/api/v1/namespaces/default/pods", "Deployment": "/apis/apps/v1/namespaces/default/deployments"}
        for document in step.objects:
            self.ask("POST", paths.get(document["kind"], "/api/v1/nodes"), document)
        self._until(lambda: sum(line[0] == "Bind" for line in self.decisions()) >= step.binds)
        for document in step.objects:
            if document["kind"] == "Pod":
                self._until(lambda name=document["metadata"]["name"]: name in self._log.read_text())  # type: ignore[misc]

    def decisions(self) -> list[tuple[str, str, str]]:
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return [
            (line["kind"], name_of(line["pod"]), line["node"]) for line in found if line["kind"] in ("Bind", "Evict")
        ]

    def _until(self, is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < until, self.decisions()
            assert all(process.poll() is None for process in self._processes), "a process ended"
            time.sleep(0.05)

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            process.wait(30)


@pytest.fixture
def control_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    found = ControlPlane(tmp_path)
    try:
        found.start()
        yield found
    finally:
        found.stop()


def test_the_same_events_give_the_same_decisions(control_plane: ControlPlane, tmp_path: Path) -> None:
    expected = simulated(tmp_path)
    assert [kind for kind, _, _ in expected].count("Bind") == STORY[-1].binds

    for step in STORY:
        control_plane.tell(step)

    assert control_plane.decisions() == expected
