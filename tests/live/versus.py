"""kube-scheduler and Mooring in turn, on one real API server and machine, beside a client that only sends the requests.

    python tests/live/versus.py --nodes 1000 5000 --pods 5000          (make versus)

Pods are created as fast as the server takes them, by a process of their own; another one watches when they are bound.
The bare client (64 requests in flight, over the same connections as Mooring's) is told of each pod as it is created and
binds it at once, round robin, with the Scheduled events when binds pause, as a scheduler would that needs no time to
think and nothing to read.

All of them share the machine's processors with the API server, which takes more than any of them. So that they are
compared, and not the server, it does no more for all of them alike than it must: no webhooks, policies and quotas, no
queues of its own for requests, and garbage is collected more rarely. `--server-defaults` leaves it as it comes.

`--only mooring mooring-2 mooring-3` compares one scheduler with two and three active ones that share all nodes, each
with its part of the pods.

`--rounds` lets all of them run again and again, in an order that alternates, and judges their medians: a machine that
others use is not the same from one minute to the next. The processor time of each is counted until its last event is
written. Prints a table; `-o` writes it as JSON.
"""

import argparse
import asyncio
import contextlib
import json
import resource
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import msgspec
from binaries import build
from control_plane import ADMIN, ControlPlane, Program
from kube import Kube, node, pod

from mooring.drivers.live.api.connections import Connections
from mooring.drivers.live.api.dispatcher import PAUSE_SECONDS

CREATORS, BINDERS = 32, 64
LONGEST_SECONDS = 300.0
WARM_UP = 500
QUIET_SECONDS = 3.0
"""So long after the last event no more are waited for."""
LIGHT = (
    "--enable-priority-and-fairness=false",
    "--profiling=false",
    "--disable-admission-plugins=LimitRanger,ResourceQuota,DefaultTolerationSeconds,RuntimeClass,PodSecurity,"
    "MutatingAdmissionWebhook,ValidatingAdmissionWebhook,MutatingAdmissionPolicy,ValidatingAdmissionPolicy,"
    "StorageObjectInUseProtection,DefaultStorageClass,DefaultIngressClass,PersistentVolumeClaimResize",
)
COLLECT_RARELY = {"GOGC": "400"}
"""Of the API server and etcd; kube-scheduler is as it comes."""
SERVERS = ("etcd", "kube-apiserver")
NAMES = ("bare", "kube-scheduler", "mooring")
SEVERAL = {"mooring-2": 2, "mooring-3": 3}
SEVERAL_OF_ONE = 0.75
"""What several together bind at least of what one does, where they share two cores with the API server: each follows
all pods, whoever binds them. Where they have processors of their own, the busiest of them is what sets the pace."""


class Figures(NamedTuple):
    name: str
    nodes: int
    pods: int
    rate: float
    """Pods a second, from the first creation to the last bind."""
    p50: float
    p99: float
    """Seconds from creation to bound."""
    cpu: float
    """Of the schedulers or the bare client, in seconds."""
    busiest: float
    """Of the one that used most."""
    server_cpu: float
    """Of etcd and the API server."""
    around_cpu: float
    """Of who creates the pods and who looks on."""


class Session:
    """Connections to the API server, as cheap as Python has them."""

    def __init__(self, server: str) -> None:
        self._server, self._host = server, urlsplit(server).netloc

    async def __aenter__(self) -> "Session":
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._connections = Connections(self._server, context)
        self._session = aiohttp.ClientSession(  # of watches
            connector=aiohttp.TCPConnector(limit=0, ssl=context),
            headers={"Authorization": f"Bearer {ADMIN}"},
            timeout=aiohttp.ClientTimeout(total=None),
        )
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._connections.close()
        await self._session.close()

    async def post(self, path: str, body: Any) -> None:
        await self.send("POST", path, body)

    async def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> None:
        content = b"" if body is None else msgspec.json.encode(body)
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nAuthorization: Bearer {ADMIN}\r\n"
        if content:
            head += f"Content-Type: {content_type}\r\n"
        head += f"Accept: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        answer = await self._connections.send(head.encode() + content, LONGEST_SECONDS)
        assert answer.status < 300, answer.body[:300]

    def watch(self, path: str) -> Any:
        return self._session.get(self._server + path)


class Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class Seen(msgspec.Struct):
    metadata: Metadata
    spec: Spec


class Line(msgspec.Struct):
    object: Seen


decode_line = msgspec.json.Decoder(Line).decode


# The processes of a run.


async def create(server: str, count: int, prefix: str) -> None:
    """Create pods; print each with the time at which it was sent, as soon as the server has it."""
    names = deque(f"{prefix}-{i}" for i in range(count))
    shapes = [("100m", 8), ("200m", 4), ("500m", 2), ("1", 1)]
    sizes = [cpu for cpu, weight in shapes for _ in range(weight)]
    schedulers = schedulers_of(prefix)
    several = len(schedulers)
    async with Session(server) as session:

        async def work() -> None:
            while names:
                name = names.popleft()
                sent = time.time()
                cpu, scheduler = sizes[hash_of(name) % len(sizes)], schedulers[int(name.rpartition("-")[2]) % several]
                await session.post("/api/v1/namespaces/default/pods", pod(name, cpu=cpu, schedulerName=scheduler))
                print(f"{name} {sent:.6f}", flush=True)

        await asyncio.gather(*(work() for _ in range(CREATORS)))


async def observe(server: str, count: int, prefix: str, version: str) -> None:
    """Print when each pod was seen bound; end with the last. A server that is short of time ends watches: go on."""
    bound: set[str] = set()
    async with Session(server) as session:
        while len(bound) < count:
            path = (
                f"/api/v1/namespaces/default/pods?watch=true&resourceVersion={version}&fieldSelector=spec.nodeName!%3D"
            )
            async with session.watch(path) as answer:
                rest = b""
                async for chunk in answer.content.iter_any():
                    lines = (rest + chunk).split(b"\n")
                    rest = lines.pop()
                    now = time.time()
                    for line in lines:
                        found = decode_line(line).object
                        name, version = found.metadata.name, found.metadata.resource_version
                        if name.startswith(f"{prefix}-") and name not in bound and found.spec.node_name:
                            bound.add(name)
                            print(f"{name} {now:.6f}", flush=True)
                    if len(bound) >= count:
                        return


async def bind(server: str, count: int, nodes: int, *, backlog: bool) -> None:
    """Bind every pod named on standard input as soon as it is named, and say so in an event when binds pause.

    A backlog is read as a whole first: names that trickle in would let events go before binds.
    """
    to_bind: deque[str] = deque()
    to_say: deque[tuple[str, str]] = deque()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    news = asyncio.Condition()
    sent = said = 0
    last = loop.time()

    async with Session(server) as session:

        async def work() -> None:
            nonlocal sent, said, last
            while said < count:
                if to_bind:
                    name, place = to_bind.popleft(), f"n{sent % nodes:05}"
                    sent += 1
                    await session.post(f"/api/v1/namespaces/default/pods/{name}/binding", binding(name, place))
                    to_say.append((name, place))
                    last = loop.time()
                elif to_say and loop.time() > last + PAUSE_SECONDS:
                    said += 1
                    name, place = to_say.popleft()
                    await session.post("/apis/events.k8s.io/v1/namespaces/default/events", event(name, place))
                else:
                    async with news:
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(0.05):
                                await news.wait()

        async def read() -> None:
            while line := await reader.readline():
                to_bind.append(line.split()[0].decode())
                async with news:
                    news.notify()

        if backlog:
            await read()
        began = time.process_time()
        await asyncio.gather(*([] if backlog else [read()]), *(work() for _ in range(BINDERS)))
        print(time.process_time() - began, flush=True)


def binding(name: str, place: str) -> dict[str, Any]:
    target = {"apiVersion": "v1", "kind": "Node", "name": place}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def event(name: str, place: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{time.time_ns():x}", "namespace": "default"},
        "eventTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime()),
        "reportingController": "bare",
        "reportingInstance": "bare-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": name},
        "note": f"Successfully assigned default/{name} to {place}",
        "type": "Normal",
    }


def hash_of(name: str) -> int:
    return sum(map(ord, name)) * 31


# A run.


def schedulers_of(name: str) -> list[str]:
    """The schedulerNames of a contender's pods."""
    return [f"{name}-{number}" for number in range(SEVERAL[name])] if name in SEVERAL else ["default-scheduler"]


