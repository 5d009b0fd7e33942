"""Kubeconfigs that are read without kubernetes-asyncio say the same as with it; all others are left to it."""

import asyncio
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config.kube_config import KubeConfigLoader

from mooring.drivers.live.api.connection import connect
from mooring.drivers.live.api.plain_config import NotPlain, PlainConfig, read_account, read_plain
from mooring.drivers.live.certificate import _self_signed

SIGNED = _self_signed("api.test")
CERTIFICATE, KEY = SIGNED[: SIGNED.index(b"-----BEGIN PRIVATE")], SIGNED[SIGNED.index(b"-----BEGIN PRIVATE") :]


def document(cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "one", "user": "me", "namespace": "default"}},
            {"name": "there", "context": {"cluster": "other", "user": "me"}},
        ],
        "clusters": [
            {"name": "one", "cluster": cluster},
            {"name": "other", "cluster": {"server": "https://other:6443"}},
        ],
        "users": [{"name": "me", "user": user}],
    }


def by_library(found: dict[str, Any], folder: Path) -> Any:
    configuration: Any = Configuration()
    loader: Any = KubeConfigLoader(found, config_base_path=str(folder))
    asyncio.run(loader.load_and_set(configuration))
    return configuration


def text(data: bytes) -> str:
    return b64encode(data).decode()


def read(path: str | None) -> bytes:
    return Path(path).read_bytes() if path else b""


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        pytest.param({"server": "https://api.test:6443/"}, {"token": "abc"}, id="token"),
        pytest.param({"server": "http://api.test:8080"}, {"tokenFile": "token"}, id="token-in-a-file"),
        pytest.param(
            {"server": "https://api.test", "certificate-authority": "ca.crt", "tls-server-name": "inside"},
            {"client-certificate": "me.crt", "client-key": "me.key"},
            id="certificates-in-files",
        ),
        pytest.param(
            {"server": "https://api.test", "certificate-authority-data": text(CERTIFICATE)},
            {"client-certificate-data": text(CERTIFICATE), "client-key-data": text(KEY), "token": "abc"},
            id="certificates-as-data",
        ),
        pytest.param(
            {"server": "https://api.test", "insecure-skip-tls-verify": True}, {"token": "abc"}, id="not-verified"
        ),
    ],
)
def test_a_plain_kubeconfig_is_read_as_kubernetes_asyncio_reads_it(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    (tmp_path / "token").write_text("from-a-file")
    for name, content in (("ca.crt", CERTIFICATE), ("me.crt", CERTIFICATE), ("me.key", KEY)):
        (tmp_path / name).write_bytes(content)
    found = document(cluster, user)

    plain, known = read_plain(found, None, tmp_path), by_library(found, tmp_path)

    assert (plain.host, plain.api_key, plain.verify_ssl) == (known.host, known.api_key, known.verify_ssl)
    assert plain.tls_server_name == getattr(known, "tls_server_name", None)
    assert plain.ca == read(known.ssl_ca_cert)
    expected = [read(known.cert_file), read(known.key_file)] if known.cert_file else []
    assert plain.pair == b"\n".join(expected)
    assert not plain.ca or plain.tls().cert_store_stats()["x509"] == 1


def test_the_context_that_is_asked_for_is_the_one_that_is_read(tmp_path: Path) -> None:
    found = document({"server": "https://api.test"}, {"token": "abc"})
    assert read_plain(found, "there", tmp_path).host == "https://other:6443"
    with pytest.raises(NotPlain):
        read_plain(found, "nowhere", tmp_path)


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        pytest.param({"server": "https://a"}, {"exec": {"command": "get-token"}}, id="exec"),
        pytest.param({"server": "https://a"}, {"auth-provider": {"name": "gcp"}, "token": "x"}, id="auth-provider"),
        pytest.param({"server": "https://a"}, {"username": "me", "password": "secret"}, id="password"),
        pytest.param({"server": "https://a", "proxy-url": "http://proxy"}, {"token": "x"}, id="proxy"),
        pytest.param({"server": "https://a"}, {}, id="nobody"),
        pytest.param({"server": "https://a"}, {"token": ""}, id="empty-token"),
        pytest.param({"server": "https://a"}, {"token": 12}, id="no-text"),
        pytest.param({"server": "https://a"}, {"tokenFile": "missing"}, id="no-such-file"),
        pytest.param({"server": "https://a"}, {"client-certificate-data": text(CERTIFICATE)}, id="no-key"),
        pytest.param({"server": "https://a", "certificate-authority-data": "%"}, {"token": "x"}, id="no-base64"),
        pytest.param({}, {"token": "x"}, id="no-server"),
    ],
)
def test_whatever_else_a_kubeconfig_says_is_left_to_kubernetes_asyncio(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    with pytest.raises(NotPlain):
        read_plain(document(cluster, user), None, tmp_path)


def test_a_token_in_a_file_is_read_again_and_kept_while_the_file_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    found = read_plain(document({"server": "https://a"}, {"tokenFile": "token"}), None, tmp_path)
    assert found.api_key == {"BearerToken": "Bearer first"}
    seen = []
    for content in ("second\n", ""):
        file.write_text(content)
        found.refresh_api_key_hook(found)
        seen.append(found.api_key["BearerToken"])
    file.unlink()
    found.refresh_api_key_hook(found)
    assert [*seen, found.api_key["BearerToken"]] == ["Bearer second"] * 3


def test_a_pod_reads_what_its_node_gives_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-the-account")
    (tmp_path / "ca.crt").write_bytes(CERTIFICATE)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    found = read_account(environment, tmp_path)

    expected = {"BearerToken": "Bearer of-the-account"}
    assert found == PlainConfig("https://[fd00::1]:443", expected, CERTIFICATE, token_file=tmp_path / "token")
    assert "of-the-account" not in repr(found)
    (tmp_path / "token").write_text("")
    with pytest.raises(NotPlain):
        read_account(environment, tmp_path)


def test_comments_beside_certificates_are_passed_over(tmp_path: Path) -> None:
    found = PlainConfig("https://a", ca="# Główny urząd\n".encode() + CERTIFICATE)
    assert found.tls().cert_store_stats()["x509"] == 1


def test_a_password_in_a_kubeconfig_still_counts(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(document({"server": "https://a"}, {"username": "me", "password": "secret"})))
    assert asyncio.run(connect(path)).headers == {"Authorization": f"Basic {text(b'me:secret')}"}


def test_a_scheduler_starts_without_what_only_some_need(tmp_path: Path) -> None:
    """Of a start with 50,000 pods these took a tenth, and half of the memory of a small cluster."""
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(document({"server": "https://a"}, {"token": "abc"})))
    program = (
        "import asyncio, sys, mooring.cli.main, mooring.drivers.live.run as live\n"
        f"asyncio.run(live.connect(live.Path({str(path)!r})))\n"
        "print([name for name in ('kubernetes_asyncio', 'aiohttp', 'cryptography') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
