"""Measure the embedded control plane as a client does: bind every pod over HTTPS, then list all of them.

The server runs in a process of its own, with its file on disk and every answer committed before it is given, but
without controllers and nodes: the figures compare with an API server and its etcd.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from mooring.drivers.live.api.client import Client
from mooring.drivers.live.api.connection import connect
from mooring.drivers.live.api.dispatcher import START
from mooring.errors import MooringError
from mooring.testing.tally import Measurement
from mooring.testing.workloads import Workload, make_nodes, make_pods

IN_FLIGHT = START
"""Requests that the one client has under way at once: as many as Mooring has when it begins to bind."""
START_SECONDS = 120.0
_encode = msgspec.json.Encoder().encode
Report = Callable[[str, int, int], None]


def measure_api(workload: Workload, nodes: int, pods: int, report: Report) -> Measurement:
    import uvloop

    with tempfile.TemporaryDirectory(prefix="mooring-bench-") as folder:
        data, kubeconfig = Path(folder) / "cluster.db", Path(folder) / "kubeconfig"
        report("building", 0, 0)
        names = _fill(data, workload, nodes, pods, report)
        server = _start(data, kubeconfig)
        try:
            before = _cpu_seconds(server.pid)
            bound = uvloop.run(_bind_all(kubeconfig, names, nodes, report, lambda: _cpu_seconds(server.pid) - before))
            peak = _peak_mib(server.pid)
        finally:
            server.terminate()
            server.wait()
    each = sorted(bound.each)
    return Measurement(
        workload=workload.name,
        nodes=nodes,
        pods=pods,
        pods_per_second=pods / bound.seconds,
        p50_us=each[len(each) // 2] * 1e6,
        p99_us=each[len(each) * 99 // 100] * 1e6,
        peak_rss_mib=peak,
        placed=pods,
        waiting=0,
        binds_per_second=pods / bound.seconds,
        binds_per_cpu_second=pods / bound.server_cpu,
        client_binds_per_cpu_second=pods / bound.client_cpu,
        list_seconds=bound.list_seconds,
    )


def _fill(data: Path, workload: Workload, nodes: int, pods: int, report: Report) -> list[tuple[str, str]]:
    """Write the cluster to its file; returns the pods' namespaces and names."""
    from mooring.kubeapi.cluster import make_api
    from mooring.kubeapi.store.log import SqliteLog
    from mooring.kubeapi.store.store import Store

    store = Store(SqliteLog(data))
    api, _ = make_api(store)
    for document in make_nodes(workload, nodes):
        api.create("nodes", document)
    names = []
    for number, coming in enumerate(make_pods(workload.pods, pods)):
        if number % 1_000 == 0:
            report("building", number, pods)
            store.flush()
        about = api.create("pods", coming.document)["metadata"]
        names.append((about["namespace"], about["name"]))
    store.close()
    return names


def _start(data: Path, kubeconfig: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "mooring.testing.measure_api", str(data), str(kubeconfig)]
    server = subprocess.Popen(command)
    until = time.monotonic() + START_SECONDS
    while not kubeconfig.exists():
        if server.poll() is not None or time.monotonic() > until:
            server.kill()
            raise MooringError("the control plane did not start")
        time.sleep(0.02)
    return server


def _peak_mib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    return 0


def _cpu_seconds(pid: int) -> float:
    """What a process has used so far, all its threads together."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class _Bound(NamedTuple):
    """What it took, in seconds."""

    seconds: float
    each: list[float]
    server_cpu: float
    client_cpu: float
    list_seconds: float


async def _bind_all(
    kubeconfig: Path, names: list[tuple[str, str]], nodes: int, report: Report, server_cpu: Callable[[], float]
) -> _Bound:
    """Bind every pod, then list all, through the client that Mooring itself has for a cluster."""
    each: list[float] = []
    coming = iter(enumerate(names))

    async def work(client: Client) -> None:
        for number, (namespace, name) in coming:
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}}
            binding["target"] = {"kind": "Node", "name": f"node-{number % nodes}"}
            started = time.perf_counter()
            await client.post(f"/api/v1/namespaces/{namespace}/pods/{name}/binding", _encode(binding))
            each.append(time.perf_counter() - started)
            if number % 1_000 == 0:
                report("binding", number, len(names))

    async with Client(await connect(kubeconfig), "mooring-bench") as client:
        started, own_cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(work(client) for _ in range(IN_FLIGHT)))
        seconds, own_cpu = time.perf_counter() - started, time.process_time() - own_cpu
        spent = server_cpu()
        started = time.perf_counter()
        data = await client.get("/api/v1/pods")
        listed = time.perf_counter() - started
    _check(data, len(names))
    return _Bound(seconds, each, spent, own_cpu, listed)


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815


class _Pod(msgspec.Struct):
    spec: _Spec


class _List(msgspec.Struct):
    items: list[_Pod]


def _check(data: bytes, pods: int) -> None:
    """Every pod is there and has its node."""
    items = msgspec.json.decode(data, type=_List).items
    bound = sum(1 for pod in items if pod.spec.nodeName)
    if (len(items), bound) != (pods, pods):
        raise MooringError(f"of {pods} pods {len(items)} are listed, and {bound} are bound")


def _serve(data: str, kubeconfig: str) -> None:
    """The server of a measurement, in a process of its own that collects garbage as `mooring up` does."""
    import gc
    import signal

    import uvloop

    from mooring.kubeapi.auth.kubeconfig import write_kubeconfig
    from mooring.kubeapi.cluster import Cluster, Place

    gc.set_threshold(50_000, 20, 20)

    async def serve() -> None:
        cluster = Cluster(Place(Path(data)), with_controllers=False)
        await cluster.start()
        gc.collect()
        gc.freeze()
        write_kubeconfig(Path(kubeconfig), cluster.kubeconfig())
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await stopped.wait()
        await cluster.stop()

    uvloop.run(serve())


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2])