def start(plane: ControlPlane, kube: Kube, name: str) -> list[Program]:
    if name == "bare":
        return []
    if name == "kube-scheduler":
        return [plane.start("kube-scheduler")]
    if name == "mooring":
        return [kube.run(name="mooring")]
    return [kube.run(f"--scheduler-name={each}", "--share-nodes", name=each) for each in schedulers_of(name)]


def seconds_of(programs: list[Program]) -> list[float]:
    """Of processor time, what each of these has used."""
    return [program.cpu_seconds() for program in programs]


def measure(plane: ControlPlane, kube: Kube, name: str, nodes: int, pods: int, *, backlog: bool = False) -> Figures:
    """Let one of them bind all pods, and clean up after it; those of a backlog are there before it starts."""
    prefix = name
    schedulers = [] if backlog else start(plane, kube, name)
    if schedulers:
        probes = [pod(f"probe-{number}", schedulerName=each) for number, each in enumerate(schedulers_of(name))]
        kube.create(*probes)
        kube.wait_until_bound([each["metadata"]["name"] for each in probes])
        kube.delete(*probes)
    version = kube.call("GET", "/api/v1/namespaces/default/pods?limit=1")["metadata"]["resourceVersion"]
    me = [sys.executable, __file__, "--server", plane.server, "--pods", str(pods), "--nodes", str(nodes)]
    me += ["--backlog"] if backlog else []
    before = seconds_of(schedulers) or [0.0] * len(schedulers_of(name))  # those of a backlog are yet to start
    around_before = children_seconds()
    servers = [plane.programs[each] for each in SERVERS]
    server_before = seconds_of(servers)
    observer = subprocess.Popen([*me, "--as", "observe", prefix, version], stdout=subprocess.PIPE, text=True)
    creator = subprocess.Popen([*me, "--as", "create", prefix], stdout=subprocess.PIPE, text=True)
    pipe = subprocess.PIPE
    binder = subprocess.Popen([*me, "--as", "bind"], stdin=pipe, stdout=pipe, text=True) if name == "bare" else None
    assert creator.stdout is not None and observer.stdout is not None
    created: dict[str, float] = {}
    lines = list(creator.stdout) if backlog else creator.stdout
    if backlog:
        schedulers = start(plane, kube, name)
    for line in lines:
        each, when = line.split()
        created[each] = float(when)
        if binder is not None:
            assert binder.stdin is not None
            binder.stdin.write(line)
            binder.stdin.flush()
    if binder is not None:
        assert binder.stdin is not None
        binder.stdin.close()
    output, _ = observer.communicate(timeout=LONGEST_SECONDS)
    bound = {each: float(when) for each, when in map(str.split, output.splitlines())}
    if schedulers:
        wait_for_events(kube, pods)  # the bare client ends with its last one
    used = [after - begun for after, begun in zip(seconds_of(schedulers), before, strict=False)]
    server_cpu = sum(seconds_of(servers)) - sum(server_before)
    assert creator.wait() == 0 and len(created) == len(bound) == pods, (len(created), len(bound))
    if binder is not None:
        assert binder.wait() == 0 and binder.stdout is not None
        used = [float(binder.stdout.read())]
    around_cpu = children_seconds() - around_before - (sum(used) if binder is not None else 0.0)
    for scheduler in schedulers:
        scheduler.stop(60)  # its events come behind
    waits = sorted(bound[each] - created[each] for each in created)
    began = min(bound.values()) if backlog else min(created.values())
    rate = pods / (max(bound.values()) - began)
    kube.call("DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0")
    kube.call("DELETE", "/api/v1/namespaces/default/events")
    p50, p99 = statistics.median(waits), waits[int(len(waits) * 0.99)]
    return Figures(name, nodes, pods, rate, p50, p99, sum(used), max(used), server_cpu, around_cpu)


def wait_for_events(kube: Kube, count: int) -> None:
    """Wait until every pod has an event, or until no more come: kube-scheduler drops those that it cannot keep."""
    seen, since = -1, time.monotonic()
    while seen < count and time.monotonic() < since + QUIET_SECONDS:
        time.sleep(0.2)
        metadata = kube.call("GET", "/api/v1/namespaces/default/events?limit=1")["metadata"]
        found = metadata.get("remainingItemCount", 0) + 1
        if found != seen:
            seen, since = found, time.monotonic()


