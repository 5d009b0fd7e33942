"""How long a training gang takes to be whole again after one rank has failed: restarted in place, or made anew.

    python -m mooring.bench.gang_restarts [--pods 256] [--start 5] [--stop 2] [-o json]

The gang has one GPU for each pod. Rank 17 fails once; the others cannot go on without it, and begin anew with it. In
place, each keeps its pod, its node and its GPU. Made anew, all pods are deleted, made, queued and placed as a gang. It
is played in the simulator, in virtual time, and on the embedded control plane (`mooring up` in a process of its own),
where the restart strategies are those of a JobSet and time is real: it depends on the machine. Images are on the nodes.
"""

import argparse
import base64
import http.client
import json
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from mooring.drivers.sim.reading import read_scenario
from mooring.drivers.sim.runs import simulate
from mooring.drivers.sim.world import World
from mooring.model.kubelet.plan import FAIL_ONCE, GANG_RESTART, IN_PLACE, RECREATE, START_DELAY, STOP_DELAY

Object = dict[str, Any]
GPUS_OF_A_NODE, FAILING_RANK, RUNS_SECONDS, PATIENCE_SECONDS = 8, 17, 30, 600
POD_GROUP, JOB_SETS = "scheduling.x-k8s.io/v1alpha1", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
STRATEGIES = {IN_PLACE: "InPlaceRestart", RECREATE: RECREATE}


