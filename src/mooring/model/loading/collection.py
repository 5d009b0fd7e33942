"""Objects that are read together, completed together: priorities, workloads' pods, storage, gangs, what queues.

The catalog collects a whole cluster, or those few objects that have to do with a change.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from mooring.model.api.devices import ResourceSlice
from mooring.model.api.kai_labels import QUEUE as KAI_QUEUE
from mooring.model.api.kueue import Workload
from mooring.model.api.kueue_labels import NO_CONTROLLER, queue_name
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.api.policies import PriorityClass
from mooring.model.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.model.api.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from mooring.model.defaults import default_storage
from mooring.model.devices.compute_domains import ComputeDomain, channel_template
from mooring.model.gangs.dialects.annotations import carry_annotations
from mooring.model.gangs.dialects.kai import KaiPodGroup
from mooring.model.gangs.dialects.kai_grouper import GROUPERS, group_pods
from mooring.model.gangs.dialects.kai_pods import PRIORITY_CLASS as KAI_PRIORITY_CLASS
from mooring.model.gangs.dialects.kai_pods import TopOwners, carry_labels, default_kai_pod
from mooring.model.gangs.dialects.volcano_flow import JobFlow, JobTemplate, jobs_to_start
from mooring.model.gangs.dialects.volcano_job import VolcanoJob
from mooring.model.jobs.expansion import (
    expand_job,
    expand_replicas,
    expand_stateful_set,
    index_owned,
    job_of,
    owner_key,
    replica_set_of,
    template_of,
)
from mooring.model.jobs.jobset import JobSet
from mooring.model.jobs.pod_sets import PodFinder
from mooring.model.jobs.train_job import TrainJob, is_train_job_over, pod_group_document, read_job_set, runtime_key
from mooring.model.loading.arrival import complete
from mooring.model.loading.colocation import ProfiledPods
from mooring.model.loading.daemons import expand_daemon_set
from mooring.model.loading.declarations import Declarations, check_trees, declarations_of
from mooring.model.objects.custom_workloads import CUSTOM_WORKLOADS, custom_workload, spec_path
from mooring.model.objects.job_kinds import JOB_KINDS
from mooring.model.objects.kinds import decode, find_kind, kind_of_type
from mooring.model.objects.picture import Identity, Manifests, Source, identity_of
from mooring.model.objects.tables import Tables
from mooring.model.places import Place, describe, show
from mooring.model.priorities import check_global_defaults
from mooring.model.queued.checks import name_default_queues, validate_queued
from mooring.model.queued.workloads import hold_queued
from mooring.model.quotas.admission import admit_to_namespaces
from mooring.model.quotas.refusals import Refusal
from mooring.model.validation.devices import check_pools

KindT = TypeVar("KindT")

WITH_TEMPLATE = (Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job)
WORKLOAD_TYPES: tuple[type[Any], ...] = (
    *(Deployment, ReplicaSet, ReplicationController, StatefulSet, Job, CronJob),
    *(custom.type for custom in CUSTOM_WORKLOADS),
    DaemonSet,
)
"""The kinds that controllers turn into pods, in the order in which the pods are made."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What became of the objects of a collection."""

    manifests: Manifests
    declarations: Declarations
    made_by: Mapping[Identity, Identity]
    """Whose each object is that was not given, but made."""


