"""Priority: a pod's class becomes its number; at most one class is the default."""

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, DELETE, UPDATE, Request
from mooring.kubeapi.status import ApiError, Object, forbidden

CLASSES = "priorityclasses.scheduling.k8s.io"
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Priority:
    def __init__(self, api: Api) -> None:
        self._api = api

    def mutate(self, request: Request) -> None:
        if request.operation != CREATE or request.resource.key != "pods" or request.subresource:
            return
        spec = request.object["spec"]
        found = self._class_of(request, spec)
        value, policy = (found["value"], found.get("preemptionPolicy")) if found else (0, None)
        if spec.get("priority") is not None and spec["priority"] != value:
            raise _given(request, f"integer value of priority ({spec['priority']})", value)
        spec["priority"] = value
        policy = policy or "PreemptLowerPriority"
        if spec.get("preemptionPolicy") is not None and spec["preemptionPolicy"] != policy:
            raise _given(request, f"string value of PreemptionPolicy ({spec['preemptionPolicy']})", policy)
        spec["preemptionPolicy"] = policy

    def _class_of(self, request: Request, spec: Object) -> Object | None:
        name = spec.get("priorityClassName")
        if not name:
            defaults = [one for one in self._api.list(CLASSES) if one.get("globalDefault")]
            if not defaults:
                return None
            found = min(defaults, key=lambda one: (one["value"], one["metadata"]["name"]))
            spec["priorityClassName"] = found["metadata"]["name"]
            return found
        named = self._api.find(CLASSES, None, name)
        if named is None and name in SYSTEM_CLASSES:
            return {"value": SYSTEM_CLASSES[name]}
        if named is None:
            raise forbidden("", "pods", request.name, f"no PriorityClass with name {name} was found")
        return named

    def validate(self, request: Request) -> None:
        if request.resource.key != CLASSES:
            return
        if request.operation == DELETE and request.name in SYSTEM_CLASSES:
            why = "this is a system priority class and cannot be deleted"
            raise forbidden("scheduling.k8s.io", "priorityclasses", request.name, why)
        if request.operation in (CREATE, UPDATE) and request.object.get("globalDefault"):
            for other in self._api.list(CLASSES):
                if other.get("globalDefault") and other["metadata"]["name"] != request.object["metadata"].get("name"):
                    taken = other["metadata"]["name"]
                    why = f"PriorityClass {taken} is already marked as default. Only one default can exist"
                    raise forbidden("scheduling.k8s.io", "priorityclasses", request.name, why)


def _given(request: Request, what: str, computed: object) -> ApiError:
    """Only the class says which priority a pod has."""
    why = (
        f"the {what} must not be provided in pod spec; priority admission controller computed {computed} "
        "from the given PriorityClass name"
    )
    return forbidden("", "pods", request.name, why)


def system_priority_classes() -> list[Object]:
    """The two classes that a cluster has from the start."""
    said = {
        "system-cluster-critical": "For pods that the cluster cannot do without, wherever they run.",
        "system-node-critical": "For pods that their node cannot do without.",
    }
    return [
        {
            "metadata": {"name": name},
            "value": value,
            "description": said[name],
            "preemptionPolicy": "PreemptLowerPriority",
        }
        for name, value in SYSTEM_CLASSES.items()
    ]
