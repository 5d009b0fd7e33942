"""Pods come, are bound or not, and go, for days: nothing that a scheduler keeps grows with their number."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from kept import kept

from mooring.assembly import assemble
from mooring.drivers.live.api import dispatcher as dispatching
from mooring.drivers.live.api.client import ApiError
from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.driver import Live
from mooring.drivers.live.measuring import Measuring
from mooring.drivers.live.pods import event_recorder, refusals
from mooring.drivers.live.pods.event_recorder import FORGOTTEN_SECONDS, EventRecorder
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.watching.following import Informers
from mooring.drivers.live.watching.informer import Informer
from mooring.model import spam_filter
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.objects.kinds import kind_of_type
from mooring.observe.decision_log import DecisionLog
from mooring.state import cluster as cluster_module
from mooring.state import plans
from mooring.state.pods import PodChanges
from mooring.testing.builders import make_pod

AT_A_TIME = 100
MOST_ON_A_NODE = 20
WARMING_UP, ROUNDS = 5, 14
KINDS = ("plain", "owned", "labelled", "urgent", "large", "forbidden", "gone")
"""Pods of ever new names, owners and labels, some of which fit nowhere; the binds of others are refused."""


class Server:
    """Carries out what it is asked for, and tells watches; of some pods it refuses the binds."""

    server = "https://server"

    def __init__(self, answered: Callable[[str, int, float], None]) -> None:
        self._answered = answered
        self.pods: dict[str, dict[str, Any]] = {}
        self.lines: list[bytes] = []
        self._versions = itertools.count(1)

    def put(self, name: str, spec: dict[str, Any], metadata: dict[str, Any]) -> None:
        found = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata}, "spec": spec}
        self.pods[name] = found
        self._tell("ADDED", found)

    def delete(self, name: str) -> None:
        found = self.pods.pop(name, None)
        if found is not None:
            self._tell("DELETED", found)

    def _tell(self, type_: str, found: dict[str, Any]) -> None:
        found["metadata"]["resourceVersion"] = str(next(self._versions))
        self.lines.append(msgspec.json.encode({"type": type_, "object": found}))

    def post_at_once(self, path: str, body: bytes, told: Callable[[ApiError | None], None]) -> bool:
        name = path.split("/")[-2]
        refusal = None
        if name.startswith("forbidden"):
            refusal = ApiError(403, "Forbidden", f"{name} may not be bound")
        elif name.startswith("gone") or name not in self.pods:
            refusal = ApiError(404, "NotFound", f"{name} is gone")
        else:
            self.pods[name]["spec"]["nodeName"] = msgspec.json.decode(body)["target"]["name"]
            self._tell("MODIFIED", self.pods[name])
        self._answered("POST", refusal.code if refusal is not None else 201, 0.001)
        asyncio.get_running_loop().call_soon(told, refusal)
        return True

    async def get(self, path: str) -> bytes:
        found = self.pods.get(path.rpartition("/")[2])
        if found is None:
            raise ApiError(404, "NotFound", f"{path} is gone")
        return msgspec.json.encode(found)

    async def request(self, method: str, path: str, *more: object) -> bytes:
        if method == "DELETE":
            self.delete(path.rpartition("/")[2])
        self._answered(method, 200, 0.001)
        return b"{}"


class World:
    """A whole scheduler with its watches, and a server in the same process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = time.time()
        monkeypatch.setattr("time.time", lambda: self._now)  # how many backoffs are not over is no matter of speed
        self.dispatcher = Dispatcher()
        self.measuring = Measuring(self.dispatcher)
        self.server = Server(self.measuring.answered)
        self._client = cast(Any, self.server)
        self.cache = ObjectCache()
        scheduler = assemble().new_scheduler()
        scheduler.on_step = self.measuring.step
        self.live = Live(scheduler, self.cache, self._client, self.dispatcher)
        self.following = Informers(self._client, self.cache, self.live.wake)
        self.measuring.watch(self.live, self.following, self.cache, DecisionLog(""))
        self.nodes, self.watch = self._informer(Node), self._informer(Pod)
        for number in range(10):
            self.nodes._take(_node(f"node-{number}"))
        self.live.begin()

    def _informer(self, type_: type) -> Informer:
        kind = kind_of_type(type_)
        assert kind is not None
        resource = Resource(kind, "v1", f"{kind.name.lower()}s", type_ is Pod)
        found = self.following.informers["", kind.name] = Informer(self._client, resource, self.cache, self.live.wake)
        return found

    async def fill(self) -> None:
        """Fill every node, and preempt: what is as wide as the fullest node is as wide as it will ever be."""
        names = [f"plain-fill-{index}" for index in range(10 * MOST_ON_A_NODE)]
        await self._come(names)
        assert {len([*self.live.scheduler.cluster.pods.on(row)]) for row in range(10)} == {MOST_ON_A_NODE}
        await self._come(["urgent-fill"])
        await self._go([*names, "urgent-fill"])

    async def churn(self, number: int) -> None:
        """New pods come and are decided on, and all of them go."""
        names = [f"{kind}-{number}-{index}" for index, kind in zip(range(AT_A_TIME), itertools.cycle(KINDS))]
        await self._come(names)
        await self._go(names)
        self.measuring.text()

    async def _come(self, names: list[str]) -> None:
        for name in names:
            self.server.put(name, *_pod(name.partition("-")[0], name))
        for _ in range(3):
            await self._settle()

    async def _go(self, names: list[str]) -> None:
        for name in names:
            self.server.delete(name)
        await self._settle()

    async def _settle(self) -> None:
        self._now += 1
        lines, self.server.lines = self.server.lines, []
        for line in lines:
            self.watch._take(line)
        self.live._take_in()
        self.live._turn(0.0)
        async with asyncio.timeout(10):
            while len(self.dispatcher):
                await asyncio.sleep(0)


