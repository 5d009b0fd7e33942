"""The kinds that scheduling reads, and how a document becomes one of them."""

import re
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from mooring.errors import ManifestError
from mooring.model.api.autoscaling import GROUP as AUTOSCALING_GROUP
from mooring.model.api.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from mooring.model.api.claims import ResourceClaim, ResourceClaimTemplate
from mooring.model.api.colocation_profile import PROFILE_GROUP, ClusterColocationProfile
from mooring.model.api.devices import RESOURCE_GROUP, DeviceClass, DeviceTaintRule, ResourceSlice
from mooring.model.api.karpenter import NodeClaim, NodePool, Provisioner
from mooring.model.api.kueue import QUEUEING_KINDS, Topology
from mooring.model.api.meta import KubeObject, Namespace
from mooring.model.api.node_resource_topology import GROUP as NODE_TOPOLOGY_GROUP
from mooring.model.api.node_resource_topology import NodeResourceTopology
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PriorityClass, Service
from mooring.model.api.volumes import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from mooring.model.api.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from mooring.model.devices.compute_domains import GROUP as COMPUTE_DOMAIN_GROUP
from mooring.model.devices.compute_domains import ComputeDomain
from mooring.model.devices.dialects.koordinator import Device as KoordinatorDevice
from mooring.model.gangs.kinds import GANG_KINDS
from mooring.model.jobs.app_wrapper import AppWrapper
from mooring.model.jobs.jobset import JobSet
from mooring.model.jobs.kubeflow import JaxJob, PaddleJob, PyTorchJob, TfJob, XgBoostJob
from mooring.model.jobs.mpi import MpiJob
from mooring.model.jobs.ray import RayCluster, RayJob, RayService
from mooring.model.jobs.spark import SparkApplication
from mooring.model.jobs.train_job import ClusterTrainingRuntime, TrainingRuntime, TrainJob
from mooring.model.places import CLUSTER_SCOPED, Place, show
from mooring.model.quotas.objects import CoreResourceQuota, LimitRange
from mooring.model.yaml_text import MOST_NESTED


class Kind(NamedTuple):
    """A kind that scheduling reads: its API group, its type, and the list in `Manifests` that holds it.

    Kinds without a list of their own are found by type: `Manifests.of(ClusterQueue)`.
    """

    group: str
    name: str
    type: type[KubeObject]
    list_name: str = ""

    @property
    def is_namespaced(self) -> bool:
        return self.name not in CLUSTER_SCOPED


