"""A hundred tenants with random rights write roles and bindings: none ever gains a right that its author lacks.

The model is independent of the code: a right is a point (verb, group, resource, name, namespace) of a small universe.
Each dimension has a value that no rule names, so that only `*` contains it; a rule is the set of its points.
"""

import random
from itertools import product
from typing import Any

import pytest

from mooring.kubeapi.admission.chain import turn_on
from mooring.kubeapi.api import Api
from mooring.kubeapi.auth.rbac import GROUP, Attempt, Rbac
from mooring.kubeapi.auth.user import User
from mooring.kubeapi.cluster import make_api
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.store import Store

Object = dict[str, Any]
Point = tuple[str, str, str, str, str]
OTHER = "other"
VERBS = ("get", "list", "create", "update", "bind", "escalate", OTHER)
GROUPS = ("", GROUP, OTHER)
KINDS = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
RESOURCES = ("pods", "pods/status", *KINDS, OTHER, "other/status")
NAMES = ("", "role-0", OTHER)
NAMESPACES = ("", "a", "b")


def points(rules: list[Object], namespace: str | None) -> set[Point]:
    """The rights of rules in one namespace, or everywhere (None)."""
    found: set[Point] = set()
    where = NAMESPACES if namespace is None else (namespace,)
    for rule in rules:
        verbs = VERBS if "*" in rule["verbs"] else rule["verbs"]
        groups = GROUPS if "*" in rule["apiGroups"] else rule["apiGroups"]
        resources = [
            each
            for each in RESOURCES
            if {"*", each} & set(rule["resources"]) or ("/" in each and f"*/{each.split('/')[1]}" in rule["resources"])
        ]
        names = rule.get("resourceNames") or NAMES
        found |= set(product(verbs, groups, resources, names, where))
    return found


class Model:
    """What is stored, as sets of points."""

    def __init__(self) -> None:
        self.roles: dict[tuple[str, str], list[Object]] = {}
        self.bindings: dict[tuple[str, str], tuple[tuple[str, str], str]] = {}

    def rights(self, user: str) -> set[Point]:
        found: set[Point] = set()
        for (namespace, _), (role, subject) in self.bindings.items():
            if subject == user:
                found |= points(self.roles.get(role, []), namespace or None)
        return found


class Tenants:
    def __init__(self, seed: int, count: int) -> None:
        self.random = random.Random(seed)
        self.api: Api = make_api(Store())[0]
        self.rbac = Rbac(self.api)
        turn_on(self.api, self.rbac)
        self.model = Model()
        for name in ("a", "b"):
            self.api.create("namespaces", {"metadata": {"name": name}})
        self.users = [User(f"tenant-{number}") for number in range(count)]
        for number, user in enumerate(self.users):
            role, namespace = f"role-{number}", self.random.choice(NAMESPACES)
            self.write("clusterroles", "", role, None, self.rules())
            plural = "rolebindings" if namespace else "clusterrolebindings"
            self.write(plural, namespace, f"first-{number}", None, (("", role), user.name))

    def rules(self) -> list[Object]:
        some = self.random.choice
        return [
            {
                "verbs": self.random.sample([*VERBS[:-1], "*"], k=self.random.randint(1, 3)),
                "apiGroups": [some(["", GROUP, GROUP, "*"])],
                "resources": self.random.sample([*RESOURCES[:6], "*", "*/status"], k=self.random.randint(1, 3)),
                **some([{}, {}, {"resourceNames": ["role-0"]}]),
            }
            for _ in range(self.random.randint(1, 2))
        ]

    def write(self, plural: str, namespace: str, name: str, user: User | None, content: Any) -> bool:
        """Create or replace a role or a binding, as a user or as the control plane; whether that was allowed."""
        resource = f"{plural}.{GROUP}"
        obj: Object = {"metadata": {"name": name, "namespace": namespace} if namespace else {"name": name}}
        is_role = plural.endswith("roles")
        if is_role:
            obj["rules"] = content
        else:
            (where, role), subject = content
            kind = "Role" if where else "ClusterRole"
            obj["roleRef"] = {"apiGroup": GROUP, "kind": kind, "name": role}
            obj["subjects"] = [{"apiGroup": GROUP, "kind": "User", "name": subject}]
        is_new = self.api.find(resource, namespace, name) is None
        options: Any = {} if user is None else {"user": user}
        try:
            if user is not None:
                verb = "create" if is_new else "update"
                self.rbac.check(user, Attempt(verb, GROUP, plural, "", namespace, "" if is_new else name))
            if is_new:
                self.api.create(resource, obj, namespace, **options)
            else:
                self.api.update(resource, obj, **options)
        except ApiError as error:
            if error.code != 403:
                raise
            return False
        self.api.store.flush()
        if is_role:
            self.model.roles[namespace, name] = content
        else:
            self.model.bindings[namespace, name] = content
        return True


