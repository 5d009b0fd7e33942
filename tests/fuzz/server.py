"""Fuzz `mooring up`: `python tests/fuzz/server.py --count 100000 --seed 1`.

Objects are those of the examples and one of each other served kind, mutated, or made up from the OpenAPI documents that
the server itself gives out. They are sent by all verbs with odd queries and patches, from several clients at once. The
run fails on an answer of 500, a connection that breaks, a traceback or an error in the log, a request that takes longer
than five seconds, a server that ends, memory that grows on and on, or if at the end the server is not ready, does not
write or does not schedule. Load goes to loopback only.
"""

import argparse
import base64
import http.client
import json
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent))

from odd_requests import NAMESPACES, Requests, Seeds

Object = dict[str, Any]
JSON = {"Content-Type": "application/json"}
SLOWEST_SECONDS = 5.0
GROWTH_MIB = 200.0
"""How much memory may grow from the middle of a run to its end: objects stay, and the past is remembered."""
BETWEEN_SWEEPS = 500
"""Requests after which what would stop all others is taken away: policies that refuse everything, floods of pods."""
PATIENCE_SECONDS = 120.0
"""What is asked for at the end may take so long: controllers and scheduler have a backlog."""
MOST_PODS = 300
"""Of a namespace with a quota."""
SWEPT = (
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
    *(
        f"/{path.replace('*', f'namespaces/{namespace}')}"
        for path in (
            "apis/apps/v1/*/deployments",
            "apis/apps/v1/*/daemonsets",
            "apis/apps/v1/*/statefulsets",
            "apis/apps/v1/*/replicasets",
            "api/v1/*/replicationcontrollers",
            "apis/batch/v1/*/cronjobs",
            "apis/batch/v1/*/jobs",
            "apis/jobset.x-k8s.io/v1alpha2/*/jobsets",
            "api/v1/*/pods",
        )
        for namespace in NAMESPACES
    ),
)


class Server:
    """`mooring up` in a folder of its own, and what its OpenAPI documents say."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.log = folder / "log"
        kubeconfig = folder / "kubeconfig"
        command = [sys.executable, "-m", "mooring", "up", "--nodes", "3", "--port", "0", "--data", str(folder / "c.db")]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--kubeconfig", str(kubeconfig), *options], stdout=log, stderr=log
            )
        until = time.monotonic() + 120
        while b"is up at" not in self.log.read_bytes():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, "the server takes too long"
            time.sleep(0.05)
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        self._port = int(cluster["server"].rpartition(":")[2])
        self.token = config["users"][1]["user"]["token"]
        self.operations: list[tuple[str, str, Object]] = []
        self.schemas: dict[str, Object] = {}
        self.kinds: dict[tuple[str, str, str], str] = {}
        self._read_documents()

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self._port, context=self._context, timeout=120)

    def ask(
        self, connection: http.client.HTTPSConnection, method: str, path: str, body: bytes | None, headers: Object
    ) -> tuple[int, bytes]:
        connection.request(method, path, body, {"Authorization": f"Bearer {self.token}", **headers})
        response = connection.getresponse()
        return response.status, response.read()

    def get(self, path: str) -> Any:
        connection = self.connect()
        found = json.loads(self.ask(connection, "GET", path, None, {})[1])
        connection.close()
        return found

    def _read_documents(self) -> None:
        for about in self.get("/openapi/v3")["paths"].values():
            document = self.get(about["serverRelativeURL"])
            for name, schema in (document.get("components") or {}).get("schemas", {}).items():
                self.schemas[name] = schema
                for kind in schema.get("x-kubernetes-group-version-kind") or ():
                    self.kinds[kind["group"], kind["version"], kind["kind"]] = name
            for path, item in (document.get("paths") or {}).items():
                for method in ("get", "post", "put", "patch", "delete"):
                    if method in item:
                        kind = item[method].get("x-kubernetes-group-version-kind") or {}
                        self.operations.append((method.upper(), path, kind))

    def memory(self) -> float:
        """MiB that the process has, or 0 where the system does not say."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0.0
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Outcome:
    """What came of a run."""

    def __init__(self) -> None:
        self.codes: Counter[int] = Counter()
        self.stored: Counter[str] = Counter()
        """How many objects of each kind were created."""
        self.kinds = 0
        """How many there are."""
        self.faults: list[str] = []
        self.slowest = 0.0
        self.memory: list[float] = []

    def lines(self) -> Iterator[str]:
        yield f"{self.codes.total()} requests: " + ", ".join(f"{code}: {n}" for code, n in sorted(self.codes.items()))
        yield f"{self.stored.total()} objects of {len(self.stored)} kinds of {self.kinds} were created"
        yield f"the slowest took {self.slowest:.2f} s; memory in MiB: " + " ".join(
            f"{each:.0f}" for each in self.memory
        )
        yield from (f"FAULT {fault}" for fault in self.faults[:20])


