"""Secrets are sent, and never shown: neither what an exec plugin writes nor a password in an address."""

import asyncio
import logging
import stat
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_asyncio.client import Configuration

from mooring.config.extenders import Extender
from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.connection import Connection, connect, without_userinfo
from mooring.drivers.live.pods.extenders import ExtenderClient
from mooring.errors import InputError
from mooring.testing.builders import make_pod

SECRET = "hunter2-token"


def kubeconfig(directory: Path, script: str, server: str = "https://127.0.0.1:1") -> Path:
    """One whose user has an exec plugin."""
    plugin = directory / "get-token"
    plugin.write_text(f"#!/bin/sh\n{script}\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    asked = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "args": ["--secret", SECRET]}
    found = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"exec": {**asked, "interactiveMode": "Never"}}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    }
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(found))
    return path


@pytest.mark.parametrize(
    ("script", "became"),
    [
        (f"echo the token {SECRET} is over >&2; exit 3", "ended with exit code 3"),
        (f"echo {SECRET}", "gave no credentials that can be used"),
        (
            f"""echo '{{"apiVersion": "{SECRET}", "kind": "k", "status": {{}}}}'""",
            "gave no credentials that can be used",
        ),
    ],
)
def test_what_an_exec_plugin_wrote_is_not_shown(
    tmp_path: Path, script: str, became: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = kubeconfig(tmp_path, script)
    with pytest.raises(InputError) as raised:
        asyncio.run(connect(path))
    command = tmp_path / "get-token"
    expected = f"{path}: expected a kubeconfig, found one that cannot be used: the exec plugin {command} {became}"
    assert str(raised.value) == expected
    assert raised.value.__cause__ is None
    assert SECRET not in caplog.text


def connection(host: str) -> Connection:
    configuration: Any = Configuration()
    configuration.host = host
    return Connection(configuration, None, "a test")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pass@host:6443", "https://host:6443"),
        ("https://user:p@ss/word@host:6443/prefix", "https://host:6443/prefix"),
        ("user:pass@host", "host"),
        ("https://host:6443/prefix", "https://host:6443/prefix"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_userinfo(url) == shown
    assert connection(url).server == shown


def test_a_password_in_the_address_of_a_server_is_sent_to_it_alone() -> None:
    found = connection("https://user:p%40ss@host:6443")
    assert found.headers == {"Authorization": f"Basic {b64encode(b'user:p@ss').decode()}"}
    assert connection("https://host:6443").headers == {}


def test_a_server_that_does_not_answer_is_named_without_the_password() -> None:
    async def ask() -> None:
        async with Client(connection(f"http://user:{SECRET}@127.0.0.1:1"), "test") as client:
            await client.get("/api")

    with pytest.raises(ApiError) as raised:
        asyncio.run(ask())
    assert str(raised.value).startswith("http://127.0.0.1:1: ")
    assert SECRET not in str(raised.value)


def test_an_extender_that_fails_is_named_without_its_password(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="mooring")
    url = f"http://user:{SECRET}@127.0.0.1:1"
    asked = Extender(url_prefix=url, filter_verb="filter", bind_verb="bind", ignorable=False)

    async def play() -> str:
        client = ExtenderClient([asked], list, lambda pod: True)
        answer = await client.bind(make_pod("p"), "n")
        await client.close()
        return answer.message if answer is not None else ""

    found = asyncio.run(play())
    assert found.startswith("extender http://127.0.0.1:1/bind: ")
    assert SECRET not in found + caplog.text


@pytest.mark.parametrize("proxy", [f"http://me:{SECRET}@127.0.0.1:{{port}}", f"me:{SECRET}@127.0.0.1:{{port}}"])
def test_the_password_of_a_proxy_is_not_shown(proxy: str) -> None:
    async def play() -> str:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        configuration: Any = Configuration(host="https://127.0.0.1:1")
        configuration.proxy = proxy.format(port=server.sockets[0].getsockname()[1])
        async with server, Client(Connection(configuration, None, "here"), "tests") as client:
            try:
                await client.get("/api")
            except ApiError as error:
                return error.message
        return ""

    message = asyncio.run(play())
    assert message and SECRET not in message