def _node(name: str) -> bytes:
    amounts = {"cpu": "8", "memory": "64Gi", "pods": str(MOST_ON_A_NODE)}
    status = {"allocatable": amounts, "capacity": amounts}
    found = {"metadata": {"name": name, "resourceVersion": "1"}, "spec": {}, "status": status}
    return msgspec.json.encode({"type": "ADDED", "object": found})


def _pod(kind: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a pod of a kind asks for, and the rest of its metadata."""
    cpu = {"large": "100", "urgent": "7"}.get(kind, "100m")
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    priority = 1000 if kind == "urgent" else 0
    spec = {"containers": [container], "schedulerName": "default-scheduler", "priority": priority}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"of-{name}", "uid": name, "controller": True}
    more: dict[str, Any] = {"owned": {"ownerReferences": [owner]}, "labelled": {"labels": {"app": name}}}
    return spec, more.get(kind, {})


def grown(before: Counter[str], after: Counter[str]) -> dict[str, tuple[int, int]]:
    """What has become longer than it ever was before, and not by a few."""
    few = ROUNDS * AT_A_TIME // len(KINDS) // 2
    return {way: (before[way], size) for way, size in after.items() if size > before[way] + few}


def test_thousands_of_pods_that_came_and_went_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "PATIENCE_SECONDS", 0.0)
    # What is kept up to some number is full before anybody looks.
    monkeypatch.setattr(refusals, "MOST_KEPT", AT_A_TIME)
    monkeypatch.setattr(spam_filter, "MOST_KEPT", AT_A_TIME)
    monkeypatch.setattr(refusals, "MOST_PODS", AT_A_TIME)
    monkeypatch.setattr(cluster_module, "MOST_NODE_CHANGES", AT_A_TIME)
    monkeypatch.setattr(plans, "MOST_EVICTIONS", 10)
    monkeypatch.setattr(event_recorder, "MOST_SERIES", AT_A_TIME)
    monkeypatch.setattr(PodChanges, "MOST_KEPT", AT_A_TIME)
    monkeypatch.setattr(cluster_module, "SPARE_SHAPES", 10)

    async def play() -> dict[str, tuple[int, int]]:
        world = World(monkeypatch)
        numbers = itertools.count()
        await world.fill()
        for _ in range(WARMING_UP):
            await world.churn(next(numbers))
        most: list[Counter[str]] = []
        for _ in range(2):
            most.append(Counter())
            for _ in range(ROUNDS):
                await world.churn(next(numbers))
                most[-1] |= kept(world)
        return grown(*most)

    assert asyncio.run(play()) == {}


def test_the_log_of_changes_takes_little_however_many_there_were() -> None:
    log = PodChanges()
    for _ in range(100):
        log.extend(0, np.zeros(1000, np.intp))
        log.append(0, 0, -1)
    assert log._log.nbytes < 1 << 20
    assert log.since(log.position - 10_000) is not None


def test_series_of_events_are_forgotten_when_they_would_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.time", lambda: now)

    async def play() -> list[int]:
        nonlocal now
        nobody: Any = None
        recorder = EventRecorder(nobody, Dispatcher())
        monkeypatch.setattr(recorder, "_send", lambda event: None)
        sizes = []
        for number in range(30):
            for name in ("again", f"pod-{number}"):
                pod = make_pod(name)
                pod.metadata.uid = name
                recorder.record(pod, "FailedScheduling", "Scheduling", "no room", scheduler="s", warning=True)
            sizes.append(len(recorder._series))
            now += FORGOTTEN_SECONDS / 10
        return sizes

    assert asyncio.run(play())[9:] == [11] * 21
