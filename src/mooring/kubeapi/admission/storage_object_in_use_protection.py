"""StorageObjectInUseProtection: claims and volumes are born with the finalizer that protects them while in use."""

from mooring.kubeapi.requests import CREATE, Request

_FINALIZERS = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
}


class StorageObjectInUseProtection:
    def mutate(self, request: Request) -> None:
        finalizer = _FINALIZERS.get(request.resource.key)
        if finalizer is None or request.operation != CREATE or request.subresource:
            return
        metadata = request.object["metadata"]
        if finalizer not in (metadata.get("finalizers") or ()):
            metadata["finalizers"] = [*(metadata.get("finalizers") or ()), finalizer]
