"""AppWrapper of `workload.codeflare.dev`: objects in one. If it queues, all of them are admitted as one workload."""

from collections.abc import Iterator, Mapping
from typing import Any

from mooring.model.api.kueue_labels import APP_WRAPPER, PRIORITY_CLASS, QUEUE_NAME, queue_name
from mooring.model.jobs.app_wrapper import WRAPPER, AppWrapper
from mooring.model.objects.kinds import Source, decode
from mooring.model.places import Place

NOT_STARTED = ("", "Suspended")
"""Phases of a wrapper whose objects are not there."""
_HANDED_DOWN = (QUEUE_NAME, PRIORITY_CLASS)
"""Labels by which a wrapper queues."""


def components(source: Source, place: Place) -> Iterator[dict[str, Any]]:
    """The objects that a wrapper makes, in its namespace; none while it is suspended and does not queue, and none of a
    wrapper of a cluster that was started: they are in the cluster, too."""
    wrapper = decode(source, AppWrapper, place, WRAPPER)
    if wrapper.status.phase not in NOT_STARTED:
        return
    is_queued = bool(queue_name(wrapper.metadata))
    if wrapper.spec.suspend and not is_queued:
        return
    labels = {key: text for key, text in (wrapper.metadata.labels or {}).items() if key in _HANDED_DOWN}
    marks = {APP_WRAPPER: wrapper.metadata.name} if is_queued else {}
    for component in wrapper.spec.components:
        template = component.template
        if not isinstance(template.get("metadata"), dict):
            yield template  # whoever reads it says what is wrong
            continue
        made = _with_metadata(template, labels, marks)
        made["metadata"] = {"namespace": wrapper.metadata.namespace, **made["metadata"]}
        spec = template.get("spec")
        inner = spec.get("template") if isinstance(spec, dict) else None
        if template.get("kind") == "Deployment" and marks and isinstance(inner, dict):
            # Between a Deployment and its pods there is a ReplicaSet, so these have to say it themselves.
            made["spec"] = {**template["spec"], "template": _with_metadata(inner, {}, marks)}
        yield made


def _with_metadata(document: Mapping[str, Any], labels: Mapping[str, str], marks: Mapping[str, str]) -> dict[str, Any]:
    metadata = dict(document.get("metadata") or {})
    for field, more in (("labels", labels), ("annotations", marks)):
        own = metadata.get(field) or {}
        if more and isinstance(own, dict):
            metadata[field] = {**more, **own}
    return {**document, "metadata": metadata}
