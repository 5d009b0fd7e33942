"""YuniKorn's queues.yaml: partitions with trees of queues, who may have how much there, and which queue is whose.

Which queue an application is in is found in `mooring.model.queued.yunikorn_placement`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta

KIND = "queues.yaml"
ROOT = "root"
DEFAULT = "root.default"
ANYBODY = "*"

SORT_POLICY, FIFO, FAIR = "application.sort.policy", "fifo", "fair"
SORT_PRIORITY, ENABLED, DISABLED = "application.sort.priority", "enabled", "disabled"
PRIORITY_POLICY, PRIORITY_OFFSET = "priority.policy", "priority.offset"
PREEMPTION_POLICY, PREEMPTION_DELAY = "preemption.policy", "preemption.delay"
BY_DEFAULT, FENCE = "default", "fence"
PROVIDED, FIXED, TAG, USER = "provided", "fixed", "tag", "user"

Properties = dict[str, str | int | bool]
Given = dict[str, str | int]
"""Amounts by resource, as they are written."""


class Amounts(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    guaranteed: Given | None = None
    max: Given | None = None


class Limit(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The most that each of these users may have in a queue, and each of these groups in all."""

    limit: str = ""
    users: list[str] = []
    groups: list[str] = []
    maxresources: Given = {}
    maxapplications: int = 0


class ChildTemplate(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What queues are like that placement rules create below a queue."""

    resources: Amounts | None = None
    maxapplications: int = 0
    properties: Properties | None = None


class YuniKornQueue(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    parent: bool = False
    resources: Amounts | None = None
    maxapplications: int = 0
    properties: Properties | None = None
    adminacl: str = ""
    submitacl: str = ""
    childtemplate: ChildTemplate | None = None
    limits: list[Limit] = []
    queues: list["YuniKornQueue"] = []

    @property
    def is_leaf(self) -> bool:
        return not self.queues and not self.parent

    def property(self, name: str, default: str = "") -> str:
        return str((self.properties or {}).get(name, default)).lower()


class Filter(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose applications a rule is for; a single user or group may be a regular expression."""

    type: str = "allow"
    users: list[str] = []
    groups: list[str] = []


class PlacementRule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One way to find the queue of an application; the first that finds one counts."""

    name: str
    value: str = ""
    create: bool = False
    filter: Filter | None = None
    parent: "PlacementRule | None" = None


class Preemption(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    enabled: bool = True
    quotapreemptionenabled: bool = False


class NodeSortPolicy(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether nodes are filled one after the other or all alike, and what resources count for in that."""

    type: str = ""
    resourceweights: dict[str, float] = {}


class Partition(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    queues: list[YuniKornQueue] = []
    placementrules: list[PlacementRule] = []
    limits: list[Limit] = []
    preemption: Preemption | None = None
    nodesortpolicy: NodeSortPolicy | None = None
    usergroupresolver: Any = None
    statedumpfilepath: str = ""


class YuniKornQueues(KubeObject):
    """The default partition, as one object of the cluster."""

    api_version: str = "yunikorn.apache.org"
    kind: str = KIND
    metadata: ObjectMeta = msgspec.field(default_factory=lambda: ObjectMeta(name=KIND))
    rules: list[PlacementRule] = []
    queues: dict[str, YuniKornQueue] = {}
    """Every queue by its path, as in root.team.dev, those above before those below."""
    preempts: bool = True


def queues_of(partition: Partition) -> YuniKornQueues:
    """A partition with its root, which a file may leave out, and with the partition's limits where they belong."""
    given = partition.queues
    if len(given) == 1 and given[0].name.lower() == ROOT:
        root = msgspec.structs.replace(given[0], name=ROOT, parent=True)
    else:
        root = YuniKornQueue(name=ROOT, parent=True, queues=given)
    root.limits = root.limits or partition.limits
    preempts = partition.preemption is None or partition.preemption.enabled
    return YuniKornQueues(rules=partition.placementrules, queues=dict(_walk(root, "")), preempts=preempts)


def _walk(queue: YuniKornQueue, above: str) -> Iterator[tuple[str, YuniKornQueue]]:
    path = f"{above}.{queue.name}" if above else queue.name
    yield path, queue
    for below in queue.queues:
        yield from _walk(below, path)
