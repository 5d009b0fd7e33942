"""A control plane in a thread of the test or in a process of its own, and a client that speaks to it over HTTPS."""

import asyncio
import base64
import contextlib
import http.client
import json
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from mooring.kubeapi.cluster import Cluster, Place

Object = dict[str, Any]
JSON = "application/json"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def rule(resources: str, verbs: str, group: str = "", **more: list[str]) -> Object:
    """A PolicyRule; resources and verbs are separated by spaces."""
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), **more}


class Running:
    """A cluster that serves until it is stopped; its own thread has the event loop."""

    def __init__(self, data: Path | None = None) -> None:
        self.cluster = Cluster(Place(data))
        self._clients: list[Client] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.do(self.cluster.start())

    def do(self, awaitable: Any) -> Any:
        """Run something in the server's loop."""
        return asyncio.run_coroutine_threadsafe(awaitable, self._loop).result(30)

    def call(self, function: Any, *arguments: Any, **named: Any) -> Any:
        async def run() -> Any:
            return function(*arguments, **named)

        return self.do(run())

    def client(self, *, token: str = "") -> "Client":
        """The administrator's client, or that of a token's user; it is closed with the cluster."""
        found = Client(self.cluster, with_certificate=not token, token=token)
        self._clients.append(found)
        return found

    def account(
        self,
        namespace: str,
        name: str,
        rules: list[Object] | None = None,
        *,
        role: str = "",
        everywhere: bool = False,
    ) -> "Client":
        """A new service account with these rules or a ClusterRole, in its namespace or everywhere, and its client."""
        admin = self.client()
        admin.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        admin.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
        role = role or f"{namespace}-{name}"
        if rules is not None:
            assert admin.ask("POST", f"{RBAC}/clusterroles", {"metadata": {"name": role}, "rules": rules})[0] == 201
        where = f"{RBAC}/clusterrolebindings" if everywhere else f"{RBAC}/namespaces/{namespace}/rolebindings"
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
        binding = {"metadata": {"name": f"{namespace}-{name}"}, "roleRef": reference, "subjects": subjects}
        assert admin.ask("POST", where, binding)[0] == 201
        code, made = admin.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", {"spec": {}})
        assert code == 201, made
        return self.client(token=made["status"]["token"])

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        self.do(self.cluster.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextlib.contextmanager
def running(data: Path | None = None) -> Iterator[Running]:
    found = Running(data)
    try:
        yield found
    finally:
        found.stop()


def start_server(folder: Path, *, in_memory: bool = False) -> tuple["subprocess.Popen[bytes]", Object]:
    """`mooring up` without nodes and scheduler, and its kubeconfig."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    command = [sys.executable, "-m", "mooring", "up", "--no-scheduler", "--nodes", "0", "--port", "0"]
    command += ["--in-memory"] if in_memory else ["--data", str(folder / "cluster.db")]
    server = subprocess.Popen([*command, "--kubeconfig", str(kubeconfig)], stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not kubeconfig.exists():
        assert server.poll() is None, "the server did not start"
        assert time.monotonic() < until, "the server takes too long"
        time.sleep(0.01)
    return server, yaml.safe_load(kubeconfig.read_text())


def tls_context(kubeconfig: Object, *, with_certificate: bool = True) -> ssl.SSLContext:
    """The certificates of a kubeconfig."""
    authority = base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    if with_certificate:
        user = kubeconfig["users"][0]["user"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "client.pem"
            path.write_bytes(
                base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])
            )
            context.load_cert_chain(path)
    return context


class Client:
    """One connection; answers are a code and what the JSON says."""

    def __init__(self, cluster: Cluster, *, with_certificate: bool = True, token: str = "") -> None:
        self.context = tls_context(cluster.kubeconfig(), with_certificate=with_certificate)
        self._port, self._token = cluster.port, token
        self.connection = self.connect()

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self._port, context=self.context, timeout=30)

    def headers(self, **more: str) -> dict[str, str]:
        found = {"Accept": JSON, **more}
        return {**found, "Authorization": f"Bearer {self._token}"} if self._token else found

    def ask(
        self, method: str, path: str, body: Any = None, *, content_type: str = JSON, **headers: str
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes | type(None)) else json.dumps(body).encode()
        self.connection.request(method, path, data, self.headers(**{"Content-Type": content_type, **headers}))
        response = self.connection.getresponse()
        text = response.read()
        self.answer_headers = response.headers
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text.decode()

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        return self.ask("GET", path, **headers)

    def close(self) -> None:
        self.connection.close()


class WatchStream:
    """The events of a watch, one after the other."""

    def __init__(self, client: Client, path: str) -> None:
        self._connection = client.connect()
        self._connection.request("GET", path, headers=client.headers())
        self.response = self._connection.getresponse()

    def __iter__(self) -> Iterator[Object]:
        for line in self.response:
            yield json.loads(line)

    def next(self) -> Object:
        found: Object = json.loads(self.response.readline())
        return found

    def close(self) -> None:
        self._connection.close()
