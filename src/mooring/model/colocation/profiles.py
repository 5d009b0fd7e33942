"""ClusterColocationProfiles, as Koordinator's webhook applies them: labels, class and QoS of a pod, and the names of
what it requests.

All of it works on a pod as a document, because a profile may patch any field of one.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from mooring.model.api.colocation_profile import ClusterColocationProfile
from mooring.model.api.meta import Document, LabelSelector
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PriorityClass
from mooring.model.colocation.classes import BATCH, MID, QOS_LABEL, priority_class
from mooring.model.colocation.estimates import NAMES
from mooring.model.colocation.pod_merge import merge_pod
from mooring.model.values.quantity import NANO, format_quantity, parse_quantity, to_millis
from mooring.model.values.requests import CPU, MEMORY
from mooring.model.values.selectors import LABEL_OPERATORS, compile_label_selector
from mooring.model.values.strategic_merge import PatchError

PRIORITY_NUMBER_LABEL = "koordinator.sh/priority"
SKIP_RESOURCES_ANNOTATION = "config.koordinator.sh/skip-update-resources"
EXTENDED_SPEC_ANNOTATION = "node.koordinator.sh/extended-resource-spec"
_PERCENT = re.compile(r"(\d+)%", re.ASCII)


class ProfileError(ValueError):
    """A profile cannot be applied: it names a PriorityClass that does not exist, or its patch is none."""

    def __init__(self, profile: str, field: str, found: str) -> None:
        super().__init__(f"ClusterColocationProfile {profile}: {field}: {found}")
        self.profile, self.field, self.found = profile, field, found


@dataclass(frozen=True)
class Surroundings:
    """What profiles read besides the pod."""

    profiles: tuple[ClusterColocationProfile, ...]
    namespaces: Mapping[str, Mapping[str, str]]
    """The labels of each namespace."""
    priority_classes: Mapping[str, PriorityClass]


def mutate_pod(pod: Document, around: Surroundings, draw: Callable[[str], int]) -> Document:
    """What the profiles make of a new pod. `draw` gives a number of 0 to 99 for a profile by its name: a profile with a
    probability counts if that is not above it.
    """
    found = [profile for profile in around.profiles if _matches(profile, pod, around.namespaces)]
    found.sort(key=lambda profile: profile.metadata.name)
    mutated = _copied(pod)
    for profile in found:
        if _is_drawn(profile, draw):
            mutated = _apply(profile, mutated, around)
    if found and not any(SKIP_RESOURCES_ANNOTATION in (one.metadata.annotations or {}) for one in found):
        _rename_resources(mutated)
    _write_extended_spec(mutated)
    return mutated


def _matches(profile: ClusterColocationProfile, pod: Document, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
    spec, metadata = profile.spec, pod["metadata"]
    of_namespace = namespaces.get(metadata.get("namespace") or "default")
    return _selects(spec.namespace_selector, of_namespace) and _selects(spec.selector, metadata.get("labels") or {})


def _selects(selector: LabelSelector | None, labels: Mapping[str, str] | None) -> bool:
    """A selector that is absent or empty matches everything, and so does one that cannot be evaluated."""
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return True
    if labels is None:
        return True
    for expression in selector.match_expressions or ():
        has_values = bool(expression.values)
        if expression.operator not in LABEL_OPERATORS or has_values != (expression.operator in ("In", "NotIn")):
            return True
    return compile_label_selector(selector).matches(labels)


def _is_drawn(profile: ClusterColocationProfile, draw: Callable[[str], int]) -> bool:
    percent = _percent(profile.spec.probability)
    return percent == 100 or (percent != 0 and draw(profile.metadata.name) <= percent)


def _percent(probability: int | str | None) -> int:
    if probability is None:
        return 100
    if isinstance(probability, int):
        return probability
    read = _PERCENT.fullmatch(probability)
    return int(read[1]) if read else 0


def _apply(profile: ClusterColocationProfile, pod: Document, around: Surroundings) -> Document:
    spec = profile.spec
    labels: dict[str, str] = {**(pod["metadata"].get("labels") or {}), **(spec.labels or {})}
    annotations: dict[str, str] = {**(pod["metadata"].get("annotations") or {}), **(spec.annotations or {})}
    for old, new in sorted((spec.label_keys_mapping or {}).items()):
        labels[new] = labels.get(old, "")
    for old, new in sorted((spec.annotation_keys_mapping or {}).items()):
        annotations[new] = annotations.get(old, "")
    for key, suffix in (spec.label_suffixes or {}).items():
        if key in labels:
            labels[key] += suffix
    if spec.scheduler_name:
        pod["spec"]["schedulerName"] = spec.scheduler_name
    if spec.qos_class:
        labels[QOS_LABEL] = spec.qos_class
    if spec.priority_class_name:
        named = around.priority_classes.get(spec.priority_class_name)
        if named is None:
            missing = f'no PriorityClass "{spec.priority_class_name}"'
            raise ProfileError(profile.metadata.name, "spec.priorityClassName", missing)
        _take_priority(pod["spec"], spec.priority_class_name, named)
    if spec.koordinator_priority is not None:
        labels[PRIORITY_NUMBER_LABEL] = str(spec.koordinator_priority)
    for field, values in (("labels", labels), ("annotations", annotations)):
        if values:
            pod["metadata"][field] = values
    return _patched(pod, profile)


def _patched(pod: Document, profile: ClusterColocationProfile) -> Document:
    if not profile.spec.patch:
        return pod
    try:
        patched = merge_pod(pod, profile.spec.patch)
        msgspec.convert(patched, Pod)
    except (PatchError, msgspec.ValidationError) as error:
        raise ProfileError(profile.metadata.name, "spec.patch", str(error)) from error
    return patched


def _take_priority(spec: Document, name: str, named: PriorityClass) -> None:
    spec["priorityClassName"], spec["priority"] = name, named.value
    if named.preemption_policy:
        spec["preemptionPolicy"] = named.preemption_policy
    else:
        spec.pop("preemptionPolicy", None)


def _rename_resources(pod: Document) -> None:
    """Let pods of class mid or batch ask for what is called so, instead of CPU and memory."""
    found = priority_class(msgspec.convert(pod, Pod))
    if found not in (MID, BATCH):
        return
    names = NAMES[found]
    for container in _containers(pod, "initContainers", "containers"):
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        _rename(requests, names)
        _rename(limits, names)
        for name in names.values():
            if name in limits and name not in requests:
                requests[name] = limits[name]
        if requests:
            resources["requests"] = requests
    _rename(pod["spec"].get("overhead") or {}, names)


def _rename(resources: Document, names: Mapping[str, str]) -> None:
    for name, called in names.items():
        if name in resources:
            amount = resources.pop(name)
            resources[called] = format_quantity(to_millis(parse_quantity(amount)) * NANO) if name == CPU else amount


def _write_extended_spec(pod: Document) -> None:
    """Tell the node agent, which sees no extended resources, what each container has of batch resources."""
    names = [NAMES[BATCH][name] for name in (CPU, MEMORY)]
    containers: dict[str, dict[str, dict[str, str]]] = {}
    for container in _containers(pod, "containers"):
        resources = container.get("resources") or {}
        parts = {
            part: {name: _written(amounts[name]) for name in names if name in amounts}
            for part in ("limits", "requests")
            if (amounts := resources.get(part) or {})
        }
        kept = {part: amounts for part, amounts in parts.items() if amounts}
        if kept:
            containers[container.get("name", "")] = kept
    annotations = pod["metadata"].get("annotations") or {}
    if not containers and EXTENDED_SPEC_ANNOTATION not in annotations:
        return
    text = msgspec.json.encode({"containers": containers} if containers else {}, order="sorted").decode()
    pod["metadata"]["annotations"] = {**annotations, EXTENDED_SPEC_ANNOTATION: text}


def _written(amount: str | int | float) -> str:
    return amount if isinstance(amount, str) else format_quantity(parse_quantity(amount))


def _containers(pod: Document, *fields: str) -> Iterable[Document]:
    return (container for field in fields for container in pod["spec"].get(field) or ())


def _copied(pod: Document) -> Document:
    copied: Document = msgspec.json.decode(msgspec.json.encode(pod))
    return copied