class Fuzzing:
    """Several clients that send requests, and what came of them."""

    def __init__(self, server: Server, count: int, seed: int) -> None:
        self._server, self._count, self._seed = server, count, seed
        self._seeds, self._lock, self._numbers = Seeds(), threading.Lock(), iter(range(count))
        self.outcome = Outcome()
        self.outcome.kinds = len({tuple(kind.items()) for method, _, kind in server.operations if method == "POST"})

    def work(self, which: int) -> None:
        connection = self._server.connect()
        for method, path, body, headers in Requests(self._server, self._seeds, self._seed * 1000 + which):
            number = self._next()
            if number is None:
                break
            if number % BETWEEN_SWEEPS == BETWEEN_SWEEPS - 1:
                self._sweep(connection)
            start = time.monotonic()
            try:
                code, answer = self._server.ask(connection, method, path, body, headers)
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                connection = self._server.connect()
                code, answer = 0, repr(error).encode()
            took = time.monotonic() - start - (1.0 if "watch" in path else 0.0)
            with self._lock:
                self._judge(method, path, body, code, answer, took)
        connection.close()

    def _next(self) -> int | None:
        with self._lock:
            number = next(self._numbers, None)
            if number is not None and number % max(1, self._count // 10) == 0:
                self.outcome.memory.append(self._server.memory())
        return number if self._server.process.poll() is None else None

    def _sweep(self, connection: http.client.HTTPSConnection) -> None:
        for path in SWEPT:
            self._server.ask(connection, "DELETE", f"{path}?gracePeriodSeconds=0", None, {})
        prepare(self._server)

    def _judge(self, method: str, path: str, body: bytes | None, code: int, answer: bytes, took: float) -> None:
        self.outcome.codes[code] += 1
        self.outcome.slowest = max(self.outcome.slowest, took)
        if code in (0, 500):
            self.outcome.faults.append(f"{code} {method} {path} {body!r:.600}: {answer!r:.300}")
        if took > SLOWEST_SECONDS:
            self.outcome.faults.append(f"{took:.1f} s: {method} {path} {body!r:.600}")
        if (method, code) == ("POST", 201) and "dryRun" not in path and answer.startswith(b"{"):
            made = json.loads(answer)
            group, _, version = made["apiVersion"].rpartition("/")
            self.outcome.stored[f"{made['apiVersion']} {made['kind']}"] += 1
            for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace"):
                made.get("metadata", {}).pop(field, None)
            self._seeds.add((group, version, made["kind"]), made)


def prepare(server: Server) -> None:
    """Make the namespaces that are written to, with a quota for pods in all but one of them."""
    connection = server.connect()
    for namespace in NAMESPACES:
        body = json.dumps({"metadata": {"name": namespace}}).encode()
        server.ask(connection, "POST", "/api/v1/namespaces", body, JSON)
    for namespace in NAMESPACES[:-1]:
        quota = {"metadata": {"name": "limit"}, "spec": {"hard": {"pods": str(MOST_PODS)}}}
        path = f"/api/v1/namespaces/{namespace}/resourcequotas"
        server.ask(connection, "POST", path, json.dumps(quota).encode(), JSON)
    connection.close()


def fuzz(server: Server, count: int, seed: int, clients: int = 4, *, schedules: bool = False) -> Outcome:
    """Send requests; the outcome says what went wrong."""
    prepare(server)
    fuzzing = Fuzzing(server, count, seed)
    threads = [threading.Thread(target=fuzzing.work, args=(which,)) for which in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcome = fuzzing.outcome
    outcome.memory.append(server.memory())
    if outcome.codes.total() < count:
        outcome.faults.append(f"only {outcome.codes.total()} requests were sent")
    if server.process.poll() is not None:
        outcome.faults.append(f"the server ended with {server.process.returncode}")
    else:
        outcome.faults += faults_at_the_end(server, schedules=schedules)
    text = server.log.read_text(errors="replace")
    if "Traceback" in text:
        ends = Counter(each.partition("\n20")[0].strip()[-700:] for each in text.split("Traceback")[1:])
        outcome.faults += [f"{count} tracebacks:\n{end}" for end, count in ends.most_common(10)]
    outcome.faults += [line for line in text.splitlines() if " ERROR " in line][:10]
    half = outcome.memory[len(outcome.memory) // 2]
    if outcome.memory[-1] - half > GROWTH_MIB:
        outcome.faults.append(f"memory grew from {half:.0f} to {outcome.memory[-1]:.0f} MiB in the second half")
    if count >= 10_000 and len(outcome.stored) < 0.7 * outcome.kinds:
        outcome.faults.append(f"objects of {len(outcome.stored)} kinds of {outcome.kinds} were created")
    return outcome


def faults_at_the_end(server: Server, *, schedules: bool) -> list[str]:
    """Whether the server is ready, writes, and schedules."""
    connection, found = server.connect(), []
    for path in SWEPT[:2]:
        server.ask(connection, "DELETE", path, None, {})
    if server.ask(connection, "GET", "/readyz", None, {}) != (200, b"ok"):
        found.append("the server is not ready at the end")

    def write(path: str, obj: Object) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            code, answer = server.ask(connection, "POST", path, json.dumps(obj).encode(), JSON)
            if code in (201, 409):
                return
            # A namespace that has just come has no account yet; controllers have much to do.
            if b"service account" not in answer or time.monotonic() > until:
                found.append(f"a write at the end: {code} {answer!r:.300}")
                return
            time.sleep(0.5)

    write("/api/v1/namespaces", {"metadata": {"name": "at-the-end"}})
    write("/api/v1/namespaces/at-the-end/configmaps", {"metadata": {"name": "c"}})
    if schedules:
        resources = {"requests": {"cpu": "1"}}
        node = {
            "metadata": {"name": "free-at-the-end", "labels": {"free": "yes"}},
            "status": {"capacity": {"cpu": "4"}},
        }
        write("/api/v1/nodes", node)
        spec = {"nodeSelector": {"free": "yes"}, "containers": [{"name": "c", "image": "x", "resources": resources}]}
        write("/api/v1/namespaces/at-the-end/pods", {"metadata": {"name": "p"}, "spec": spec})
        until = time.monotonic() + PATIENCE_SECONDS
        while not server.get("/api/v1/namespaces/at-the-end/pods/p").get("spec", {}).get("nodeName"):
            if time.monotonic() > until:
                found.append("a pod that fits is not bound at the end")
                break
            time.sleep(0.5)
    connection.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-scheduler", action="store_true", help="let nothing schedule the cluster meanwhile")
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mooring-fuzz-") as folder:
        server = Server(Path(folder), *(("--no-scheduler",) if settings.no_scheduler else ()))
        try:
            outcome = fuzz(server, settings.count, settings.seed, schedules=not settings.no_scheduler)
        finally:
            server.stop()
    print("\n".join(outcome.lines()))
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
