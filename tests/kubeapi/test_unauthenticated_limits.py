"""What comes before a user is known has limits: the head of a request, its time, tokens; and so have watches that
nobody reads, and the labels of metrics."""

import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Client, Running, rule, start_server, tls_context

from mooring.kubeapi.http import exchange, watching
from mooring.kubeapi.http import server as http_server
from mooring.kubeapi.store import watch as store_watch


def connect(server: Running) -> ssl.SSLSocket:
    context = tls_context(server.cluster.kubeconfig(), with_certificate=False)
    return context.wrap_socket(
        socket.create_connection(("127.0.0.1", server.cluster.port), timeout=20), server_hostname="127.0.0.1"
    )


def read_all(connection: ssl.SSLSocket) -> bytes:
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except (ConnectionError, ssl.SSLError):
        pass
    return found


@pytest.mark.parametrize("begin", [b"GET /api HTTP/1.1\r\nHost: x\r\nX-A: ", b"GET /api?"])
def test_an_endless_head_is_cut_off(server: Running, begin: bytes) -> None:
    with connect(server) as connection:
        sent = 0
        with pytest.raises((OSError, ssl.SSLError)):  # noqa: PT012
            connection.sendall(begin)
            for _ in range(20):
                connection.sendall(b"a" * 1_000_000)
                sent += 1
                time.sleep(0.02)
        assert sent < 20


def test_half_a_request_is_not_waited_for_for_ever(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(exchange, "BODY_SECONDS", 0.3)
    with connect(server) as silent, connect(server) as half:
        half.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n")
        assert (read_all(silent), read_all(half)) == (b"", b"")
    admin = server.client()
    admin.connection.putrequest("POST", "/api/v1/namespaces/default/configmaps")
    admin.connection.putheader("Content-Length", "100")
    admin.connection.endheaders(b"{")
    assert admin.connection.getresponse().status == 408
    monkeypatch.undo()
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.3)
    rested = server.client()
    for _ in range(2):  # a connection may rest between requests
        assert rested.get("/version")[0] == 200
        time.sleep(0.5)


def test_tokens_that_are_nobodys_are_not_kept(server: Running) -> None:
    tokens = server.cluster.tokens
    for number in range(100):
        client = server.client(token=f"{number:07d}.{'x' * 9_000}.x")
        assert client.get("/api")[0] == 401
    client = server.client(token="x" * 500_000)
    assert client.get("/api")[0] == 401
    assert all(user is not None for _, user in tokens._remembered.values())
    assert sum(map(len, tokens._remembered)) < 1_000_000


def test_a_token_with_a_deep_header_is_nobodys(server: Running) -> None:
    import base64

    deep = base64.urlsafe_b64encode(b'{"a":' * 2000 + b"1" + b"}" * 2000).decode()
    assert server.client(token=f"{deep}.{deep}.x").get("/api")[0] == 401


def test_a_path_makes_no_series_and_no_line_of_its_own(server: Running) -> None:
    client, admin = server.account("meter", "nobody", [rule("configmaps", "get")]), server.client()
    before = admin.get("/metrics")[1].count("\n")
    for number in range(50):
        client.get(f"/api/v1/namespaces/meter/pods/x/sub{number}")
    client.get("/api/v1/namespaces/meter/pods/x/a%22%7D%201%0Aevil_metric%7Bx%3D%22y")

    text = admin.get("/metrics")[1]
    assert "evil" not in text
    assert text.count("\n") < before + 15


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Unread:
    """A watch whose client does not read."""

    def __init__(self, client: Client, port: int, query: str = "") -> None:
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.connect(("127.0.0.1", port))
        self.connection = client.context.wrap_socket(plain, server_hostname="127.0.0.1")
        self.connection.sendall(f"GET {CONFIG_MAPS}?watch=1{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


def write(client: Client, name: str, times: int) -> None:
    for number in range(times):
        body = {"metadata": {"name": name}, "data": {"number": str(number), "x": "a" * 100_000}}
        path = CONFIG_MAPS if number == 0 else f"{CONFIG_MAPS}/{name}"
        assert client.ask("PUT" if number else "POST", path, body)[0] in (200, 201)


def test_an_unread_watch_ends_after_so_many_bytes(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_watch, "MOST_WAITING_BYTES", 2_000_000)
    monkeypatch.setattr(watching, "SLOWEST_SECONDS", 1.0)
    client = server.client()
    unread = Unread(client, server.cluster.port)
    time.sleep(0.3)
    watches = server.cluster.store.table("configmaps").watches

    write(client, "flood", 100)

    until = time.monotonic() + 20
    while any(watches.values()):
        assert time.monotonic() < until
        time.sleep(0.05)
    unread.connection.close()


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[bytes]", Client, int]]:
    process, kubeconfig = start_server(tmp_path, in_memory=True)
    client = Client.__new__(Client)
    client.context = tls_context(kubeconfig)
    port = int(kubeconfig["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    client._port, client._token = port, ""
    client.connection = client.connect()
    yield process, client, port
    client.close()
    process.terminate()
    process.wait()


def memory_of(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@pytest.mark.skipif(not os.path.exists("/proc"), reason="reads /proc")
def test_unread_watches_from_an_old_revision_cost_little_memory(
    apart: tuple["subprocess.Popen[bytes]", Client, int],
) -> None:
    process, client, port = apart
    write(client, "one", 200)
    first = int(client.get(CONFIG_MAPS)[1]["metadata"]["resourceVersion"]) - 190
    before = memory_of(process.pid)

    unread = [Unread(client, port, f"&resourceVersion={first}") for _ in range(20)]
    time.sleep(2)

    assert memory_of(process.pid) - before < 20 * 3  # MiB; it was 75 for each
    for each in unread:
        each.connection.close()
