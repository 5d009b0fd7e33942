"""Kubeconfigs that only name a server, certificates and a token, and what a pod is given by its node: read directly.

Whatever says more (exec plugins, auth providers, passwords, proxies), or less than is needed, is left to
kubernetes-asyncio, which takes as long to import as a cluster of 10,000 pods to read, and has the words for mistakes.
"""

import base64
import binascii
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token and the certificate of the API server."""
_CLUSTER_FIELDS = frozenset(
    (
        "server",
        "certificate-authority",
        "certificate-authority-data",
        "insecure-skip-tls-verify",
        "tls-server-name",
        "disable-compression",
        "extensions",
    )
)
_USER_FIELDS = frozenset(
    (
        "token",
        "tokenFile",
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
        "extensions",
    )
)


class NotPlain(Exception):
    """This says something that is not read here, or not in the form that is."""


@dataclass
class PlainConfig:
    """A server and our credentials there, by the names that kubernetes-asyncio's configuration has for them."""

    host: str
    api_key: dict[str, str] = field(default_factory=dict, repr=False)
    ca: bytes = b""
    """Who signed the server's certificate, PEM; if empty, one of those whom the system trusts."""
    pair: bytes = field(default=b"", repr=False)
    """Our own certificate and its key, PEM."""
    verify_ssl: bool = True
    tls_server_name: str | None = None
    token_file: Path | None = None
    proxy: None = None

    def refresh_api_key_hook(self, configuration: Any) -> None:
        """Read the token again; what cannot be read, or is empty, leaves the one that we have."""
        try:
            token = _token_in(self.token_file) if self.token_file is not None else ""
        except (OSError, UnicodeDecodeError):
            return
        if token:
            self.api_key["BearerToken"] = f"Bearer {token}"

    def tls(self) -> ssl.SSLContext:
        """How the server is verified, and our certificate; raise OSError for what cannot be used."""
        # Comments between certificates may be in any script, which files may hold and strings may not.
        context = ssl.create_default_context(cadata=self.ca.decode("ascii", "ignore") if self.ca else None)
        if self.pair:
            with tempfile.NamedTemporaryFile() as file:  # ssl reads files alone; nobody else may read this one
                file.write(self.pair)
                file.flush()
                context.load_cert_chain(file.name)
        return context


def read_plain(document: Any, context: str | None, folder: Path) -> PlainConfig:
    """A kubeconfig, whose paths are relative to a folder; raise NotPlain if it is not as plain as that."""
    try:
        named = _named(document["contexts"], context or document["current-context"])["context"]
        cluster = _named(document["clusters"], named["cluster"])["cluster"]
        user = _named(document["users"], named["user"])["user"]
        if cluster.keys() - _CLUSTER_FIELDS or user.keys() - _USER_FIELDS:
            raise NotPlain
        token_file = _path(user, "tokenFile", folder) if "token" not in user else None
        token = user.get("token", "") if token_file is None else _token_in(token_file)
        pair = [_content(user, name, folder) for name in ("client-certificate", "client-key")]
        if not isinstance(cluster["server"], str) or not isinstance(token, str) or bool(pair[0]) != bool(pair[1]):
            raise NotPlain
        if not token and not pair[0]:
            raise NotPlain
        return PlainConfig(
            cluster["server"].rstrip("/"),
            {"BearerToken": f"Bearer {token}"} if token else {},
            _content(cluster, "certificate-authority", folder),
            b"\n".join(pair) if pair[0] else b"",
            not cluster.get("insecure-skip-tls-verify"),
            cluster.get("tls-server-name"),
            token_file,
        )
    except (KeyError, TypeError, AttributeError, ValueError, OSError, binascii.Error) as error:
        raise NotPlain from error


def read_account(environment: Mapping[str, str], folder: Path = ACCOUNT) -> PlainConfig:
    """What a pod is given by its node; raise NotPlain if something of it is missing."""
    try:
        host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
        file = folder / "token"
        token, ca = _token_in(file), (folder / "ca.crt").read_bytes()
    except (KeyError, OSError, UnicodeDecodeError) as error:
        raise NotPlain from error
    if not host or not port or not token or not ca:
        raise NotPlain
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return PlainConfig(f"https://{address}", {"BearerToken": f"Bearer {token}"}, ca, token_file=file)


def _named(listed: list[dict[str, Any]], name: str) -> dict[str, Any]:
    found = [each for each in listed if each["name"] == name]
    if len(found) != 1:
        raise NotPlain
    return found[0]


def _path(fields: Mapping[str, Any], name: str, folder: Path) -> Path | None:
    return folder / fields[name] if name in fields else None


def _content(fields: Mapping[str, Any], name: str, folder: Path) -> bytes:
    """What a field ending in -data holds, or the file that is named; empty for neither."""
    if f"{name}-data" in fields:
        return base64.b64decode(fields[f"{name}-data"], validate=True)
    path = _path(fields, name, folder)
    return path.read_bytes() if path is not None else b""


def _token_in(file: Path) -> str:
    """A line break at the end is the file's, and not the token's."""
    return file.read_text().strip()
