"""What admission adds to a job and to its pods, as Kueue writes it. Nothing here is sent.

A suspended job gets the node selector, tolerations, labels, annotations and gates of each of its pod sets in the
template of that pod set when it is started. What the templates said before is kept in an annotation of the job, and
restored from there when the job is suspended again. Pods that exist already get the same themselves.

A TrainJob has no templates of its own, and those of an AppWrapper are in other objects: the one gets a runtime patch,
the other `podSetInfos`. These are admission's alone, and are removed when the job is suspended again.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mooring.model.api.kueue_labels import ORIGINAL_TEMPLATES, POD_SET, QUEUE_GATES, TOPOLOGY_GATE
from mooring.model.api.pods import Pod, Toleration
from mooring.model.jobs.app_wrapper import WRAPPER, find_template
from mooring.model.jobs.train_job import TRAIN_JOB, admission_patches
from mooring.model.objects.job_kinds import JOB_KINDS
from mooring.model.pod_patch import PodPatch

TAS, WORKLOAD_NAME = "kueue.x-k8s.io/tas", "kueue.x-k8s.io/workload"
_METADATA, _SPEC = ("labels", "annotations"), ("nodeSelector", "tolerations", "schedulingGates")
"""The fields of a template that admission adds to."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Given:
    """What the pods of one pod set are given."""

    patch: PodPatch
    has_topology: bool = False
    own_tolerations: Sequence[Toleration] = ()
    """What the template tolerates itself: a runtime patch replaces all tolerations."""


def template_paths(job: Any) -> dict[str, str]:
    """By pod set of a job, the field that its template is in; nothing for an object that is no job."""
    kind = next((kind for kind in JOB_KINDS if isinstance(job, kind.type)), None)
    units = kind.units(job) if kind is not None else []
    return {plan.name: plan.path for plan in units[0].pod_sets} if len(units) == 1 else {}


def is_set(job: Json, fields: Sequence[str]) -> bool:
    """Whether a boolean field of a job is true."""
    found: Any = job
    for field in fields:
        found = (found or {}).get(field)
    return bool(found)


def started(
    job: Json, fields: Sequence[str], workload: str, paths: Mapping[str, str], given: Mapping[str, Given]
) -> Json:
    """A suspended job as it is to be when it starts; `fields` say where it is suspended."""
    made = restored(job)
    if made.get("kind") == TRAIN_JOB:
        _patch_runtime(made, workload, given)
        return with_value(made, fields, False)
    if made.get("kind") == WRAPPER:
        _inform_components(made, workload, paths, given)
        return with_value(made, fields, False)
    originals: Json = {}
    for name, each in given.items():
        template = find_template(made, paths[name]) if name in paths else None
        if template is not None:
            before = _terms(template)
            _add(template, name, workload, each)
            if _terms(template) != before:
                originals[paths[name]] = before
    if originals:
        annotations = made["metadata"].setdefault("annotations", {})
        annotations[ORIGINAL_TEMPLATES] = msgspec.json.encode(originals).decode()
    return with_value(made, fields, False)


def _patch_runtime(job: Json, workload: str, given: Mapping[str, Given]) -> None:
    """Write what the pod sets of a TrainJob are given as a patch of its runtime."""
    jobs: list[Json] = []
    for name, each in given.items():
        template: Json = {"spec": {"tolerations": msgspec.to_builtins(list(each.own_tolerations))}}
        _add(template, name, workload, each)
        if template["spec"]["tolerations"] == msgspec.to_builtins(list(each.own_tolerations)):
            del template["spec"]["tolerations"]
        jobs.append({"name": name, "template": {"spec": {"template": template}}})
    job["spec"]["runtimePatches"] = admission_patches(job["spec"].get("runtimePatches"), jobs)


def _inform_components(job: Json, workload: str, paths: Mapping[str, str], given: Mapping[str, Given]) -> None:
    """Write what the pod sets of an AppWrapper are given beside the components that they are in."""
    for name, path in paths.items():  # such as `spec.components[0].podSetInfos[1]`, in order
        component = find_template(job, path.rpartition(".")[0])
        if component is not None:
            template: Json = {}
            if name in given:
                _add(template, name, workload, given[name])
            info = {**(template.get("metadata") or {}), **(template.get("spec") or {})}
            component.setdefault("podSetInfos", []).append(info)


def is_patched(job: Json) -> bool:
    """Whether admission has added to the templates of a job."""
    if job.get("kind") in (TRAIN_JOB, WRAPPER):
        return restored(job) != job
    return ORIGINAL_TEMPLATES in ((job.get("metadata") or {}).get("annotations") or {})


