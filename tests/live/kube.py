"""A cluster as tests see it: nodes and pods in, what became of them out, and `mooring run` beside it."""

import base64
import json
import ssl
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPSConnection
from pathlib import Path
from threading import local
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import yaml
from control_plane import Program, until

SCHEDULED_SECONDS = 60.0
Object = dict[str, Any]


def node(
    name: str, cpu: int = 32, memory: str = "128Gi", pods: int = 110, labels: dict[str, str] | None = None, **more: Any
) -> Object:
    amounts = {"cpu": str(cpu), "memory": memory, "pods": str(pods), **more}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        },
    }


def pod(
    name: str, cpu: str = "100m", namespace: str = "default", labels: dict[str, str] | None = None, **spec: Any
) -> Object:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


class Refused(Exception):
    def __init__(self, code: int, text: str) -> None:
        self.code = code
        super().__init__(f"{code}: {text}")


class Kube:
    """A client as plain as can be, and the schedulers that a test starts."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self.kubeconfig, self.directory = kubeconfig, directory
        found = yaml.safe_load(kubeconfig.read_text())
        cluster = found["clusters"][0]["cluster"]
        self.server: str = cluster["server"]
        self.token: str = next(each["user"]["token"] for each in found["users"] if "token" in each["user"])
        self._address = urlsplit(self.server)
        given = cluster.get("certificate-authority-data", "")
        self._context = ssl.create_default_context(
            cafile=cluster.get("certificate-authority"), cadata=base64.b64decode(given).decode() or None
        )
        self._local = local()
        self._pool = ThreadPoolExecutor(8)
        """A connection for each of its threads."""
        self._connections: list[HTTPSConnection] = []
        self._schedulers: list[Program] = []

    def __enter__(self) -> "Kube":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for program in self._schedulers:
            program.kill()
        self._pool.shutdown()
        for connection in self._connections:
            connection.close()

    # Requests.

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Send one request on this thread's connection; raise Refused for anything but success."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        content = None if body is None else json.dumps(body)
        for attempt in (1, 2):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                address = self._address
                connection = HTTPSConnection(str(address.hostname), address.port, timeout=300, context=self._context)
                self._local.connection = connection
                self._connections.append(connection)
            try:
                connection.request(method, path, content, headers)
                answer = connection.getresponse()
                text = answer.read()
                break
            except (OSError, urllib.error.URLError):
                connection.close()
                self._local.connection = None
                if attempt == 2:
                    raise
        if answer.status >= 300:
            raise Refused(answer.status, text.decode(errors="replace")[:300])
        return json.loads(text) if text else None

    def create(self, *objects: Object) -> None:
        list(self._pool.map(lambda found: self.call("POST", collection(found), found), objects))

    def delete(self, *objects: Object) -> None:
        list(self._pool.map(self._delete, objects))

    def _delete(self, found: Object) -> None:
        try:
            self.call("DELETE", f"{collection(found)}/{found['metadata']['name']}?gracePeriodSeconds=0")
        except Refused as error:
            if error.code != 404:
                raise

    def finish_deletions(self) -> None:
        """Do what kubelets do: let pods go whose time is over.

        The server deletes a pod without a grace period in two steps; who dies while it asks for that leaves the first.
        """
        over = [found for found in self.pods().values() if _is_over(found)]
        self.delete(*({**found, "apiVersion": "v1", "kind": "Pod"} for found in over))

    def objects(self, path: str) -> list[Object]:
        found: list[Object] = self.call("GET", path)["items"]
        return found

    def pods(self) -> dict[str, Object]:
        return {found["metadata"]["name"]: found for found in self.objects("/api/v1/namespaces/default/pods")}

    def events(self, name: str) -> list[tuple[str, str]]:
        """The reasons and notes of the events on a pod."""
        found = self.objects(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}")
        return [(event["reason"], event["message"]) for event in found]

    def clean(self) -> None:
        """No pods in the default namespace, no nodes, no priority classes, no gangs and no leases of a test before.

        Nor anything that would create or admit pods: an installed chart, Workloads that wait.
        """
        for path in (
            "/apis/apps/v1/namespaces/mooring-system/deployments",
            "/apis/apps/v1/namespaces/mooring-system/replicasets",
            "/api/v1/namespaces/mooring-system/pods?gracePeriodSeconds=0",
            "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads",
        ):
            with suppress(Refused):  # kinds that are not served there
                self.call("DELETE", path)
        for path in (
            "/apis/batch/v1/namespaces/default/jobs?propagationPolicy=Background",
            "/api/v1/namespaces/default/pods?gracePeriodSeconds=0",
            "/api/v1/nodes",
            "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups",
            "/api/v1/namespaces/default/events",
        ):
            self.call("DELETE", path)
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        for found in self.objects(leases):  # a killed scheduler gave none back, and its transitions count on
            if found["metadata"]["name"].startswith(("mooring", "kube-scheduler")):
                self.call("DELETE", f"{leases}/{found['metadata']['name']}")
        for found in self.objects("/api/v1/configmaps?labelSelector=mooring.dev/scheduler"):  # what others remember
            metadata = found["metadata"]
            self.call("DELETE", f"/api/v1/namespaces/{metadata['namespace']}/configmaps/{metadata['name']}")
        groups = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
        for found in self.objects(groups):  # whoever takes their finalizers off does not run here
            path, none = f"{groups}/{found['metadata']['name']}", {"metadata": {"finalizers": None}}
            self.call("PATCH", path, none, "application/merge-patch+json")
        for found in self.objects("/apis/scheduling.k8s.io/v1/priorityclasses"):
            if not found["metadata"]["name"].startswith("system-"):
                self.call("DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{found['metadata']['name']}")
        until(lambda: not self.pods(), 60)

    def remove_custom_kinds(self) -> None:
        """Remove the kinds that an earlier test installed, and wait until the API server no longer lists them."""
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        groups = {found["spec"]["group"] for found in self.objects(definitions)}
        if not groups:
            return
        self.call("DELETE", definitions)

        def served() -> set[str]:
            return {found["name"] for found in self.call("GET", "/apis")["groups"]}

        until(lambda: not self.objects(definitions) and not groups & served(), 60)

    # Schedulers.

    def run(self, *options: str, name: str = "mooring", leads: bool = False) -> Program:
        """Start `mooring run` beside the cluster; it ends with the test."""
        command: Sequence[str | Path] = (sys.executable, "-m", "mooring", "run", f"--kubeconfig={self.kubeconfig}")
        election = () if leads else ("--leader-elect=false",)
        program = Program(self.directory, name, [*command, *election, *options])
        program.start()
        self._schedulers.append(program)
        return program

    # What became of pods.

    def wait_until_bound(self, names: Iterable[str], seconds: float = SCHEDULED_SECONDS) -> dict[str, str]:
        """Wait until these pods have nodes; which ones."""
        wanted = set(names)
        found: dict[str, str] = {}

        def done() -> bool:
            found.clear()
            found.update({name: each["spec"].get("nodeName", "") for name, each in self.pods().items()})
            return all(found.get(name) for name in wanted)

        until(done, seconds, lambda: f"without a node: {sorted(n for n in wanted if not found.get(n))[:10]}")
        return {name: found[name] for name in wanted}

    def by_node(self) -> Counter[str]:
        return Counter(found["spec"].get("nodeName", "") for found in self.pods().values())


def _is_over(found: Object) -> bool:
    metadata = found["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")


def collection(found: Object) -> str:
    """Where objects of this kind are."""
    group = found["apiVersion"]
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    kind = found["kind"].lower()
    plural = f"{kind}es" if kind.endswith("s") else f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    namespace = found["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def condition(found: Object, type_: str) -> Object | None:
    return next((each for each in found.get("status", {}).get("conditions", ()) if each["type"] == type_), None)