KINDS = (
    Kind("", "Node", Node, "nodes"),
    Kind("", "Pod", Pod, "pods"),
    Kind("", "Namespace", Namespace, "namespaces"),
    Kind("", "Service", Service, "services"),
    Kind("", "PersistentVolume", PersistentVolume, "persistent_volumes"),
    Kind("", "PersistentVolumeClaim", PersistentVolumeClaim, "persistent_volume_claims"),
    Kind("", "ReplicationController", ReplicationController, "replication_controllers"),
    Kind("", "ResourceQuota", CoreResourceQuota),
    Kind("", "LimitRange", LimitRange),
    Kind("apps", "Deployment", Deployment, "deployments"),
    Kind("apps", "ReplicaSet", ReplicaSet, "replica_sets"),
    Kind("apps", "StatefulSet", StatefulSet, "stateful_sets"),
    Kind("apps", "DaemonSet", DaemonSet, "daemon_sets"),
    Kind("batch", "Job", Job, "jobs"),
    Kind("batch", "CronJob", CronJob, "cron_jobs"),
    Kind("policy", "PodDisruptionBudget", PodDisruptionBudget, "pod_disruption_budgets"),
    Kind("scheduling.k8s.io", "PriorityClass", PriorityClass, "priority_classes"),
    Kind("storage.k8s.io", "StorageClass", StorageClass, "storage_classes"),
    Kind("storage.k8s.io", "CSINode", CsiNode, "csi_nodes"),
    Kind("storage.k8s.io", "CSIDriver", CsiDriver, "csi_drivers"),
    Kind("storage.k8s.io", "CSIStorageCapacity", CsiStorageCapacity, "csi_storage_capacities"),
    Kind("storage.k8s.io", "VolumeAttachment", VolumeAttachment, "volume_attachments"),
    Kind(RESOURCE_GROUP, "ResourceSlice", ResourceSlice),
    Kind(RESOURCE_GROUP, "DeviceClass", DeviceClass),
    Kind("scheduling.koordinator.sh", "Device", KoordinatorDevice),
    Kind(PROFILE_GROUP, "ClusterColocationProfile", ClusterColocationProfile),
    Kind(RESOURCE_GROUP, "ResourceClaim", ResourceClaim),
    Kind(RESOURCE_GROUP, "ResourceClaimTemplate", ResourceClaimTemplate),
    Kind(RESOURCE_GROUP, "DeviceTaintRule", DeviceTaintRule),
    Kind(NODE_TOPOLOGY_GROUP, "NodeResourceTopology", NodeResourceTopology),
    Kind(COMPUTE_DOMAIN_GROUP, "ComputeDomain", ComputeDomain),
    Kind(AUTOSCALING_GROUP, "VerticalPodAutoscaler", VerticalPodAutoscaler),
    Kind("autoscaling", "HorizontalPodAutoscaler", HorizontalPodAutoscaler),
    *(Kind("kueue.x-k8s.io", type_.__name__, type_) for type_ in QUEUEING_KINDS),
    Kind("jobset.x-k8s.io", "JobSet", JobSet),
    Kind("kubeflow.org", "PyTorchJob", PyTorchJob),
    Kind("kubeflow.org", "TFJob", TfJob),
    Kind("kubeflow.org", "MPIJob", MpiJob),
    Kind("kubeflow.org", "XGBoostJob", XgBoostJob),
    Kind("kubeflow.org", "PaddleJob", PaddleJob),
    Kind("kubeflow.org", "JAXJob", JaxJob),
    Kind("trainer.kubeflow.org", "TrainJob", TrainJob),
    Kind("trainer.kubeflow.org", "TrainingRuntime", TrainingRuntime),
    Kind("trainer.kubeflow.org", "ClusterTrainingRuntime", ClusterTrainingRuntime),
    Kind("ray.io", "RayCluster", RayCluster),
    Kind("ray.io", "RayJob", RayJob),
    Kind("ray.io", "RayService", RayService),
    Kind("sparkoperator.k8s.io", "SparkApplication", SparkApplication),
    Kind("workload.codeflare.dev", "AppWrapper", AppWrapper),
    *(Kind(group, name, type_) for group, name, type_ in GANG_KINDS),
    Kind("kai.scheduler", "Topology", Topology),
    Kind("karpenter.sh", "NodePool", NodePool),
    Kind("karpenter.sh", "NodeClaim", NodeClaim),
    Kind("karpenter.sh", "Provisioner", Provisioner),
)
_BY_GROUP_AND_NAME = {(kind.group, kind.name): kind for kind in KINDS}
_BY_NAME = {kind.name: kind for kind in reversed(KINDS)}  # of two with one name the first listed is meant
_BY_TYPE = {kind.type: kind for kind in KINDS}


@lru_cache(maxsize=1024)
def find_kind(api_version: str, name: str) -> Kind | None:
    """Find the kind by group and name; the group decides, because others also call theirs Job or Service.

    A document without apiVersion is taken at its kind's word: in-memory objects and items of lists often lack it.
    """
    if not api_version:
        return _BY_NAME.get(name)
    return _BY_GROUP_AND_NAME.get((api_version.rpartition("/")[0], name))


def kind_of_type(type_: type) -> Kind | None:
    return _BY_TYPE.get(type_)


def ignored_name(api_version: str, name: str) -> str:
    """Name a kind that scheduling does not read, as kubectl does: Kind.group, or the kind alone of the core."""
    group = api_version.rpartition("/")[0]
    return f"{name}.{group}" if group else name


@lru_cache(maxsize=64)
def json_decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_)


Source = msgspec.Raw | bytes | dict[str, Any]
"""A document before it has a type: JSON text, or what a YAML parser made of one."""


def decode(source: Source, type_: type[Any], place: Place, label: str = "") -> Any:
    """Give a document its type; raise ManifestError, in the API's words, where it does not fit."""
    try:
        return _decode(source, type_)
    except msgspec.ValidationError:
        pass
    except msgspec.DecodeError as error:
        if not label:  # not even a head: whoever reads the file can say where the JSON breaks
            raise
        raise place.error("", expected="JSON", found=str(error), subject=label) from error
    except RecursionError as error:
        raise _too_deep(place, label) from error
    # null means absent in the API. Stripping nulls costs a walk through the document, so it waits until it may help.
    document = _without_nulls(as_mapping(source, place, label))
    try:
        return msgspec.convert(document, type_)
    except msgspec.ValidationError as error:
        raise _translate(str(error), document, place, _subject(document, label)) from error


