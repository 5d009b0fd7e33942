"""How a simulated node comes to be: a manifest, completed as a kubelet completes the Node that it registers."""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from mooring.kubeapi.api import Api
from mooring.kubeapi.nodes.addresses import node_address
from mooring.kubeapi.status import bad_request
from mooring.model.api.meta import timestamp_text

Object = dict[str, Any]
SIMULATED = "mooring.dev/simulated"
"""An annotation: this Node is one of ours. "false" on one that is registered at the start leaves it alone."""
ALSO_SIMULATED = "kwok.x-k8s.io/node"
FAILED = "mooring.dev/failed"
"""An annotation: the node does not answer ("true"), or has lost power as well ("crash"), until it is taken away."""
VERSION = "v1.37.1"

_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def is_simulated(node: Object) -> bool:
    annotations = node["metadata"].get("annotations") or {}
    return annotations.get(SIMULATED) == "true" or annotations.get(ALSO_SIMULATED) == "fake"


def failure_of(node: Object) -> str:
    """How the node is down, or nothing."""
    found = (node["metadata"].get("annotations") or {}).get(FAILED, "")
    return "" if found == "false" else found


def register(api: Api, nodes: Iterable[Object]) -> None:
    """Create the nodes that are not there yet; those that are keep what they have."""
    addresses = free_addresses(api)
    for node in nodes:
        register_node(api, node, addresses)


def free_addresses(api: Api) -> Iterator[str]:
    """Addresses that no node has, one after the other."""
    taken = {address["address"] for node in api.list("nodes") for address in node["status"].get("addresses") or ()}
    return (address for address in map(node_address, count(1)) if address not in taken)


def register_node(api: Api, node: Object, addresses: Iterator[str]) -> None:
    name = (node.get("metadata") or {}).get("name") or ""
    if not name:
        raise bad_request("name or generateName is required")
    if api.find("nodes", None, name) is not None:
        return
    made = completed(node, next(addresses), api.now())
    created = api.create("nodes", made)
    created["status"] = made["status"]
    api.update("nodes", created, subresource="status")


def completed(node: Object, address: str, now: float) -> Object:
    """A Node manifest with all that a kubelet says of itself."""
    metadata, status = dict(node.get("metadata") or {}), dict(node.get("status") or {})
    name = metadata["name"]
    metadata["labels"] = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
        **(metadata.get("labels") or {}),
    }
    metadata["annotations"] = {SIMULATED: "true", **(metadata.get("annotations") or {})}
    usual = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "200Gi", "pods": "110"}
    given, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    status["capacity"] = {**usual, **allocatable, **given}
    status["allocatable"] = {**status["capacity"], **allocatable}
    status["addresses"] = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]
    status["conditions"] = node_conditions(status, now)
    status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10250}}
    status["nodeInfo"] = {
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kernelVersion": "simulated",
        "osImage": "simulated",
        "containerRuntimeVersion": "containerd://2.0.0",
        "kubeletVersion": VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    } | {key: value for key, value in (status.get("nodeInfo") or {}).items() if value}
    return {
        **node,
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": status,
        "spec": dict(node.get("spec") or {}),
    }


def node_conditions(status: Object, now: float) -> list[Object]:
    """The conditions of a node that is well; those that somebody else writes stay."""
    moment = timestamp_text(now)
    before = {one.get("type"): one for one in status.get("conditions") or ()}
    found = []
    for type_, value, reason, message in _CONDITIONS:
        old = before.pop(type_, None)
        same = old is not None and old.get("status") == value
        since = old.get("lastTransitionTime") if same and old else None
        found.append(
            {
                "type": type_,
                "status": value,
                "lastHeartbeatTime": moment,
                "lastTransitionTime": since or moment,
                "reason": reason,
                "message": message,
            }
        )
    return [*before.values(), *found]