def attempt(tenants: Tenants) -> tuple[User, str, str, str, Any]:
    some, user = tenants.random.choice, tenants.random.choice(tenants.users)
    plural = some(KINDS)
    namespace = some(["a", "b"]) if plural in ("roles", "rolebindings") else ""
    if plural.endswith("roles"):
        taken = [name for where, name in tenants.model.roles if where == namespace]
        name = some(taken) if taken and tenants.random.random() < 0.5 else f"new-{tenants.random.randrange(10**6)}"
        held = tenants.model.roles.get(("", f"role-{user.name.partition('-')[2]}"), [])
        return user, plural, namespace, name, some([held, tenants.rules()])
    roles = [key for key in tenants.model.roles if key[0] in ("", namespace)]
    name = f"bound-{tenants.random.randrange(10**6)}"
    return user, plural, namespace, name, (some(roles), some(tenants.users).name)


def expected(tenants: Tenants, user: User, plural: str, namespace: str, name: str, content: Any) -> bool:
    held = tenants.model.rights(user.name)
    is_role = plural.endswith("roles")
    is_new = (namespace, name) not in (tenants.model.roles if is_role else tenants.model.bindings)
    verb, said = ("create", "") if is_new else ("update", name)
    if (verb, GROUP, plural, said if said in NAMES else OTHER, namespace) not in held:
        return False
    if is_role:
        granted, special, about = points(content, namespace or None), "escalate", (plural, said)
        if not is_new and tenants.model.roles[namespace, name] == content:
            return True
    else:
        (where, role), _ = content
        granted, special = points(tenants.model.roles[where, role], namespace or None), "bind"
        about = ("roles" if where else "clusterroles", role)
    resource, named = about
    if (special, GROUP, resource, named if named in NAMES else OTHER, namespace) in held:
        return True
    return granted <= held


@pytest.mark.parametrize("seed", range(3))
def test_no_tenant_gains_a_right_that_the_author_lacks(seed: int) -> None:
    tenants = Tenants(seed, 100)
    outcomes = []
    for _ in range(500):
        request = attempt(tenants)
        user, plural, namespace, name, content = request
        should = expected(tenants, *request)
        held = tenants.model.rights(user.name)
        changed = {content[1]} if not plural.endswith("roles") else set()
        before = {subject: tenants.model.rights(subject) for subject in changed}

        done = tenants.write(plural, namespace, name, user, content)

        assert done is should, request
        outcomes.append(done)
        specials = {point for point in held if point[0] in ("bind", "escalate")}
        for subject in changed if done and not specials else ():
            assert tenants.model.rights(subject) - before[subject] <= held
    assert 10 < sum(outcomes) < 490


def test_the_model_and_the_server_agree_about_every_right() -> None:
    tenants = Tenants(7, 100)
    for user in tenants.users:
        held = tenants.model.rights(user.name)
        for verb, group, resource, name, namespace in product(VERBS, GROUPS, RESOURCES, NAMES, NAMESPACES):
            plain, _, part = resource.partition("/")
            allowed = tenants.rbac.allows(user, Attempt(verb, group, plain, part, namespace, name))
            assert allowed is ((verb, group, resource, name, namespace) in held)