class Collection:
    """Some objects with their places; `finish` takes the steps that need all of them. The objects stay as they are."""

    def __init__(self, tables: Tables, *, expands: bool = True) -> None:
        self._tables = tables
        self._expands = expands
        """Whether to make the pods that controllers would make, and to refuse what contradicts each other."""
        self._manifests = Manifests()
        self._places: dict[type[Any], list[Place]] = {}
        self._made_by: dict[Identity, Identity] = {}
        self._ranks: dict[Identity, tuple[int, int]] = {}
        self._makers: dict[Identity, Any] = {}
        """By Job or JobSet that is made as if it were given: the JobFlow or TrainJob that makes it."""
        self._resolved: dict[tuple[int, str | None, bool, int], tuple[PodSpec, PodSpec]] = {}

    def include(self, sources: Iterable[tuple[Identity, Source]]) -> None:
        """Take in objects that are complete as such, in the order in which they came."""
        lists: dict[type[Any], tuple[list[Any], list[Place], Callable[[Any], Any] | None]] = {}
        for identity, source in sources:
            type_ = identity[0]
            if type_ not in lists:
                places = self._places[type_] = []
                lists[type_] = self._manifests.all_of(type_), places, _copying(type_)
            objects, places, copy = lists[type_]
            objects.append(source.object if copy is None else copy(source.object))
            places.append(source.place)
            if source.doubt is not None and self._expands and not self._tables.limits(identity[1]):
                raise source.doubt
            self._ranks[identity] = source.rank

    def finish(self) -> Collected:
        """Take the steps in the order in which they need one another."""
        manifests, tables = self._manifests, self._tables
        for train_job, place in self._placed(TrainJob):
            self._read_with_runtime(train_job, place)
        if self._expands:
            self._start_flows()
            self._start_training()
            self._make_channels()
        self._resolve_priorities()
        name_default_queues(manifests, tables)
        if self._expands:
            check_global_defaults(self._placed(PriorityClass))
            validate_queued(self._placed, tables)
            check_pools(self._placed(ResourceSlice))
            self._expand_workloads()
            refused = self._apply_profiles()
        self._group_kai_pods()
        default_storage(tables.default_class, manifests.persistent_volume_claims, manifests.persistent_volumes)
        declarations = self._declare_gangs()
        manifests.gangs = declarations.gangs
        claimed = hold_queued(manifests, tables, {workload.key: place for workload, place in self._placed(Workload)})
        self._rank(claimed)
        if self._expands:
            manifests.refused = [*self._leave_out(refused), *admit_to_namespaces(manifests)]
        return Collected(manifests, declarations, self._made_by)

    def _rank(self, claimed: set[str]) -> None:
        """Say of whatever queues which came first: what was given, then what was made, in the order of its makers."""
        ranks = self._manifests.ranks
        made: Counter[Identity] = Counter()
        for pod in self._manifests.pods if claimed else ():
            if pod.key in claimed:
                identity = identity_of(pod)
                maker = self._made_by.get(identity)
                if maker is None:
                    ranks[identity] = (0, *self._ranks[identity])
                else:
                    made[maker] += 1
                    ranks[identity] = (1 + WORKLOAD_TYPES.index(maker[0]), *self._ranks[maker], made[maker])
        for kind in JOB_KINDS:
            for owner in self._manifests.all_of(kind.type):
                identity = identity_of(owner)
                maker = self._made_by.get(identity)
                ranks[identity] = (0, *self._ranks[identity]) if maker is None else (1, *self._ranks[maker])

    def _placed(self, type_: type[KindT], /) -> list[tuple[KindT, Place]]:
        """The objects that were given, with their places; those that are made stand behind them in the lists."""
        return list(zip(self._manifests.all_of(type_), self._places.get(type_, ()), strict=False))

    # Priorities.

    def _start_flows(self) -> None:
        """Make the Jobs of Volcano's JobFlows that are due; from here on they are as if they were given."""
        jobs = {(job.metadata.namespace, job.metadata.name): job for job, _ in self._placed(VolcanoJob)}
        templates = {(found.metadata.namespace, found.metadata.name): found for found, _ in self._placed(JobTemplate)}
        for flow, place in self._placed(JobFlow):
            if NO_CONTROLLER in (flow.metadata.annotations or {}):
                continue
            for job in jobs_to_start(flow, templates, jobs):
                self._add_as_given(job, flow, place)

    def _read_with_runtime(self, owner: TrainJob, place: Place) -> None:
        """Give a TrainJob the JobSet that it becomes; none while its runtime is not here."""
        runtime = self._tables.runtime(owner)
        if runtime is None:
            return
        document = read_job_set(owner, runtime)
        job_set = decode(document, JobSet, place, f"the JobSet of {describe(owner)}")
        job_set.status.replicated_jobs_status = owner.status.jobs_status
        kind = kind_of_type(JobSet)
        assert kind is not None
        complete(kind, job_set, place, checks=self._expands)
        owner.spec.job_set = job_set

    def _start_training(self) -> None:
        """Make the JobSets of TrainJobs, and their PodGroups, that are not there yet, as if they were given."""
        given = {identity_of(job_set): job_set for job_set, _ in self._placed(JobSet)}
        for owner, place in self._placed(TrainJob):
            job_set = given.get((JobSet, owner.metadata.namespace, owner.metadata.name))
            if job_set is not None and queue_name(owner.metadata):
                job_set.spec.suspend = False  # its pods wait for quota, as those of any job that queues
            if job_set is not None or is_train_job_over(owner):
                continue
            runtime = self._tables.runtime(owner)
            if runtime is None or owner.spec.job_set is None:
                kind, name = runtime_key(owner)[0].__name__, owner.spec.runtime_ref.name
                expected, found = f"a {kind} that is among the manifests", show(name)
                raise place.error("spec.runtimeRef.name", expected=expected, found=found, subject=owner)
            self._add_as_given(_copy(owner.spec.job_set), owner, place)
            made_set: dict[str, Any] = msgspec.to_builtins(owner.spec.job_set)
            document = pod_group_document(msgspec.to_builtins(owner), msgspec.to_builtins(runtime), made_set)
            if document is not None:
                group = find_kind(document["apiVersion"], document["kind"])
                assert group is not None
                made = decode(document, group.type, place, group.name)
                complete(group, made, place)
                if identity_of(made) not in self._ranks:
                    self._add_as_given(made, owner, place)

    def _add_as_given(self, found: Any, maker: Any, place: Place) -> None:
        """Keep what a controller makes so that all later steps take it for one of the objects that were given."""
        self._add(found, maker)
        self._makers[identity_of(found)] = maker
        self._ranks[identity_of(found)] = self._ranks[identity_of(maker)]
        self._places.setdefault(type(found), []).append(place)

    def _make_channels(self) -> None:
        """Make the templates of claims that NVIDIA's controller makes for ComputeDomains; one that is given stays."""
        for domain, _ in self._placed(ComputeDomain):
            template = channel_template(domain)
            if identity_of(template) not in self._ranks:
                self._add(template, domain)

    def _resolve_priorities(self) -> None:
        owners = TopOwners(owner for type_ in WORKLOAD_TYPES for owner in self._manifests.all_of(type_))
        for pod, place in self._placed(Pod):
            owner = owners.of(pod.metadata) if pod.metadata.owner_references else None
            carry_labels(pod.metadata, owner)
            self._resolve_pod(pod, place, owner)
        for type_ in (*WITH_TEMPLATE, CronJob):
            path = "spec.jobTemplate.spec.template.spec" if type_ is CronJob else "spec.template.spec"
            for owner, place in self._placed(type_):
                template = template_of(owner)
                if template is not None:
                    self._resolve(template.metadata, template.spec, place, owner, path)
        for custom in CUSTOM_WORKLOADS:
            for owner, place in self._placed(custom.type):
                if custom.class_at:
                    self._tables.priorities.resolve(custom.named_class(owner), place, owner, custom.class_at)
                for path, template in custom.templates(owner):
                    self._resolve(template.metadata, template.spec, place, owner, spec_path(path))

    def _resolve_pod(self, pod: Pod, place: Place, owner: Any) -> None:
        """Pods that share a spec, and what else decides on their priority, share the new one."""
        labels = pod.metadata.labels or {}
        key = id(pod.spec), labels.get(KAI_PRIORITY_CLASS), KAI_QUEUE in labels, id(owner)
        known = self._resolved.get(key)
        if known is None:
            known = self._resolved[key] = (
                pod.spec,
                replace(pod.spec),
            )  # with the first: its id is good while it is there
            self._resolve(pod.metadata, known[1], place, pod, "spec", owner)
        pod.spec = known[1]

    def _resolve(
        self, metadata: ObjectMeta, spec: PodSpec, place: Place, subject: Any, path: str, owner: Any = None
    ) -> None:
        tables = self._tables
        owner = owner if isinstance(subject, Pod) else subject
        is_kai = default_kai_pod(metadata, spec, tables.kai_priorities, owner)
        (tables.kai_priorities if is_kai else tables.priorities).resolve(spec, place, subject, path)

    def _apply_profiles(self) -> list[Refusal]:
        """Change new pods as ClusterColocationProfiles say; return those that are refused for what they are then."""
        profiles = self._tables.profiles()
        if not profiles:
            return []
        pods = ProfiledPods(profiles, self._tables.labels_by_namespace(), self._tables.priorities)
        return pods.apply(self._manifests.pods)

    def _leave_out(self, refused: list[Refusal]) -> list[Refusal]:
        """Take refused pods out of the manifests, when everything that speaks of them has been read."""
        keys = {refusal.key for refusal in refused}
        if keys:
            self._manifests.pods[:] = [pod for pod in self._manifests.pods if pod.key not in keys]
        return refused

    # Pods that controllers make.

    def _expand_workloads(self) -> None:
        """Create what the controllers would, outer ones first: a Deployment's ReplicaSet, a CronJob's Job."""
        manifests = self._manifests
        custom_owners = (owner for custom in CUSTOM_WORKLOADS for owner in manifests.of(custom.type))
        owners = (*manifests.replica_sets, *manifests.stateful_sets, *manifests.jobs, *custom_owners)
        owned = index_owned([*manifests.pods, *owners])
        given_sets, given_jobs = list(manifests.replica_sets), list(manifests.jobs)
        for deployment in manifests.deployments:
            if owner_key(deployment) not in owned:
                replica_set = replica_set_of(deployment)
                self._add_pods(expand_replicas(replica_set, owned), deployment)
                self._add(replica_set, deployment)
        replicated: list[ReplicaSet | ReplicationController] = [*given_sets, *manifests.replication_controllers]
        for owner in replicated:
            self._add_pods(expand_replicas(owner, owned), owner)
        for stateful_set in manifests.stateful_sets:
            pods, claims = expand_stateful_set(stateful_set, owned)
            self._add_pods(pods, stateful_set)
            self._add_claims(claims, stateful_set)
        for job in given_jobs:
            self._add_pods(expand_job(job, owned), job)
        for cron_job in manifests.cron_jobs:
            if owner_key(cron_job) not in owned and not cron_job.spec.suspend:
                job = job_of(cron_job)
                self._add_pods(expand_job(job, owned), cron_job)
                self._add(job, cron_job)
        for custom in CUSTOM_WORKLOADS:
            for found in manifests.of(custom.type):
                if NO_CONTROLLER in (found.metadata.annotations or {}):
                    continue
                self._add_pods(custom.expand(found, owned), self._makers.get(identity_of(found), found))
        for daemon_set in manifests.daemon_sets:
            self._add_pods(expand_daemon_set(daemon_set, self._tables.nodes(), owned), daemon_set)

    def _add(self, found: Any, maker: Any) -> None:
        """Keep what a controller makes behind what is given."""
        self._made_by[identity_of(found)] = identity_of(maker)
        self._manifests.all_of(type(found)).append(found)

    def _add_pods(self, pods: Sequence[Pod], maker: Any) -> None:
        by = identity_of(maker)
        for pod in pods:
            identity = identity_of(pod)
            if identity in self._made_by or identity in self._ranks:
                raise taken(pod, self._place_of(maker), self._place_of(pod))
            self._made_by[identity] = by
        self._manifests.pods += pods

    def _add_claims(self, claims: Iterable[PersistentVolumeClaim], maker: StatefulSet) -> None:
        """Keep the claims that are not given; a given one is the user's word on how it is bound."""
        for claim in claims:
            identity = identity_of(claim)
            if identity not in self._ranks and identity not in self._made_by:
                self._add(claim, maker)

    def _group_kai_pods(self) -> None:
        """Make the PodGroups that KAI's pod-grouper would; those that are given stay as they are."""
        pods = PodFinder(self._manifests.pods)
        kind = kind_of_type(KaiPodGroup)
        assert kind is not None
        for type_ in GROUPERS:
            for owner, place in self._placed(type_):
                for group in group_pods(owner, pods):
                    if identity_of(group) not in self._ranks:
                        complete(kind, group, place)
                        self._add(group, owner)
                        self._places.setdefault(KaiPodGroup, []).append(place)

    def _declare_gangs(self) -> Declarations:
        manifests = self._manifests
        custom_owners = (owner for custom in CUSTOM_WORKLOADS for owner in manifests.of(custom.type))
        owners = (*manifests.deployments, *manifests.replica_sets, *manifests.stateful_sets, *manifests.jobs)
        carry_annotations((*owners, *custom_owners), manifests.pods)
        if self._expands:
            check_trees(self._placed, self._tables)
        return declarations_of(
            self._placed,
            manifests.pods,
            manifests.jobs,
            self._tables,
            self._place_of,
            made=self._made_by,
            checks=self._expands,
        )

    def _place_of(self, found: Any) -> Place:
        """Where an object stood, or the one that it is made for; asked only when something is wrong."""
        identity = identity_of(found)
        identity = self._made_by.get(identity, identity)
        placed = zip(self._manifests.all_of(identity[0]), self._places[identity[0]], strict=False)
        return next(place for each, place in placed if identity_of(each) == identity)


def taken(found: Any, place: Place, first: Place) -> Exception:
    """The complaint about an object whose name another has."""
    return place.error(
        "metadata.name",
        expected="a name that is not taken",
        found=f"{describe(found)}, which {first} has already",
        subject=found,
    )


def _copy_with_template(found: Any) -> Any:
    template = found.spec.template
    copied = replace(template, metadata=replace(template.metadata), spec=replace(template.spec))
    return replace(found, metadata=replace(found.metadata), spec=replace(found.spec, template=copied))


def _copy(found: Any) -> Any:
    return msgspec.convert(msgspec.to_builtins(found), type(found))


def _copying(type_: type[Any]) -> Callable[[Any], Any] | None:
    """How to copy objects of a type as deep as the steps of a collection change them; None if they change nothing."""
    if type_ is Pod:
        return lambda found: replace(found, metadata=replace(found.metadata))
    if type_ in WITH_TEMPLATE:
        return _copy_with_template
    if type_ is CronJob or custom_workload(type_) is not None:
        return _copy
    if type_ in (PersistentVolume, PersistentVolumeClaim):
        return lambda found: replace(
            found, metadata=replace(found.metadata), spec=replace(found.spec), status=replace(found.status)
        )
    return None
