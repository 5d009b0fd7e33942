"""What of an object matters to scheduling: news that changes nothing else is no news.

Objects hold what we read of them, so most of the comparing is done by their types: a status that is not in a type
cannot matter. What is left to leave out is the API server's bookkeeping, and parts that only some readers use.
"""

from typing import Any

from msgspec.structs import replace

from mooring.model.api.kueue import AdmissionCheck
from mooring.model.api.meta import Condition, Namespace, ObjectMeta
from mooring.model.api.nodes import Node
from mooring.model.api.policies import PodDisruptionBudget, Service
from mooring.model.api.volcano_queue import Queue
from mooring.model.api.workloads import ReplicaSet, ReplicationController, StatefulSet

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def is_same(old: Any, new: Any) -> bool:
    """Whether two versions of an object differ in nothing but the API server's bookkeeping."""
    if old is new:
        return True
    if type(old) is not type(new) or replace(old, metadata=new.metadata) != new:
        return False
    before, now = old.metadata, new.metadata
    bare = replace(
        before, annotations=now.annotations, generation=now.generation, resource_version=now.resource_version
    )
    return (
        bare == now
        and _notes(before) == _notes(now)
        and bool(before.resource_version) == bool(now.resource_version)  # as below: whether there is one
    )


def is_same_to_engine(old: Any, new: Any) -> bool:
    """Whether two versions of an object are the same to everybody who decides.

    Less counts than for `is_same`: a node's heartbeat, how many pods a budget has counted, how many replicas a set has.
    """
    return old is new or (type(old) is type(new) and _as_decided_on(old) == _as_decided_on(new))


def _without_bookkeeping(found: Any) -> Any:
    metadata = found.metadata
    # That there is a version says that the object exists on a cluster; which one it is says nothing.
    version = "known" if metadata.resource_version else ""
    bare = replace(metadata, annotations=_notes(metadata), generation=0, resource_version=version)
    return replace(found, metadata=bare)


def _notes(metadata: ObjectMeta) -> dict[str, str] | None:
    """The annotations without kubectl's own; None if there are none."""
    annotations = metadata.annotations
    if annotations and _LAST_APPLIED in annotations:
        annotations = {key: text for key, text in annotations.items() if key != _LAST_APPLIED}
    return annotations or None


def _as_decided_on(found: Any) -> Any:
    match found:
        case ReplicaSet() | StatefulSet() | ReplicationController():  # read for whom they select, to spread those pods
            return _named(found.metadata), found.spec.selector
        case Node():
            return _without_bookkeeping(replace(found, status=replace(found.status, conditions=None)))
        case PodDisruptionBudget() if found.status is not None:
            disrupted = found.status.disrupted_pods or None
            counted = replace(
                found.status, current_healthy=0, desired_healthy=0, expected_pods=0, disrupted_pods=disrupted
            )
            return _without_bookkeeping(replace(found, status=counted))
        case Queue():
            return _without_bookkeeping(replace(found, status=replace(found.status, allocated=None)))
        case AdmissionCheck():  # whether it is active counts, and not what is said of that
            states = [Condition(type=each.type, status=each.status) for each in found.status.conditions or ()]
            return _without_bookkeeping(replace(found, status=replace(found.status, conditions=states)))
        case Namespace() | Service():  # where others keep notes of their own
            return _without_bookkeeping(replace(found, metadata=replace(found.metadata, annotations=None)))
    return _without_bookkeeping(found)


def _named(metadata: ObjectMeta) -> tuple[str, str]:
    return metadata.namespace, metadata.name
