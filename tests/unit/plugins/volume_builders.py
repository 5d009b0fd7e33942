"""Storage objects for tests of the volume plugins, with honest defaults."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mooring.engine.asking import ask_filter
from mooring.engine.plugin import PreFilter
from mooring.engine.verdict import Rejection
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.volumes import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from mooring.model.events import NodeSeen, ObjectSeen, PodSeen, Related
from mooring.state.cluster import Cluster

DRIVER = "csi.example.com"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def make_node(name: str, **labels: str) -> Node:
    """A node; `zone` stands for the topology label."""
    all_labels = {HOSTNAME: name} | {ZONE if key == "zone" else key: value for key, value in labels.items()}
    return msgspec.convert({"metadata": {"name": name, "labels": all_labels}}, Node)


def make_pod(
    name: str = "pod",
    *,
    claims: Sequence[str] = (),
    ephemeral: Sequence[str] = (),
    volumes: Sequence[Mapping[str, Any]] = (),
    node: str = "",
    uid: str = "",
    namespace: str = "default",
) -> Pod:
    all_volumes: list[Mapping[str, Any]] = list(volumes)
    all_volumes += [{"name": f"v-{claim}", "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    all_volumes += [{"name": volume, "ephemeral": {}} for volume in ephemeral]
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}"}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": node, "volumes": all_volumes}}, Pod)


def make_claim(
    name: str,
    *,
    size: str = "5Gi",
    storage_class: str | None = "wait",
    volume: str = "",
    modes: Sequence[str] = ("ReadWriteOnce",),
    annotations: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    phase: str = "",
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim; bound if it names a volume."""
    notes = ({"pv.kubernetes.io/bind-completed": "yes"} if volume else {}) | dict(annotations or {})
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": notes}
            | dict(metadata or {}),
            "spec": {
                "accessModes": list(modes),
                "resources": {"requests": {"storage": size}},
                "storageClassName": storage_class,
                "volumeName": volume,
            }
            | spec,
            "status": {"phase": phase or ("Bound" if volume else "Pending")},
        },
        PersistentVolumeClaim,
    )


def make_volume(
    name: str,
    *,
    size: str = "10Gi",
    storage_class: str = "local",
    nodes: Sequence[str] | None = None,
    for_claim: str = "",
    labels: Mapping[str, str] | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    metadata: Mapping[str, Any] | None = None,
    phase: str = "",
    **spec: Any,
) -> PersistentVolume:
    """A volume, reachable from everywhere unless nodes are named."""
    body: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": list(modes),
        "storageClassName": storage_class,
        "csi": {"driver": DRIVER, "volumeHandle": f"handle-{name}"},
    }
    if nodes is not None:
        term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": list(nodes)}]}
        body["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    if for_claim:
        body["claimRef"] = {"namespace": "default", "name": for_claim}
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": dict(labels or {})} | dict(metadata or {}),
            "spec": body | spec,
            "status": {"phase": phase or ("Bound" if for_claim else "Available")},
        },
        PersistentVolume,
    )


def make_class(
    name: str, *, provisioner: str = DRIVER, mode: str = "WaitForFirstConsumer", zones: Sequence[str] = ()
) -> StorageClass:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else None
    return msgspec.convert(
        {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
            "allowedTopologies": topologies,
        },
        StorageClass,
    )


WAIT = make_class("wait")
LOCAL = make_class("local", provisioner="kubernetes.io/no-provisioner")
NOW = make_class("now", mode="Immediate")


def make_csi_node(name: str, *, limit: int | None = None, driver: str = DRIVER) -> CsiNode:
    allocatable = None if limit is None else {"count": limit}
    return msgspec.convert(
        {"metadata": {"name": name}, "spec": {"drivers": [{"name": driver, "allocatable": allocatable}]}}, CsiNode
    )


def make_driver(name: str = DRIVER, **spec: bool) -> CsiDriver:
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, CsiDriver)


def make_capacity(
    name: str, *, capacity: str, zone: str, storage_class: str = "wait", maximum: str | None = None
) -> CsiStorageCapacity:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "kube-system"},
            "storageClassName": storage_class,
            "nodeTopology": {"matchLabels": {ZONE: zone}},
            "capacity": capacity,
            "maximumVolumeSize": maximum,
        },
        CsiStorageCapacity,
    )


def make_attachment(name: str, *, node: str, volume: str, driver: str = DRIVER) -> VolumeAttachment:
    source = {"persistentVolumeName": volume}
    return msgspec.convert(
        {"metadata": {"name": name}, "spec": {"attacher": driver, "nodeName": node, "source": source}},
        VolumeAttachment,
    )


def make_cluster(*objects: Node | Pod | Related) -> Cluster:
    cluster = Cluster()
    for found in objects:
        if isinstance(found, Node):
            cluster.observe(NodeSeen(found))
        elif isinstance(found, Pod):
            cluster.observe(PodSeen(found))
        else:
            cluster.observe(ObjectSeen(found))
    return cluster


def refusal(plugin: PreFilter, cluster: Cluster, pod: Pod) -> Rejection | None:
    """The refusal before any node is looked at, if there is one."""
    prepared = plugin.pre_filter(cluster.shape_for(pod), cluster.view)
    return prepared if isinstance(prepared, Rejection) else None


def refusals(plugin: PreFilter, cluster: Cluster, pod: Pod) -> dict[str, Rejection]:
    """By the name of each node that refuses the pod: how."""
    shape = cluster.shape_for(pod)
    prepared = plugin.pre_filter(shape, cluster.view)
    assert not isinstance(prepared, Rejection), prepared
    nodes = cluster.rows()
    codes = ask_filter(plugin, shape, nodes, prepared)
    return {name: plugin.rejection(shape, code) for name, code in zip(nodes.names, codes.tolist(), strict=True) if code}


def remedies(plugin: PreFilter, cluster: Cluster, pod: Pod) -> dict[str, list[str]]:
    """By single change: the names of the nodes that it opens."""
    shape = cluster.shape_for(pod)
    nodes = cluster.rows()
    found = plugin.remedies(shape, nodes, plugin.pre_filter(shape, cluster.view))
    return {change: [nodes.names[position] for position in positions.tolist()] for change, positions in found}
