"""What is answered about a process that hangs."""

import asyncio
import socket
import urllib.error
import urllib.request

from mooring.drivers.live.access import Access
from mooring.drivers.live.checks import Check
from mooring.drivers.live.health import HealthServer, Served


def answers(served: Served, *paths: str, access: Access | None = None) -> list[tuple[int, str]]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]

    async def may_read(header: str, path: str) -> Access:
        assert access is not None
        return access

    def read(path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    async def ask() -> list[tuple[int, str]]:
        guard = None if access is None else may_read
        server = HealthServer("--health-address", f"127.0.0.1:{port}", served, may_read=guard)
        await server.start()
        try:
            return [await asyncio.to_thread(read, path) for path in paths]
        finally:
            await server.stop()

    return asyncio.run(ask())


def served(problem: str = "") -> Served:
    checks = [Check("scheduling-loop", problem)]
    return Served(lambda: checks, lambda: checks, lambda: b"metric 1\n", lambda: b"{}")


def test_livez_fails_when_the_loop_hangs() -> None:
    failed = "[-]scheduling-loop no cycle for 99 s\nlivez check failed\n"
    assert answers(served("no cycle for 99 s"), "/livez", "/healthz") == [(503, failed)] * 2
    assert answers(served(), "/livez") == [(200, "ok")]


def test_health_is_told_to_everybody_and_metrics_to_those_who_may() -> None:
    paths = ("/livez", "/readyz", "/metrics", "/configz", "/elsewhere")
    assert [code for code, _ in answers(served(), *paths, access=Access.FORBIDDEN)] == [200, 200, 403, 403, 403]
    assert [code for code, _ in answers(served(), *paths, access=Access.UNKNOWN)] == [200, 200, 503, 503, 503]
    assert [code for code, _ in answers(served(), *paths, access=Access.ALLOWED)] == [200, 200, 200, 200, 404]
