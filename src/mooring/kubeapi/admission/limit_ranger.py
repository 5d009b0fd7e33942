"""LimitRanger: what a namespace's LimitRanges give to pods that say nothing, and what they refuse."""

import msgspec

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, UPDATE, Request
from mooring.kubeapi.status import Object, forbidden
from mooring.model.api.pods import Container, Pod
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.quotas.namespace_limits import ANNOTATION, NamespaceLimits
from mooring.model.quotas.objects import LimitRange


class LimitRanger:
    def __init__(self, api: Api) -> None:
        self._api = api

    def _limits(self, namespace: str) -> NamespaceLimits | None:
        ranges = self._api.list("limitranges", namespace)
        return NamespaceLimits([msgspec.convert(one, LimitRange) for one in ranges]) if ranges else None

    def _concerns(self, request: Request) -> bool:
        if request.resource.key == "pods":
            if request.operation == CREATE and not request.subresource:
                return True
            return request.operation == UPDATE and request.subresource == "resize"
        is_claim = request.resource.key == "persistentvolumeclaims" and not request.subresource
        return is_claim and request.operation in (CREATE, UPDATE)

    def mutate(self, request: Request) -> None:
        if request.operation != CREATE or request.resource.key != "pods" or request.subresource:
            return
        limits = self._limits(request.namespace)
        if limits is None:
            return
        pod = msgspec.convert(request.object, Pod)
        limits.admit(pod)
        note = (pod.metadata.annotations or {}).get(ANNOTATION)
        metadata = request.object["metadata"]
        if note and note != (metadata.get("annotations") or {}).get(ANNOTATION):
            metadata["annotations"] = {**(metadata.get("annotations") or {}), ANNOTATION: note}
        spec = request.object["spec"]
        _fill(spec["containers"], pod.spec.containers)
        _fill(spec.get("initContainers") or [], pod.spec.init_containers or [])

    def validate(self, request: Request) -> None:
        if not self._concerns(request):
            return
        limits = self._limits(request.namespace)
        if limits is None:
            return
        if request.resource.key == "pods":
            refusal = limits.admit(msgspec.convert(request.object, Pod))
        else:
            refusal = limits.admit_claim(msgspec.convert(request.object, PersistentVolumeClaim))
        if refusal is not None:
            raise forbidden(request.resource.group, request.resource.plural, request.name, refusal.reason)


def _fill(documents: list[Object], filled: list[Container]) -> None:
    """Write the defaults that containers were given into their documents."""
    for document, container in zip(documents, filled, strict=True):
        if container.resources is not None:
            given = msgspec.to_builtins(container.resources)
            document["resources"] = {**(document.get("resources") or {}), **given}
