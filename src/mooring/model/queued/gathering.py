"""One walk through the manifests that finds everything that queues: jobs, then pods, then Workloads of who is not here.

What has its workload is not looked at again: the Jobs of a JobSet and the pods of a Job are admitted with their owner.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from mooring.model.api.kueue_labels import (
    NO_CONTROLLER,
    ORIGINAL_TEMPLATES,
    PRIORITY_CLASS,
    QUEUE_NAME,
    app_wrapper,
    pod_group,
    queue_name,
)
from mooring.model.api.kueue_workload import FINISHED, Workload
from mooring.model.api.meta import ObjectMeta, OwnerReference
from mooring.model.api.pods import Pod
from mooring.model.jobs.app_wrapper import WRAPPER, WRAPPER_GROUP
from mooring.model.jobs.expansion import OwnerKey, controller_of, index_owned, owner_key
from mooring.model.jobs.pod_sets import MAIN, PodFinder, PodSetPlan
from mooring.model.keys import PodKey
from mooring.model.objects.job_kinds import JOB_KINDS, JobKind
from mooring.model.objects.picture import Manifests, identity_of
from mooring.model.objects.tables import Tables
from mooring.model.queued.building import (
    MADE_FROM,
    MADE_UID,
    WorkloadBuilder,
    fingerprint,
    latest_creation,
    workload_name,
)
from mooring.model.queued.given import GivenWorkloads
from mooring.model.queued.pods import PodGroup, gather_groups, pod_plan
from mooring.model.queued.running import RunningWorkload
from mooring.model.queued.wrappers import Component, gather_wrappers
from mooring.model.what_matters import is_same_to_engine

POD_GROUP_KIND = "PodGroup"
"""How the owner of a group of plain pods is called: it is no object, only a name that they share."""


_DEPLOYMENTS, _PODS, _GROUPS = range(len(JOB_KINDS), len(JOB_KINDS) + 3)
"""The stages of the walk after those of the jobs."""


@dataclass(frozen=True, slots=True)
class QueuedWorkload:
    """What is admitted as one: its Workload, whose it is, and its pods by pod set."""

    workload: Workload
    owner_key: OwnerKey
    """Kind, namespace and name."""
    pods: dict[str, list[PodKey]]
    """Keys of the pods that are not over, by the name of their pod set."""


def is_same_workload(old: QueuedWorkload, new: QueuedWorkload) -> bool:
    """Whether nothing changed that admission reads."""
    return old.pods == new.pods and old.owner_key == new.owner_key and is_same_to_engine(old.workload, new.workload)


class Gathering:
    """The walk. `claimed` and `incomplete` are filled as the workloads are taken from it."""

    def __init__(self, manifests: Manifests, tables: Tables) -> None:
        self._manifests = manifests
        self._finder = PodFinder(manifests.pods)
        self._builder = WorkloadBuilder(tables)
        self._running = RunningWorkload(tables)
        self._given = GivenWorkloads(manifests.of(Workload))
        self._parents: dict[OwnerKey, ObjectMeta] | None = None
        self._wrapped: list[Component] = []
        self.claimed: set[str] = set()
        """The pods that queue, by key."""
        self.incomplete: list[PodGroup] = []
        """Groups of plain pods that lack some of their pods."""
        self.ownerless: set[str] = set()
        """The Workloads of whatever is not here, by key."""

    def workloads(self) -> Iterator[QueuedWorkload]:
        for stage, kind in enumerate(JOB_KINDS):
            for owner in self._manifests.all_of(kind.type):
                if not queue_name(owner.metadata) or self._is_part_of_queued(owner.metadata):
                    continue
                if NO_CONTROLLER in (owner.metadata.annotations or {}):
                    continue
                if app_wrapper(owner.metadata):
                    self._wrapped.append(self._job_component(stage, kind, owner))
                else:
                    yield from self._job_workloads(stage, kind, owner)
        yield from self._wrapper_workloads()
        yield from self._deployment_workloads()
        yield from self._pod_workloads()
        for workload in self._given.left():
            self.ownerless.add(workload.key)
            yield QueuedWorkload(
                workload, _owner_of(workload), {pod_set.name: [] for pod_set in workload.spec.pod_sets}
            )

    def _job_workloads(self, stage: int, kind: JobKind, owner: Any) -> Iterator[QueuedWorkload]:
        key, metadata = owner_key(owner), owner.metadata
        reference = _reference(owner.api_version, owner.kind, metadata)
        for number, unit in enumerate(kind.units(owner)):
            members = unit.members(self._finder)
            self.claimed.update(pod.key for pods in members.values() for pod in pods)
            name = workload_name(owner.kind, kind.group, unit.name, metadata.uid)
            given = self._given.find(metadata, reference, name, f"{owner.kind.lower()}-{unit.name}-")
            if kind.is_over(owner) or not any(plan.count for plan in unit.pod_sets):
                continue
            uid = self._uid(stage, owner) + (f"-{number:06}" if number else "")
            build = partial(
                self._builder.build,
                name,
                uid,
                metadata,
                [reference],
                unit.pod_sets,
                members,
                kind.priority_class(owner),
            )
            # Templates that admission has added to are not what the job asks for.
            is_started = ORIGINAL_TEMPLATES in (metadata.annotations or {})
            if given is not None and _follows_its_job(given) and not is_started:
                bare = partial(self._builder.build, name, uid, metadata, [reference], unit.pod_sets, {})
                given = _followed(given, bare(kind.priority_class(owner)))
            yield from self._workload(given, build, key, members)

    def _job_component(self, stage: int, kind: JobKind, owner: Any) -> Component:
        units = [] if kind.is_over(owner) else kind.units(owner)
        found = self._component(stage, owner)
        for unit in units:
            found.add(unit.pod_sets, unit.members(self._finder))
        return found

    def _component(self, stage: int, found: Any) -> Component:
        return Component(self._manifests.ranks.get(identity_of(found), (0, 0)), self._uid(stage, found), found.metadata)

    def _wrapper_workloads(self) -> Iterator[QueuedWorkload]:
        """What AppWrappers wrap, each wrapper as one."""
        manifests = self._manifests
        deployments = [found for found in manifests.deployments if app_wrapper(found.metadata)]
        owned = index_owned(manifests.replica_sets) if deployments else {}
        for deployment in deployments:
            names = [found.metadata.name for found in owned.get(owner_key(deployment), ())]
            namespace, spec = deployment.metadata.namespace, deployment.spec
            pods = [pod for name in names for pod in self._finder.owned_by("apps", "ReplicaSet", namespace, name)]
            count = 1 if spec.replicas is None else spec.replicas
            found = self._component(_DEPLOYMENTS, deployment)
            found.add([PodSetPlan(MAIN, spec.template, count, "spec.template")], {MAIN: pods})
            self._wrapped.append(found)
        for pod in manifests.pods:
            if app_wrapper(pod.metadata) and queue_name(pod.metadata) and not pod.metadata.owner_references:
                found = self._component(_PODS, pod)
                found.add([pod_plan(pod)], {MAIN: [pod]})
                self._wrapped.append(found)
        for wrapper in gather_wrappers(self._wrapped):
            self.claimed.update(pod.key for pods in wrapper.members.values() for pod in pods)
            if not any(plan.count for plan in wrapper.pod_sets):
                continue
            name = workload_name(WRAPPER, WRAPPER_GROUP, wrapper.metadata.name)
            reference = _reference(f"{WRAPPER_GROUP}/v1beta2", WRAPPER, wrapper.metadata)
            given = self._given.find(wrapper.metadata, reference, name, f"appwrapper-{wrapper.metadata.name}-")
            metadata, plans, members = wrapper.metadata, wrapper.pod_sets, wrapper.members
            build = partial(self._builder.build, name, wrapper.uid, metadata, [reference], plans, members)
            yield from self._workload(given, build, (WRAPPER, metadata.namespace, metadata.name), members)

    def _deployment_workloads(self) -> Iterator[QueuedWorkload]:
        """Each pod of a Deployment on its own, in the Deployment's queue and with its priority."""
        deployments = self._manifests.deployments
        queued = [found for found in deployments if queue_name(found.metadata) and not app_wrapper(found.metadata)]
        owned = index_owned(self._manifests.replica_sets) if queued else {}
        for deployment in queued:
            for replica_set in owned.get(owner_key(deployment), ()):
                namespace, name = replica_set.metadata.namespace, replica_set.metadata.name
                for pod in self._finder.owned_by("apps", "ReplicaSet", namespace, name):
                    yield from self._single(_DEPLOYMENTS, pod, deployment.metadata)

    def _pod_workloads(self) -> Iterator[QueuedWorkload]:
        """Pods that name a queue and belong to nobody who does, alone or in groups."""
        grouped: list[tuple[str, Pod]] = []
        for pod in self._manifests.pods:
            if not queue_name(pod.metadata) or pod.key in self.claimed or self._is_part_of_queued(pod.metadata):
                continue
            group = pod_group(pod.metadata)
            if group:
                grouped.append((group, pod))
            else:
                yield from self._single(_PODS, pod, pod.metadata)
        for found in gather_groups(grouped):
            self.claimed.update(pod.key for pod in found.pods)
            given = self._given.named(found.namespace, found.name)
            if found.is_over:
                continue
            if found.problem and given is None:
                self.incomplete.append(found)
            else:
                yield from self._group(found, given)

    def _single(self, stage: int, pod: Pod, queued: ObjectMeta) -> Iterator[QueuedWorkload]:
        if pod.key in self.claimed:
            return
        metadata = pod.metadata
        if pod.is_terminal:  # its Workload is over with it, and is not one whose owner is not here
            name, reference = workload_name("Pod", "", metadata.name, metadata.uid), _reference("v1", "Pod", metadata)
            self._given.find(metadata, reference, name, f"pod-{metadata.name}-")
            return
        self.claimed.add(pod.key)
        if queued is not metadata:
            handed = {key: text for key, text in (queued.labels or {}).items() if key == PRIORITY_CLASS}
            metadata = replace(metadata, labels={**(metadata.labels or {}), **handed, QUEUE_NAME: queue_name(queued)})
        name = workload_name("Pod", "", metadata.name, metadata.uid)
        key, members = ("Pod", metadata.namespace, metadata.name), {MAIN: [pod]}
        reference = _reference("v1", "Pod", metadata)
        given = self._given.find(metadata, reference, name, f"pod-{metadata.name}-")
        uid = self._uid(stage, pod)
        build = partial(self._builder.build, name, uid, metadata, [reference], [pod_plan(pod)], members)
        yield from self._workload(given, build, key, members)

    def _group(self, group: PodGroup, given: Workload | None) -> Iterator[QueuedWorkload]:
        members = group.members()
        pods = [pod.metadata for found in members.values() for pod in found]
        # It is a group since its last pod came.
        metadata = replace(group.pods[0].metadata, creation_timestamp=latest_creation(pods))
        references = [replace(_reference("v1", "Pod", found), controller=False) for found in pods]
        uid = self._uid(_GROUPS, group.pods[0])
        build = partial(self._builder.build, group.name, uid, metadata, references, group.pod_sets(), members)
        yield from self._workload(given, build, (POD_GROUP_KIND, group.namespace, group.name), members)

    def _workload(
        self,
        given: Workload | None,
        build: Callable[[], Workload],
        key: OwnerKey,
        members: Mapping[str, Sequence[Pod]],
    ) -> Iterator[QueuedWorkload]:
        workload = given
        if workload is None:
            workload = build()
            self._running.admit(workload, members)
        elif workload.condition(FINISHED) is not None:
            return
        keys = {name: [pod.key for pod in pods if not pod.is_terminal] for name, pods in members.items()}
        names = [pod_set.name for pod_set in workload.spec.pod_sets]
        if len(names) == 1 and names[0] not in keys:  # a role by another name is the only role all the same
            keys = {names[0]: [found for pods in keys.values() for found in pods]}
        yield QueuedWorkload(workload, key, {name: keys.get(name, []) for name in names})

    def _uid(self, stage: int, found: Any) -> str:
        """A uid that sorts as the walk goes: by stage, then in the order given."""
        stage_of_maker, number, *further = self._manifests.ranks.get(identity_of(found), (0, 0))
        text = f"{MADE_UID}{stage:02}{stage_of_maker:02}{number:08}"
        return "-".join((text, *(f"{each:06}" for each in further))) if any(further) else text

    def _is_part_of_queued(self, metadata: ObjectMeta) -> bool:
        """Whether something above it queues, so that it is admitted with that."""
        owner = controller_of(metadata) if metadata.owner_references else None
        seen: set[OwnerKey] = set()
        while owner is not None:
            key = (owner.kind, metadata.namespace, owner.name)
            parent = self._metadata_of(key)
            if parent is None or key in seen:
                return False
            if queue_name(parent):
                return True
            seen.add(key)
            owner = controller_of(parent)
        return False

    def _metadata_of(self, key: OwnerKey) -> ObjectMeta | None:
        if self._parents is None:
            manifests = self._manifests
            lists: list[Sequence[Any]] = [manifests.deployments, manifests.replica_sets]
            lists += [manifests.all_of(kind.type) for kind in JOB_KINDS]
            self._parents = {owner_key(found): found.metadata for each in lists for found in each}
        return self._parents.get(key)


def _owner_of(workload: Workload) -> OwnerKey:
    owners = workload.metadata.owner_references or []
    kind, name = (owners[0].kind, owners[0].name) if owners else (workload.kind, workload.metadata.name)
    return kind, workload.metadata.namespace, name


def _follows_its_job(given: Workload) -> bool:
    """Whether we made a Workload, and nothing has been given to it: its job may still become another."""
    has_made = MADE_FROM in (given.metadata.annotations or {})
    return has_made and given.status.admission is None and given.condition(FINISHED) is None


def _followed(given: Workload, made: Workload) -> Workload:
    """A Workload as its job is now: where that is what it was made from, as it is."""
    if fingerprint(made.spec) == (given.metadata.annotations or {})[MADE_FROM]:
        return given
    metadata = replace(given.metadata, annotations={**(given.metadata.annotations or {}), MADE_FROM: ""})
    return replace(given, metadata=metadata, spec=replace(made.spec, active=given.spec.active))


def _reference(api_version: str, kind: str, metadata: ObjectMeta) -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=metadata.name, uid=metadata.uid, controller=True)
