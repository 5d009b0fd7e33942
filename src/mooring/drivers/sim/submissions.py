"""Work as it reaches the cluster: documents in; out, the events of its arrival and of its end, and its pods with their
plans.

Everything goes through the one catalog that manifests go through. Jobs do not stay in it: what the catalog says when
one comes and goes again is kept, and told when that happens in virtual time.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, TypeAlias

import msgspec

from mooring.drivers.sim.amounts import Asked, asked_by
from mooring.drivers.sim.arrival import Arrival
from mooring.drivers.sim.forms import FORMS, priority_class
from mooring.drivers.sim.template import CREATED, DURATION, NAME, Template, blanks
from mooring.errors import ManifestError
from mooring.model.api.pods import Pod
from mooring.model.events import Event, GangLost, GangSeen, PodLost, PodSeen, WorkloadLost, WorkloadSeen
from mooring.model.gangs.membership import membership
from mooring.model.jobs.expansion import controller_of
from mooring.model.kubelet.plan import PodPlan, Timings, plan_of
from mooring.model.loading.catalog import Catalog
from mooring.model.loading.documents import flatten
from mooring.model.objects.kinds import decode, find_kind
from mooring.model.objects.picture import Identity
from mooring.model.places import Place

Document: TypeAlias = dict[str, Any]
Given: TypeAlias = tuple[Document, Place]
MOST_STENCILS = 4096
"""Kinds of jobs that are remembered: a trace may have as many as it has jobs."""


@dataclass(frozen=True, slots=True)
class Member:
    """What the pods of one template are to a simulation, whatever they are called."""

    plan: PodPlan
    asked: Asked


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job that comes to the cluster."""

    name: str
    """namespace/name"""
    queue: str
    """A LocalQueue is `namespace/name`; without a queue it is the namespace."""
    priority: int
    arrive: tuple[Event, ...]
    leave: tuple[Event, ...]
    """What happens when it is over: all that it brought is gone."""
    members: tuple[Member, ...]
    """One for each pod, in the order of the arriving pods."""
    more: int = 0
    """How many further pods it makes, one by one, as the others succeed."""

    @property
    def pods(self) -> list[Pod]:
        return [event.pod for event in self.arrive if isinstance(event, PodSeen)]


class Submissions:
    """Makes submissions, against what the catalog holds of the cluster: queues, priorities, flavors."""

    def __init__(self, catalog: Catalog, timings: Timings) -> None:
        self._catalog, self._timings = catalog, timings
        self._templates: dict[tuple[Any, ...], Template[Submitted]] = {}
        self._priorities: set[int] = set()
        self._number = 0

    def forget(self) -> None:
        """The cluster's queues or priorities changed: what was translated before may not hold any more."""
        self._templates.clear()

    def of_arrival(self, arrival: Arrival, form: str, place: Place) -> tuple[list[Event], Submitted]:
        """One job as objects of a form; before it, what it needs that is not there yet."""
        kind = (
            form,
            arrival.pods,
            arrival.queue,
            arrival.priority,
            arrival.namespace,
            arrival.duration == math.inf,
            *(tuple(found.items()) for found in (arrival.requests, arrival.labels, arrival.annotations)),
            tuple(arrival.node_labels.items()),
        )
        template = self._templates.get(kind)
        before: list[Event] = []
        if template is None:
            before = self._need_priority(arrival.priority)
            duration = DURATION if arrival.duration < math.inf else math.inf
            example = replace(arrival, name=NAME, time=CREATED, duration=duration)
            given = [(document, place) for document in FORMS[form](example)]
            try:
                template = Template(self._whole(given, arrival.queue))
            except ManifestError as error:  # its name is the stencil's
                raise place.error(error.field, expected=error.expected, found=error.found) from None
            if len(self._templates) >= MOST_STENCILS:
                self._templates.clear()
            self._templates[kind] = template
        self._number += 1
        return before, template.fill(blanks(arrival.name, arrival.time, arrival.duration, self._number))

    def of_documents(self, given: Sequence[Given]) -> list[Submitted]:
        """All jobs among some documents, each by itself; what belongs to no job comes with the first."""
        return list(split(self._come_and_go(given), [document for document, _ in given], self._timings))

    def _whole(self, given: Sequence[Given], queue: str) -> Submitted:
        """One job out of everything."""
        documents = [document for document, _ in given]
        arrive = self._come_and_go(given)
        found = list(split(arrive, documents, self._timings))
        namespace = documents[0]["metadata"]["namespace"]
        is_local = any(isinstance(event, WorkloadSeen) for event in arrive)
        return Submitted(
            name=f"{namespace}/{NAME}",
            queue=(f"{namespace}/{queue}" if is_local else queue) or namespace,
            priority=max((each.priority for each in found), default=0),
            arrive=tuple(arrive),
            leave=tuple(event for each in found for event in each.leave),
            members=tuple(member for each in found for member in each.members),
        )

    def _come_and_go(self, given: Sequence[Given]) -> list[Event]:
        """What the catalog says of some objects; they do not stay in it."""
        put = list(put_documents(self._catalog, given))
        arrive = self._catalog.changes()
        for type_, namespace, name in put:
            self._catalog.remove(type_, namespace, name)
        self._catalog.changes()
        return arrive

    def _need_priority(self, priority: int) -> list[Event]:
        """Kubernetes knows priorities by the names of classes only: make the class of a number."""
        if not priority or priority in self._priorities:
            return []
        self._priorities.add(priority)
        list(put_documents(self._catalog, [(priority_class(priority), Place("priority"))]))
        return self._catalog.changes()


