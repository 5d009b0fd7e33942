"""Whose a pod is in YuniKorn's words: its application, its user, and the queue that placement rules find for it."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from mooring.model.api.pods import Pod
from mooring.model.api.yunikorn_queues import (
    ANYBODY,
    DEFAULT,
    FIXED,
    PROVIDED,
    ROOT,
    TAG,
    Filter,
    PlacementRule,
    YuniKornQueue,
    YuniKornQueues,
)
from mooring.model.gangs.membership import YUNIKORN, named_application

SCHEDULER = "yunikorn"
QUEUE, USER_INFO = f"{YUNIKORN}queue", f"{YUNIKORN}user.info"
QUEUE_LABEL = "queue"
NAMESPACE = "namespace"
UNPLACED = "@unplaced@"
"""In the place of a queue's path; no queue can be called so."""
NAMES_EXPRESSION = re.compile(r"[\^$*+?()\[{}|]")
"""What no name has: a filter with it is a regular expression."""


class User(NamedTuple):
    """Who submitted an application, as YuniKorn's admission controller writes it on pods."""

    name: str
    groups: tuple[str, ...] = ()


NOBODY = User("nobody")


class _UserInfo(msgspec.Struct):
    user: str = ""
    groups: list[str] = []


def application_of(pod: Pod) -> str:
    """The application that a pod is a part of; one that names none is an application by itself."""
    return named_application(pod) or pod.key


def user_of(pod: Pod) -> User:
    """Who a pod says it is run by; nobody in particular if it does not, or not in JSON."""
    text = (pod.metadata.annotations or {}).get(USER_INFO, "")
    if not text:
        return NOBODY
    try:
        found = msgspec.json.decode(text, type=_UserInfo)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return NOBODY
    return User(found.user or NOBODY.name, tuple(found.groups))


def queue_of(given: YuniKornQueues, pod: Pod) -> str:
    """The path of the queue that a pod of YuniKorn's is placed in; empty for pods that are not.

    If no rule finds one it is the default one; if that is not there either, or closed to the user, none (`UNPLACED`).
    """
    if pod.spec.scheduler_name != SCHEDULER and not named_application(pod):
        return ""
    placement = _Placement.of(given, pod)
    path = placement.first(given.rules)
    if not path and DEFAULT in given.queues and placement.may_submit(DEFAULT):
        path = DEFAULT
    return path or UNPLACED


def why_unplaced(pod: Pod) -> str:
    """Why a pod that no rule finds a queue for waits."""
    named = _provided(pod)
    asked = f", which asks for {named}" if named else ""
    user = user_of(pod)
    unsaid = f" (annotation {USER_INFO} says who submits it)" if user == NOBODY else ""
    return f"no placement rule finds a queue for application {application_of(pod)} of user {user.name}{asked}{unsaid}"


def any_creates(given: YuniKornQueues) -> bool:
    """Whether some placement rule may create queues."""
    return any(rule.create for rule in given.rules)


def creates_queue(given: YuniKornQueues, pod: Pod) -> bool:
    """Whether a placement rule finds a queue for the pod that the file does not have, and may create it."""
    if pod.spec.scheduler_name != SCHEDULER and not named_application(pod):
        return False
    path = _Placement.of(given, pod).first(given.rules)
    return bool(path) and path not in given.queues


class _Placement(NamedTuple):
    """One application that looks for its queue."""

    queues: Mapping[str, YuniKornQueue]
    provided: str
    namespace: str
    user: User

    @classmethod
    def of(cls, given: YuniKornQueues, pod: Pod) -> "_Placement":
        return cls(given.queues, _provided(pod), pod.metadata.namespace, user_of(pod))

    def first(self, rules: Sequence[PlacementRule]) -> str:
        """What the first rule finds that finds a queue which may be used; empty if none does."""
        found = (self.find(rule) for rule in rules or (PlacementRule(name=PROVIDED),))
        return next((path for path in found if path and self.may_submit(path)), "")

    def find(self, rule: PlacementRule) -> str:
        """The path that a rule finds; empty if it is not for this application, or may not create what is missing."""
        name = self._name(rule)
        if not name or not _lets_pass(rule.filter, self.user):
            return ""
        path = name
        if not name.startswith(f"{ROOT}."):
            above = ROOT if rule.parent is None else self.find(rule.parent)
            if not above or (above in self.queues and self.queues[above].is_leaf):
                return ""
            path = f"{above}.{name}" if rule.name == FIXED else _below(above, name)
        return path if rule.create or path in self.queues else ""

    def _name(self, rule: PlacementRule) -> str:
        if rule.name == TAG:
            return self.namespace if rule.value.lower() == NAMESPACE else ""
        return {PROVIDED: self.provided, FIXED: rule.value}.get(rule.name, self.user.name)

    def may_submit(self, path: str) -> bool:
        """Whether it is a leaf, there or to be created below a parent, and the user has access, where anybody is named
        who has."""
        there = path
        while there not in self.queues:
            there = there.rpartition(".")[0]
        if self.queues[there].is_leaf != (there == path):
            return False
        lists = []
        while there:
            lists += [text for text in (self.queues[there].submitacl, self.queues[there].adminacl) if text.strip()]
            there = there.rpartition(".")[0]
        return not lists or any(_has_access(text, self.user) for text in lists)


def _provided(pod: Pod) -> str:
    """The queue that a pod names itself."""
    labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
    return labels.get(QUEUE) or annotations.get(QUEUE) or labels.get(QUEUE_LABEL, "")


def _below(above: str, name: str) -> str:
    """A name inside a queue. It is one name, also with dots in it, which paths are made of."""
    return name if name.startswith(f"{ROOT}.") else f"{above}.{name.replace('.', '_dot_')}"


def _has_access(text: str, user: User) -> bool:
    """Whether an access list, as in `alice,bob developers`, has the user or one of its groups."""
    if text.strip() == ANYBODY:
        return True
    users, _, groups = text.partition(" ")
    named = users.split(","), groups.strip().split(",")
    return ANYBODY in named[0] or user.name in named[0] or any(group in named[1] for group in user.groups)


def _lets_pass(given: Filter | None, user: User) -> bool:
    if given is None or not (given.users or given.groups):
        return given is None or given.type.lower() != "deny"
    is_named = _names(given.users, user.name) or any(_names(given.groups, group) for group in user.groups)
    return is_named == (given.type.lower() != "deny")


def _names(listed: list[str], name: str) -> bool:
    if len(listed) == 1 and NAMES_EXPRESSION.search(listed[0]):
        return re.search(listed[0], name) is not None
    return name in listed
