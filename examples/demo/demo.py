"""A cluster in a minute: the embedded control plane, two teams that share GPUs, and a gang.

    python examples/demo/demo.py [--serve]      (make demo, make demo SERVE=1)

Starts `mooring up`, applies the manifests beside this file one after the other through the API, and shows after each
what runs and what waits. With --serve the control plane stays up until Ctrl-C.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml
from rich.console import Console
from rich.table import Table

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.connection import connect

HERE = Path(__file__).parent
PATIENCE = 90.0
NODES = 3
Json = dict[str, Any]
console = Console(highlight=False)


class Cluster:
    """The API, as far as the demo needs it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def apply(self, name: str) -> None:
        for document in yaml.safe_load_all((HERE / name).read_text()):
            path = await self._path(document)
            await self._client.post(path, msgspec.json.encode(document))

    async def _path(self, document: Json) -> str:
        """Where objects of a kind are created, by what the server says of itself."""
        version = document["apiVersion"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        found = msgspec.json.decode(await self._client.get(base))["resources"]
        kind = next(each for each in found if each["kind"] == document["kind"] and "/" not in each["name"])
        namespace = document["metadata"].get("namespace", "default")
        return f"{base}/namespaces/{namespace}/{kind['name']}" if kind["namespaced"] else f"{base}/{kind['name']}"

    async def jobs(self) -> dict[str, Json]:
        return {job["metadata"]["name"]: job for job in await self._list("/apis/batch/v1/jobs")}

    async def running(self, job: str) -> int:
        pods = await self._list(f"/api/v1/pods?labelSelector=job-name%3D{job}")
        return sum(pod["status"].get("phase") == "Running" for pod in pods)

    async def delete_job(self, namespace: str, name: str) -> None:
        options = msgspec.json.encode({"propagationPolicy": "Background"})
        await self._client.request("DELETE", f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}", options)

    async def summary(self) -> str:
        """What happened, by the events that people would see."""
        happened: dict[str, Counter[str]] = {}
        for event in await self._list("/api/v1/events"):
            by_object = happened.setdefault(event["reason"], Counter())
            by_object[event["involvedObject"]["name"]] += event.get("count") or 1
        placed, resumed = happened.get("Scheduled", Counter()), happened.get("Resumed", Counter())
        return (
            f"In all: {placed.total()} pods placed; {len(resumed)} queued jobs admitted, in {resumed.total()} "
            "admissions, since one gave back what it had borrowed; no gang ran in part."
        )

    async def _list(self, path: str) -> list[Json]:
        items: list[Json] = msgspec.json.decode(await self._client.get(path))["items"]
        return items

    async def expect(self, what: str, **running: int) -> None:
        """Wait until so many pods of each job run, and show all jobs then."""
        await _until(lambda: self._runs(running), f"{what}: expected {running}")
        console.print(f"  {what}")
        await self.show()

    async def _runs(self, wanted: dict[str, int]) -> bool:
        return {job: await self.running(job) for job in wanted} == wanted

    async def show(self) -> None:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 4))
        for title in ("NAMESPACE", "JOB", "STATE", "GPUS"):
            table.add_column(title, justify="right" if title == "GPUS" else "left")
        for name, job in sorted((await self.jobs()).items(), key=lambda each: each[1]["metadata"]["namespace"]):
            count = await self.running(name)
            wanted = job["spec"]["parallelism"]
            state = "suspended" if job["spec"].get("suspend") else "running" if count == wanted else "waiting"
            table.add_row(job["metadata"]["namespace"], name, state, f"{count} of {wanted}")
        console.print(table)
        console.print()


async def _until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await holds():
        if time.monotonic() > deadline:
            sys.exit(f"demo: {what}, and it did not happen within {PATIENCE:.0f} s")
        await asyncio.sleep(0.2)


async def tell(cluster: Cluster) -> None:
    console.print("[bold]Two teams share 24 GPUs[/]: research owns 8, production 16.")
    await cluster.apply("1-two-teams.yaml")
    await cluster.expect("both run within what they own", pretrain=6, serve=8)

    console.print("[bold]Research asks for 6 more[/]: 2 are left of its own.")
    await cluster.apply("2-research-borrows.yaml")
    await cluster.expect("it borrows 4 that production does not use", finetune=6)

    console.print("[bold]A gang of 12 comes[/], and 4 GPUs are free.")
    await cluster.apply("3-a-gang-waits.yaml")
    await asyncio.sleep(2)
    await cluster.expect("it waits whole: nothing of it starts", allreduce=0)

    console.print("[bold]Production asks for all that it owns.[/]")
    await cluster.apply("4-production-reclaims.yaml")
    await cluster.expect("what was borrowed is given back: finetune is suspended as a whole", rank=8, finetune=0)

    console.print("[bold]Production is done.[/]")
    await cluster.delete_job("production", "serve")
    await cluster.delete_job("production", "rank")
    await cluster.expect("finetune goes on, and the gang starts whole", finetune=6, allreduce=12, pretrain=6)
    console.print(await cluster.summary(), soft_wrap=True)


async def run(serve: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        command = [sys.executable, "-m", "mooring", "up", "--in-memory", "--port=0", "--nodes=0"]
        began = time.monotonic()
        with subprocess.Popen([*command, f"--kubeconfig={kubeconfig}"], stdout=subprocess.DEVNULL) as up:
            try:
                await _until(lambda: _answers(kubeconfig, up), "the control plane comes up")
                console.print(f"The control plane is up after {time.monotonic() - began:.1f} s.\n")
                async with Client(await connect(kubeconfig), "mooring-demo") as client:
                    await tell(Cluster(client))
                console.print("Everything above went through the Kubernetes API; kubectl would show the same.")
                if serve:
                    console.print(
                        f"\nIt stays up. Try:\n  export KUBECONFIG={kubeconfig}\n  kubectl get pods -A -o wide"
                    )
                    console.print("Ctrl-C ends it.")
                    await asyncio.to_thread(up.wait)
            finally:
                up.terminate()


async def _answers(kubeconfig: Path, up: "subprocess.Popen[bytes]") -> bool:
    if up.poll() is not None:
        sys.exit("demo: `mooring up` ended")
    if not kubeconfig.exists():
        return False
    try:
        async with Client(await connect(kubeconfig), "mooring-demo") as client:
            await client.get("/readyz")
    except (ApiError, OSError):
        return False
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", action="store_true", help="leave the control plane running")
    try:
        asyncio.run(run(parser.parse_args().serve))
    except KeyboardInterrupt:
        sys.exit(130)
