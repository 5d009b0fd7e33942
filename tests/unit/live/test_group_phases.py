"""The phase of Volcano's groups that wait to be let in: written once, never taken back, however the server fails."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from mooring.drivers.live.api.client import ApiError
from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.pod_groups.phases import GroupPhases
from mooring.drivers.live.pod_groups.status import VOLCANO_KIND
from mooring.model.api.meta import ObjectMeta
from mooring.model.decisions import Decision, Enqueue, KeepOut
from mooring.model.gangs.dialects.volcano import VolcanoPodGroup
from mooring.model.objects.kinds import KINDS

KEY = "PodGroup.scheduling.volcano.sh/default/train"
PATH = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/train/status"


class Server:
    """One group; a write that does not name its version is a conflict. Events are taken."""

    def __init__(self, phase: str = "", fails: int = 0) -> None:
        self.group: VolcanoPodGroup | None = VolcanoPodGroup()
        self.group.metadata = ObjectMeta(name="train", namespace="default", uid="u", resource_version="1")
        self.group.status.phase = phase
        self.version, self.fails = "1", fails
        self.written: list[Any] = []
        self.events: list[tuple[str, str, str]] = []
        self.asked = 0

    async def request(self, method: str, path: str, body: bytes, content_type: str) -> bytes:
        assert (method, path, content_type) == ("PATCH", PATH, "application/merge-patch+json")
        self.asked += 1
        await asyncio.sleep(0)
        if self.asked <= self.fails:
            raise ApiError(500, "InternalError", "not now")
        given = msgspec.json.decode(body)
        if given["metadata"]["resourceVersion"] != self.version:
            raise ApiError(409, "Conflict", "it was changed meanwhile")
        for found in given["status"].get("conditions") or ():
            found.pop("lastTransitionTime")
        self.written.append(given["status"])
        self.write(given["status"]["phase"])
        return b"{}"

    async def post(self, path: str, body: bytes) -> bytes:
        found = msgspec.json.decode(body)
        self.events.append((found["regarding"]["kind"], found["reason"], found["note"]))
        return b"{}"

    def write(self, phase: str, *, is_seen: bool = True) -> None:
        self.version = str(int(self.version) + 1)
        if is_seen:
            self.see(phase)

    def see(self, phase: str) -> None:
        assert self.group is not None
        self.group.metadata.resource_version, self.group.status.phase = self.version, phase

    def find(self, namespace: str, name: str) -> VolcanoPodGroup | None:
        assert (namespace, name) == ("default", "train")
        return self.group


def play(server: Server, *steps: Callable[[GroupPhases], None]) -> None:
    """One step after another, each when what came of the one before is done; what failed is said again, as the
    scheduler does, unless something else was said since."""
    said: list[Decision] = []

    async def run() -> None:
        def fail(decision: Decision, message: str) -> None:
            if decision == said[-1]:
                assert isinstance(decision, Enqueue | KeepOut)
                asyncio.get_running_loop().call_soon(carry_out, decision)

        dispatcher = Dispatcher()
        client: Any = server
        phases = GroupPhases(client, dispatcher, server.find, failed=fail)
        carry_out = phases.carry_out

        def note(decision: Enqueue | KeepOut) -> None:
            said.append(decision)
            carry_out(decision)

        phases.carry_out = note  # type: ignore[method-assign]
        kind = next(kind for kind in KINDS if (kind.group, kind.name) == VOLCANO_KIND)
        phases.served = {VOLCANO_KIND: Resource(kind, "v1beta1", "podgroups", True)}
        for step in steps:
            step(phases)
            async with asyncio.timeout(10):
                while phases._wanted or len(dispatcher):
                    await asyncio.sleep(0.01)

    asyncio.run(run())


def let_in(phases: GroupPhases) -> None:
    phases.carry_out(Enqueue(KEY))


def keep_out(phases: GroupPhases) -> None:
    phases.carry_out(KeepOut(KEY, "too much"))


CONDITION = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "too much"}


def test_a_group_that_is_let_in_is_in_queue() -> None:
    server = Server()
    play(server, let_in, let_in)

    assert server.written == [{"phase": "Inqueue"}]
    assert server.events == []


def test_a_group_that_is_kept_out_is_told_why_until_it_is_let_in() -> None:
    server = Server()
    play(server, keep_out, let_in)

    assert server.written == [{"phase": "Pending", "conditions": [CONDITION]}, {"phase": "Inqueue", "conditions": None}]
    assert server.events == [("PodGroup", "Unschedulable", "too much")]


def test_what_fails_is_tried_again() -> None:
    server = Server("Pending", fails=2)
    play(server, let_in)

    assert server.written == [{"phase": "Inqueue"}]
    assert server.asked == 3


def test_of_two_words_that_fail_the_last_is_tried_again() -> None:
    def both(phases: GroupPhases) -> None:
        keep_out(phases)
        asyncio.get_running_loop().call_soon(let_in, phases)

    server = Server("Pending", fails=3)
    play(server, both)

    assert server.written[-1] == {"phase": "Inqueue"}


def test_a_phase_that_another_wrote_stays() -> None:
    server = Server("Running")
    play(server, let_in, keep_out)
    assert server.asked == 0

    server = Server("Pending")
    server.write("Running", is_seen=False)

    def late(phases: GroupPhases) -> None:
        let_in(phases)
        asyncio.get_running_loop().call_later(0.1, server.see, "Running")

    play(server, late)
    assert server.written == []
    assert server.asked == 1  # a conflict; then it was seen


def test_a_group_that_is_gone_is_left_alone() -> None:
    server = Server()
    server.group = None
    play(server, let_in, keep_out)

    assert server.asked == 0
