"""Requests over connections that are kept, against servers that answer by a script."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mooring.drivers.live.api.connections import Connections, NotSent, Reply, _Wire

REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def play(script: list[list[bytes]], story: Callable[[Connections], Awaitable[None]]) -> list[int]:
    """Run a story against a server that answers the n-th connection with these; an empty answer closes it.

    Returns how many requests came on each connection.
    """
    asked: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(asked)
        asked.append(0)
        for each in script[number]:
            try:
                await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            asked[number] += 1
            if not each:
                break
            for piece in (each[:9], each[9:]):  # an answer may come in pieces
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        connections = Connections(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None)
        async with server:
            await story(connections)
            connections.close()
            await asyncio.sleep(0.01)

    asyncio.run(run())
    return asked


def test_a_connection_serves_one_request_after_another() -> None:
    async def story(connections: Connections) -> None:
        for _ in range(3):
            assert await connections.send(REQUEST, 5) == Reply(200, b"ok", "")

    assert play([[OK, OK, OK]], story) == [3]


def test_requests_at_once_have_a_connection_each() -> None:
    async def story(connections: Connections) -> None:
        replies = await asyncio.gather(*(connections.send(REQUEST, 5) for _ in range(3)))
        assert replies == [Reply(200, b"ok", "")] * 3

    assert play([[OK], [OK], [OK]], story) == [1, 1, 1]


def test_an_answer_in_chunks_is_put_together_and_a_refusal_says_when_to_come_back() -> None:
    chunked = (
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nno,\r\n4\r\n not\r\n0\r\n\r\n"
    )

    async def story(connections: Connections) -> None:
        assert await connections.send(REQUEST, 5) == Reply(429, b"no, not", "7")
        assert await connections.send(REQUEST, 5) == Reply(200, b"ok", "")

    assert play([[chunked, OK]], story) == [2]


def test_a_server_that_wants_to_close_gets_the_next_request_on_another_connection() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"

    async def story(connections: Connections) -> None:
        assert await connections.send(REQUEST, 5) == Reply(200, b"ok", "")
        assert await connections.send(REQUEST, 5) == Reply(200, b"ok", "")

    assert play([[closing], [OK]], story) == [1, 1]


@pytest.mark.parametrize(
    "answer",
    [pytest.param(b"", id="none"), pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nha", id="half")],
)
def test_a_connection_that_breaks_takes_its_request_along_and_no_other(answer: bytes) -> None:
    async def story(connections: Connections) -> None:
        with pytest.raises(ConnectionError):
            await connections.send(REQUEST, 5)
        assert await connections.send(REQUEST, 5) == Reply(200, b"ok", "")

    assert play([[answer], [OK]], story) == [1, 1]


def test_something_that_is_no_answer_is_an_error_and_not_waited_for() -> None:
    async def story(connections: Connections) -> None:
        with pytest.raises(ConnectionError, match="no HTTP"):
            await connections.send(REQUEST, 5)

    assert play([[b"SSH-2.0-OpenSSH_9.9\r\n"]], story) == [1]


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one() -> None:
    late = asyncio.Event()

    async def run() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            if not late.is_set():
                late.set()
                await asyncio.sleep(0.1)
                writer.write(OK.replace(b"ok", b"no"))
            else:
                writer.write(OK)
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        connections = Connections(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None)
        async with server:
            with pytest.raises(TimeoutError):
                await connections.send(REQUEST, 0.02)
            assert await connections.send(REQUEST, 5) == Reply(200, b"ok", "")
            await asyncio.sleep(0.15)
            connections.close()

    asyncio.run(run())


def test_nobody_there_is_an_error() -> None:
    async def run() -> None:
        with pytest.raises(ConnectionRefusedError):
            await Connections("http://127.0.0.1:1", None).send(REQUEST, 5)

    asyncio.run(run())


def test_a_request_that_is_cancelled_as_its_connection_comes_is_given_up() -> None:
    async def run() -> None:
        connections = Connections("http://127.0.0.1:1", None)
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def connect() -> Any:
            return await opened

        connections._connect = connect  # type: ignore[method-assign]
        request = asyncio.ensure_future(connections.send(REQUEST, 5))
        await asyncio.sleep(0)
        opened.set_result(None)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    asyncio.run(run())


def test_a_connection_that_was_closed_before_it_was_asked_is_an_error() -> None:
    async def run() -> None:
        answers: list[Reply | Exception] = []
        wire = _Wire([], set())
        wire.ask(REQUEST, 5, answers.append)
        assert not answers  # told later, never while it is asked
        await asyncio.sleep(0)
        assert [type(answer) for answer in answers] == [ConnectionResetError]

    asyncio.run(run())


def test_what_is_sent_at_once_needs_a_connection_that_is_idle() -> None:
    async def story(connections: Connections) -> None:
        answers: list[Reply | Exception] = []
        assert not connections.send_at_once(REQUEST, 5, answers.append)
        assert await connections.send(REQUEST, 5) == Reply(200, b"ok", "")
        assert connections.send_at_once(REQUEST, 5, answers.append)
        assert not connections.send_at_once(REQUEST, 5, answers.append)  # one request at a time
        await until(lambda: len(answers) == 1)
        assert connections.send_at_once(REQUEST, 5, answers.append)
        await until(lambda: len(answers) == 2)
        assert answers[0] == Reply(200, b"ok", "")
        assert isinstance(answers[1], ConnectionError)

    assert play([[OK, OK, b""]], story) == [3]


def test_who_is_told_may_ask_again_on_the_same_connection_and_a_second_answer_is_not_taken_for_that() -> None:
    async def story(connections: Connections) -> None:
        answers: list[Reply | Exception] = []

        def ask_again(answer: Reply | Exception) -> None:
            answers.append(answer)
            if len(answers) < 3:
                connections.send_at_once(REQUEST, 5, ask_again)

        assert await connections.send(REQUEST, 5) == Reply(200, b"ok", "")
        connections.send_at_once(REQUEST, 5, ask_again)
        await until(lambda: len(answers) == 2)
        await asyncio.sleep(0.02)
        assert answers == [Reply(200, b"ok", ""), Reply(200, b"ok", "")]
        assert not connections.send_at_once(REQUEST, 5, ask_again)  # it has said too much, and is closed

    assert play([[OK, OK, OK + OK.replace(b"ok", b"no")]], story) == [3]


def test_a_deadline_is_that_of_the_request_under_way() -> None:
    """A timer outlives the request that it was set for: it neither ends the next one early nor lets it wait."""

    async def run() -> None:
        answered = 0

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal answered
            for seconds in (0.0, 0.1, 0.0):
                await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(seconds)
                writer.write(OK)
                answered += 1
            await reader.read()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        connections = Connections(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None)
        async with server:
            await connections.send(REQUEST, 0.05)
            assert await connections.send(REQUEST, 5) == Reply(200, b"ok", "")
            await connections.send(REQUEST, 5)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(connections.send(REQUEST, 0.05), 2)
            assert answered == 3
            connections.close()
            await asyncio.sleep(0.01)

    asyncio.run(run())


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not done():
            await asyncio.sleep(0.005)


def test_a_request_that_may_not_leave_any_more_does_not_and_its_connection_is_kept() -> None:
    async def story(connections: Connections) -> None:
        assert await connections.send(REQUEST, 5) == Reply(200, b"ok", "")
        with pytest.raises(NotSent):
            await connections.send(REQUEST, 5, lambda: False)
        assert await connections.send(REQUEST, 5, lambda: True) == Reply(200, b"ok", "")

    assert play([[OK, OK]], story) == [2]
