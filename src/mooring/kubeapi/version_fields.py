"""Fields that only some versions of a kind have: an annotation keeps them while the object is in another version.

A path is written `spec.a`, or `spec.list[].a` for a field of each item of a list.
"""

import json
from typing import Any

from mooring.kubeapi.status import Object

KEPT = "mooring.dev/fields-of-other-versions"
ONLY_STORED: dict[tuple[str, str], tuple[str, ...]] = {
    ("clusterqueues.kueue.x-k8s.io", "v1beta1"): ("spec.concurrentAdmissionPolicy",),
    ("workloads.kueue.x-k8s.io", "v1beta1"): (
        "spec.preemptionGates",
        "spec.podSets[].topologyRequest.podsetSliceRequiredTopologyConstraints",
    ),
    ("noderesourcetopologies.topology.node.k8s.io", "v1alpha1"): ("attributes",),
    ("mpijobs.kubeflow.org", "v1"): (
        "spec.launcherCreationPolicy",
        "spec.mpiImplementation",
        "spec.runLauncherAsWorker",
        "spec.sshAuthMountPath",
    ),
    ("horizontalpodautoscalers.autoscaling", "v1"): (
        "spec.metrics",
        "spec.behavior",
        "status.conditions",
        "status.currentMetrics",
    ),
}
"""By resource and version: what the storage version has and this one has not."""
ONLY_THERE: dict[tuple[str, str], tuple[str, ...]] = {
    ("admissionchecks.kueue.x-k8s.io", "v1beta1"): ("spec.retryDelayMinutes",),
    ("clusterqueues.kueue.x-k8s.io", "v1beta1"): ("spec.admissionChecks",),
    ("mpijobs.kubeflow.org", "v1"): ("spec.cleanPodPolicy", "spec.mainContainer"),
}
"""By resource and version: what this one has and the storage version has not."""


def hide(obj: Object, paths: tuple[str, ...]) -> Object:
    """An object without some fields: they are in an annotation. `obj` stays as it is."""
    if not paths:
        return obj
    found = json.loads(json.dumps(obj))
    kept = {path: taken for path in paths if (taken := _take(found, path.split("."))) is not None}
    if kept:
        about = found.setdefault("metadata", {})
        annotations = about["annotations"] = dict(about.get("annotations") or {})
        annotations[KEPT] = json.dumps({**_kept(found), **kept}, separators=(",", ":"), sort_keys=True)
    return dict(found)


def show(obj: Object, paths: tuple[str, ...]) -> Object:
    """An object with the fields that an annotation keeps for it, where it does not have them by itself."""
    kept = _kept(obj)
    mine = {path: value for path, value in kept.items() if path in paths}
    if not mine:
        return obj
    found = json.loads(json.dumps(obj))
    for path, value in mine.items():
        _put(found, path.split("."), value)
    left = {path: value for path, value in kept.items() if path not in mine}
    annotations = found["metadata"]["annotations"]
    if left:
        annotations[KEPT] = json.dumps(left, separators=(",", ":"), sort_keys=True)
    else:
        del annotations[KEPT]
        if not annotations:
            del found["metadata"]["annotations"]
    return dict(found)


def _kept(obj: Object) -> dict[str, Any]:
    text = ((obj.get("metadata") or {}).get("annotations") or {}).get(KEPT)
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _take(value: Any, path: list[str]) -> Any:
    name = path[0].removesuffix("[]")
    if not isinstance(value, dict) or name not in value:
        return None
    if len(path) == 1:
        return value.pop(name)
    if not path[0].endswith("[]"):
        return _take(value[name], path[1:])
    items = [_take(item, path[1:]) for item in value[name] if isinstance(value[name], list)]
    return items if any(item is not None for item in items) else None


def _put(value: Any, path: list[str], kept: Any) -> None:
    name = path[0].removesuffix("[]")
    if not isinstance(value, dict) or kept is None:
        return
    if len(path) == 1:
        value.setdefault(name, kept)
    elif not path[0].endswith("[]"):
        _put(value.setdefault(name, {}), path[1:], kept)
    elif isinstance(value.get(name), list) and isinstance(kept, list):
        for item, inner in zip(value[name], kept, strict=False):
            _put(item, path[1:], inner)
