"""What a user may do, by roles and their bindings."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mooring.kubeapi.auth.user import User
from mooring.kubeapi.status import ApiError, Object, forbidden, qualified
from mooring.kubeapi.store.records import Event

if TYPE_CHECKING:
    from mooring.kubeapi.api import Api

GROUP = "rbac.authorization.k8s.io"
_RESOURCES = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
ALL = "*"


class Attempt(NamedTuple):
    """What a user wants to do: a verb on a resource, or on a path that is none's."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def resource_path(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True)
class Rule:
    """A PolicyRule, ready to be asked."""

    verbs: frozenset[str]
    groups: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()
    source: Object = field(default_factory=dict, compare=False, hash=False)

    def allows(self, attempt: Attempt) -> bool:
        if ALL not in self.verbs and attempt.verb not in self.verbs:
            return False
        if attempt.path:
            return any(
                path == attempt.path or (path.endswith(ALL) and attempt.path.startswith(path[:-1]))
                for path in self.paths
            )
        if ALL not in self.groups and attempt.group not in self.groups:
            return False
        if self.names and attempt.name not in self.names:
            return False
        return bool(
            self.resources & {ALL, attempt.resource_path}
            or (attempt.subresource and f"*/{attempt.subresource}" in self.resources)
        )


def make_rule(written: Object) -> Rule:
    return Rule(
        frozenset(written.get("verbs") or ()),
        frozenset(written.get("apiGroups") or ()),
        frozenset(written.get("resources") or ()),
        frozenset(written.get("resourceNames") or ()),
        tuple(written.get("nonResourceURLs") or ()),
        written,
    )


class Rbac:
    """Roles and bindings as they are now; read again after any of them changes."""

    def __init__(self, api: "Api") -> None:
        self._api = api
        self._everywhere: dict[str, list[Rule]] = {}
        self._in_namespace: dict[tuple[str, str], list[Rule]] = {}
        self._is_stale = True
        for resource in _RESOURCES:
            api.subscribe(f"{resource}.{GROUP}", self._changed)

    def _changed(self, event: Event) -> None:
        self._is_stale = True

    def check(self, user: User, attempt: Attempt) -> None:
        """Raise 403, in Kubernetes' words, if the user may not."""
        if not self.allows(user, attempt):
            raise refusal(user, attempt)

    def allows(self, user: User, attempt: Attempt) -> bool:
        if user.is_master:
            return True
        return any(rule.allows(attempt) for rule in self.rules(user, attempt.namespace))

    def rules(self, user: User, namespace: str) -> Iterator[Rule]:
        """All rules that count for a user in a namespace."""
        if self._is_stale:
            self._read()
        for subject in _names(user):
            yield from self._everywhere.get(subject, ())
            if namespace:
                yield from self._in_namespace.get((namespace, subject), ())

    def _read(self) -> None:
        api = self._api
        cluster_roles = {role["metadata"]["name"]: _rules_of(role) for role in api.list(f"clusterroles.{GROUP}")}
        roles = {
            (role["metadata"]["namespace"], role["metadata"]["name"]): _rules_of(role)
            for role in api.list(f"roles.{GROUP}")
        }
        self._everywhere, self._in_namespace = {}, {}
        for binding in api.list(f"clusterrolebindings.{GROUP}"):
            rules = cluster_roles.get(binding["roleRef"]["name"], [])
            for subject in _subjects(binding):
                self._everywhere.setdefault(subject, []).extend(rules)
        for binding in api.list(f"rolebindings.{GROUP}"):
            namespace, ref = binding["metadata"]["namespace"], binding["roleRef"]
            if ref["kind"] == "ClusterRole":
                rules = cluster_roles.get(ref["name"], [])
            else:
                rules = roles.get((namespace, ref["name"]), [])
            for subject in _subjects(binding, namespace):
                self._in_namespace.setdefault((namespace, subject), []).extend(rules)
        self._is_stale = False


def _rules_of(role: Object) -> list[Rule]:
    """A role's rules; those of an aggregated role are written by a controller."""
    return [make_rule(rule) for rule in role.get("rules") or ()]


def _names(user: User) -> Iterable[str]:
    yield f"User:{user.name}"
    for group in user.groups:
        yield f"Group:{group}"


def _subjects(binding: Object, namespace: str = "") -> Iterator[str]:
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "ServiceAccount":
            yield f"User:system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
        else:
            yield f"{kind}:{name}"


def refusal(user: User, attempt: Attempt) -> ApiError:
    if attempt.path:
        why = f'User "{user.name}" cannot {attempt.verb} path "{attempt.path}"'
        return ApiError(403, "Forbidden", f"forbidden: {why}", {})
    where = f'in the namespace "{attempt.namespace}"' if attempt.namespace else "at the cluster scope"
    why = (
        f'User "{user.name}" cannot {attempt.verb} resource "{attempt.resource_path}" '
        f'in API group "{attempt.group}" {where}'
    )
    error = forbidden(attempt.group, attempt.resource, attempt.name, why)
    if not attempt.name:
        error.message = f"{qualified(attempt.group, attempt.resource)} is forbidden: {why}"
    return error
