"""Rights that depend on what is written, not only on where: to create by an update, and to grant rights to others."""

from typing import Any

from mooring.kubeapi.api import Api
from mooring.kubeapi.auth.escalation import missing
from mooring.kubeapi.auth.rbac import GROUP, Attempt, Rbac, Rule, make_rule
from mooring.kubeapi.requests import CREATE, DELETE, Request
from mooring.kubeapi.status import Object, forbidden

ROLES = (f"roles.{GROUP}", f"clusterroles.{GROUP}")
BINDINGS = (f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}")
_EVERYTHING = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
)
_OF_THE_COLLECTOR = ("ownerReferences", "finalizers", "resourceVersion", "managedFields", "generation")
"""Metadata that says nothing about rights."""


class Rights:
    """Refuses a creation by PUT or apply without the verb `create`, and roles and bindings that grant more than their
    author has, unless the author has the verb `escalate` or `bind`."""

    def __init__(self, api: Api, rbac: Rbac) -> None:
        self._api, self._rbac = api, rbac

    def validate(self, request: Request) -> None:
        if request.operation == DELETE or request.subresource or request.user.is_master:
            return
        resource = request.resource
        if request.operation == CREATE and request.verb != "create":
            attempt = Attempt("create", resource.group, resource.plural, "", request.namespace, request.name)
            self._rbac.check(request.user, attempt)
        if request.old is not None and _content(request.object) == _content(request.old):
            return
        if resource.key in ROLES:
            self._check_role(request)
        elif resource.key in BINDINGS:
            self._check_binding(request)

    def _check_role(self, request: Request) -> None:
        name = "" if request.verb == "create" else request.name
        attempt = Attempt("escalate", GROUP, request.resource.plural, "", request.namespace, name)
        if self._rbac.allows(request.user, attempt):
            return
        aggregates = any((each or {}).get("aggregationRule") for each in (request.object, request.old))
        rules = [*(request.object.get("rules") or ()), *(_EVERYTHING if aggregates else ())]
        self._check_covered(request, [make_rule(rule) for rule in rules])

    def _check_binding(self, request: Request) -> None:
        reference = request.object["roleRef"]
        is_cluster_wide = reference["kind"] == "ClusterRole"
        plural, name = "clusterroles" if is_cluster_wide else "roles", reference["name"]
        if self._rbac.allows(request.user, Attempt("bind", GROUP, plural, "", request.namespace, name)):
            return
        role = self._api.get(f"{plural}.{GROUP}", request.namespace, name)
        self._check_covered(request, [make_rule(rule) for rule in role.get("rules") or ()])

    def _check_covered(self, request: Request, wanted: list[Rule]) -> None:
        user = request.user
        if not (lacking := missing(self._rbac.rules(user, request.namespace), wanted)):
            return
        groups = " ".join(f'"{group}"' for group in user.groups)
        why = f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:'
        lines = "\n".join(sorted(map(_shown, lacking)))
        raise forbidden(request.resource.group, request.resource.plural, request.name, f"{why}\n{lines}")


def _content(obj: Object) -> Object:
    about = {key: value for key, value in obj["metadata"].items() if key not in _OF_THE_COLLECTOR}
    return {**obj, "metadata": about}


_FIELDS = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "resourceNames": "ResourceNames",
    "nonResourceURLs": "NonResourceURLs",
    "verbs": "Verbs",
}


def _shown(rule: Rule) -> str:
    def listed(values: Any) -> str:
        return "[" + ", ".join(f'"{value}"' for value in values) + "]"

    source = rule.source
    return "{" + ", ".join(f"{shown}:{listed(source[key])}" for key, shown in _FIELDS.items() if source.get(key)) + "}"
