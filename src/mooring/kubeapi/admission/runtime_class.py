"""RuntimeClass: a pod takes over the overhead and the scheduling rules of the class that it names."""

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, Request
from mooring.kubeapi.status import Object, forbidden

CLASSES = "runtimeclasses.node.k8s.io"


class RuntimeClasses:
    def __init__(self, api: Api) -> None:
        self._api = api

    def _class_of(self, request: Request) -> Object | None:
        name = request.object["spec"].get("runtimeClassName")
        if not name:
            return None
        found = self._api.find(CLASSES, None, name)
        if found is None:
            raise forbidden("", "pods", request.name, f'pod rejected: RuntimeClass "{name}" not found')
        return found

    def mutate(self, request: Request) -> None:
        if request.operation != CREATE or request.resource.key != "pods" or request.subresource:
            return
        found = self._class_of(request)
        if found is None:
            return
        spec = request.object["spec"]
        overhead = (found.get("overhead") or {}).get("podFixed")
        if overhead and not spec.get("overhead"):
            spec["overhead"] = dict(overhead)
        scheduling = found.get("scheduling") or {}
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            if (spec.get("nodeSelector") or {}).get(key, value) != value:
                own = f"pod.spec.nodeSelector[{key}] = {spec['nodeSelector'][key]}"
                why = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; {own}"
                raise forbidden("", "pods", request.name, f"pod rejected: {why}")
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), key: value}
        tolerations = list(spec.get("tolerations") or ())
        extra = [one for one in scheduling.get("tolerations") or () if one not in tolerations]
        if extra:
            spec["tolerations"] = tolerations + extra

    def validate(self, request: Request) -> None:
        if request.operation != CREATE or request.resource.key != "pods" or request.subresource:
            return
        found, spec = self._class_of(request), request.object["spec"]
        wanted = ((found or {}).get("overhead") or {}).get("podFixed")
        if spec.get("overhead") and spec["overhead"] != wanted:
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            if found is None:
                why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise forbidden("", "pods", request.name, why)
