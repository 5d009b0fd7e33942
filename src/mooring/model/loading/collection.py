"""Objects collected kind by kind, then completed together: priorities, replicas, workloads' pods, storage."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec.structs import replace

from mooring.errors import ManifestError
from mooring.model.api.kueue import QUEUEING_KINDS, Workload, default_queueing
from mooring.model.api.meta import Namespace, ObjectMeta
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.api.policies import PodDisruptionBudget, PriorityClass, Service
from mooring.model.api.volcano_queue import Queue, default_queue
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
from mooring.model.gangs.declarations import check_trees, gangs_of
from mooring.model.gangs.dialects.annotations import carry_annotations
from mooring.model.gangs.dialects.kai import KaiPodGroup
from mooring.model.gangs.dialects.kai_grouper import GROUPERS, group_pods
from mooring.model.gangs.dialects.kai_pods import default_kai_pod, with_kai_classes
from mooring.model.gangs.gang import Gang
from mooring.model.jobs.pod_sets import PodFinder
from mooring.model.loading.custom_workloads import CUSTOM_WORKLOADS, custom_workload, spec_path
from mooring.model.loading.daemons import expand_daemon_set
from mooring.model.loading.defaults import (
    DEFAULT_NAMESPACE,
    default_job,
    default_namespace,
    default_node,
    default_pod_spec,
    default_storage,
)
from mooring.model.loading.documents import Document
from mooring.model.loading.expansion import (
    expand_job,
    expand_replicas,
    expand_stateful_set,
    index_owned,
    job_of,
    owner_key,
    replica_set_of,
    template_of,
)
from mooring.model.loading.kinds import Kind, decode, find_kind, ignored_name, kind_of_type
from mooring.model.loading.label_keys import merge_label_keys
from mooring.model.loading.places import Place, describe
from mooring.model.loading.priorities import Priorities, collect_priorities
from mooring.model.loading.replicas import expand_node, expand_pod
from mooring.model.queued.checks import name_default_queues, validate_queued
from mooring.model.queued.workloads import hold_queued
from mooring.model.quotas.admission import admit_to_namespaces
from mooring.model.quotas.objects import LimitRange
from mooring.model.quotas.refusals import Refusal
from mooring.model.validation.objects import validate

KindT = TypeVar("KindT")


@dataclass(slots=True)
class Manifests:
    """Everything that scheduling reads, by kind, in the order given; pods of workloads follow the bare pods.

    Terminal pods are in the list: callers skip them. Replicas share their specs, so a spec must not be changed.
    """

    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    namespaces: list[Namespace] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    pod_disruption_budgets: list[PodDisruptionBudget] = field(default_factory=list)
    persistent_volumes: list[PersistentVolume] = field(default_factory=list)
    persistent_volume_claims: list[PersistentVolumeClaim] = field(default_factory=list)
    storage_classes: list[StorageClass] = field(default_factory=list)
    csi_nodes: list[CsiNode] = field(default_factory=list)
    csi_drivers: list[CsiDriver] = field(default_factory=list)
    csi_storage_capacities: list[CsiStorageCapacity] = field(default_factory=list)
    volume_attachments: list[VolumeAttachment] = field(default_factory=list)
    deployments: list[Deployment] = field(default_factory=list)
    replica_sets: list[ReplicaSet] = field(default_factory=list)
    replication_controllers: list[ReplicationController] = field(default_factory=list)
    stateful_sets: list[StatefulSet] = field(default_factory=list)
    daemon_sets: list[DaemonSet] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    cron_jobs: list[CronJob] = field(default_factory=list)
    gangs: list[Gang] = field(default_factory=list)
    """Every gang that anything declares, in whichever dialect."""
    others: dict[type[Any], list[Any]] = field(default_factory=dict)
    """All further kinds, by type; see `of`."""
    refused: list[Refusal] = field(default_factory=list)
    """What the quotas and limits of its namespace keep out; not in the other lists."""
    ignored: Counter[str] = field(default_factory=Counter)
    """How many objects there were of each kind that scheduling does not read."""

    def of(self, type_: type[KindT]) -> list[KindT]:
        """The objects of a kind that has no list of its own, in the order given."""
        return self.others.setdefault(type_, [])


class Collection:
    """Objects as they come in, each checked on its own; `finish` does what needs all of them."""

    def __init__(self) -> None:
        self._manifests = Manifests()
        self._places: dict[type[Any], list[Place]] = {}
        self._first: dict[tuple[type[Any], str, str], Place] = {}
        self._generated: Counter[tuple[str, str, str]] = Counter()
        self._unless_limited: list[tuple[str, ManifestError]] = []
        """By namespace: what is wrong unless it has a LimitRange, which may fill it in."""

    def add_document(self, document: Document) -> None:
        kind = find_kind(document.api_version, document.kind)
        if kind is None:
            self._manifests.ignored[ignored_name(document.api_version, document.kind)] += 1
            return
        self.add(kind, decode(document.source, kind.type, document.place, kind.name), document.place)

    def add(self, kind: Kind, found: Any, place: Place) -> None:
        """Check one object, give it its own defaults, and keep it with its place."""
        found.kind = kind.name
        metadata = found.metadata
        if kind.is_namespaced and not metadata.namespace:
            metadata.namespace = DEFAULT_NAMESPACE
        if errors := validate(found, place):
            self._unless_limited.append((metadata.namespace, errors[0]))
        if not metadata.name:
            self._generate_name(kind.name, found)
        if isinstance(found, Pod):
            default_pod_spec(found.spec)
        elif (template := template_of(found)) is not None:
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
        self._list_of(kind).append(found)
        self._places.setdefault(kind.type, []).append(place)
        if kind.type not in (Pod, Node):  # their names count once replicas have theirs
            self._claim_name(found, place)

    def finish(self) -> Manifests:
        """Take the steps that need all objects, in the order in which they need one another."""
        manifests = self._manifests
        self._check_limited()
        priorities = collect_priorities(self._placed(PriorityClass, manifests.priority_classes))
        self._resolve_priorities(priorities)
        name_default_queues(manifests)
        validate_queued(self._placed_any)
        self._expand_nodes()
        self._expand_bare_pods()
        self._expand_workloads()
        self._group_kai_pods()
        for namespace in manifests.namespaces:
            default_namespace(namespace)
        default_storage(manifests.storage_classes, manifests.persistent_volume_claims, manifests.persistent_volumes)
        self._declare_gangs(priorities)
        hold_queued(manifests, {workload.key: place for workload, place in self._placed_others(Workload)})
        manifests.refused = admit_to_namespaces(manifests)
        return manifests

    def _check_limited(self) -> None:
        limited = {found.metadata.namespace for found in self._manifests.of(LimitRange)}
        for namespace, error in self._unless_limited:
            if namespace not in limited:
                raise error

    def _list_of(self, kind: Kind) -> list[Any]:
        found: list[Any] = getattr(self._manifests, kind.list_name) if kind.list_name else self._manifests.of(kind.type)
        return found

    def _placed(self, type_: type[KindT], objects: Iterable[KindT]) -> list[tuple[KindT, Place]]:
        return list(zip(objects, self._places.get(type_, ()), strict=True))

    def _placed_others(self, type_: type[KindT]) -> list[tuple[KindT, Place]]:
        return self._placed(type_, self._manifests.of(type_))

    def _placed_any(self, type_: type[Any]) -> list[tuple[Any, Place]]:
        kind = kind_of_type(type_)
        assert kind is not None
        return self._placed(type_, self._list_of(kind))

    def _generate_name(self, kind_name: str, found: Any) -> None:
        """Count where the API server would draw lots: the same manifests give the same names."""
        metadata = found.metadata
        key = (kind_name, metadata.namespace, metadata.generate_name)
        metadata.name = f"{metadata.generate_name}{self._generated[key]}"
        self._generated[key] += 1

    def _claim_name(self, found: Any, place: Place) -> None:
        key = (type(found), found.metadata.namespace, found.metadata.name)
        first = self._first.setdefault(key, place)
        if first is not place:
            raise place.error(
                "metadata.name",
                expected="a name that is not taken",
                found=f"{describe(found)}, which {first} has already",
                subject=found,
            )

    def _resolve_priorities(self, priorities: Priorities) -> None:
        kai = with_kai_classes(priorities)

        def known(metadata: ObjectMeta, spec: PodSpec, owner: Any = None) -> Priorities:
            return kai if default_kai_pod(metadata, spec, kai, owner) else priorities

        for pod, place in self._placed_any(Pod):
            known(pod.metadata, pod.spec).resolve(pod.spec, place, pod)
        for type_ in (Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job, CronJob):
            path = "spec.jobTemplate.spec.template.spec" if type_ is CronJob else "spec.template.spec"
            for owner, place in self._placed_any(type_):
                template = template_of(owner)
                if template is not None:
                    known(template.metadata, template.spec, owner).resolve(template.spec, place, owner, path)
        for custom in CUSTOM_WORKLOADS:
            for owner, place in self._placed_any(custom.type):
                if custom.class_at:
                    priorities.resolve(custom.named_class(owner), place, owner, custom.class_at)
                for path, template in custom.templates(owner):
                    known(template.metadata, template.spec, owner).resolve(template.spec, place, owner, spec_path(path))

    def _expand_nodes(self) -> None:
        nodes: list[Node] = []
        for node, place in self._placed(Node, self._manifests.nodes):
            for found in expand_node(node, place):
                default_node(found)
                self._claim_replica(found, node, place)
                nodes.append(found)
        self._manifests.nodes = nodes

    def _expand_bare_pods(self) -> None:
        pods: list[Pod] = []
        for pod, place in self._placed(Pod, self._manifests.pods):
            for found in expand_pod(pod, place):
                found.spec = merge_label_keys(found.spec, found.metadata.labels or {})
                self._claim_replica(found, pod, place)
                pods.append(found)
        self._manifests.pods = pods

    def _claim_replica(self, found: Any, original: Any, place: Place) -> None:
        # A place of its own for each replica: two of one manifest with one name are duplicates too.
        self._claim_name(found, place if found is original else replace(place))

    def _expand_workloads(self) -> None:
        """Create what the controllers would, outer ones first: a Deployment's ReplicaSet, a CronJob's Job."""
        manifests = self._manifests
        custom_owners = (owner for custom in CUSTOM_WORKLOADS for owner in manifests.of(custom.type))
        owners = (*manifests.replica_sets, *manifests.stateful_sets, *manifests.jobs, *custom_owners)
        owned = index_owned([*manifests.pods, *owners])
        for deployment, place in self._placed(Deployment, manifests.deployments):
            if owner_key(deployment) not in owned:
                replica_set = replica_set_of(deployment)
                self._add_pods(expand_replicas(replica_set, owned, name=deployment.metadata.name), place)
                manifests.replica_sets.append(replica_set)
        listed = len(self._places.get(ReplicaSet, ()))
        for replica_set, place in self._placed(ReplicaSet, manifests.replica_sets[:listed]):
            self._add_pods(expand_replicas(replica_set, owned), place)
        for controller, place in self._placed(ReplicationController, manifests.replication_controllers):
            self._add_pods(expand_replicas(controller, owned), place)
        for stateful_set, place in self._placed(StatefulSet, manifests.stateful_sets):
            pods, claims = expand_stateful_set(stateful_set, owned)
            self._add_pods(pods, place)
            self._add_claims(claims, place)
        for job, place in self._placed(Job, manifests.jobs):
            self._add_pods(expand_job(job, owned), place)
        for cron_job, place in self._placed(CronJob, manifests.cron_jobs):
            if owner_key(cron_job) not in owned and not cron_job.spec.suspend:
                job = job_of(cron_job)
                self._add_pods(expand_job(job, owned), place)
                manifests.jobs.append(job)
        for custom in CUSTOM_WORKLOADS:
            for owner, place in self._placed(custom.type, manifests.of(custom.type)):
                self._add_pods(custom.expand(owner, owned), place)
        for daemon_set, place in self._placed(DaemonSet, manifests.daemon_sets):
            self._add_pods(expand_daemon_set(daemon_set, manifests.nodes, owned), place)

    def _group_kai_pods(self) -> None:
        """Make the PodGroups that KAI's pod-grouper would; those that are given stay as they are."""
        pods = PodFinder(self._manifests.pods)
        kind = kind_of_type(KaiPodGroup)
        assert kind is not None
        for type_ in GROUPERS:
            for owner, place in self._placed_any(type_):
                for group in group_pods(owner, pods):
                    if (KaiPodGroup, group.metadata.namespace, group.metadata.name) not in self._first:
                        self.add(kind, group, place)

    def _declare_gangs(self, priorities: Priorities) -> None:
        manifests = self._manifests
        custom_owners = (owner for custom in CUSTOM_WORKLOADS for owner in manifests.of(custom.type))
        owners = (*manifests.deployments, *manifests.replica_sets, *manifests.stateful_sets, *manifests.jobs)
        carry_annotations((*owners, *custom_owners), manifests.pods)
        check_trees(self._placed_others, manifests.nodes)
        manifests.gangs = gangs_of(self._placed_others, manifests.pods, manifests.jobs, priorities, self._place_of)

    def _place_of(self, pod: Pod) -> Place:
        return self._first[Pod, pod.metadata.namespace, pod.metadata.name]

    def _add_pods(self, pods: Iterable[Pod], place: Place) -> None:
        for pod in pods:
            self._claim_name(pod, replace(place))
            self._manifests.pods.append(pod)

    def _add_claims(self, claims: Iterable[PersistentVolumeClaim], place: Place) -> None:
        """Keep the claims that are not given; a given one is the user's word on how it is bound."""
        for claim in claims:
            if (PersistentVolumeClaim, claim.metadata.namespace, claim.metadata.name) not in self._first:
                self._claim_name(claim, place)
                self._manifests.persistent_volume_claims.append(claim)
