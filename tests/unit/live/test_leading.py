"""Who leads, and who does not any more: a leader that was stopped for long sends nothing of what it had decided."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from mooring.drivers.live import election as election_module
from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.connection import Connection
from mooring.drivers.live.api.plain_config import PlainConfig
from mooring.drivers.live.api.proxied import Proxied
from mooring.drivers.live.election import Election, ElectionSettings, LeadershipLost

SETTINGS = ElectionSettings("the-one", lease_duration=15.0, renew_deadline=10.0, retry_period=0.001)


class Clock:
    """A clock that goes on while nobody runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(election_module, "now", lambda: self.now)


class Server:
    """A server of one Lease that refuses to overwrite what was not read."""

    def __init__(self) -> None:
        self.lease: Any = None
        self.version = 0
        self.before_write: Callable[[], None] = lambda: None

    async def get(self, path: str) -> bytes:
        if self.lease is None:
            raise ApiError(404, "NotFound", "not found")
        return msgspec.json.encode(self.lease)

    async def request(self, method: str, path: str, body: bytes, *, is_fenced: bool) -> bytes:
        assert not is_fenced, "by these it is found out whether others may be sent"
        self.before_write()
        found = msgspec.json.decode(body)
        if method == "PUT" and found["metadata"]["resourceVersion"] != str(self.version):
            raise ApiError(409, "Conflict", "it has been modified")
        self.write(found)
        return body

    def write(self, lease: Any) -> None:
        self.version += 1
        lease["metadata"]["resourceVersion"] = str(self.version)
        self.lease = lease

    def held_by(self, holder: str) -> None:
        """Somebody else writes it."""
        self.write({**self.lease, "spec": {**self.lease["spec"], "holderIdentity": holder, "leaseTransitions": 1}})


async def leader(server: Any) -> Election:
    found = Election(server, SETTINGS)
    await found.acquire()
    assert found.is_sure
    return found


async def holds(election: Election) -> bool:
    """Whether it goes on for a few renewals."""
    try:
        async with asyncio.timeout(0.1):
            await election.hold()
    except TimeoutError:
        return True
    except LeadershipLost:
        return False
    raise AssertionError("who holds a lease does so until it is lost")


def test_a_leader_is_sure_until_its_deadline_and_again_when_it_has_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, server = Clock(monkeypatch), Server()

    async def story() -> None:
        found = await leader(server)
        clock.now += 9.9
        assert found.is_sure
        clock.now += 0.2
        assert not found.is_sure, "before it has found out anything"
        assert found.overdue_seconds() == pytest.approx(-4.9)
        assert await holds(found)
        assert found.is_sure

    asyncio.run(story())


def test_the_time_of_a_renewal_is_that_at_which_it_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process may be stopped between the answer and the moment at which it reads it."""
    clock, server = Clock(monkeypatch), Server()

    async def story() -> None:
        found = await leader(server)

        def stopped() -> None:
            clock.now += 60.0

        server.before_write = stopped
        assert await found._acquire_or_renew()
        assert not found.is_sure

    asyncio.run(story())


@pytest.mark.parametrize("holder", ["another", ""])
def test_a_leader_that_finds_that_another_has_led_ends_though_that_one_is_gone(
    monkeypatch: pytest.MonkeyPatch, holder: str
) -> None:
    """Who took over may have stopped in good order: then the lease is nobody's, and its pods are on our nodes."""
    clock, server = Clock(monkeypatch), Server()

    async def story() -> None:
        found = await leader(server)
        server.held_by("another")
        server.held_by(holder)
        clock.now += 300.0
        assert not await holds(found)
        assert not found.is_leader and not found.is_sure
        assert server.lease["spec"]["holderIdentity"] == holder, "it is not taken back"

    asyncio.run(story())


def test_a_lease_that_another_takes_while_it_is_renewed_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, server = Clock(monkeypatch), Server()

    async def story() -> None:
        found = await leader(server)

        def taken_meanwhile() -> None:
            server.before_write = lambda: None
            clock.now += 60.0
            server.held_by("another")

        server.before_write = taken_meanwhile
        assert not await holds(found)
        assert server.lease["spec"]["holderIdentity"] == "another"

    asyncio.run(story())


def test_a_lease_that_is_deleted_is_written_again_only_while_it_lasted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, server = Clock(monkeypatch), Server()

    async def story() -> None:
        found = await leader(server)
        server.lease = None
        assert await holds(found)
        assert server.lease["spec"]["holderIdentity"] == found.identity
        server.lease = None
        clock.now += 60.0
        assert not await holds(found)

    asyncio.run(story())


async def asked(
    client: Callable[[str], Client], story: Callable[[Client, list[bytes]], Awaitable[None]]
) -> list[bytes]:
    """Play a story with a server that answers everything; the bodies of what reached it."""
    bodies: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
                )
                bodies.append(await reader.readexactly(length))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        async with client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as opened:
            await story(opened, bodies)
        await asyncio.sleep(0.02)  # until the server has closed its side
    return bodies


class ByProxy(Client):
    """Reaches its server by a proxy that is the server."""

    async def __aenter__(self) -> Client:
        self._proxied = Proxied("http://api.test", self.server, None, None, "test")
        return self


@pytest.mark.parametrize("kind", [Client, ByProxy])
def test_what_was_decided_before_a_leader_was_stopped_waits_at_the_door(kind: type[Client]) -> None:
    """It may lead at the moment at which a request is made, and not at that at which it would leave."""
    answers = iter([True, False, False, True, True, True])

    async def story(client: Client, bodies: list[bytes]) -> None:
        asked_for: list[bool] = []

        def may_write() -> bool:
            asked_for.append(next(answers))
            return asked_for[-1]

        client.fence(may_write)
        await client.post("/bind", b'"late"')
        assert asked_for == [True, False, False, True, True], "it did not leave before it might"
        assert bodies == [b'"late"']

    def client(server: str) -> Client:
        return kind(Connection(PlainConfig(server), None, "here"), "test")

    assert asyncio.run(asked(client, story)) == [b'"late"']


def test_what_is_sent_at_once_is_kept_back_in_the_same_way() -> None:
    async def story(client: Client, bodies: list[bytes]) -> None:
        await client.get("/")  # so that there is a connection
        may_write = False
        client.fence(lambda: may_write)
        told: list[ApiError | None] = []
        assert not client.post_at_once("/bind", b'"one"', told.append)
        await asyncio.sleep(0.01)
        assert told == []
        may_write = True
        assert client.post_at_once("/bind", b'"two"', told.append), "the connection is there again"
        async with asyncio.timeout(5):
            while not told:
                await asyncio.sleep(0.001)
        assert told == [None]

    def client(server: str) -> Client:
        return Client(Connection(PlainConfig(server), None, "here"), "test")

    assert asyncio.run(asked(client, story)) == [b"", b'"two"']
