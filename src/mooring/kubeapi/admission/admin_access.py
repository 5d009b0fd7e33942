"""Admin access to devices: only in namespaces that are labelled for it."""

from collections.abc import Iterator

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, Request
from mooring.kubeapi.status import FieldError, Object, invalid

LABEL = "resource.kubernetes.io/admin-access"
CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
_WHY = f"admin access to devices requires the `{LABEL}: true` label on the containing namespace"


class AdminAccess:
    def __init__(self, api: Api) -> None:
        self._api = api

    def validate(self, request: Request) -> None:
        key = request.resource.key
        if request.operation != CREATE or request.subresource or key not in (CLAIMS, TEMPLATES):
            return
        path, spec = "spec", request.object.get("spec") or {}
        if key == TEMPLATES:
            path, spec = "spec.spec", spec.get("spec") or {}
        fields = list(_with_admin_access(spec, path))
        if not fields:
            return
        namespace = self._api.find("namespaces", None, request.namespace) or {"metadata": {}}
        if (namespace["metadata"].get("labels") or {}).get(LABEL) == "true":
            return
        errors = [FieldError("FieldValueForbidden", field, _WHY) for field in fields]
        raise invalid(request.resource.group, request.resource.kind, request.name, errors)


def _with_admin_access(spec: Object, path: str) -> Iterator[str]:
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            yield f"{path}.devices.requests[{index}].exactly.adminAccess"
