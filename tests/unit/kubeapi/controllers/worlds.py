"""A small cluster in memory: an API, the controllers that a test is about, nodes, and a clock that the test turns."""

from collections.abc import Callable
from typing import Any

from mooring.kubeapi.api import Api
from mooring.kubeapi.controllers.context import Context
from mooring.kubeapi.controllers.controller import Controller
from mooring.kubeapi.nodes.heartbeats import Heartbeats
from mooring.kubeapi.nodes.kubelets import Kubelets
from mooring.kubeapi.nodes.registration import register
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.store.store import Store
from mooring.kubeapi.strategy import Strategy

Object = dict[str, Any]
START = 1_800_000_000.0


class Counting(Strategy):
    """Counts changes of the spec."""

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1


class GracefulPods(Counting):
    """Pods that run are given the time that they ask for."""

    def grace_period(self, obj: Object, asked: int | None) -> int:
        if not obj["spec"].get("nodeName") or (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return 0
        return int(obj["spec"].get("terminationGracePeriodSeconds", 30)) if asked is None else asked


def strategy_of(resource: Resource) -> Strategy:
    return GracefulPods() if resource.key == "pods" else Counting()


class World:
    """`run` lets controllers work until nothing is left to do, and binds pods to the first node meanwhile."""

    def __init__(self, *controllers: Callable[[Context], Controller], nodes: int = 1) -> None:
        self.time = START
        self.api = Api(Store(), strategy_of=strategy_of, now=lambda: self.time)
        self.context = Context(self.api, lambda: self.time)
        register(self.api, [{"metadata": {"name": f"node-{number}"}} for number in range(nodes)])
        self.controllers = [make(self.context) for make in (*controllers, Heartbeats, Kubelets)]
        for controller in self.controllers:
            controller.start()

    def create(self, resource: str, obj: Object, namespace: str = "default") -> Object:
        return self.api.create(resource, obj, namespace)

    def get(self, resource: str, name: str, namespace: str = "default") -> Object:
        return self.api.get(resource, namespace, name)

    def change(self, resource: str, name: str, change: Callable[[Object], Any], namespace: str = "default") -> None:
        found = self.get(resource, name, namespace)
        change(found)
        self.api.update(resource, found)

    def run(self, seconds: float = 0.0) -> None:
        """Let time pass."""
        until = self.time + seconds
        while True:
            self._settle()
            due = self.context.runner.next_at()
            if due is None or due > until:
                break
            self.time = max(self.time, due)
        self.time = until
        self._settle()

    def _settle(self) -> None:
        for _ in range(100):
            self.context.runner.run_until_idle()
            unbound = [pod for pod in self.api.list("pods") if not pod["spec"].get("nodeName") and _may_run(pod)]
            if not unbound:
                return
            for pod in unbound:
                binding = {"target": {"kind": "Node", "name": _node_of(pod)}}
                self.api.create_sub("pods", pod["metadata"]["namespace"], pod["metadata"]["name"], "binding", binding)
        raise AssertionError("the cluster does not come to rest")

    def phases(self, namespace: str = "default") -> dict[str, str]:
        pods = self.api.list("pods", namespace)
        return {pod["metadata"]["name"]: (pod.get("status") or {}).get("phase", "") for pod in pods}


def _may_run(pod: Object) -> bool:
    return not pod["spec"].get("schedulingGates") and "deletionTimestamp" not in pod["metadata"]


def _node_of(pod: Object) -> str:
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    for term in (required or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return "node-0"


def template(*command: str, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox:1.36", "command": list(command)}
    return {"metadata": {"labels": labels or {"app": "web"}}, "spec": {"containers": [container], **spec}}
