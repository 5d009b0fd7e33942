"""What may change of a pod that exists: little by an update, resources by a resize, more containers to debug it."""

from typing import Any

from mooring.kubeapi.kinds.field_errors import differences, forbidden, invalid
from mooring.kubeapi.status import FieldError, Object
from mooring.model.kubelet.qos import qos_class

_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_KINDS = ("containers", "initContainers")
_RESIZABLE = ("cpu", "memory")


def check_changes(new: Object, old: Object) -> list[FieldError]:
    """What an update may not change."""
    spec, before = new["spec"], old["spec"]
    for kind in _KINDS:
        if len(spec.get(kind) or ()) != len(before.get(kind) or ()):
            return [forbidden(f"spec.{kind}", "pod updates may not add or remove containers")]
    found = _check_deadline(spec, before)
    for toleration in before.get("tolerations") or ():
        if not any(_is_same_toleration(toleration, other) for other in spec.get("tolerations") or ()):
            detail = "existing toleration can not be modified except its tolerationSeconds"
            found.append(forbidden("spec.tolerations", detail))
            break
    gates = {gate["name"] for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate["name"] not in gates:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            found.append(forbidden(f"spec.schedulingGates[{index}].name", detail))
    munged = _without_updatable(spec, before)
    if gates:
        found += _check_gated(munged, before)
    if munged != before:
        shown = differences(before, munged)
        found.append(forbidden("spec", f"pod updates may not change fields other than {_UPDATABLE}\n{shown}"))
    return found


def _is_same_toleration(one: Object, other: Object) -> bool:
    seconds = "tolerationSeconds"
    return {name: value for name, value in one.items() if name != seconds} == {
        name: value for name, value in other.items() if name != seconds
    }


def _check_deadline(spec: Object, before: Object) -> list[FieldError]:
    deadline, was = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    field = "spec.activeDeadlineSeconds"
    if was is None or deadline == was:
        return []
    if deadline is None:
        return [invalid(field, None, "must not update from a positive integer to nil value")]
    return [invalid(field, deadline, "must be less than or equal to previous value")] if deadline > was else []


def _without_updatable(spec: Object, before: Object) -> Object:
    """The new spec with what may be changed as it was before."""
    munged = dict(spec)
    for kind in _KINDS:
        if kind in munged:
            pairs = zip(munged[kind], before[kind], strict=True)
            munged[kind] = [{**container, "image": old.get("image", "")} for container, old in pairs]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        munged.pop(name, None)
        if name in before:
            munged[name] = before[name]
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    return munged


def _check_gated(munged: Object, before: Object) -> list[FieldError]:
    """A pod that is gated may be told more about where to go, never less."""
    found = []
    selector, was = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in was.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        found.append(invalid("spec.nodeSelector", selector, detail))
    affinity = dict(munged.get("affinity") or {})
    old_affinity = before.get("affinity") or {}
    found += _check_gated_affinity(affinity.get("nodeAffinity") or {}, old_affinity.get("nodeAffinity") or {})
    affinity.pop("nodeAffinity", None)
    if "nodeAffinity" in old_affinity:
        affinity["nodeAffinity"] = old_affinity["nodeAffinity"]
    for name, value, held in (("affinity", affinity, "affinity"), ("nodeSelector", was, "nodeSelector")):
        munged.pop(name, None)
        if value or held in before:
            munged[name] = value
    return found


def _check_gated_affinity(affinity: Object, before: Object) -> list[FieldError]:
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    terms, was = affinity.get(name, {}).get("nodeSelectorTerms"), before.get(name, {}).get("nodeSelectorTerms")
    if not was:
        return []
    field = f"spec.affinity.nodeAffinity.{name}.nodeSelectorTerms"
    if not terms or len(terms) != len(was):
        return [invalid(field, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")]
    for index, (term, old) in enumerate(zip(terms, was, strict=True)):
        for part in ("matchExpressions", "matchFields"):
            held = old.get(part) or []
            if (term.get(part) or [])[: len(held)] != held:
                return [invalid(f"{field}[{index}]", term, "only additions are allowed (no mutations or deletions)")]
    return []


def only_resources(new: Object, old: Object) -> None:
    """Keep of a resize what it is about; what else was changed about containers is left for the checks to find."""
    spec, before = new["spec"], old["spec"]
    kept: dict[str, Any] = {}
    for kind in _KINDS:
        containers, held = spec.get(kind) or [], before.get(kind) or []
        if [each.get("name") for each in containers] != [each.get("name") for each in held]:
            return
        kept[kind] = [_resized(container, was) for container, was in zip(containers, held, strict=True)]
    level = spec.get("resources")
    new["spec"] = {**before, **{kind: value for kind, value in kept.items() if value}}
    if level:
        new["spec"]["resources"] = level


def _resized(container: Object, was: Object) -> Object:
    changed = {name: container[name] for name in ("resources", "resizePolicy") if name in container}
    return {name: value for name, value in was.items() if name not in ("resources", "resizePolicy")} | changed


def check_resize(new: Object, old: Object) -> list[FieldError]:
    spec, before = new["spec"], old["spec"]
    found = []
    if old["metadata"].get("annotations", {}).get("kubernetes.io/config.mirror"):
        return [forbidden("", "static pods cannot be resized")]
    if qos_class(before) != qos_class(spec):
        detail = "Pod QOS Class may not change as a result of resizing"
        found.append(invalid("spec", new.get("status", {}).get("qosClass", ""), detail))
    if not _is_supported(old):
        found.append(forbidden("spec", "Pod running on node without support for resize"))
    for kind in _KINDS:
        containers, held = spec.get(kind) or [], before.get(kind) or []
        if len(containers) != len(held):
            return [*found, forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize")]
        for index, (container, was) in enumerate(zip(containers, held, strict=True)):
            if container.get("name") != was.get("name"):
                detail = f"{kind} may not be renamed or reordered on resize"
                return [*found, forbidden(f"spec.{kind}[{index}].name", detail)]
            found += _check_resources(container, was, f"spec.{kind}[{index}]")
    return found


def _is_supported(pod: Object) -> bool:
    """Whether the node acknowledges resizes; of one that runs nothing of the pod that cannot be said."""
    for status in pod.get("status", {}).get("containerStatuses") or ():
        if "running" in (status.get("state") or {}):
            return "resources" in status
    return True


def _check_resources(container: Object, was: Object, path: str) -> list[FieldError]:
    resources, before = container.get("resources") or {}, was.get("resources") or {}
    found = []
    for part in ("requests", "limits"):
        amounts, held = resources.get(part) or {}, before.get(part) or {}
        if any(name not in amounts for name in held):
            found.append(forbidden(f"{path}.resources.{part}", f"resource {part} cannot be removed"))
        others = {name for name in amounts.keys() | held.keys() if amounts.get(name) != held.get(name)}
        if others - set(_RESIZABLE):
            found.append(forbidden("spec", "only cpu and memory resources are mutable"))
    return found


def check_ephemeral_containers(new: Object, old: Object) -> list[FieldError]:
    field = "spec.ephemeralContainers"
    containers = {each.get("name"): each for each in new["spec"].get("ephemeralContainers") or ()}
    found = []
    for was in old["spec"].get("ephemeralContainers") or ():
        name = was["name"]
        if name not in containers:
            found.append(forbidden(field, f'existing ephemeral containers "{name}" may not be removed\n'))
        elif containers[name] != was:
            found.append(forbidden(field, f'existing ephemeral containers "{name}" may not be changed\n'))
    return found
