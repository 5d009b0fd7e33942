"""Recommend for every VerticalPodAutoscaler: usage from files, pods and nodes from manifests or a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from mooring.actions.resize.changes import PodChange, Sizer, Sizing
from mooring.drivers.offline.autoscaled import Autoscaled, find_autoscaled, unknown_container
from mooring.drivers.offline.driver import Offline
from mooring.drivers.offline.reading import Inputs, Loaded, latest_moment
from mooring.model.api.autoscaling import HorizontalPodAutoscaler
from mooring.model.api.meta import timestamp_text
from mooring.model.loading.documents import read_documents
from mooring.model.objects.kinds import as_mapping
from mooring.model.places import Place
from mooring.model.quotas.objects import LimitRange
from mooring.model.rightsizing.amounts import Amounts, current_resources
from mooring.model.rightsizing.horizontal import contest_note, contested_resources, without_contested
from mooring.model.rightsizing.limit_ranges import bounds_of
from mooring.model.rightsizing.modes import update_mode
from mooring.model.rightsizing.recommendations import Recommendation, is_off
from mooring.model.rightsizing.samples import OutOfMemory, UsageSample, out_of_memory_kills
from mooring.observe.progress import Progress
from mooring.report.recommendations import (
    AutoscalerAdvice,
    ContainerAdvice,
    Recommendations,
    container_advice,
    pod_advice,
    shown_amounts,
)
from mooring.state.pods import PodRecord
from mooring.state.usage.recommender import Recommender


@dataclass(frozen=True, slots=True)
class _Measured:
    """What was heard of the containers of one autoscaler."""

    samples: list[UsageSample]
    kills: list[OutOfMemory]


def recommend(loaded: Loaded, samples: Sequence[UsageSample], progress: Progress) -> Recommendations:
    """Decide as `mooring schedule` does, then say what every autoscaler recommends and what would come of it."""
    if loaded.inputs.now is None:
        now = max(latest_moment(loaded.pictures[0]), max((sample.at for sample in samples), default=0.0))
        loaded = replace(loaded, inputs=replace(loaded.inputs, now=now))
    autoscaled = find_autoscaled(loaded.manifests)
    for found in autoscaled:
        _check_policy(loaded.inputs, found)
    offline = loaded.start()
    offline.decide(progress)
    progress.phase("recommending")
    recommender = Recommender()
    heard = [_hear(recommender, found, samples, offline) for found in autoscaled]
    scheduler = offline.scheduler
    advice = []
    with scheduler.cluster.what_if():
        sizer = Sizer(scheduler.cluster, scheduler.queue, scheduler.profiles, offline.now)
        for found, measured in zip(autoscaled, heard, strict=True):
            advice.append(_advise(found, measured, recommender, sizer, offline, loaded))
    return Recommendations(advice)


def _check_policy(inputs: Inputs, found: Autoscaled) -> None:
    """Refuse a policy for a container that the pods of the target do not have: it would change nothing."""
    unknown = unknown_container(found)
    if unknown is None:
        return
    index, name = unknown
    names = ", ".join(found.containers)
    expected = f"a container of {found.target} ({names}), or *"
    field = f"spec.resourcePolicy.containerPolicies[{index}].containerName"
    raise _place_of(inputs, found).error(field, expected=expected, found=f'"{name}"', subject=found.vpa)


def _place_of(inputs: Inputs, found: Autoscaled) -> Place:
    """Where an autoscaler stands; it is looked for only when something is wrong with it."""
    metadata = found.vpa.metadata
    files = [name for name in chain(inputs.files, (step.file for step in inputs.then)) if name != "-"]
    place = Place(f"VerticalPodAutoscaler {found.key}")
    for document in read_documents(files) if inputs.kubeconfig is None else ():
        if document.kind == "VerticalPodAutoscaler" and not document.is_wrapper:
            named: dict[str, Any] = as_mapping(document.source, document.place).get("metadata") or {}
            if (named.get("namespace") or "default", named.get("name")) == (metadata.namespace, metadata.name):
                place = document.place
    return place


def _hear(recommender: Recommender, found: Autoscaled, samples: Sequence[UsageSample], offline: Offline) -> _Measured:
    """Feed what was measured of an autoscaler's containers up to now, in the order of time."""
    known = {pod.metadata.name for pod in found.pods}
    names = set(found.containers)
    own = [
        one
        for one in samples
        if one.namespace == found.namespace
        and one.container in names
        and one.at <= offline.now
        and (one.pod in known or (one.labels and found.selector.matches(one.labels)))
    ]
    kills = [one for one in out_of_memory_kills(found.pods) if one.at <= offline.now]
    recommender.hear(found.key, sorted([*own, *kills], key=lambda one: one.at))
    return _Measured(own, kills)


