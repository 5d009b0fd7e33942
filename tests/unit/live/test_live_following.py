"""All kinds followed: what a scheduler may begin without, and what it may not."""

import asyncio
from typing import Any

import pytest

from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.watching import following
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.watching.following import Informers
from mooring.drivers.live.watching.informer import Informer
from mooring.errors import MooringError
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PriorityClass
from mooring.model.objects.kinds import kind_of_type


def followed(*unlisted: type, problem: str = "") -> Informers:
    """Nodes, pods and priority classes, of which these could not be listed so far."""
    nobody: Any = None
    found = Informers(nobody, ObjectCache(), lambda: None)
    for type_ in (Node, Pod, PriorityClass):
        kind = kind_of_type(type_)
        assert kind is not None
        informer = Informer(nobody, Resource(kind, "v1", kind.name.lower() + "s", False), ObjectCache(), lambda: None)
        if type_ in unlisted:
            informer.problem = problem
        else:
            informer.synced.set()
        found.informers[kind.group, kind.name] = informer
    return found


def synced(found: Informers, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether it begins when its patience is over."""
    monkeypatch.setattr(following, "SYNC_SECONDS", 0.05)

    async def wait() -> bool:
        try:
            async with asyncio.timeout(0.5):
                await found.synced()
        except TimeoutError:
            return False
        return True

    return asyncio.run(wait())


def test_a_kind_that_cannot_be_listed_in_time_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    assert synced(followed(PriorityClass, problem="500 InternalError: no"), monkeypatch)


@pytest.mark.parametrize("needed", [Node, Pod])
def test_nobody_schedules_without_having_seen_nodes_and_pods(needed: type, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not synced(followed(needed, problem="500 InternalError: no"), monkeypatch)


def test_who_may_not_list_pods_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MooringError, match="pods cannot be listed: 403"):
        synced(followed(Pod, problem="403 Forbidden: no"), monkeypatch)