def as_mapping(source: Source, place: Place, label: str = "") -> Any:
    """A document without a type: what JSON text stands for."""
    if isinstance(source, dict):
        return source
    try:
        return msgspec.json.decode(source)
    except msgspec.ValidationError as error:  # a number that no field can hold
        found = str(error).lower()
        raise place.error("", expected="numbers of at most 64 bits", found=found, subject=label) from error
    except RecursionError as error:
        raise _too_deep(place, label) from error


def _too_deep(place: Place, label: str) -> ManifestError:
    found = "more than a thousand"
    return place.error("", expected=f"at most {MOST_NESTED} levels of lists and objects", found=found, subject=label)


def _decode(source: Source, type_: Any) -> Any:
    if isinstance(source, dict):
        return msgspec.convert(source, type_)
    return json_decoder(type_).decode(source)


def _subject(document: Any, kind: str) -> str:
    """Name an object that could not be given its type, as far as its metadata allows."""
    metadata = document.get("metadata") if kind else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str):
        return kind
    return f"{kind} {name}" if kind in CLUSTER_SCOPED else f"{kind} {metadata.get('namespace') or 'default'}/{name}"


_STRING_MAPS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})


def _without_nulls(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        if name in _STRING_MAPS:  # `nodeSelector: {gpu:}` means an empty value, not an absent key
            return {key: "" if item is None else item for key, item in value.items()}
        return {key: _without_nulls(item, key) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item, name) for item in value]
    return value


_MISMATCH = re.compile(r"Expected `(?P<expected>[^`]+)`, got `(?P<found>[^`]+)`(?P<where>.*)", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`(?P<where>.*)", re.DOTALL)
_PATH = re.compile(r"`\$(?P<path>[^`]*)`")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_WORDS = {
    "int": "an integer",
    "str": "a string",
    "bool": "true or false",
    "float": "a number",
    "array": "a list",
    "object": "an object",
    "str | int | float": "a quantity such as 500m, 2 or 1.5Gi",
}
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "str | int | float": (str, int, float)}


def _translate(message: str, document: Any, place: Place, label: str) -> ManifestError:
    found_path = _PATH.search(message)
    steps = _STEP.findall(found_path["path"]) if found_path else []
    missing = _MISSING.match(message)
    if missing:
        field = _spell([*(name or index for name, index in steps), missing["name"]])
        return place.error(field, expected="a value", found="none", subject=label)
    mismatch = _MISMATCH.match(message)
    if mismatch is None:
        field = _spell([name or index for name, index in steps])
        return place.error(field, expected="a valid value", found=message.partition(" - at ")[0], subject=label)
    expected = " | ".join(word for word in sorted(mismatch["expected"].split(" | "), key=_order) if word != "null")
    names, value = _walk(document, steps, _PYTHON_TYPES.get(expected, ()))
    if " at `key` " in f" {mismatch['where']} ":
        odd = [key for key in value if not isinstance(key, str)] if isinstance(value, dict) else []
        return place.error(_spell(names), expected="keys that are strings", found=show(odd[0]), subject=label)
    words = _WORDS.get(expected) or " or ".join(_WORDS.get(word, word) for word in expected.split(" | "))
    return place.error(_spell(names), expected=words, found=show(value), subject=label)


def _order(word: str) -> int:
    order = ("str", "int", "float")
    return order.index(word) if word in order else len(order)


def _walk(document: Any, steps: list[tuple[str, str]], fitting: tuple[type, ...]) -> tuple[list[str], Any]:
    """Follow a path to the value that did not fit; `[...]` stands for some key of a map, so look which."""
    names: list[str] = []
    value = document
    for name, index in steps:
        if index == "..." and isinstance(value, dict):
            unfit = (key for key, item in value.items() if isinstance(item, bool) or not isinstance(item, fitting))
            name = next(unfit, "...")
            value = value.get(name)
            names.append(name)
        elif index:
            position = int(index) if index.isdigit() else 0
            value = value[position] if isinstance(value, list) and position < len(value) else None
            names.append(f"[{index}]")
        else:
            value = value.get(name) if isinstance(value, dict) else None
            names.append(name)
    return names, value


def _spell(names: list[str]) -> str:
    text = ""
    for name in names:
        if name.isdigit() or name.startswith("["):
            text += name if name.startswith("[") else f"[{name}]"
        else:
            text += f".{name}" if text else name
    return text
