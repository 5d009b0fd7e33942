"""Decisions carried out: whatever raises on the way, the scheduler hears of each that was not done."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from mooring.drivers.live.api import backoff
from mooring.drivers.live.api.client import ApiError
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.pods import binder
from mooring.drivers.live.pods.binder import Outcome
from mooring.drivers.live.pods.event_recorder import EventRecorder
from mooring.drivers.live.pods.executor import PodExecutor
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict, Resize, Wait
from mooring.model.pod_patch import ContainerResources
from mooring.testing.builders import make_pod

UNBOUND = b'{"metadata": {"uid": "u"}, "spec": {}}'
ON_N1 = b'{"metadata": {"uid": "u"}, "spec": {"nodeName": "n1"}}'


class BrokenClient:
    """Raises what no server can make it raise, for all but questions about pods."""

    def __init__(self, found: bytes) -> None:
        self._found = found
        self.asked: list[str] = []

    async def get(self, path: str) -> bytes:
        return self._found

    def post_at_once(self, path: str, body: bytes, answered: object) -> bool:
        raise RuntimeError("a fault of ours")

    async def post(self, path: str, body: bytes) -> bytes:
        raise RuntimeError("a fault of ours")

    async def request(self, method: str, path: str, *more: object) -> bytes:
        self.asked.append(f"{method} {path}")
        if "/events" in path:
            raise ApiError(404, "NotFound", "nobody reads events here")
        raise RuntimeError("a fault of ours")


async def always(workload: str) -> bool:
    return True


def carrier_of(
    client: Any,
    dispatcher: Dispatcher,
    failed: list[Decision],
    outcomes: list[Outcome],
    admitted: Callable[[str], Awaitable[bool]] = always,
) -> tuple[PodExecutor, Pod]:
    """One that notes what failed and what became of binds, and a pod for it."""
    executor = PodExecutor(
        client,
        dispatcher,
        EventRecorder(client, dispatcher),
        failed=lambda decision, message: failed.append(decision),
        bound=lambda decision, pod, answer: outcomes.append(answer.outcome),
        find=lambda key: None,
        admitted=admitted,
    )
    one = make_pod("p")
    one.metadata.uid = "u"
    return executor, one


def carry_out(
    story: Callable[[PodExecutor, Pod], None], found: bytes = UNBOUND
) -> tuple[list[Decision], list[Outcome]]:
    """What the scheduler is told of failures, and what became of binds."""
    failed: list[Decision] = []
    outcomes: list[Outcome] = []

    async def never(workload: str) -> bool:
        raise RuntimeError("a fault of ours")

    async def play() -> None:
        client: Any = BrokenClient(found)
        dispatcher = Dispatcher()
        executor, one = carrier_of(client, dispatcher, failed, outcomes, never)
        story(executor, one)
        await dispatcher.drain(5)
        await asyncio.sleep(0.01)

    awaited: Awaitable[None] = play()
    asyncio.run(asyncio.wait_for(awaited, 10))
    return failed, outcomes


def test_a_bind_that_raises_is_reported_if_the_pod_is_on_no_node() -> None:
    decision = Bind("default/p", "n1")
    found = carry_out(lambda executor, one: executor.bind(decision, one, [], ""))
    assert found == ([decision], [Outcome.REFUSED])


def test_a_bind_that_raises_is_none_that_failed_if_the_pod_is_on_its_node() -> None:
    decision = Bind("default/p", "n1")
    found = carry_out(lambda executor, one: executor.bind(decision, one, [], ""), ON_N1)
    assert found == ([], [Outcome.BOUND])


def test_what_raises_before_a_bind_is_reported() -> None:
    decision = Bind("default/p", "n1")
    assert carry_out(lambda executor, one: executor.bind(decision, one, [], "default/w")) == ([decision], [])


def test_an_eviction_that_raises_is_reported() -> None:
    decision = Evict("default/p", "n1", "default/q", "because")
    assert carry_out(lambda executor, one: executor.evict(decision, one, None, ""), ON_N1) == ([decision], [])


def test_a_pod_that_was_never_bound_is_not_deleted() -> None:
    failed: list[Decision] = []
    client = BrokenClient(UNBOUND)
    decision = Evict("default/p", "n1", "default/q", "because")

    async def play() -> None:
        dispatcher = Dispatcher()
        executor, one = carrier_of(client, dispatcher, failed, [])
        executor.evict(decision, one, None, "")
        assert await dispatcher.drain(5)

    asyncio.run(play())
    assert (failed, client.asked) == ([decision], [])


class ConflictingClient:
    """Answers the first deletion with a conflict, though there is no other pod of that name."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def get(self, path: str) -> bytes:
        return ON_N1

    async def request(self, method: str, path: str, *more: object) -> bytes:
        if "/events" not in path:
            self.sent.append(method)
        if self.sent == ["DELETE"]:
            raise ApiError(409, "Conflict", "try again")
        return b"{}"