def _advise(
    found: Autoscaled,
    measured: _Measured,
    recommender: Recommender,
    sizer: Sizer,
    offline: Offline,
    loaded: Loaded,
) -> AutoscalerAdvice:
    policy = found.vpa.spec.resource_policy
    known = [name for name in found.containers if recommender.sample_count(found.key, name)]
    raw = [one for one in recommender.recommend(found.key, found.containers, policy) if one.container in known]
    limits = [one for one in loaded.manifests.of(LimitRange) if one.metadata.namespace == found.namespace]
    contested: dict[str, str] = {}
    if found.vpa.spec.target_ref is not None:
        horizontal = loaded.manifests.of(HorizontalPodAutoscaler)
        contested = contested_resources(horizontal, found.namespace, found.vpa.spec.target_ref)
    raw = without_contested(raw, contested)
    sizing = Sizing(found.vpa, raw, bounds_of(limits, "Container"), bounds_of(limits, "Pod"))
    records = _records(found, offline)
    changes = sizer.changes(sizing, records)
    nodes = {record.key: record.node_name for record in records}
    times = [one.at for one in measured.samples]
    return AutoscalerAdvice(
        found.namespace,
        found.vpa.metadata.name,
        str(found.target),
        update_mode(found.vpa),
        [_container(name, found, raw, changes, recommender, measured) for name in found.containers],
        [pod_advice(change, nodes[change.record.key]) for change in changes],
        len(measured.samples),
        timestamp_text(min(times)) if times else "",
        timestamp_text(max(times)) if times else "",
        _problem(found, raw, changes) or contest_note(contested),
    )


def _records(found: Autoscaled, offline: Offline) -> list[PodRecord]:
    """The pods of an autoscaler that are there and not over, in the order of their names."""
    records = offline.scheduler.cluster.pods.records
    own = (records.get(pod.key) for pod in found.pods)
    return sorted((one for one in own if one is not None and one.leaving is None), key=lambda one: one.key)


def _problem(found: Autoscaled, raw: Sequence[Recommendation], changes: Sequence[PodChange]) -> str:
    if not found.pods:
        return f"there is no pod of {found.target}"
    if not raw:
        return "nothing was measured of its containers, or all of them are in mode Off"
    infeasible = {change.fitted.infeasible for change in changes if change.fitted.infeasible}
    return f"infeasible: {'; '.join(sorted(infeasible))}" if infeasible else ""


def _container(
    name: str,
    found: Autoscaled,
    raw: Sequence[Recommendation],
    changes: Sequence[PodChange],
    recommender: Recommender,
    measured: _Measured,
) -> ContainerAdvice:
    """A container's row, as the first pod of the autoscaler would have it."""
    requests = _requests(name, found)
    own = next((one for one in raw if one.container == name), None)
    if own is None:
        off = is_off(found.vpa.spec.resource_policy, name)
        why = "its policy is in mode Off" if off else "nothing was measured of it"
        return ContainerAdvice(name, why, 0, shown_amounts(requests))
    change = min(changes, key=lambda change: change.record.key, default=None)
    fitted = change.fitted.recommendations if change is not None else raw
    shown = next((one for one in fitted if one.container == name), own)
    samples = recommender.sample_count(found.key, name)
    kills = sum(one.container == name for one in measured.kills)
    limited_by = change.fitted.limited_by if change is not None else ""
    return container_advice(shown, own, requests, samples, _why(samples, kills, own, shown, limited_by))


def _requests(name: str, found: Autoscaled) -> Amounts:
    for pod in found.pods[:1]:
        for container in pod.spec.containers:
            if container.name == name:
                return current_resources(pod, container)[0]
    return {}


def _why(samples: int, kills: int, own: Recommendation, shown: Recommendation, limited_by: str) -> str:
    """Where a target comes from, and what holds it up or down."""
    words = [f"90th percentile of {samples:,} samples, plus 15%"]
    if kills:
        words.append(f"killed for want of memory {kills} times" if kills > 1 else "killed once for want of memory")
    for name, uncapped in own.uncapped_target.items():
        allowed, final = own.target.get(name, uncapped), shown.target.get(name, uncapped)
        if allowed != uncapped:
            words.append(f"{name} {'raised to minAllowed' if allowed > uncapped else 'cut to maxAllowed'}")
        if final != allowed:
            by = f"node {limited_by}" if limited_by and final < allowed else "a LimitRange or its limit"
            words.append(f"{name} {'raised' if final > allowed else 'cut'} by {by}")
    return "; ".join(words)