def children_seconds() -> float:
    """Of processor time, what children of ours took that are over."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def show(figures: list[Figures]) -> None:
    print(
        f"{'who':<16}{'nodes':>7}{'pods':>7}{'pods/s':>9}{'p50 s':>8}{'p99 s':>8}"
        f"{'CPU s':>8}{'busiest':>9}{'server':>8}{'around':>8}"
    )
    for found in figures:
        numbers = f"{found.rate:9.0f}{found.p50:8.2f}{found.p99:8.2f}"
        numbers += f"{found.cpu:8.1f}{found.busiest:9.1f}{found.server_cpu:8.1f}{found.around_cpu:8.1f}"
        print(f"{found.name:<16}{found.nodes:>7}{found.pods:>7}{numbers}")


def judge(figures: list[Figures]) -> bool:
    """Whether Mooring is at least twice as fast as kube-scheduler, and nearly as fast as the bare client; and several
    of it not much slower than one."""
    by: dict[tuple[str, int], float] = {}
    busiest: dict[tuple[str, int], float] = {}
    for name, nodes in {(found.name, found.nodes) for found in figures}:
        runs = [found for found in figures if (found.name, found.nodes) == (name, nodes)]
        by[name, nodes] = statistics.median(run.rate for run in runs)
        busiest[name, nodes] = statistics.median(run.busiest for run in runs)
    good = True
    for nodes in sorted({found.nodes for found in figures}):
        for name in [name for name in SEVERAL if {(name, nodes), ("mooring", nodes)} <= by.keys()]:
            part = by[name, nodes] / by["mooring", nodes]
            busy = busiest[name, nodes] / busiest["mooring", nodes]
            print(f"{nodes} nodes: {SEVERAL[name]} schedulers together {part:.2f} of one, each busy {busy:.2f} of that")
            good = good and part >= SEVERAL_OF_ONE
        if any((name, nodes) not in by for name in NAMES):
            continue
        ours, theirs, bare = by["mooring", nodes], by["kube-scheduler", nodes], by["bare", nodes]
        print(f"{nodes} nodes: {ours / theirs:.2f} of kube-scheduler, {ours / bare:.2f} of the bare client")
        good = good and ours >= 2 * theirs and ours >= 0.9 * bare
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=[*NAMES, *SEVERAL], default=NAMES)
    parser.add_argument(
        "--backlog", action="store_true", help="all pods are there first; pods/s from the first bind on"
    )
    parser.add_argument("--server-defaults", action="store_true", help="leave the API server and etcd as they come")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--server", help=argparse.SUPPRESS)
    parser.add_argument("--as", dest="role", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        role, *rest = options.role
        roles: dict[str, Callable[[], Any]] = {
            "create": lambda: create(options.server, options.pods, rest[0]),
            "observe": lambda: observe(options.server, options.pods, rest[0], rest[1]),
            "bind": lambda: bind(options.server, options.pods, options.nodes[0], backlog=options.backlog),
        }
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(roles[role]())
        return 0
    for program in ("etcd", "kube-apiserver", "kube-scheduler"):
        build(program)
    figures: list[Figures] = []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        flags, environment = ((), {}) if options.server_defaults else (LIGHT, COLLECT_RARELY)
        plane = ControlPlane(path / "plane", api_flags=flags, environment=environment)
        with plane, Kube(plane.kubeconfig, path) as kube:
            there = 0
            for nodes in sorted(options.nodes):
                kube.create(*(node(f"n{i:05}") for i in range(there, nodes)))
                there = nodes
                measure(plane, kube, "bare", nodes, WARM_UP)  # whoever comes first would find a cold server
                for number in range(options.rounds):
                    for name in options.only if number % 2 == 0 else reversed(options.only):
                        print(f"{name} on {nodes} nodes", file=sys.stderr, flush=True)
                        figures.append(measure(plane, kube, name, nodes, options.pods, backlog=options.backlog))
    show(figures)
    good = judge(figures)
    if options.output:
        options.output.write_text(json.dumps([found._asdict() for found in figures], indent=2))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
