"""NamespaceLifecycle: nothing is created where there is no namespace, or one that is going away."""

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, DELETE, Request
from mooring.kubeapi.status import ApiError, forbidden, not_found

IMMORTAL = ("default", "kube-system", "kube-public")


class NamespaceLifecycle:
    def __init__(self, api: Api) -> None:
        self._api = api

    def mutate(self, request: Request) -> None:
        if request.operation != CREATE or not request.namespace or request.subresource:
            return
        namespace = self._api.find("namespaces", None, request.namespace)
        if namespace is None:
            raise not_found("", "namespaces", request.namespace)
        if "deletionTimestamp" in namespace["metadata"]:
            resource = request.resource
            why = f"unable to create new content in namespace {request.namespace} because it is being terminated"
            error = forbidden(resource.group, resource.plural, request.name, why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {request.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise ApiError(error.code, error.reason, error.message, {**(error.details or {}), "causes": [cause]})

    def validate(self, request: Request) -> None:
        if request.operation == DELETE and request.resource.key == "namespaces" and request.name in IMMORTAL:
            raise forbidden("", "namespaces", request.name, "this namespace may not be deleted")
