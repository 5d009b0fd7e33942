"""ResourceQuota: what a namespace may hold, charged as objects come and given back as they go.

The ledger follows the store itself: what is created is charged before the call that creates it returns, so that two
requests never spend the same room.
"""

from typing import Any

import msgspec

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, UPDATE, Request
from mooring.kubeapi.status import Object, forbidden
from mooring.kubeapi.store.records import DELETED, Event
from mooring.model.api.claims import ResourceClaim
from mooring.model.api.meta import KubeObject, ObjectMeta
from mooring.model.api.pods import Pod
from mooring.model.api.policies import Service
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.quotas.namespace_quotas import NamespaceQuotas
from mooring.model.quotas.objects import CoreResourceQuota
from mooring.model.quotas.refusals import object_key
from mooring.model.quotas.resource_names import resource_of

_TYPES: dict[str, type[KubeObject]] = {
    "pods": Pod,
    "services": Service,
    "persistentvolumeclaims": PersistentVolumeClaim,
    "resourceclaims.resource.k8s.io": ResourceClaim,
}


class _Counted(KubeObject):
    """An object of which only its being there counts."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class ResourceQuotas:
    """The quotas of all namespaces, and what is used of them."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._by_namespace: dict[str, NamespaceQuotas] = {}
        for quota in api.list("resourcequotas"):
            self._rebuild(quota["metadata"]["namespace"])
        api.store.observe(None, self._observe)

    def used(self, namespace: str) -> dict[str, dict[str, str]]:
        """What is used of each quota of a namespace, by name and resource."""
        quotas = self._by_namespace.get(namespace)
        if quotas is None:
            return {}
        return {name: {key: str(amount) for key, amount in used.items()} for name, used in quotas.used().items()}

    def validate(self, request: Request) -> None:
        quotas = self._by_namespace.get(request.namespace)
        if quotas is None or not self._concerns(request):
            return
        resource = request.resource
        found = _typed(resource.storage, request.object)
        if request.operation == CREATE:
            objection = quotas.objection(found)
        else:
            objection = self._objection_to_change(quotas, request, found)
        if objection is not None:
            raise forbidden(resource.group, resource.plural, request.name, objection)

    @staticmethod
    def _concerns(request: Request) -> bool:
        if request.operation == CREATE:
            return not request.subresource
        if request.operation != UPDATE:
            return False
        grows = {"pods": ("", "resize"), "services": ("",), "persistentvolumeclaims": ("",)}
        return request.subresource in grows.get(request.resource.key, ())

    @staticmethod
    def _objection_to_change(quotas: NamespaceQuotas, request: Request, found: Any) -> str | None:
        """Whether there is room for what an object is to be, in place of what it is."""
        old = request.old or request.object
        if old.get("spec") == request.object.get("spec"):
            return None
        before = _typed(request.resource.storage, old)
        quotas.release(object_key(before), resource_of(before))
        try:
            return quotas.objection(found)
        finally:
            quotas.charge(before)

    # Following the store

    def _observe(self, event: Event) -> None:
        if event.table == "resourcequotas":
            self._quota_changed(event)
        quotas = self._by_namespace.get(event.namespace)
        if quotas is None or event.table == "events":
            return
        if event.type == DELETED:
            quotas.release(f"{event.namespace}/{event.name}", _resource_name(event.table, event.object))
        else:
            quotas.charge(_typed(event.table, event.object))

    def _quota_changed(self, event: Event) -> None:
        old = event.old
        if event.type != DELETED and old is not None and old.get("spec") == event.object.get("spec"):
            return
        self._rebuild(event.namespace)

    def _rebuild(self, namespace: str) -> None:
        """Count everything anew: the quotas of a namespace have changed."""
        found = [msgspec.convert(one, CoreResourceQuota) for one in self._api.list("resourcequotas", namespace)]
        if not found:
            self._by_namespace.pop(namespace, None)
            return
        quotas = self._by_namespace[namespace] = NamespaceQuotas(found)
        for table in self._api.store.tables():
            if table != "events":
                for record in self._api.store.records(table, namespace):
                    quotas.charge(_typed(table, record.decode()))


def _typed(table: str, obj: Object) -> Any:
    return msgspec.convert(obj, _TYPES.get(table, _Counted))


def _resource_name(table: str, obj: Object) -> str:
    return resource_of(_typed(table, obj))