def test_a_victim_whose_eviction_met_a_conflict_is_evicted_all_the_same() -> None:
    failed: list[Decision] = []
    client: Any = ConflictingClient()

    async def settled(workload: str) -> bool:
        return True

    async def play() -> None:
        dispatcher = Dispatcher()
        executor = PodExecutor(
            client,
            dispatcher,
            EventRecorder(client, dispatcher),
            failed=lambda decision, message: failed.append(decision),
            bound=lambda decision, pod, answer: None,
            find=lambda key: None,
            admitted=settled,
        )
        one = make_pod("p")
        one.metadata.uid = "u"
        executor.evict(Evict("default/p", "n1", "", "gone"), one, None, "")
        assert await dispatcher.drain(5)

    asyncio.run(play())
    assert (client.sent, failed) == (["DELETE", "DELETE"], [])


def test_of_a_pod_whose_status_is_others_to_write_only_an_event_tells_why_it_waits() -> None:
    def requests(*, in_status: bool) -> list[str]:
        client: Any = BrokenClient(UNBOUND)

        async def play() -> None:
            dispatcher = Dispatcher()
            one = make_pod("p")
            executor = PodExecutor(
                client,
                dispatcher,
                EventRecorder(client, dispatcher),
                failed=lambda decision, message: None,
                bound=lambda decision, pod, answer: None,
                find=lambda key: one,
                admitted=always,
            )
            executor.say(Wait("default/p", "because"), one, in_status=in_status)
            await dispatcher.drain(5)

        asyncio.run(play())
        return client.asked  # type: ignore[no-any-return]

    event = "POST /apis/events.k8s.io/v1/namespaces/default/events"
    assert requests(in_status=False) == [event]
    assert sorted(requests(in_status=True)) == ["PATCH /api/v1/namespaces/default/pods/p/status", event]


class PromptClient:
    """Answers a first try at once by a script, and what comes after that as well."""

    def __init__(self, first: ApiError | None, then: ApiError | None, found: bytes) -> None:
        self._first, self._then, self._found = first, then, found
        self.asked: list[str] = []

    def post_at_once(self, path: str, body: bytes, answered: Callable[[ApiError | None], None]) -> bool:
        self.asked.append("at once")
        asyncio.get_running_loop().call_soon(answered, self._first)
        return True

    async def get(self, path: str) -> bytes:
        self.asked.append("get")
        return self._found

    async def post(self, path: str, body: bytes) -> bytes:
        self.asked.append("post")
        if self._then is not None:
            raise self._then
        return b"{}"

    async def request(self, method: str, path: str, *more: object) -> bytes:
        return b"{}"


def error(code: int) -> ApiError:
    return ApiError(code, "Because", "because")


