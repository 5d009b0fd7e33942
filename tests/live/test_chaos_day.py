"""A bad day with everything in it: freezes, kills, refusals, drains, kinds that come and go, with a standby beside.

Judged from the objects of the API alone: nothing over-allocated, no quota exceeded or held by a pod that is gone, no
user's pod deleted, no traceback. `MOORING_CHAOS_SECONDS=900` is the long run.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from control_plane import Program
from faulty_proxy import Faults, FaultyProxy, behind_proxy
from judge import GROUP, Judge
from kube import Kube, Refused, pod
from test_live_queueing_chaos import QUICK, QUOTAS, finish_some, queued_pod, queued_wave, queues

__all__ = ["queues"]
SECONDS = float(os.environ.get("MOORING_CHAOS_SECONDS", "45"))
SEED = int(os.environ.get("MOORING_CHAOS_SEED", "1"))
FROZEN_SECONDS = 4.5
"""Longer than the lease."""
MERGE = "application/merge-patch+json"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MOST_PODS = 24


class Day:
    """What happens to one cluster and its two schedulers."""

    def __init__(self, cluster: Kube, proxy: FaultyProxy) -> None:
        self.cluster, self.proxy = cluster, proxy
        self.drawn = random.Random(SEED)
        self.schedulers: list[Program] = []
        self.waves = self.pods = self.started = 0
        self.users: dict[str, str] = {}
        """By name, the uids of pods that nothing has a reason to delete."""
        self.keep_two()

    def keep_two(self) -> None:
        self.schedulers = [each for each in self.schedulers if each.is_running]
        while len(self.schedulers) < 2:
            self.started += 1
            self.schedulers.append(self.cluster.run(*QUICK, name=f"scheduler-{self.started}", leads=True))

    # What happens.

    def submit(self) -> None:
        if self.waves < 6:
            queued_wave(self.cluster, self.waves)
            self.waves += 1
        if self.pods < MOST_PODS:
            made = [pod(f"user-{self.pods + at}", "1500m") for at in range(4)]
            for each in made:
                found = self.cluster.call("POST", "/api/v1/namespaces/default/pods", each)
                self.users[found["metadata"]["name"]] = found["metadata"]["uid"]
            self.pods += len(made)

    def freeze(self) -> None:
        frozen = self.drawn.choice(self.schedulers)
        frozen.send(signal.SIGSTOP)
        self.submit()
        time.sleep(FROZEN_SECONDS)
        frozen.send(signal.SIGCONT)

    def kill(self) -> None:
        self.submit()
        time.sleep(self.drawn.uniform(0.0, 0.3))
        self.drawn.choice(self.schedulers).send(signal.SIGKILL)
        time.sleep(0.2)

    def refuse(self) -> None:
        self.proxy.faults = self.drawn.choice(
            [
                Faults(conflict=0.15, error=0.15, lost_answer=0.15),
                Faults(too_many=0.15, slow=0.1, dropped_watch=0.2),
                Faults(denied="/workloads/"),
                Faults(denied="/binding"),
            ]
        )
        self.submit()
        time.sleep(3.0)
        self.proxy.faults = Faults()

    def drain(self) -> None:
        path = f"/apis/{GROUP}/clusterqueues/{self.drawn.choice(sorted(QUOTAS))}"
        self.cluster.call("PATCH", path, {"spec": {"stopPolicy": "HoldAndDrain"}}, MERGE)
        if self.drawn.random() < 0.5:
            self.kill()
            self.keep_two()
        time.sleep(3.0)
        self.cluster.call("PATCH", path, {"spec": {"stopPolicy": "None"}}, MERGE)

    def change_kinds(self) -> None:
        """A kind that nothing depends on goes and comes back, where kinds can."""
        with suppress(Refused):
            name = "admissionchecks.kueue.x-k8s.io"
            found = self.cluster.call("GET", f"{CRDS}/{name}")
            self.cluster.call("DELETE", f"{CRDS}/{name}")
            time.sleep(2.0)
            metadata = {"name": name, "annotations": found["metadata"].get("annotations") or {}}
            self.cluster.create({**found, "metadata": metadata, "status": {}})

    def finish(self) -> None:
        finish_some(self.cluster)
        self.cluster.finish_deletions()

    def run(self) -> None:
        acts: list[Callable[[], None]] = [
            self.freeze,
            self.kill,
            self.refuse,
            self.drain,
            self.change_kinds,
            self.finish,
            self.finish,
        ]
        end = time.monotonic() + SECONDS
        self.submit()
        while time.monotonic() < end:
            self.drawn.choice(acts)()
            self.keep_two()
            time.sleep(self.drawn.uniform(0.0, 1.0))

    # What is left of it.

    def complaints(self) -> list[str]:
        there = {name: found["metadata"]["uid"] for name, found in self.cluster.pods().items()}
        return [f"{name} was deleted" for name, uid in self.users.items() if there.get(name) != uid]

    def tracebacks(self) -> list[str]:
        logs = sorted(self.cluster.directory.glob("scheduler-*.log"))
        return [log.name for log in logs if "Traceback" in log.read_text(errors="replace")]


def test_a_day_on_which_everything_happens(queues: Kube) -> None:
    with behind_proxy(queues, SEED) as proxy, Judge(queues, {}, proxy, QUOTAS) as judge:
        day = Day(queues, proxy)
        day.run()
        queues.create(queued_pod("last", "red"))
        judge.wait_until_sound(day.complaints)
        assert day.tracebacks() == []
