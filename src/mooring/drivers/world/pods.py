"""Pods as the world shows them to the scheduler: on their node, over, or made anew by a controller."""

from msgspec.structs import replace

from mooring.model.api.meta import Condition, ObjectMeta, timestamp_text
from mooring.model.api.pods import Pod, PodStatus
from mooring.model.decisions import Written
from mooring.model.jobs.expansion import controller_of

READY, NOT_READY = ([Condition(type="Ready", status=said)] for said in ("True", "False"))
DAEMON_KINDS = ("DaemonSet", "Node")
RESIZE_PENDING, RESIZE_DEFERRED = "PodResizePending", "Deferred"
"""What a kubelet says of a pod whose new amounts it has no room for yet."""


def is_for_its_node(pod: Pod) -> bool:
    """Whether a pod is there for one node alone, and is made anew nowhere else."""
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind in DAEMON_KINDS


def made_anew(pod: Pod, number: int) -> Pod:
    """A pod as its controller makes it again, for the so-manieth time: of the same name, and yet another."""
    metadata = replace(pod.metadata, uid=f"{pod.key}#{number}")
    spec = replace(pod.spec, node_name="") if pod.spec.node_name else pod.spec
    return replace(pod, metadata=metadata, spec=spec, status=PodStatus())


def on_node(pod: Pod, node: str, status: PodStatus, annotations: Written = (), labels: Written = ()) -> Pod:
    """A pod on its node, with what was written to it when it was bound."""
    metadata = pod.metadata
    if annotations or labels:
        metadata = replace(
            metadata,
            annotations={**(metadata.annotations or {}), **dict(annotations)},
            labels={**(metadata.labels or {}), **dict(labels)},
        )
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=node), status=status)


def with_what_was_written(given: ObjectMeta, before: ObjectMeta, running: ObjectMeta) -> ObjectMeta:
    """What a manifest says of a pod now, with the annotations and labels that it got besides those of the manifest."""
    texts = {}
    for field in ("annotations", "labels"):
        now, old, there = (getattr(metadata, field) or {} for metadata in (given, before, running))
        texts[field] = {**{key: text for key, text in there.items() if key not in old}, **now} or None
    return replace(given, **texts)


def started(pod: Pod, at: float) -> PodStatus:
    """The status of a pod that has been on its node since then."""
    return replace(pod.status, start_time=timestamp_text(at))


def over(pod: Pod, node: str, phase: str) -> Pod:
    """A pod that has ended on its node."""
    return on_node(pod, node, replace(pod.status, phase=phase))


def resize_pending(status: PodStatus, reason: str) -> PodStatus:
    """A status that says why a resize has to wait; an empty reason if none has to."""
    conditions = [one for one in status.conditions or () if one.type != RESIZE_PENDING]
    if reason:
        conditions.append(Condition(type=RESIZE_PENDING, status="True", reason=reason))
    return replace(status, conditions=conditions or None)
