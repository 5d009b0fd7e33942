"""kube-scheduler and Mooring in turn on one real API server: how soon each has started, answers, and what idling costs.

    python tests/live/versus_running.py --nodes 1000 --pods 50000 --rounds 3          (make versus-running)

- start: seconds from the start of the program until a pod that waited for it is bound, beside so many bound pods; and
  what that takes of the processor, which is the better measure where others use the machine;
- latency: pods are created at a steady rate, and it is watched when each is bound;
- heartbeats: the status of all nodes is written again and again, as kubelets do it; what that costs a scheduler of the
  processor, with nothing to schedule.

The order of the two alternates from round to round, and medians are judged: a machine that others use is not the same
from one minute to the next. The API server is as it comes. Prints a table; `-o` writes it as JSON.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import uvloop
from binaries import build
from control_plane import ControlPlane, Program
from kube import Kube, node, pod
from versus import Session, decode_line

NAMES = ("kube-scheduler", "mooring")
PODS = "/api/v1/namespaces/default/pods"
AT_ONCE = 32
LONGEST_SECONDS = 300.0
SETTLE_SECONDS = 3.0
"""After the start, and before something is measured."""
STRATEGIC = "application/strategic-merge-patch+json"


class Figures(NamedTuple):
    name: str
    start: float
    """Seconds from the start of the program until the pod that waited is bound."""
    start_cpu: float
    """Of the processor, in seconds, until then."""
    p50: float
    p99: float
    """Milliseconds from creation to bound."""
    heartbeat: float
    """Microseconds of the processor that a heartbeat costs."""
    megabytes: float
    """Of memory, at the end."""


class Client:
    """Writes to the API server, and watches binds."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.bound: dict[str, float] = {}
        """When each pod was seen bound."""

    async def all(self, requests: list[tuple[str, str, Any, str]]) -> None:
        """Send requests, some at once."""
        left = iter(requests)

        async def work() -> None:
            for method, path, body, content_type in left:
                await self._session.send(method, path, body, content_type)

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def create(self, found: dict[str, Any]) -> None:
        await self._session.post(PODS, found)

    async def follow(self, version: str) -> None:
        """Note when pods are seen bound, until cancelled."""
        while True:
            path = f"{PODS}?watch=true&resourceVersion={version}&fieldSelector=spec.nodeName!%3D"
            async with self._session.watch(path) as answer:
                rest = b""
                async for chunk in answer.content.iter_any():
                    lines = (rest + chunk).split(b"\n")
                    rest = lines.pop()
                    now = time.time()
                    for line in lines:
                        found = decode_line(line).object
                        version = found.metadata.resource_version
                        self.bound.setdefault(found.metadata.name, now)

    async def wait_for(self, *names: str) -> None:
        async with asyncio.timeout(LONGEST_SECONDS):
            while not all(name in self.bound for name in names):
                await asyncio.sleep(0.005)


async def measure(plane: ControlPlane, kube: Kube, name: str, options: argparse.Namespace) -> Figures:
    version = kube.call("GET", f"{PODS}?limit=1")["metadata"]["resourceVersion"]
    async with Session(plane.server) as session:
        client = Client(session)
        following = asyncio.ensure_future(client.follow(version))
        await client.create(pod("probe"))
        began = time.time()
        program = plane.start("kube-scheduler") if name == "kube-scheduler" else kube.run(name="mooring")
        await client.wait_for("probe")
        start, start_cpu = client.bound["probe"] - began, program.cpu_seconds()
        await asyncio.sleep(SETTLE_SECONDS)
        waits = await latencies(client, options.rate, options.seconds)
        await asyncio.sleep(SETTLE_SECONDS)
        heartbeat = await heartbeats(client, program, options.nodes, options.heartbeats)
        megabytes = program.resident_bytes() / 2**20
        following.cancel()
        program.stop(60)
        await client.all([("DELETE", f"{PODS}/{each}?gracePeriodSeconds=0", None, "") for each in client.bound])
    p50, p99 = statistics.median(waits), waits[int(len(waits) * 0.99)]
    return Figures(name, start, start_cpu, 1000 * p50, 1000 * p99, heartbeat, megabytes)


