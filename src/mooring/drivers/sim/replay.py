"""A decision log as the start of a simulation: pods are where it says that they were bound last."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mooring.drivers.sim.submissions import Document, Given
from mooring.errors import ConfigError

BINDS, LEAVES = ("Bind", "Bound"), ("Evict", "Conflict", "Gone", "Refused")


def bound_by_log(documents: Iterable[Given], content: bytes, path: Path) -> tuple[Given, ...]:
    """The same documents, pods with the nodes that a log of decisions gives them."""
    nodes = last_nodes(content, path)
    return tuple((_bound(document, nodes), place) for document, place in documents)


def last_nodes(content: bytes, path: Path) -> dict[str, tuple[str, float]]:
    """By pod, the node that it was bound to last and when; those that were evicted after that are left out."""
    nodes: dict[str, tuple[str, float]] = {}
    lines = content.splitlines()
    last = float("-inf")
    for number, line in enumerate(lines, 1):
        where = f"{path}: line {number}"
        try:
            found = json.loads(line)
            kind, pod, time = found["kind"], found.get("pod", ""), float(found["time"])
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):  # it is being written
                break
            raise ConfigError(where, "", expected="a line of a decision log", found="something else") from error
        if time < last:
            raise ConfigError(where, "time", expected=f"not before {last:.6f}", found=f"{time:.6f}")
        last = time
        if kind in BINDS:
            nodes[pod] = (found.get("node", ""), time)
        elif kind in LEAVES:
            nodes.pop(pod, None)
    return nodes


def _bound(document: Document, nodes: dict[str, tuple[str, float]]) -> Document:
    if document.get("kind") != "Pod":
        return document
    metadata: dict[str, Any] = document["metadata"]
    key = f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"
    if key not in nodes:
        return document
    return {**document, "spec": {**document["spec"], "nodeName": nodes[key][0]}}