def nodes(pods: int) -> list[Object]:
    allocatable = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": str(GPUS_OF_A_NODE), "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{number}"},
            "status": {"allocatable": allocatable},
        }
        for number in range(-(-pods // GPUS_OF_A_NODE))
    ]


def annotations(given: argparse.Namespace) -> dict[str, str]:
    return {
        FAIL_ONCE: f"{FAILING_RANK % given.pods}@{RUNS_SECONDS}s",
        START_DELAY: f"{given.start}s",
        STOP_DELAY: f"{given.stop}s",
    }


def in_simulation(given: argparse.Namespace, policy: str) -> float:
    """Seconds of virtual time."""
    work = {
        "name": "train",
        "at": ["0s"],
        "as": "PodGroup",
        "pods": given.pods,
        "requests": {"cpu": 4, "nvidia.com/gpu": 1},
        "duration": "1h",
        "annotations": {**annotations(given), GANG_RESTART: policy},
    }
    scenario = {
        "apiVersion": "config.mooring.dev/v1alpha1",
        "kind": "Simulation",
        "horizon": "10m",
        "cluster": {"objects": nodes(given.pods)},
        "work": [work],
    }
    seen: list[float] = []

    def note(world: World) -> None:
        seen.extend(one.whole_at - one.failed_at for one in world.gang_restarts)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_text(yaml.safe_dump(scenario))
        simulate(read_scenario(path), "default", 0, at_end=note)
    return seen[0]


class Asking:
    """Requests to a control plane."""

    def __init__(self, kubeconfig: Object) -> None:
        address = urlsplit(kubeconfig["clusters"][0]["cluster"]["server"])
        context = ssl.create_default_context(
            cadata=base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        )
        user = kubeconfig["users"][0]["user"]
        with tempfile.NamedTemporaryFile("wb") as file:
            for part in ("client-certificate-data", "client-key-data"):
                file.write(base64.b64decode(user[part]) + b"\n")
            file.flush()
            context.load_cert_chain(file.name)
        self._connection = http.client.HTTPSConnection(str(address.hostname), address.port, context=context)

    def __call__(self, method: str, path: str, body: Object | None = None) -> Object:
        text = json.dumps(body) if body is not None else None
        self._connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        found: Object = json.loads(answer.read())
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {found.get('message')}")
        return found


@contextmanager
def control_plane(given: argparse.Namespace) -> Iterator[Asking]:
    with tempfile.TemporaryDirectory() as folder:
        manifests, kubeconfig = Path(folder) / "nodes.json", Path(folder) / "kubeconfig"
        manifests.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes(given.pods)}))
        command = [sys.executable, "-m", "mooring", "up", "--in-memory", "--port", "0", "--nodes", "0"]
        command += ["-f", str(manifests), "--kubeconfig", str(kubeconfig)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            if not any(line.startswith("Ctrl-C") for line in process.stdout):
                raise SystemExit("mooring up ended before it was ready")
            yield Asking(yaml.safe_load(kubeconfig.read_text()))
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def job_set(given: argparse.Namespace, policy: str) -> Object:
    resources = {"requests": {"cpu": "4", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "rank", "image": "train", "resources": resources}
    in_place = policy == IN_PLACE
    template = {
        "metadata": {
            "labels": {"scheduling.x-k8s.io/pod-group": "train"},
            "annotations": {**annotations(given), "mooring.dev/duration": "1h"},
        },
        "spec": {"restartPolicy": "OnFailure" if in_place else "Never", "containers": [container]},
    }
    job = {
        "parallelism": given.pods,
        "completions": given.pods,
        "completionMode": "Indexed",
        "backoffLimit": 2**31 - 1 if in_place else 0,
        "template": template,
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {
            "replicatedJobs": [{"name": "rank", "replicas": 1, "template": {"spec": job}}],
            "failurePolicy": {"maxRestarts": 3, "restartStrategy": STRATEGIES[policy]},
        },
    }


def on_control_plane(given: argparse.Namespace, policy: str) -> float:
    """Seconds of real time, as far as a look every tenth of a second tells."""
    with control_plane(given) as ask:
        ask("POST", GROUPS, {**_group(given), "apiVersion": POD_GROUP, "kind": "PodGroup"})
        ask("POST", JOB_SETS, job_set(given, policy))

        def ready() -> int:
            jobs = ask("GET", JOBS)["items"]
            return sum(job["status"].get("ready") or 0 for job in jobs if "deletionTimestamp" not in job["metadata"])

        def is_again() -> bool:
            status = ask("GET", f"{JOB_SETS}/train").get("status") or {}
            return bool(status.get("restarts") or status.get("currentInPlaceRestartAttempt"))

        _wait(lambda: ready() == given.pods)
        _wait(lambda: ready() < given.pods)
        began = time.monotonic()
        _wait(lambda: ready() == given.pods and is_again())
        return time.monotonic() - began


def _group(given: argparse.Namespace) -> Object:
    return {"metadata": {"name": "train"}, "spec": {"minMember": given.pods}}


def _wait(look: Any) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not look():
        if time.monotonic() > until:
            raise SystemExit(f"nothing has come about for {PATIENCE_SECONDS} s")
        time.sleep(0.1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="How long a gang takes to be whole again after a rank has failed.")
    parser.add_argument("--pods", type=int, default=256)
    parser.add_argument("--start", type=float, default=5.0, help="seconds until a container runs")
    parser.add_argument("--stop", type=float, default=2.0, help="seconds until a container has stopped")
    parser.add_argument("--only", choices=("simulator", "control-plane"), help="where to play it; default: both")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    given = parser.parse_args(arguments)
    if given.pods < 2 or given.start < 0 or given.stop < 0:
        parser.error("expected at least 2 pods, and times that are not negative")
    places = {"simulator": in_simulation, "control-plane": on_control_plane}
    found = {
        place: {policy: round(play(given, policy), 1) for policy in (IN_PLACE, RECREATE)}
        for place, play in places.items()
        if given.only in (None, place)
    }
    if given.output == "json":
        print(json.dumps({"pods": given.pods, "seconds_until_whole": found}, indent=2))
        return
    print(f"{given.pods} pods with a GPU each, one rank fails; {given.start:g} s to start, {given.stop:g} s to stop\n")
    print(f"{'SECONDS UNTIL WHOLE AGAIN':28}{'IN PLACE':>10}{'MADE ANEW':>12}")
    for place, seconds in found.items():
        print(f"{place:28}{seconds[IN_PLACE]:>10.1f}{seconds[RECREATE]:>12.1f}")


if __name__ == "__main__":
    main()
