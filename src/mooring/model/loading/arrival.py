"""An object as it comes in: checked and completed on its own, and turned into those that it stands for."""

from typing import Any

from msgspec.structs import replace

from mooring.errors import ManifestError
from mooring.model.api.claims import ResourceClaim, ResourceClaimTemplate, unify_requests
from mooring.model.api.devices import ResourceSlice, unify_slice
from mooring.model.api.kai_queue import KIND as KAI_QUEUE
from mooring.model.api.kai_queue import KaiQueue
from mooring.model.api.karpenter import NodePool, unify_pool
from mooring.model.api.kueue import QUEUEING_KINDS, default_queueing
from mooring.model.api.meta import Namespace
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.volcano_queue import Queue, default_queue
from mooring.model.api.volumes import StorageClass
from mooring.model.api.workloads import CronJob, Job, ReplicationController
from mooring.model.defaults import (
    DEFAULT_NAMESPACE,
    default_job,
    default_namespace,
    default_node,
    default_pod_spec,
    default_storage_class,
)
from mooring.model.jobs.expansion import template_of
from mooring.model.jobs.label_keys import merge_label_keys
from mooring.model.loading.replicas import expand_node, expand_pod
from mooring.model.objects.custom_workloads import custom_workload
from mooring.model.objects.kinds import Kind
from mooring.model.places import Place
from mooring.model.validation.objects import validate


def complete(kind: Kind, found: Any, place: Place, *, checks: bool = True) -> ManifestError | None:
    """Check an object, and give it the defaults that depend on nothing else; in place, and twice without harm.

    What comes from an API server has been checked there.

    Return what is wrong with it unless a LimitRange of its namespace fills it in.
    """
    found.kind = KAI_QUEUE if kind.type is KaiQueue else kind.name
    metadata = found.metadata
    if not kind.is_namespaced:
        metadata.namespace = ""
    elif not metadata.namespace:
        metadata.namespace = DEFAULT_NAMESPACE
    if isinstance(found, Pod):  # most are
        errors = validate(found, place) if checks else ()
        default_pod_spec(found.spec)
        return errors[0] if errors else None
    if isinstance(found, ResourceSlice):
        unify_slice(found)
    elif isinstance(found, ResourceClaim):
        unify_requests(found.spec)
    elif isinstance(found, ResourceClaimTemplate):
        unify_requests(found.spec.spec)
    elif isinstance(found, NodePool):
        unify_pool(found)
    errors = validate(found, place) if checks else ()
    if (template := template_of(found)) is not None:
        default_pod_spec(template.spec)
        if isinstance(found, Job | CronJob):
            default_job(found if isinstance(found, Job) else found.spec.job_template)
        if isinstance(found, ReplicationController) and not found.spec.selector:
            found.spec.selector = template.metadata.labels
    elif (custom := custom_workload(kind.type)) is not None:
        if custom.default is not None:
            custom.default(found)
        for _, template in custom.templates(found):
            default_pod_spec(template.spec)
    elif kind.type in QUEUEING_KINDS:
        default_queueing(found)
    elif isinstance(found, Queue):
        default_queue(found)
    elif isinstance(found, Namespace):
        default_namespace(found)
    elif isinstance(found, StorageClass):
        default_storage_class(found)
    return errors[0] if errors else None


def stands_for(found: Any, place: Place, *, expands: bool = True) -> list[tuple[Any, Place]]:
    """The objects that a manifest stands for, each with a place of its own; itself, if it asks for no replicas.

    On a cluster every object stands for itself alone, whatever its annotations say.
    """
    if isinstance(found, Node):
        nodes = expand_node(found, place) if expands else [found]
        for node in nodes:
            default_node(node)
        return _placed(found, nodes, place)
    if isinstance(found, Pod):
        if not expands:
            found.spec = merge_label_keys(found.spec, found.metadata.labels or {})
            return [(found, place)]
        pods = expand_pod(found, place)
        for pod in pods:
            pod.spec = merge_label_keys(pod.spec, pod.metadata.labels or {})
        return _placed(found, pods, place)
    return [(found, place)]


def _placed(original: Any, copies: list[Any], place: Place) -> list[tuple[Any, Place]]:
    return [(found, place if found is original else replace(place)) for found in copies]