async def latencies(client: Client, rate: float, seconds: float) -> list[float]:
    """Create pods at a steady rate; how long each took to be bound, in order."""
    sent: dict[str, float] = {}
    creating = []

    async def create(each: str) -> None:
        sent[each] = time.time()
        await client.create(pod(each))

    began = time.monotonic()
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        creating.append(asyncio.ensure_future(create(f"steady-{number:05}")))
    await asyncio.gather(*creating)
    await client.wait_for(*sent)
    return sorted(client.bound[each] - at for each, at in sent.items())


async def heartbeats(client: Client, program: Program, nodes: int, count: int) -> float:
    """Write the status of all nodes in turn; what each costs a scheduler of the processor, in microseconds."""
    before = program.cpu_seconds()
    requests = [
        ("PATCH", f"/api/v1/nodes/n{number % nodes:05}/status", beat(number // nodes), STRATEGIC)
        for number in range(count)
    ]
    await client.all(requests)
    await asyncio.sleep(SETTLE_SECONDS)
    return 1e6 * (program.cpu_seconds() - before) / count


def beat(round_: int) -> dict[str, Any]:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + round_))
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    return {"status": {"conditions": [condition]}}


async def fill(server: str, nodes: int, pods: int) -> None:
    """Create pods that are on nodes already."""
    async with Session(server) as session:
        requests = [
            ("POST", PODS, pod(f"runs-{number:06}", cpu="100m", nodeName=f"n{number % nodes:05}"), "application/json")
            for number in range(pods)
        ]
        await Client(session).all(requests)


def show(figures: list[Figures]) -> None:
    print(f"{'who':<16}{'start s':>9}{'CPU s':>8}{'p50 ms':>8}{'p99 ms':>8}{'us/heartbeat':>14}{'MiB':>7}")
    for found in figures:
        numbers = f"{found.start:9.2f}{found.start_cpu:8.2f}{found.p50:8.1f}{found.p99:8.1f}{found.heartbeat:14.0f}"
        print(f"{found.name:<16}{numbers}{found.megabytes:7.0f}")


def judge(figures: list[Figures]) -> bool:
    """Whether Mooring starts sooner and at less cost, binds sooner, and has cheaper heartbeats than kube-scheduler, in
    the median."""
    good = True
    for what in ("start", "start_cpu", "p99", "heartbeat"):
        ours, theirs = (
            statistics.median(getattr(found, what) for found in figures if found.name == name)
            for name in ("mooring", "kube-scheduler")
        )
        print(f"{what}: {ours / theirs:.2f} of kube-scheduler's")
        good = good and ours <= theirs
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=50_000, help="bound pods that there are from the beginning")
    parser.add_argument("--rate", type=float, default=50.0, help="pods a second, for the latency")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--heartbeats", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    for program in ("etcd", "kube-apiserver", "kube-scheduler"):
        build(program)
    figures: list[Figures] = []
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled
    with tempfile.TemporaryDirectory() as directory, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        path = Path(directory)
        os.environ["PYTHONPYCACHEPREFIX"] = str(path / "bytecode")
        subprocess.run([sys.executable, "-c", "import mooring.cli.run.command"], check=True)
        plane = ControlPlane(path / "plane")
        with plane, Kube(plane.kubeconfig, path) as kube:
            kube.create(*(node(f"n{number:05}", cpu=64) for number in range(options.nodes)))
            runner.run(fill(plane.server, options.nodes, options.pods))
            for number in range(options.rounds):
                for name in NAMES if number % 2 == 0 else reversed(NAMES):
                    print(f"{name}, round {number + 1}", file=sys.stderr, flush=True)
                    figures.append(runner.run(measure(plane, kube, name, options)))
    show(figures)
    good = judge(figures)
    if options.output:
        options.output.write_text(json.dumps([found._asdict() for found in figures], indent=2))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
