"""ReplicationControllers, ReplicaSets, Deployments, StatefulSets, DaemonSets, and the templates of their pods."""

from collections.abc import Iterable
from typing import Any, ClassVar

from mooring.kubeapi.kinds.field_errors import at_least, forbidden, immutable, invalid, not_supported, required
from mooring.kubeapi.kinds.metadata import check_annotations, check_labels
from mooring.kubeapi.kinds.pod_spec import check_pod_spec
from mooring.kubeapi.kinds.selectors import check_selector, is_selected
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.status import FieldError, Object

_EMPTY_WORDS = {"ReplicaSet": "deployment"}
"""Kinds that are called by another's name when their selector is empty."""
_MISMATCH = "`selector` does not match template `labels`"


def check_template(template: Object, path: str = "spec.template", *, claimed: Iterable[str] = ()) -> list[FieldError]:
    metadata = template.get("metadata") or {}
    found = check_labels(metadata.get("labels"), f"{path}.labels")
    found += check_annotations(metadata.get("annotations"), f"{path}.annotations")
    return found + check_pod_spec(template.get("spec") or {}, f"{path}.spec", claimed=claimed)


def check_selection(spec: Object, kind: str) -> list[FieldError]:
    """Check that a selector is there, and selects the pods of the template beside it."""
    selector = spec.get("selector")
    given = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    labels = given or {}
    if selector is None:
        return [required("spec.selector"), invalid("spec.template.metadata.labels", given, _MISMATCH)]
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return [
            invalid("spec.selector", selector, f"empty selector is invalid for {_EMPTY_WORDS.get(kind, kind.lower())}")
        ]
    found = check_selector(selector)
    if not found and not is_selected(selector, labels):
        found.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    return found


def _check_always(spec: Object) -> list[FieldError]:
    """Pods of a workload that goes on for ever are restarted for ever."""
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    return [] if policy == "Always" else [not_supported("spec.template.spec.restartPolicy", policy, ("Always",))]


class Replicated(Standard):
    """What has replicas, a selector and a template."""

    immutable_fields: ClassVar[tuple[str, ...]] = ("spec.selector",)

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        found = at_least("spec.replicas", spec.get("replicas")) + at_least(
            "spec.minReadySeconds", spec.get("minReadySeconds")
        )
        found += check_selection(spec, self.resource.kind)
        claimed = [claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates") or ()]
        found += check_template(spec.get("template") or {}, claimed=claimed) + _check_always(spec)
        return found


class Deployments(Replicated):
    def is_new_generation(self, new: Object, old: Object) -> bool:
        annotations = (each["metadata"].get("annotations") for each in (new, old))
        return super().is_new_generation(new, old) or next(annotations) != next(annotations)

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        found = super().check(obj)
        found += at_least("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
        strategy = spec.get("strategy") or {}
        if strategy.get("type") == "Recreate" and "rollingUpdate" in strategy:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            found.append(forbidden("spec.strategy.rollingUpdate", detail))
        elif strategy.get("type") not in ("Recreate", "RollingUpdate"):
            found.append(not_supported("spec.strategy", _in_go(strategy), ("Recreate", "RollingUpdate")))
        if rolling := strategy.get("rollingUpdate"):
            found += _check_rolling(rolling, "spec.strategy.rollingUpdate")
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
            found.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
        return found


def _in_go(strategy: Object) -> Object:
    """A strategy as the server itself has it in memory, which is how its messages show it."""
    return {"Type": strategy.get("type", ""), "RollingUpdate": strategy.get("rollingUpdate")}


def _is_zero(value: Any) -> bool:
    return value in (0, "0%", None)


def _check_rolling(rolling: Object, path: str) -> list[FieldError]:
    found = []
    for name in ("maxUnavailable", "maxSurge"):
        value = rolling.get(name)
        if isinstance(value, str) and not (value.endswith("%") and value[:-1].isdigit()):
            detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
            found.append(invalid(f"{path}.{name}", value, f"{detail}regex used for validation is '[0-9]+%')"))
        elif isinstance(value, int):
            found += at_least(f"{path}.{name}", value)
    if _is_zero(rolling.get("maxUnavailable")) and _is_zero(rolling.get("maxSurge")):
        detail = "may not be 0 when `maxSurge` is 0"
        found.append(invalid(f"{path}.maxUnavailable", rolling.get("maxUnavailable"), detail))
    return found


class StatefulSets(Replicated):
    immutable_fields: ClassVar[tuple[str, ...]] = (
        "spec.selector",
        "spec.volumeClaimTemplates",
        "spec.serviceName",
        "spec.podManagementPolicy",
    )

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        found = super().check(obj)
        if (policy := spec.get("podManagementPolicy")) not in ("OrderedReady", "Parallel"):
            found.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
        strategy = spec.get("updateStrategy") or {}
        if strategy.get("type") not in ("RollingUpdate", "OnDelete", "Recreate"):
            detail = "must be 'RollingUpdate', 'OnDelete', or 'Recreate'"
            found.append(invalid("spec.updateStrategy", _in_go(strategy), detail))
        partition = (strategy.get("rollingUpdate") or {}).get("partition")
        found += at_least("spec.updateStrategy.rollingUpdate.partition", partition)
        return found + at_least("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))


class DaemonSets(Replicated):
    def default(self, obj: Object) -> None:
        super().default(obj)
        obj["metadata"].setdefault("annotations", {}).setdefault("deprecated.daemonset.template.generation", "1")

    def change(self, new: Object, old: Object, subresource: str) -> None:
        name = "deprecated.daemonset.template.generation"
        before = int((old["metadata"].get("annotations") or {}).get(name) or "1")
        is_changed = new["spec"].get("template") != old["spec"].get("template")
        new["metadata"].setdefault("annotations", {})[name] = str(before + is_changed)

    def check(self, obj: Object) -> list[FieldError]:
        found = super().check(obj)
        strategy = obj["spec"].get("updateStrategy") or {}
        if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
            found.append(not_supported("spec.updateStrategy", _in_go(strategy), ("RollingUpdate", "OnDelete")))
        elif strategy["type"] == "RollingUpdate":
            found += _check_rolling(strategy.get("rollingUpdate") or {}, "spec.updateStrategy.rollingUpdate")
        return found


class ReplicationControllers(Standard):
    fields_selectable: ClassVar[dict[str, tuple[str, ...]]] = {"status.replicas": ("status", "replicas")}

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        found = at_least("spec.replicas", spec.get("replicas"))
        template = spec.get("template")
        if not spec.get("selector"):
            found.append(required("spec.selector"))
        if template is None:
            return [*found, required("spec.template")]
        labels = (template.get("metadata") or {}).get("labels") or {}
        if any(labels.get(key) != value for key, value in (spec.get("selector") or {}).items()):
            found.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
        return found + check_template(template) + _check_always(spec)


class ReplicaSets(Replicated):
    fields_selectable: ClassVar[dict[str, tuple[str, ...]]] = {"status.replicas": ("status", "replicas")}


class PodTemplates(Standard):
    returns_deleted = True

    def check(self, obj: Object) -> list[FieldError]:
        return check_template(obj.get("template") or {}, "template")


class ControllerRevisions(Standard):
    counts_generation = False

    def check(self, obj: Object) -> list[FieldError]:
        return at_least("revision", obj.get("revision"))

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("data", new.get("data"), old.get("data"))