def put_documents(catalog: Catalog, given: Iterable[Given]) -> Iterator[Identity]:
    """Put documents into a catalog; yield the identity of each object."""
    for document, place in given:
        for found in flatten(document, place):
            kind = find_kind(found.api_version, found.kind)
            if found.is_wrapper:
                continue
            if kind is None:
                raise place.error("kind", expected="a kind that scheduling reads", found=f'"{found.kind}"')
            decoded = decode(found.source, kind.type, place, kind.name)
            catalog.put(decoded, place)
            yield kind.type, decoded.metadata.namespace, decoded.metadata.name


def split(arrive: Sequence[Event], documents: Sequence[Document], timings: Timings) -> Iterator[Submitted]:
    """The jobs among what happens: pods that are admitted together, start together, or have one controller."""
    plans = Plans(documents, timings)
    workloads = {key: event for event in arrive if isinstance(event, WorkloadSeen) for key in _pods_of(event)}
    gangs = {event.gang.key: event.gang for event in arrive if isinstance(event, GangSeen)}
    jobs: dict[str, list[PodSeen]] = {}
    for event in arrive:
        if isinstance(event, PodSeen) and not event.pod.is_terminal:
            jobs.setdefault(_job_of(event.pod, workloads), []).append(event)
    others = [event for event in arrive if not isinstance(event, PodSeen | WorkloadSeen)]
    for name, seen in jobs.items():
        pods = [event.pod for event in seen]
        mine = {workloads[pod.key].workload.workload.key: workloads[pod.key] for pod in pods if pod.key in workloads}
        groups = dict.fromkeys(found.gang for pod in pods if (found := membership(pod)) is not None)
        gang = next((gangs[key] for key in groups if key in gangs), None)
        namespace = pods[0].metadata.namespace
        local = next((event.workload.workload.spec.queue_name for event in mine.values()), "")
        queue = f"{namespace}/{local}" if local else gang.queue if gang is not None else ""
        yield Submitted(
            name=name,
            queue=queue or namespace,
            priority=max(pod.spec.priority or 0 for pod in pods),
            arrive=(*others, *seen, *mine.values()),
            leave=(
                *(PodLost(pod.key) for pod in pods),
                *(WorkloadLost(key) for key in mine),
                *(GangLost(key) for key in groups if key in gangs),
            ),
            members=tuple(Member(plans.of(pod), asked_by(pod)) for pod in pods),
            more=plans.more(pods[0]),
        )
        others = []


