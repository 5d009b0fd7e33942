"""The condition of a PodGroup: written however often the server fails."""

import asyncio
from typing import Any

from mooring.drivers.live.client import ApiError
from mooring.drivers.live.discovery import Resource
from mooring.drivers.live.dispatcher import Dispatcher
from mooring.drivers.live.pod_groups import GROUP_KIND, PodGroupStatus
from mooring.model.api.pods import SchedulingGroup
from mooring.model.loading.kinds import KINDS
from mooring.testing.builders import make_pod


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
        kind = next(kind for kind in KINDS if (kind.group, kind.name) == GROUP_KIND)
        groups.served = {GROUP_KIND: Resource(kind, "scheduling.k8s.io/v1beta1", "podgroups", True)}
        one = make_pod("p")
        one.spec.scheduling_group = SchedulingGroup(pod_group_name="train")
        groups.bound(one)
        async with asyncio.timeout(10):
            while len(client.bodies) < 3 or len(dispatcher):
                await asyncio.sleep(0.01)

    asyncio.run(play())
    assert b'"Scheduled"' in client.bodies[2]
