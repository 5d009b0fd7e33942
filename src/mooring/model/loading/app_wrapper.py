"""AppWrapper of `workload.codeflare.dev`: objects in one; to scheduling, each of them is what it would be by itself."""

from collections.abc import Iterator
from typing import Any

from mooring.model.api.meta import KubeObject, ObjectMeta
from mooring.model.loading.kinds import Source, decode
from mooring.model.loading.places import Place
from mooring.model.queued.labels import PRIORITY_CLASS, QUEUE_NAME, queue_name

WRAPPER_GROUP, WRAPPER = "workload.codeflare.dev", "AppWrapper"
_HANDED_DOWN = (QUEUE_NAME, PRIORITY_CLASS)
"""Labels by which a wrapper queues. Kueue admits it as one; here its components queue one by one."""


class _Component(KubeObject):
    template: dict[str, Any]


class _WrapperSpec(KubeObject):
    components: list[_Component] = []
    suspend: bool = False


class _AppWrapper(KubeObject):
    spec: _WrapperSpec
    metadata: ObjectMeta


def components(source: Source, place: Place) -> Iterator[dict[str, Any]]:
    """The objects that a wrapper makes, in its namespace; none while it is suspended and does not queue."""
    wrapper = decode(source, _AppWrapper, place, WRAPPER)
    if wrapper.spec.suspend and not queue_name(wrapper.metadata):
        return
    labels = {key: text for key, text in (wrapper.metadata.labels or {}).items() if key in _HANDED_DOWN}
    for component in wrapper.spec.components:
        template = component.template
        metadata = template.get("metadata")
        if not isinstance(metadata, dict):
            yield template  # whoever reads it says what is wrong
            continue
        own = metadata.get("labels") or {}
        inside = {**metadata, "labels": {**labels, **own}} if labels and isinstance(own, dict) else metadata
        yield {**template, "metadata": {"namespace": wrapper.metadata.namespace, **inside}}
