"""What a node has given to its pods: whom it refuses, and what becomes of a resize."""

from typing import Any, NamedTuple

import msgspec

from mooring.model.api.pods import Pod
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import Amounts, in_columns, pod_requests

Object = dict[str, Any]
_REFUSALS = {
    "cpu": "OutOfcpu",
    "memory": "OutOfmemory",
    "ephemeral-storage": "OutOfephemeral-storage",
    "pods": "OutOfpods",
}


class _Pod(msgspec.Struct):
    requests: Amounts
    ports: set[tuple[str, str, int]]
    resources: dict[str, Object]
    """What each container has been granted."""


class Answer(NamedTuple):
    """What a node says to a pod's changed resources."""

    granted: dict[str, Object] | None = None
    """What the containers hold, where that is not what the spec says."""
    pending: Object | None = None
    """The condition that says why they have not got more."""
    before: dict[str, Object] | None = None
    """What they held until now, where they have just got what the spec says."""
    restarts: tuple[str, ...] = ()
    """The containers whose policy wants them to be started anew for it."""


class Allotments:
    """What the pods of each node hold."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, _Pod]] = {}

    def forget(self, node: str, uid: str) -> None:
        self._nodes.get(node, {}).pop(uid, None)

    def admit(self, node: Object, pod: Object) -> tuple[str, str] | None:
        """Give a pod what it asks for; else the reason and the message with which a kubelet refuses it."""
        held = self._nodes.setdefault(node["metadata"]["name"], {})
        granted = _as_granted(pod)
        asked = _Pod(_requests(granted), set(_host_ports(pod)), _resources(granted))
        for other in held.values():
            if any(_collide(one, another) for one in asked.ports for another in other.ports):
                return "NodePorts", "Predicate NodePorts failed"
        if (lack := _lack(node, asked.requests, held)) is not None:
            name, wanted, used, capacity = lack
            message = (
                f"Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, capacity: {capacity}"
            )
            return _REFUSALS.get(name, f"OutOf{name}"), message
        held[pod["metadata"]["uid"]] = asked
        return None

    def resize(self, node: Object, pod: Object) -> Answer:
        """Grant a pod's changed resources if there is room."""
        held = self._nodes.setdefault(node["metadata"]["name"], {})
        mine = held.get(pod["metadata"]["uid"])
        wanted = _resources(pod)
        if mine is None or mine.resources == wanted:
            return Answer()
        requests = _requests(pod)
        others = {uid: other for uid, other in held.items() if uid != pod["metadata"]["uid"]}
        for reason, rivals in (("Infeasible", {}), ("Deferred", others)):
            # What does not grow always has room, also on a node that has become smaller.
            grown = {name: amount for name, amount in requests.items() if amount > mine.requests.get(name, 0)}
            if (lack := _lack(node, grown, rivals)) is not None:
                name, asked, used, capacity = lack
                what, spent = ("capacity", "") if reason == "Infeasible" else ("resource", f" used: {used},")
                message = f"Node didn't have enough {what}: {name}, requested: {asked},{spent} capacity: {capacity}"
                condition = {"type": "PodResizePending", "status": "True", "reason": reason, "message": message}
                return Answer(mine.resources, condition)
        before = mine.resources
        restarts = tuple(name for name in wanted if _needs_restart(pod, name, before.get(name, {}), wanted[name]))
        mine.resources, mine.requests = wanted, requests
        return Answer(before=before, restarts=restarts)


def _requests(pod: Object) -> Amounts:
    return pod_requests(msgspec.convert(pod, Pod))


def _as_granted(pod: Object) -> Object:
    """A pod with what its node gave it before, as its status has it: a resize that waits is none of that."""
    status = pod.get("status") or {}
    given = {
        one["name"]: one["resources"]
        for one in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
        if one.get("resources") and one.get("allocatedResources")
    }
    is_pending = any(one["type"] == "PodResizePending" for one in status.get("conditions") or ())
    if not is_pending or not given:
        return pod
    spec = dict(pod["spec"])
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [
                {**one, "resources": given[one["name"]]} if one["name"] in given else one for one in spec[field] or ()
            ]
    return {**pod, "spec": spec}


def _resources(pod: Object) -> dict[str, Object]:
    return {
        one["name"]: one.get("resources") or {}
        for one in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ()))
    }


def _lack(node: Object, requests: Amounts, held: dict[str, _Pod]) -> tuple[str, int, int, int] | None:
    allocatable = {name: parse_quantity(text) for name, text in (node["status"].get("allocatable") or {}).items()}
    if "pods" in allocatable and (len(held) + 1) * 10**9 > allocatable["pods"]:
        return "pods", 1, len(held), allocatable["pods"] // 10**9
    for name, amount in requests.items():
        # What no device plugin has registered here is not the kubelet's to count: MIG instances that are cut on
        # demand, parts of shared cards, devices that claims stand behind.
        if amount == 0 or not in_columns(name) or ("/" in name and name not in allocatable):
            continue
        used = sum(other.requests.get(name, 0) for other in held.values())
        capacity = allocatable.get(name, 0)
        if used + amount > capacity:
            unit = 10**6 if name == "cpu" else 10**9
            return name, amount // unit, used // unit, capacity // unit
    return None


def _host_ports(pod: Object) -> list[tuple[str, str, int]]:
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def _collide(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or "0.0.0.0" in (one[0], other[0]))


def _needs_restart(pod: Object, name: str, before: Object, after: Object) -> bool:
    """Whether a container's policy wants it to be started anew for what changed."""
    container = next(
        one for one in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())) if one["name"] == name
    )
    policies = {one["resourceName"]: one.get("restartPolicy") for one in container.get("resizePolicy") or ()}
    for resource, policy in policies.items():
        if policy == "RestartContainer" and any(
            (before.get(which) or {}).get(resource) != (after.get(which) or {}).get(resource)
            for which in ("requests", "limits")
        ):
            return True
    return False
