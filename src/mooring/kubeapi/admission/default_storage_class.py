"""DefaultStorageClass: a claim that names no class gets the default one."""

import msgspec

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, Request
from mooring.model.api.volumes import StorageClass
from mooring.model.defaults import default_class


class DefaultStorageClass:
    def __init__(self, api: Api) -> None:
        self._api = api

    def mutate(self, request: Request) -> None:
        if request.operation != CREATE or request.resource.key != "persistentvolumeclaims" or request.subresource:
            return
        spec = request.object.setdefault("spec", {})
        annotations = request.object["metadata"].get("annotations") or {}
        if spec.get("storageClassName") is not None or "volume.beta.kubernetes.io/storage-class" in annotations:
            return
        classes = [msgspec.convert(one, StorageClass) for one in self._api.list("storageclasses.storage.k8s.io")]
        name = default_class(classes)
        if name is not None:
            spec["storageClassName"] = name