def restored(job: Json) -> Json:
    """A job with its templates as they were before it was started."""
    made = copy.deepcopy(job)
    if made.get("kind") == TRAIN_JOB:
        if patches := admission_patches(made["spec"].pop("runtimePatches", None), []):
            made["spec"]["runtimePatches"] = patches
        return made
    if made.get("kind") == WRAPPER:
        for component in made["spec"].get("components") or ():
            component.pop("podSetInfos", None)
        return made
    kept = (made["metadata"].get("annotations") or {}).pop(ORIGINAL_TEMPLATES, None) if is_patched(job) else None
    try:
        originals = msgspec.json.decode(kept) if kept is not None else {}
    except msgspec.DecodeError:
        return made
    for path, terms in originals.items():
        template = find_template(made, path)
        if template is not None:
            for shard, names in (("metadata", _METADATA), ("spec", _SPEC)):
                inside = template.setdefault(shard, {}) or {}
                for name in names:
                    inside.pop(name, None)
                template[shard] = {**inside, **(terms.get(shard) or {})}
    return made


def with_value(job: Json, fields: Sequence[str], value: bool) -> Json:
    made = copy.deepcopy(job)
    inside = made
    for field in fields[:-1]:
        inside = inside.setdefault(field, {})
    inside[fields[-1]] = value
    return made


def merge_patch(old: Any, new: Any) -> Json:
    """The JSON merge patch that makes one object another."""
    changed: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := merge_patch(before, value):
                changed[key] = inner
        elif key not in old or before != value:
            changed[key] = value
    return changed


def pod_changes(world: Pod, assumed: Pod) -> Json:
    """The merge patch that makes a pod without a node in the world what the scheduler assumes it to be.

    The API server lets the node selector of a pod change only while the pod is gated; tolerations may be added to any.
    """
    is_gated = any(gate.name in QUEUE_GATES for gate in world.spec.scheduling_gates or ())
    if is_gated and any(gate.name in QUEUE_GATES for gate in assumed.spec.scheduling_gates or ()):
        return {}
    spec: Json = {}
    if is_gated:
        left = [{"name": gate.name} for gate in world.spec.scheduling_gates or () if gate.name not in QUEUE_GATES]
        spec["schedulingGates"] = left or None
        if selector := _more(world.spec.node_selector, assumed.spec.node_selector):
            spec["nodeSelector"] = selector
    own = world.spec.tolerations or []
    added = [each for each in assumed.spec.tolerations or () if each not in own]
    if added:
        spec["tolerations"] = msgspec.to_builtins([*own, *added])
    metadata: Json = {}
    for name in _METADATA:
        if marks := _more(getattr(world.metadata, name), getattr(assumed.metadata, name)):
            metadata[name] = marks
    found = {"metadata": metadata, "spec": spec}
    return {shard: changes for shard, changes in found.items() if changes}


def _more(own: Mapping[str, str] | None, wanted: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (wanted or {}).items() if (own or {}).get(key) != value}


def _terms(template: Json) -> Json:
    """What a template says in the fields that admission adds to."""
    found: Json = {}
    for shard, names in (("metadata", _METADATA), ("spec", _SPEC)):
        inside = template.get(shard) or {}
        found[shard] = copy.deepcopy({name: inside[name] for name in names if inside.get(name)})
    return {shard: terms for shard, terms in found.items() if terms}


def _add(template: Json, pod_set: str, workload: str, given: Given) -> None:
    patch = given.patch
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels = {**dict(patch.labels), POD_SET: pod_set}
    annotations = dict(patch.annotations)
    if given.has_topology:
        labels[TAS], annotations[WORKLOAD_NAME] = "true", workload
    for inside, name, more in (
        (metadata, "labels", labels),
        (metadata, "annotations", annotations),
        (spec, "nodeSelector", dict(patch.node_selector)),
    ):
        if more:
            inside[name] = {**(inside.get(name) or {}), **more}
    own = spec.get("tolerations") or []
    added = [each for each in msgspec.to_builtins(patch.tolerations) if each not in own]
    if added:
        spec["tolerations"] = [*own, *added]
    gates = spec.get("schedulingGates") or []
    if given.has_topology and {"name": TOPOLOGY_GATE} not in gates:
        spec["schedulingGates"] = [*gates, {"name": TOPOLOGY_GATE}]
    template["metadata"], template["spec"] = metadata, spec
