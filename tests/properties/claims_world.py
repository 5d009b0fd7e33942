"""An API server that is slow, forgetful and late by a seed, and schedulers that share its nodes, in their own time.

Everything of the schedulers is the real thing, from their watches to their binds, but the connections. A story of ten
minutes takes a second, and is the same for the same seed.
"""

import asyncio
import contextlib
import random
import selectors
import types
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from mooring.drivers.live import driver
from mooring.drivers.live.api import dispatcher
from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.discovery import Resource, Served
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.driver import Live
from mooring.drivers.live.pods import event_recorder, executor
from mooring.drivers.live.sharing import sharing
from mooring.drivers.live.sharing.node_claims import NodeClaims
from mooring.drivers.live.sharing.sharing import Sharing, bound_at
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.watching.following import Informers
from mooring.engine.cycle import Scheduler
from mooring.model.objects.kinds import KINDS

Object = dict[str, Any]
GIVEN_UP = 15.0
"""Seconds after which a client gives a request up."""
LATEST = 60.0
"""Seconds after which an API server gives a request up."""
ROOT, NODES, PODS = "/api/v1", "/api/v1/nodes", "/api/v1/pods"
EPOCH = 1_700_000_000.0


class VirtualLoop(asyncio.SelectorEventLoop):
    """Whoever sleeps in it wakes at once, at the right time."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Impatient(self))

    def time(self) -> float:
        return self._now

    def pass_time(self, seconds: float) -> None:
        self._now += seconds


class _Impatient(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nobody will ever wake again"
        self._loop.pass_time(max(timeout, 0.0))
        return super().select(0)


@contextlib.contextmanager
def virtual_clocks(loop: VirtualLoop) -> Iterator[None]:
    """The driver's own clocks are the loop's as well."""

    def work() -> float:
        loop.pass_time(0.001)
        return loop.time()

    clock = types.SimpleNamespace(time=lambda: EPOCH + loop.time(), monotonic=loop.time, perf_counter=work)
    with pytest.MonkeyPatch.context() as patch:
        for module in (driver, dispatcher, executor, event_recorder, sharing):
            patch.setattr(module, "time", clock)
        yield


@dataclass
class Faults:
    """How often each thing goes wrong, from 0 to 1."""

    refused: float = 0.0
    """409 or 500, and not carried out."""
    lost: float = 0.0
    """Not carried out, and not answered."""
    broken: float = 0.0
    """Carried out, and the connection breaks before the answer."""
    late: float = 0.0
    """Carried out when the client has given it up."""
    slow: float = 0.0
    """Answered after seconds."""
    broken_watch: float = 0.0
    stalled_watch: float = 0.0
    """Of the pieces of watches."""


class World:
    """What there is, and whether somebody has put too much somewhere."""

    def __init__(self, seed: int, faults: Faults, nodes: dict[str, int]) -> None:
        self.random, self.faults, self.capacity = random.Random(seed), faults, nodes
        self.version = 0
        self.pods: dict[str, Object] = {}
        self.claims: Object | None = None
        self.log: list[tuple[int, str, str, Object]] = []
        """Version, collection, kind of event, the object as of then."""
        self.changed = asyncio.Event()
        self.complaints: list[str] = []
        self.cut_off: set[str] = set()
        """Schedulers whose requests nobody answers; every other one is carried out."""
        self.binds: Counter[str] = Counter()
        for name, cpu in nodes.items():
            self._note(NODES, "ADDED", _node(name, cpu))

    def create_pod(self, name: str, cpu: int, scheduler: str) -> None:
        found = self.pods[name] = _pod(name, cpu, scheduler, f"uid-{name}-{self.version}")
        self._note(PODS, "ADDED", found)

    def delete_pod(self, name: str) -> None:
        self._note(PODS, "DELETED", self.pods.pop(name))

    def _note(self, collection: str, kind: str, found: Object) -> None:
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self.log.append((self.version, collection, kind, msgspec.json.decode(msgspec.json.encode(found))))
        self.changed.set()
        self.changed = asyncio.Event()

    def unbound_claims_of(self, name: str) -> frozenset[str]:
        """The pods that a scheduler is about to bind, and has not yet."""
        data = self.claims["data"] if self.claims is not None else {}
        lines = [line for key, text in data.items() if key.startswith(f"{name}-") for line in text.splitlines()]
        pods = {line.split()[0].partition("/")[2] for line in lines}
        return frozenset(pod for pod in pods if pod in self.pods and not self.pods[pod]["spec"].get("nodeName"))

    def used(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for pod in self.pods.values():
            if pod["spec"].get("nodeName"):
                found[pod["spec"]["nodeName"]] += cpu_of(pod)
        return found

    # Requests.

    def carry_out(self, who: str, method: str, path: str, body: Any) -> Any:
        """What the API server answers to a request; raises ApiError where it refuses it."""
        parts = path.partition("?")[0].removeprefix(f"{ROOT}/namespaces/").split("/")
        match method, parts:
            case "GET", ["", "api", "v1", plural]:
                return self._list(f"{ROOT}/{plural}")
            case "GET", [_, "configmaps", _]:
                return _found(self.claims)
            case "POST", [_, "configmaps"]:
                if self.claims is not None:
                    raise ApiError(409, "AlreadyExists", "there")
                self.claims = {"metadata": {"name": "claims"}, "data": {}}
                self._note("claims", "ADDED", self.claims)
            case "PUT", [_, "configmaps", _]:
                self._write_claims(_found(self.claims), body)
                return self.claims
            case "GET", [_, "pods", name]:
                return _found(self.pods.get(name))
            case "POST", [_, "pods", name, "binding"]:
                self._bind(who, _found(self.pods.get(name)), body)
            case "PATCH", [_, "pods", name, "status"]:
                self._note(PODS, "MODIFIED", _found(self.pods.get(name)))
        return {}

    def _list(self, collection: str) -> Object:
        latest: dict[str, Object] = {}
        for _, where, kind, found in self.log:
            if where == collection:
                latest[found["metadata"]["name"]] = found
                if kind == "DELETED":
                    del latest[found["metadata"]["name"]]
        return {"metadata": {"resourceVersion": str(self.version)}, "items": list(latest.values())}

    def _write_claims(self, claims: Object, body: Object) -> None:
        if body["metadata"]["resourceVersion"] != claims["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "somebody else has written")
        claims["data"] = body["data"]
        self._note("claims", "MODIFIED", claims)

    def _bind(self, who: str, pod: Object, body: Object) -> None:
        if body["metadata"]["uid"] != pod["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "another of its name")
        if pod["spec"].get("nodeName"):
            raise ApiError(409, "Conflict", "bound already")
        node = body["target"]["name"]
        pod["spec"]["nodeName"] = node
        self.binds[who] += 1
        self._note(PODS, "MODIFIED", pod)
        if self.used()[node] > self.capacity[node]:
            self.complaints.append(
                f"at {asyncio.get_running_loop().time():.2f} {who} bound {pod['metadata']['name']} to {node}, which has"
                f" {self.used()[node]} of {self.capacity[node]} now; claims: {_found(self.claims)['data']}"
            )


class UnreliableClient(Client):
    """Requests of one scheduler, with whatever happens to them on the way."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self._name = world, name
        self._sent: set[asyncio.Task[None]] = set()

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "",
        accept: str = "",
        *,
        is_fenced: bool = True,
    ) -> bytes:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        # It is on its way: whoever sent it may die meanwhile.
        task = asyncio.ensure_future(self._travel(method, path, body, answer))
        self._sent.add(task)
        task.add_done_callback(self._sent.discard)
        try:
            return await asyncio.wait_for(answer, GIVEN_UP)
        except TimeoutError:
            raise ApiError(0, "Unreachable", "no answer in time") from None

    def post_at_once(self, path: str, body: bytes, answered: Callable[[ApiError | None], None]) -> bool:
        if self._world.random.random() < 0.3:
            return False  # no connection is free

        async def post() -> None:
            try:
                await self.request("POST", path, body)
            except ApiError as error:
                answered(error)
            else:
                answered(None)

        task = asyncio.ensure_future(post())
        self._sent.add(task)
        task.add_done_callback(self._sent.discard)
        return True

    async def _travel(self, method: str, path: str, body: bytes | None, answer: "asyncio.Future[bytes]") -> None:
        world, draw = self._world, self._world.random
        faults = world.faults
        fate = draw.random()
        await asyncio.sleep(draw.expovariate(50.0))
        if self._name in world.cut_off:
            if draw.random() < 0.5:
                return
            fate = 2.0
            await asyncio.sleep(draw.uniform(0.0, LATEST))
        for name in ("refused", "lost", "broken", "late", "slow"):
            fate -= getattr(faults, name)
            if fate < 0:
                break
        else:
            name = ""
        if name == "lost":
            return
        if name == "late":
            await asyncio.sleep(draw.uniform(0.0, LATEST))
        if name == "slow":
            await asyncio.sleep(draw.uniform(0.0, 10.0))
        try:
            if name == "refused":
                raise ApiError(draw.choice((409, 500, 500)), "Refused", "not now")
            content = None if body is None else msgspec.json.decode(body)
            found = msgspec.json.encode(world.carry_out(self._name, method, path, content))
        except ApiError as error:
            if not answer.done():
                answer.set_exception(error)
            return
        await asyncio.sleep(draw.expovariate(50.0))
        if answer.done() or self._name in world.cut_off:
            return
        if name == "broken":
            answer.set_exception(ApiError(0, "Unreachable", "the connection broke"))
        else:
            answer.set_result(found)

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        where, _, query = path.partition("?")
        collection = "claims" if where.endswith("configmaps") else where
        version = int(next(each for each in query.split("&") if each.startswith("resourceVersion=")).partition("=")[2])
        await asyncio.sleep(self._world.random.expovariate(20.0))
        yield self._pieces(collection, version)

    async def _pieces(self, collection: str, version: int) -> AsyncIterator[bytes]:
        world, draw = self._world, self._world.random
        if draw.random() < world.faults.broken_watch / 2:
            raise ApiError(410, "Expired", "too old")
        while True:
            changed = world.changed
            new = [each for each in world.log[version:] if each[1] == collection]  # one for each version
            if not new:
                version = len(world.log)
                await changed.wait()
                await asyncio.sleep(draw.expovariate(100.0))
                continue
            if draw.random() < world.faults.stalled_watch:
                await asyncio.sleep(draw.expovariate(0.1))
            if draw.random() < world.faults.broken_watch:
                raise ApiError(0, "Unreachable", "the watch broke")
            while self._name in world.cut_off:
                await asyncio.sleep(1.0)
            new = new[: draw.randint(1, len(new))]
            version = new[-1][0]
            yield b"".join(msgspec.json.encode({"type": kind, "object": found}) + b"\n" for _, _, kind, found in new)


