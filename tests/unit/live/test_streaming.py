"""Answers that go on for long, against servers that send them piece by piece, as badly cut as can be."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.connection import connect
from mooring.drivers.live.api.connections import Connections
from mooring.kubeapi.auth.certificates import issue_server, make_authority

REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
WAIT = b"wait"
"""Instead of a piece: the server says nothing more, and leaves the connection open."""


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


class Server:
    """Sends these pieces to whoever asks, each by itself, and closes; knows how many connections are open."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.open = 0
        self.asked = 0
        self.request = b""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            self.request = await reader.readuntil(b"\r\n\r\n")
            self.asked += 1
            for piece in self._pieces:
                if piece == WAIT:
                    await reader.read()
                    break
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.005)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self.open -= 1

    async def ends(self) -> None:
        """Whatever became of it, nothing stays open."""
        async with asyncio.timeout(5):
            while self.open:
                await asyncio.sleep(0.005)


def encryption(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """How a server encrypts, and a client that trusts it."""
    authority = make_authority()
    path = folder / "server.pem"
    path.write_bytes(b"".join(issue_server(authority, ["127.0.0.1"])))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(path)
    return serving, ssl.create_default_context(cadata=authority.certificate.decode())


Story = Callable[[Connections], Awaitable[None]]


def play(server: Server, story: Story, tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None) -> None:
    async def run() -> None:
        listening = await asyncio.start_server(server, "127.0.0.1", 0, ssl=tls[0] if tls else None)
        port = listening.sockets[0].getsockname()[1]
        connections = Connections(f"http://127.0.0.1:{port}", tls[1] if tls else None)
        async with listening, asyncio.timeout(10):
            await story(connections)
            assert not connections._streams
            await server.ends()

    asyncio.run(run())


async def read(connections: Connections, silent_seconds: float = 5.0) -> bytes:
    async with connections.stream(REQUEST, 5, silent_seconds) as stream:
        assert stream.status == 200
        return b"".join([piece async for piece in stream])


LINES = '{"a":"ä€😀"}\n{"b":2}\n{"c":3}\n'.encode()


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([HEAD, chunk(LINES), END], id="all lines in one chunk"),
        pytest.param([HEAD + chunk(LINES) + END], id="everything at once"),
        pytest.param([HEAD, *(chunk(line) for line in LINES.splitlines(keepends=True)), END], id="a line a chunk"),
        pytest.param([HEAD, *(chunk(bytes([byte])) for byte in LINES), END], id="characters in several chunks"),
        pytest.param([bytes([byte]) for byte in HEAD + chunk(LINES) + END], id="byte by byte"),
        pytest.param([HEAD + chunk(LINES[:9])[:-1], b"\n" + chunk(LINES[9:]) + END[:2], END[2:]], id="cut in between"),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(LINES), LINES, WAIT], id="of known length"
        ),
        pytest.param([b"HTTP/1.0 200 OK\r\n\r\n", LINES[:7], LINES[7:]], id="until the connection ends"),
    ],
)
def test_all_of_it_comes_however_it_is_cut(pieces: list[bytes]) -> None:
    async def story(connections: Connections) -> None:
        assert await read(connections) == LINES

    play(Server(*pieces), story)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_what_is_encrypted_is_read_as_well(tmp_path: Path, loop: str) -> None:
    async def story(connections: Connections) -> None:
        assert await read(connections) == 200 * LINES

    tls = encryption(tmp_path)
    pieces = [HEAD, *(chunk(LINES) for _ in range(200)), END]
    if loop == "asyncio":
        play(Server(*pieces), story, tls)
        return
    policy = asyncio.get_event_loop_policy()
    try:
        uvloop.install()
        play(Server(*pieces), story, tls)
    finally:
        asyncio.set_event_loop_policy(policy)


