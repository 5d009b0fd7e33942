"""Gangs that did not fit a moment ago: what is known of one holds for all that are alike, until anything changes."""

from collections.abc import Sequence
from typing import Any

from mooring.actions.gangs.members import Group
from mooring.engine.queue.queue import GangEntry
from mooring.state.cluster import Cluster


class KnownRefusals:
    """Why gangs did not fit, by what they have in common, as long as everything is as it was."""

    def __init__(self) -> None:
        self._moment: tuple[Any, ...] = ()
        self._messages: dict[Any, str] = {}

    def get(self, cluster: Cluster, alike: Any) -> str:
        """Why such a gang does not fit; empty if nothing is known."""
        if self._moment != _moment(cluster):
            self._moment, self._messages = _moment(cluster), {}
        return "" if alike is None else self._messages.get(alike, "")

    def note(self, cluster: Cluster, alike: Any, message: str) -> None:
        """Remember a refusal; all is as it was before the attempt, though the log of changes has moved on."""
        self._moment = _moment(cluster)
        if alike is not None:
            self._messages[alike] = message


def _moment(cluster: Cluster) -> tuple[Any, ...]:
    return id(cluster), cluster.pod_changes.position, cluster.description


def likeness(cluster: Cluster, gang: GangEntry, groups: Sequence[Group]) -> Any:
    """What two gangs have in common of which either both fit or neither does; None if nothing follows from one."""
    declared = gang.root.gang
    if declared is None or declared.of_gangs or declared.after:
        return None  # where others of it, or those that it starts after, run is where it has to be
    if any(part.bound() for part in cluster.gangs.parts_of(gang.root)):
        return None
    topology_requests = (
        declared.topology_request,
        tuple((role.name, role.topology_request) for role in declared.roles),
        declared.role_groups,
    )
    return topology_requests, tuple((group.role, group.profile.name, group.shape.id, group.size) for group in groups)
