"""Kueue's v1beta1 and v1beta2: the same objects, with other names for some fields and values."""

from mooring.kubeapi.status import Object

GROUP = "kueue.x-k8s.io"
_OLD_VALUES = {"whenCanBorrow": {"Borrow": "MayStopSearch"}, "whenCanPreempt": {"Preempt": "MayStopSearch"}}
_PRIORITY_CLASSES = {
    "scheduling.k8s.io/priorityclass": ("scheduling.k8s.io", "PriorityClass"),
    "kueue.x-k8s.io/workloadpriorityclass": (GROUP, "WorkloadPriorityClass"),
}
_SOURCES = {reference: source for source, reference in _PRIORITY_CLASSES.items()}


def _renamed(fields: Object, names: dict[str, dict[str, str]]) -> Object:
    return {
        key: names.get(key, {}).get(value, value) if isinstance(value, str) else value for key, value in fields.items()
    }


def from_v1beta1(obj: Object) -> Object:
    """An object of v1beta1 in v1beta2."""
    spec = dict(obj.get("spec") or {})
    if obj.get("kind") == "ClusterQueue":
        if cohort := spec.pop("cohort", None):
            spec["cohortName"] = cohort
        if (checks := spec.get("admissionChecks")) and not spec.get("admissionChecksStrategy"):
            spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": name} for name in checks]}
        if fungibility := spec.get("flavorFungibility"):
            spec["flavorFungibility"] = _renamed(fungibility, _OLD_VALUES)
    elif obj.get("kind") == "Workload":
        name, source = spec.pop("priorityClassName", ""), spec.pop("priorityClassSource", "")
        if name:
            group, kind = _PRIORITY_CLASSES.get(source, (GROUP, "WorkloadPriorityClass"))
            spec["priorityClassRef"] = {"group": group, "kind": kind, "name": name}
    else:
        return obj
    return {**obj, "spec": spec}


def to_v1beta1(obj: Object) -> Object:
    """An object of v1beta2 in v1beta1."""
    spec = dict(obj.get("spec") or {})
    if obj.get("kind") == "ClusterQueue":
        if cohort := spec.pop("cohortName", None):
            spec["cohort"] = cohort
        rules = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or []
        if checks := spec.get("admissionChecks"):
            if [{"name": name} for name in checks] == rules:
                del spec["admissionChecksStrategy"]  # it was written as names
            else:
                del spec["admissionChecks"]  # the rules have changed since
        if fungibility := spec.get("flavorFungibility"):
            old = {key: {new: old for old, new in values.items()} for key, values in _OLD_VALUES.items()}
            spec["flavorFungibility"] = _renamed(fungibility, old)
    elif obj.get("kind") == "Workload":
        if reference := spec.pop("priorityClassRef", None):
            known = (reference.get("group", ""), reference.get("kind", ""))
            spec["priorityClassName"] = reference.get("name", "")
            spec["priorityClassSource"] = _SOURCES.get(known, "kueue.x-k8s.io/workloadpriorityclass")
    else:
        return obj
    return {**obj, "spec": spec}
