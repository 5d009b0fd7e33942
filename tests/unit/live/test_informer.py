"""Following a kind: in chunks, from where a watch ended, and anew where the server has forgotten that place."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from mooring.drivers.live.api.client import Client
from mooring.drivers.live.api.connection import connect
from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.watching.informer import Informer, Name, decode_head
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Node
from mooring.model.objects.kinds import kind_of_type


def node(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


class Seen:
    """A sink that remembers what it was told."""

    def __init__(self) -> None:
        self.there: dict[str, str] = {}
        self.faults = 0
        """How often to raise for the next object."""

    def put(self, resource: Resource, raw: msgspec.Raw) -> ObjectMeta:
        if self.faults:
            self.faults -= 1
            raise RuntimeError("on purpose")
        found = decode_head(raw).metadata
        self.there[found.name] = found.resource_version
        return found

    def remove(self, resource: Resource, name: Name) -> None:
        self.there.pop(name[1], None)


class Server:
    """An API server for nodes: sends one script of lines a watch, then nothing."""

    def __init__(self, *scripts: list[tuple[str, dict[str, Any]]]) -> None:
        self.objects = [node("a", 1), node("b", 2), node("c", 3)]
        self.asked: list[str] = []
        self.piece = 0
        """How many bytes of a watch are sent at a time; 0 for a line."""
        self.loses = 0
        """How many bytes of the end of each watch are never sent: the connection breaks."""
        self._scripts = list(scripts)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        return await (self._watch if request.query.get("watch") == "true" else self._list)(request)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        start = int(request.query.get("continue", "0"))
        self.asked.append(f"list from {start}")
        more = {"continue": str(start + 2)} if start + 2 < len(self.objects) else {}
        metadata = {"resourceVersion": "10", **more}
        return web.json_response({"metadata": metadata, "items": self.objects[start : start + 2]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"watch from {request.query['resourceVersion']}")
        response = web.StreamResponse()
        await response.prepare(request)
        if not self._scripts:
            await asyncio.sleep(60)
        lines = [msgspec.json.encode({"type": kind, "object": found}) + b"\n" for kind, found in self._scripts.pop(0)]
        if self.piece:
            text = b"".join(lines)
            text = text[: len(text) - self.loses]
            lines = [text[start : start + self.piece] for start in range(0, len(text), self.piece)]
        for line in lines:
            await response.write(line)
            if self.piece:
                await asyncio.sleep(0.001)  # else the system puts them together
        if self.loses:
            assert request.transport is not None
            request.transport.close()
        return response


def follow(server: Server, tmp_path: Path, story: Callable[[Informer, Seen], Awaitable[None]]) -> None:
    async def play() -> None:
        app = web.Application()
        app.router.add_get("/api/v1/nodes", server.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        path = tmp_path / "kubeconfig"
        path.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n"
            "users: []\ncontexts: [{name: c, context: {cluster: c}}]\n"
        )
        kind = kind_of_type(Node)
        assert kind is not None
        seen = Seen()
        async with Client(await connect(path), "test") as client:
            informer = Informer(client, Resource(kind, "v1", "nodes", False), seen, lambda: None)
            task = asyncio.ensure_future(informer.run())
            await asyncio.wait_for(story(informer, seen), 20)
            task.cancel()
        await runner.cleanup()

    asyncio.run(play())


async def until(done: Callable[[], bool]) -> None:
    while not done():
        await asyncio.sleep(0.01)


def test_a_list_comes_in_chunks_and_a_watch_goes_on_from_it(tmp_path: Path) -> None:
    server = Server([("MODIFIED", node("a", 11)), ("ADDED", node("d", 12)), ("DELETED", node("b", 13))])

    async def story(informer: Informer, seen: Seen) -> None:
        await until(lambda: len(server.asked) >= 4)
        assert seen.there == {"a": "11", "c": "3", "d": "12"}

    follow(server, tmp_path, story)
    assert server.asked[:4] == ["list from 0", "list from 2", "watch from 10", "watch from 13"]


def test_a_bookmark_moves_the_place_from_which_a_watch_is_resumed(tmp_path: Path) -> None:
    server = Server([("BOOKMARK", node("", 99))])

    async def story(informer: Informer, seen: Seen) -> None:
        await until(lambda: len(server.asked) >= 4)
        assert informer.relists == 1

    follow(server, tmp_path, story)
    assert server.asked[2:4] == ["watch from 10", "watch from 99"]


def test_a_place_that_the_server_has_forgotten_means_to_list_anew_and_to_take_away_what_is_gone(tmp_path: Path) -> None:
    server = Server([("ADDED", node("d", 11))], [("ERROR", {"code": 410, "message": "too old resource version"})])

    async def story(informer: Informer, seen: Seen) -> None:
        await until(lambda: "d" in seen.there)
        server.objects = [node("a", 20)]
        await until(lambda: informer.relists == 2)
        assert seen.there == {"a": "20"}

    follow(server, tmp_path, story)
    assert server.asked[3:5] == ["watch from 11", "list from 0"]


def test_a_fault_of_ours_does_not_end_it(tmp_path: Path) -> None:
    server = Server([], [("ADDED", node("d", 11))])

    async def story(informer: Informer, seen: Seen) -> None:
        await until(lambda: informer.relists == 1)
        seen.faults = 1
        await until(lambda: informer.relists == 2)
        assert seen.there == {"a": "1", "b": "2", "c": "3"}

    follow(server, tmp_path, story)
    assert server.asked[2:5] == ["watch from 10", "watch from 10", "list from 0"]


@pytest.mark.parametrize("piece", [1, 7, 10_000], ids=["by byte", "within lines", "at once"])
def test_lines_are_put_together_however_they_come(tmp_path: Path, piece: int) -> None:
    server = Server([("MODIFIED", node("a", 11)), ("ADDED", node("dä€😀", 12)), ("DELETED", node("b", 13))])
    server.piece = piece

    async def story(informer: Informer, seen: Seen) -> None:
        await until(lambda: len(server.asked) >= 4)
        assert seen.there == {"a": "11", "c": "3", "dä€😀": "12"}

    follow(server, tmp_path, story)
    assert server.asked[3] == "watch from 13"


def test_a_watch_that_breaks_within_a_line_is_resumed_before_it(tmp_path: Path) -> None:
    server = Server([("ADDED", node("d", 11)), ("ADDED", node("e", 12))])
    server.piece, server.loses = 10, 10

    async def story(informer: Informer, seen: Seen) -> None:
        await until(lambda: len(server.asked) >= 4)
        assert seen.there == {"a": "1", "b": "2", "c": "3", "d": "11"}

    follow(server, tmp_path, story)
    assert server.asked[3] == "watch from 11"