class Party:
    """One scheduler, as `mooring run --share-nodes` puts it together, without leader election."""

    def __init__(self, world: World, name: str, number: int, scheduler: Callable[[int], Scheduler]) -> None:
        self._world, self._name, self._number, self._new_scheduler = world, name, number, scheduler
        self._lives = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._lives += 1
        self._task = asyncio.ensure_future(self._live())

    async def kill(self) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def check(self) -> None:
        """Raise what has ended it."""
        assert self._task is not None
        if self._task.done():
            self._task.result()

    async def _live(self) -> None:
        client = UnreliableClient(self._world, self._name)
        mirror, sender = ObjectCache(), Dispatcher()
        live = Live(self._new_scheduler(self._number), mirror, client, sender)
        sender.on_room = live.wake
        following = Informers(client, mirror, live.wake)
        version = following.pods_version
        claims = NodeClaims(
            client,
            f"{self._name}-{self._lives}",
            "kube-system",
            bound_at=lambda claim: bound_at(mirror.pod(claim.pod), claim),
            pods_version=version,
        )
        sharing = Sharing(claims, lambda: live.scheduler, version, mirror.pod)
        try:
            following.follow(_served())
            await following.synced()
            while True:
                with contextlib.suppress(ApiError):
                    await claims.read()
                    break
            live.use_nodes(sharing)
            claims.on_vanished = live.wake
            waits_its_turn = live._dispatcher.expects_binds
            live._dispatcher.expects_binds = lambda: sharing.expects_binds or waits_its_turn()
            live.begin()
            tasks = [asyncio.ensure_future(each) for each in (live.run(), claims.watch(), sharing.run())]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
        finally:
            await following.stop()
            for task in list(sender._tasks):
                task.cancel()


def _served() -> Served:
    kinds = {kind.name: kind for kind in KINDS if not kind.group}
    return {
        ("", "Pod"): Resource(kinds["Pod"], "v1", "pods", True),
        ("", "Node"): Resource(kinds["Node"], "v1", "nodes", False),
    }


def _found(found: Object | None) -> Object:
    if found is None:
        raise ApiError(404, "NotFound", "not there")
    return found


def _node(name: str, cpu: int) -> Object:
    amounts = {"cpu": str(cpu), "memory": "1Ti", "pods": "100"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def _pod(name: str, cpu: int, scheduler: str, uid: str) -> Object:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": str(cpu)}}}
    metadata = {"name": name, "namespace": "default", "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"containers": [container], "schedulerName": scheduler}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def cpu_of(pod: Object) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
