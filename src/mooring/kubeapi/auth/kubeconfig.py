"""The file by which kubectl and client libraries find the cluster and say who they are."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from mooring.kubeapi.auth.certificates import Pair
from mooring.kubeapi.status import Object

NAME = "mooring"


def make_kubeconfig(
    server: str, authority: bytes, client: Pair, token: str, others: Mapping[str, Pair] | None = None
) -> Object:
    """Two ways in as the administrator: a client certificate (the current context), and a bearer token. Each other user
    has a context of its name."""
    config: Object = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": server, "certificate-authority-data": _packed(authority)}}],
        "users": [
            _user(NAME, client),
            {"name": f"{NAME}-token", "user": {"token": token}},
        ],
        "contexts": [
            {"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}},
            {"name": f"{NAME}-token", "context": {"cluster": NAME, "user": f"{NAME}-token", "namespace": "default"}},
        ],
        "current-context": NAME,
    }
    for name, pair in (others or {}).items():
        config["users"].append(_user(name, pair))
        config["contexts"].append({"name": name, "context": {"cluster": NAME, "user": name, "namespace": "default"}})
    return config


def _user(name: str, pair: Pair) -> Object:
    keys = {"client-certificate-data": _packed(pair.certificate), "client-key-data": _packed(pair.key)}
    return {"name": name, "user": keys}


def write_kubeconfig(path: Path, config: Object) -> None:
    """Write it for its owner's eyes only, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        yaml.safe_dump(config, file, sort_keys=False)
    beside.replace(path)


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode()