def test_what_came_before_a_connection_broke_is_read_first() -> None:
    async def story(connections: Connections) -> None:
        seen = b""
        async with connections.stream(REQUEST, 5, 5) as stream:
            while len(seen) < 20:
                seen += await anext(stream)
            with pytest.raises(ConnectionError):
                await anext(stream)
        assert seen == LINES[:20]

    play(Server(HEAD, chunk(LINES[:14]), chunk(LINES[14:20])), story)


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([], id="none"),
        pytest.param([b"HTTP/1.1 200 OK\r\nTransf"], id="half"),
        pytest.param([b"SSH-2.0-OpenSSH_9.9\r\n"], id="no HTTP"),
        pytest.param([HEAD, b"no length\r\n"], id="no chunk"),
    ],
)
def test_no_answer_is_an_error(pieces: list[bytes]) -> None:
    async def story(connections: Connections) -> None:
        with pytest.raises(ConnectionError):
            await read(connections)

    play(Server(*pieces), story)


def test_nobody_there_is_an_error() -> None:
    async def run() -> None:
        with pytest.raises(ConnectionRefusedError):
            await read(Connections("http://127.0.0.1:1", None))

    asyncio.run(run())


@pytest.mark.parametrize("pieces", [pytest.param([WAIT], id="at once"), pytest.param([HEAD, chunk(b"{}\n"), WAIT])])
def test_a_server_that_says_nothing_for_too_long_is_left(pieces: list[bytes]) -> None:
    async def story(connections: Connections) -> None:
        with pytest.raises(TimeoutError):
            await read(connections, 0.05)

    play(Server(*pieces), story)


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("pieces", [pytest.param([WAIT], id="at once"), pytest.param([HEAD, chunk(b"{}\n"), WAIT])])
def test_who_is_cancelled_leaves_no_connection(tmp_path: Path, pieces: list[bytes], encrypted: bool) -> None:
    server = Server(*pieces)

    async def story(connections: Connections) -> None:
        for wait in (0.0, 0.002, 0.1):
            task = asyncio.ensure_future(read(connections))
            await asyncio.sleep(wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not connections._streams

    play(server, story, encryption(tmp_path) if encrypted else None)
    assert server.asked


def test_a_client_that_is_closed_ends_what_it_reads() -> None:
    async def story(connections: Connections) -> None:
        task = asyncio.ensure_future(read(connections))
        await asyncio.sleep(0.05)
        connections.close()
        with pytest.raises(ConnectionAbortedError):
            await task

    play(Server(HEAD, WAIT), story)


def test_nothing_is_read_while_nobody_asks() -> None:
    """The server is held up by the system, instead of filling our memory."""
    sent = 0

    async def run() -> None:
        ended = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            writer.write(HEAD)
            for _ in range(400):
                writer.write(chunk(100_000 * b"x"))
                await writer.drain()
                sent += 1
            writer.write(END)
            writer.close()
            await writer.wait_closed()
            ended.set()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        connections = Connections(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None)
        async with server, asyncio.timeout(20):
            async with connections.stream(REQUEST, 5, 5) as stream:
                await asyncio.sleep(0.3)
                assert sent < 400
                assert sum([len(piece) async for piece in stream]) == 400 * 100_000
            await ended.wait()

    asyncio.run(run())


@pytest.mark.parametrize("code", [401, 403, 410, 429, 500])
def test_a_watch_that_is_refused_says_why(tmp_path: Path, code: int) -> None:
    body = b'{"kind": "Status", "reason": "Because", "message": "because", "code": %d}' % code
    head = b"HTTP/1.1 %d No\r\nRetry-After: 3\r\nContent-Length: %d\r\n\r\n" % (code, len(body))
    server = Server(head, body[:11], body[11:], WAIT)

    async def run() -> None:
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        path = tmp_path / "kubeconfig"
        path.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{listening.sockets[0].getsockname()[1]}'}}}}]\n"
            "users: [{name: u, user: {token: secret}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
        )
        async with listening, Client(await connect(path), "test") as client:
            with pytest.raises(ApiError) as raised:
                async with client.stream("/api/v1/pods?watch=true"):
                    pass
            await server.ends()
        error = raised.value
        assert (error.code, error.reason, error.message, error.retry_after) == (code, "Because", "because", 3.0)

    asyncio.run(run())
    assert server.request.startswith(b"GET /api/v1/pods?watch=true HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret\r\n" in server.request
    assert b"Accept-Encoding" not in server.request
