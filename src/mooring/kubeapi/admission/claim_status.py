"""Who may write which part of a claim's status: schedulers its allocation, a driver the devices that are its own.

Both are asked of RBAC as subresources that no path serves. `resourceclaims/binding` is about `status.allocation` and
`status.reservedFor`. `resourceclaims/driver`, with the driver for a name, is about that driver's `status.devices`: the
verb is `associated-node:update` for an account that is on the node of the allocation, or else `arbitrary-node:update`.
"""

from mooring.kubeapi.auth.rbac import Attempt, Rbac, refusal
from mooring.kubeapi.auth.user import NODE_NAME, User
from mooring.kubeapi.requests import UPDATE, Request
from mooring.kubeapi.status import FieldError, Object, invalid

GROUP, PLURAL = "resource.k8s.io", "resourceclaims"
_ACCOUNT = "system:serviceaccount:"


class ClaimStatus:
    def __init__(self, rbac: Rbac) -> None:
        self._rbac = rbac

    def validate(self, request: Request) -> None:
        if (
            request.operation != UPDATE
            or request.subresource != "status"
            or request.resource.key != f"{PLURAL}.{GROUP}"
        ):
            return
        if request.user.is_master:
            return
        new, old = ((each or {}).get("status") or {} for each in (request.object, request.old))
        if errors := [*self._binding(request, new, old), *self._devices(request, new, old)]:
            raise invalid(GROUP, request.resource.kind, request.name, errors)

    def _binding(self, request: Request, new: Object, old: Object) -> list[FieldError]:
        if all((new.get(field) or None) == (old.get(field) or None) for field in ("allocation", "reservedFor")):
            return []
        attempt = Attempt(request.verb, GROUP, PLURAL, "binding")
        if self._rbac.allows(request.user, attempt):
            return []
        needed = f'resource="resourceclaims/binding", verb="{request.verb}" permission'
        why = f"changing status.allocation or status.reservedFor requires {needed}: {refusal(request.user, attempt)}"
        return [FieldError("FieldValueForbidden", "status.allocation", why)]

    def _devices(self, request: Request, new: Object, old: Object) -> list[FieldError]:
        if not new.get("allocation"):
            return []  # a claim that is let go of loses what was said of its devices
        verbs = [f"arbitrary-node:{request.verb}"]
        if _is_on(request.user, _node_of(new["allocation"])):
            verbs.insert(0, f"associated-node:{request.verb}")
        found = []
        for driver in sorted(_changed_drivers(new, old)):
            attempts = [Attempt(verb, GROUP, PLURAL, "driver", request.namespace, driver) for verb in verbs]
            if not any(self._rbac.allows(request.user, attempt) for attempt in attempts):
                needed = f'resource="resourceclaims/driver", verb="[{" ".join(verbs)}]" permission'
                why = f"changing status.devices requires {needed}: {refusal(request.user, attempts[0])}"
                found.append(FieldError("FieldValueForbidden", "status.devices", why))
        return found


def _changed_drivers(new: Object, old: Object) -> set[str]:
    """The drivers of which something was added, changed or taken away."""
    by_device = [
        {
            (each["driver"], each["pool"], each["device"], each.get("shareID")): each
            for each in status.get("devices") or ()
        }
        for status in (new, old)
    ]
    now, before = by_device
    return {key[0] for key in now.keys() | before.keys() if now.get(key) != before.get(key)}


def _node_of(allocation: Object) -> str:
    """The one node that an allocation is for; "" if it is for several."""
    match (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms"):
        case [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [str(name)]}], **more}]:
            return "" if more.get("matchExpressions") else name
    return ""


def _is_on(user: User, node: str) -> bool:
    return bool(node) and user.name.startswith(_ACCOUNT) and user.extra.get(NODE_NAME) == [node]
