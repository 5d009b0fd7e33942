"""What a later manifest may change of a pod that is on a node: the API server's rules for updates and for resizes."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import fields, replace

from mooring.model.api.pods import Container, PodSpec, ResourceRequirements, Toleration
from mooring.model.kubelet.qos import qos_class
from mooring.model.places import show

RESIZABLE = frozenset({"cpu", "memory"})
_UPDATABLE = frozenset(
    {
        *("containers", "init_containers", "resources", "tolerations", "active_deadline_seconds"),
        *("scheduling_gates", "termination_grace_period_seconds", "node_name"),
        *("priority", "preemption_policy"),  # set on creation, from the class of that moment
    }
)
"""Fields with rules of their own. All others stay as they are for the life of a pod."""


RESIZED_PARTS = ("containers", "init_containers", "resources")
"""The fields of a spec that have the amounts."""


def forbidden_change(before: PodSpec, after: PodSpec) -> str | None:
    """The first change that an update of a bound pod may not make: field, expected, found; None if all are legal."""
    for field in fields(PodSpec):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if field.name not in _UPDATABLE and old != new:
            return _problem(field.encode_name, f"{show(old)}, as it was when the pod was made", new)
    if not _only_adds(before.tolerations or (), after.tolerations or ()):
        return "spec.tolerations: expected all tolerations that the pod has, and maybe more, found one missing"
    deadline, was = after.active_deadline_seconds, before.active_deadline_seconds
    if was is not None and (deadline is None or deadline > was):
        return _problem("activeDeadlineSeconds", f"at most {was}", deadline)
    for name, old, new in (
        ("containers", before.containers, after.containers),
        ("initContainers", before.init_containers or [], after.init_containers or []),
    ):
        if (problem := _containers_problem(name, old, new)) is not None:
            return problem
    if qos_class(msgspec.to_builtins(before)) != qos_class(msgspec.to_builtins(after)):
        return "spec: expected resources of the same quality-of-service class, found those of another one"
    return None


def updated_spec(running: PodSpec, before: PodSpec, after: PodSpec) -> PodSpec:
    """A running pod's spec with what a legal update of its manifest changes; what was added to it since stays."""
    added = [one for one in running.tolerations or () if one not in (before.tolerations or ())]
    return replace(
        running,
        containers=after.containers,
        init_containers=after.init_containers,
        resources=after.resources,
        tolerations=[*(after.tolerations or ()), *added] or None,
        active_deadline_seconds=after.active_deadline_seconds,
        termination_grace_period_seconds=after.termination_grace_period_seconds,
    )


def _problem(field: str, expected: str, found: object) -> str:
    return f"spec.{field}: expected {expected}, found {show(found)}"


def _only_adds(before: Sequence[Toleration], after: Sequence[Toleration]) -> bool:
    """Whether every toleration is still there; its tolerationSeconds may be others."""
    kept = [replace(one, toleration_seconds=None) for one in after]
    return all(replace(one, toleration_seconds=None) in kept for one in before)


def _containers_problem(path: str, before: Sequence[Container], after: Sequence[Container]) -> str | None:
    names, wanted = ([one.name for one in containers] for containers in (after, before))
    if names != wanted:
        return _problem(path, f"the containers of the pod ({', '.join(wanted) or 'none'})", ", ".join(names) or "none")
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        if replace(new, image=old.image, resources=old.resources) != old:
            return _problem(f"{path}[{index}]", "a change of image or resources alone", "another one")
        if not _is_resize(old.resources or ResourceRequirements(), new.resources or ResourceRequirements()):
            return _problem(f"{path}[{index}].resources", "other amounts of cpu and memory alone", "another change")
    return None


def _is_resize(before: ResourceRequirements, after: ResourceRequirements) -> bool:
    if before.claims != after.claims:
        return False
    for old, new in ((before.requests or {}, after.requests or {}), (before.limits or {}, after.limits or {})):
        changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
        if changed - RESIZABLE or not old.keys() <= new.keys():
            return False
    return True