def _pods_of(event: WorkloadSeen) -> Iterator[str]:
    for keys in event.workload.pods.values():
        yield from keys


def _job_of(pod: Pod, workloads: Mapping[str, WorkloadSeen]) -> str:
    namespace = pod.metadata.namespace
    if pod.key in workloads:
        return f"{namespace}/{workloads[pod.key].workload.owner_key[2]}"
    member, owner = membership(pod), controller_of(pod.metadata)
    if member is not None:
        return f"{namespace}/{member.gang.rpartition('/')[2]}"
    return str(pod.key) if owner is None else f"{namespace}/{owner.name}"


class Plans:
    """What pods do on their nodes, as their documents say; the typed pod has no more than scheduling reads."""

    def __init__(self, documents: Sequence[Document], timings: Timings) -> None:
        self._timings = timings
        self._specs: dict[tuple[str, ...], list[tuple[str, str, Document]]] = {}
        """By the names of its containers: namespace and name of an object, and the pod spec in it, in order."""
        self._jobs: dict[tuple[str, str], Document] = {}
        for document in documents:
            for item in document["items"] if isinstance(document.get("items"), list) else [document]:
                self._read(item)
        for found in self._specs.values():
            found.sort(key=itemgetter(0, 1))
        self._known: dict[bytes, PodPlan] = {}

    def of(self, pod: Pod) -> PodPlan:
        metadata: Document = msgspec.to_builtins(pod.metadata)
        written = self._written(pod)
        document = {
            "metadata": {key: metadata.get(key) for key in ("annotations", "ownerReferences")},
            "spec": written if written is not None else msgspec.to_builtins(pod.spec),
        }
        key = msgspec.msgpack.encode(document)
        plan = self._known.get(key)
        if plan is None:
            plan = self._known[key] = plan_of(document, self._timings)
        return plan

    def _read(self, document: Document) -> None:
        metadata = document.get("metadata") or {}
        name = str(metadata.get("name") or metadata.get("generateName") or "").partition("{")[0]
        place = str(metadata.get("namespace") or "default"), name
        for spec in pod_specs(document):
            containers = tuple(container.get("name") for container in spec["containers"])
            self._specs.setdefault(containers, []).append((*place, spec))
        if document.get("kind") == "Job" and str(document.get("apiVersion")).startswith("batch/"):
            self._jobs[place] = document["spec"]

    def _written(self, pod: Pod) -> Document | None:
        """The spec that a pod was made of: of those with its containers the one whose name begins as its own does."""
        found = self._specs.get(tuple(container.name for container in pod.spec.containers))
        if found is None:
            return None
        mine = (pod.metadata.namespace, pod.metadata.name)
        index = bisect_right(found, mine, key=itemgetter(0, 1))
        near = found[max(0, index - 1) : index + 1]  # in this order it is next to what begins alike
        return max(near, key=lambda each: (each[0] == mine[0], _common(each[1], mine[1])))[2]

    def more(self, pod: Pod) -> int:
        """How many pods a Job makes beyond those that run at a time."""
        owner = controller_of(pod.metadata)
        name = owner.name if owner is not None and owner.kind == "Job" else ""
        spec = self._jobs.get((pod.metadata.namespace, name))
        if spec is None:
            return 0
        completions, parallelism = spec.get("completions"), spec.get("parallelism")
        return max(0, int(completions or 0) - int(1 if parallelism is None else parallelism))


def _common(one: str, other: str) -> int:
    """With how many equal characters two names begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (mine, yours) in pairs if mine != yours), min(len(one), len(other)))


def is_work(document: Document) -> bool:
    """Whether an object brings pods, or groups those of others."""
    kind = document.get("kind")
    return kind in ("Workload", "PodGroup") or next(pod_specs(document), None) is not None


def pod_specs(value: Any) -> Iterator[Document]:
    """Every pod spec within a document, wherever its kind has its templates."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list) and value["containers"]:
            yield value
        for inner in value.values():
            yield from pod_specs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pod_specs(inner)
