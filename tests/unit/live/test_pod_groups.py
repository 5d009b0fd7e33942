"""The status of PodGroups: written when it changes, however often the server fails."""

import asyncio
from typing import Any

import msgspec

from mooring.drivers.live.api.client import ApiError
from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.pod_groups.status import GROUP_KIND, VOLCANO_KIND, PodGroupStatus
from mooring.model.api.pods import Pod, SchedulingGroup
from mooring.model.objects.kinds import KINDS
from mooring.testing.builders import make_pod

GROUP = next(kind for kind in KINDS if (kind.group, kind.name) == GROUP_KIND)
SERVED = {GROUP_KIND: Resource(GROUP, "scheduling.k8s.io/v1beta1", "podgroups", True)}


def member() -> Pod:
    one = make_pod("p")
    one.spec.scheduling_group = SchedulingGroup(pod_group_name="train")
    return one


class FailsTwice:
    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def request(self, method: str, path: str, body: bytes, content_type: str) -> bytes:
        self.bodies.append(body)
        if len(self.bodies) <= 2:
            raise ApiError(500, "InternalError", "not now")
        return b"{}"


def test_the_condition_of_a_gang_that_runs_is_not_lost_with_an_answer() -> None:
    client: Any = FailsTwice()

    async def play() -> None:
        dispatcher = Dispatcher()
        groups = PodGroupStatus(client, dispatcher)
        groups.served = SERVED
        groups.bound(member())
        async with asyncio.timeout(10):
            while len(client.bodies) < 3 or len(dispatcher):
                await asyncio.sleep(0.01)

    asyncio.run(play())
    assert b'"Scheduled"' in client.bodies[2]


class FailsSlowly(FailsTwice):
    async def request(self, method: str, path: str, body: bytes, content_type: str) -> bytes:
        await asyncio.sleep(0.05)
        return await super().request(method, path, body, content_type)


def test_what_is_said_while_an_earlier_word_is_under_way_is_the_last_that_is_written() -> None:
    client: Any = FailsSlowly()

    async def play() -> None:
        dispatcher = Dispatcher()
        groups = PodGroupStatus(client, dispatcher)
        groups.served = SERVED
        groups.waiting(member(), "no room")
        await asyncio.sleep(0.01)
        groups.bound(member())
        async with asyncio.timeout(10):
            while len(client.bodies) < 3 or len(dispatcher):
                groups.waiting(member(), "one more has no room")
                await asyncio.sleep(0.01)

    asyncio.run(play())
    assert [b'"Scheduled"' in body for body in client.bodies] == [False, True, True]


class Takes:
    """A server that takes everything."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []

    async def request(self, method: str, path: str, body: bytes, content_type: str) -> bytes:
        status = msgspec.json.decode(body)["status"]
        for found in status["conditions"]:
            found.pop("lastTransitionTime")
        self.sent.append((path, content_type, status))
        return b"{}"


def test_a_group_of_volcano_says_why_it_waits_and_then_that_it_runs() -> None:
    client: Any = Takes()

    async def play() -> None:
        dispatcher = Dispatcher()
        groups = PodGroupStatus(client, dispatcher)
        kind = next(kind for kind in KINDS if (kind.group, kind.name) == VOLCANO_KIND)
        one = make_pod("p", annotations={"scheduling.k8s.io/group-name": "train"})
        groups.bound(one)  # this cluster does not have the kind: then there is nothing to write to
        groups.served = {VOLCANO_KIND: Resource(kind, "v1beta1", "podgroups", True)}
        for message in ("too few nodes", "too few nodes", "", "a member more"):
            if message:
                groups.waiting(one, message)
            else:
                groups.bound(one)
            assert await dispatcher.drain(5)

    asyncio.run(play())
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/train/status"
    waits = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "too few nodes"}
    reason = "tasks in gang are ready to be scheduled"
    runs = {"type": "Scheduled", "status": "True", "reason": reason, "message": ""}
    merge = "application/merge-patch+json"
    assert client.sent == [
        (path, merge, {"conditions": [waits]}),  # whether it is let in, others tell
        (path, merge, {"phase": "Running", "conditions": [runs]}),
    ]