@pytest.mark.parametrize(
    ("first", "then", "found", "asked", "outcome"),
    [
        pytest.param(None, None, UNBOUND, ["at once"], Outcome.BOUND, id="bound"),
        pytest.param(error(404), None, UNBOUND, ["at once"], Outcome.GONE, id="gone"),
        pytest.param(error(409), None, UNBOUND, ["at once"], Outcome.CONFLICT, id="conflict"),
        pytest.param(error(403), None, UNBOUND, ["at once"], Outcome.REFUSED, id="refused"),
        pytest.param(error(401), None, UNBOUND, ["at once", "post"], Outcome.BOUND, id="credentials"),
        pytest.param(error(429), None, UNBOUND, ["at once", "post"], Outcome.BOUND, id="patience"),
        pytest.param(error(0), None, ON_N1, ["at once", "get"], Outcome.BOUND, id="carried out all the same"),
        pytest.param(error(0), None, UNBOUND, ["at once", "get", "post"], Outcome.BOUND, id="lost on the way"),
        pytest.param(error(500), error(409), UNBOUND, None, Outcome.REFUSED, id="in doubt for ever"),
    ],
)
def test_a_bind_that_does_not_succeed_at_once_is_looked_into(
    first: ApiError | None,
    then: ApiError | None,
    found: bytes,
    asked: list[str] | None,
    outcome: Outcome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client: Any = PromptClient(first, then, found)
    outcomes: list[Outcome] = []
    failed: list[Decision] = []

    async def play() -> None:
        monkeypatch.setattr(binder, "Backoff", lambda: backoff.Backoff(0.001, 0.001))
        dispatcher = Dispatcher()
        executor, one = carrier_of(client, dispatcher, failed, outcomes)
        executor.bind(Bind("default/p", "n1"), one, [], "")
        assert await dispatcher.drain(5)
        assert dispatcher.in_flight == 0

    asyncio.run(play())
    assert outcomes == [outcome]
    assert bool(failed) == (outcome is not Outcome.BOUND)
    if asked is not None:
        assert client.asked == asked
    else:
        assert client.asked.count("at once") + client.asked.count("post") == binder.MOST_TRIES


def test_a_fault_after_a_bind_takes_nobodys_place() -> None:
    client: Any = PromptClient(None, None, UNBOUND)

    def fail(*told: object) -> None:
        raise RuntimeError("a fault of ours")

    async def play() -> None:
        dispatcher = Dispatcher()
        executor = PodExecutor(
            client,
            dispatcher,
            EventRecorder(client, dispatcher),
            failed=fail,
            bound=fail,
            find=lambda key: None,
            admitted=always,
        )
        executor.bind(Bind("default/p", "n1"), make_pod("p"), [], "")
        assert await dispatcher.drain(5)

    asyncio.run(play())
    assert client.asked == ["at once"]


def test_a_refused_bind_is_a_condition_of_the_pod() -> None:
    written: list[Any] = []

    class Refusing(PromptClient):
        async def request(self, method: str, path: str, *more: object) -> bytes:
            if path.endswith("/status"):
                written.append(msgspec.json.decode(more[0])["status"]["conditions"][0])  # type: ignore[call-overload]
            return b"{}"

    async def play() -> None:
        dispatcher = Dispatcher()
        client: Any = Refusing(error(403), None, UNBOUND)
        executor, one = carrier_of(client, dispatcher, [], [])
        executor._find = lambda key: one
        executor.bind(Bind("default/p", "n1"), one, [], "")
        assert await dispatcher.drain(5)

    asyncio.run(play())
    (found,) = written
    assert (found["type"], found["status"], found["reason"]) == ("PodScheduled", "False", "SchedulerError")
    assert found["message"].startswith("binding rejected: ")


class ResizeClient(BrokenClient):
    """Answers resizes, and keeps what was sent."""

    def __init__(self, refusal: ApiError | None = None) -> None:
        super().__init__(ON_N1)
        self.sent: list[tuple[str, str, object, object]] = []
        self._refusal = refusal

    async def request(self, method: str, path: str, *more: object) -> bytes:
        if "/events" in path:
            return b"{}"
        body, content_type = more
        assert isinstance(body, bytes)
        self.sent.append((method, path, msgspec.json.decode(body), content_type))
        if self._refusal is not None:
            raise self._refusal
        return b"{}"


@pytest.mark.parametrize("refusal", [None, ApiError(422, "Invalid", "another QoS class")], ids=["done", "refused"])
def test_a_resize_is_written_to_the_subresource_of_the_pod(refusal: ApiError | None) -> None:
    decision = Resize("default/p", (ContainerResources("main", (("cpu", "2"),), (("cpu", "4"),)),))
    client, failed = ResizeClient(refusal), list[Decision]()

    async def play() -> None:
        dispatcher = Dispatcher()
        executor, one = carrier_of(client, dispatcher, failed, [])
        executor.resize(decision, one)
        await dispatcher.drain(5)

    asyncio.run(play())

    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}
    body = {"metadata": {"uid": "u"}, "spec": {"containers": [{"name": "main", "resources": resources}]}}
    path = "/api/v1/namespaces/default/pods/p/resize"
    assert client.sent == [("PATCH", path, body, "application/strategic-merge-patch+json")]
    assert failed == ([] if refusal is None else [decision])
