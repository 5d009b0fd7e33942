"""YuniKorn's queues.yaml: partitions with trees of queues, and where applications go that name none."""

from collections.abc import Iterator, Mapping

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta
from mooring.model.api.pods import Pod

KIND = "queues.yaml"
SCHEDULER = "yunikorn"
ROOT = "root"
QUEUE_LABEL, QUEUE_ANNOTATION = "queue", "yunikorn.apache.org/queue"
APPLICATION_LABELS = ("applicationId", "spark-app-selector", "yunikorn.apache.org/app-id")
DEFAULT = "root.default"

SORT_POLICY, FIFO, FAIR = "application.sort.policy", "fifo", "fair"
PROVIDED, FIXED, TAG = "provided", "fixed", "tag"


class Amounts(msgspec.Struct, kw_only=True):
    guaranteed: dict[str, str | int] | None = None
    max: dict[str, str | int] | None = None


class YuniKornQueue(msgspec.Struct, kw_only=True):
    name: str
    parent: bool = False
    resources: Amounts | None = None
    maxapplications: int = 0
    properties: dict[str, str | int | bool] | None = None
    queues: list["YuniKornQueue"] = []

    @property
    def sorts_fairly(self) -> bool:
        """Whether of its applications the one that holds least comes first, not the oldest."""
        return (self.properties or {}).get(SORT_POLICY) == FAIR


class PlacementRule(msgspec.Struct, kw_only=True):
    """One way to find the queue of an application; the first that finds one counts."""

    name: str
    value: str = ""
    parent: "PlacementRule | None" = None


class Partition(msgspec.Struct, kw_only=True):
    name: str
    queues: list[YuniKornQueue] = []
    placementrules: list[PlacementRule] = []


class YuniKornQueues(KubeObject):
    """The default partition, as one object of the cluster."""

    api_version: str = "yunikorn.apache.org"
    kind: str = KIND
    metadata: ObjectMeta = msgspec.field(default_factory=lambda: ObjectMeta(name=KIND))
    partition: Partition = msgspec.field(default_factory=lambda: Partition(name="default"))
    leaves: list[str] = []
    """The paths of the queues that applications can be in."""

    def paths(self) -> dict[str, YuniKornQueue]:
        """Every queue by its path, as in root.team.dev."""
        found = dict(_walk(self.partition.queues, ""))
        return found if ROOT in found else {ROOT: YuniKornQueue(name=ROOT), **_below_root(found)}

    def queue_of(self, pod: Pod) -> str:
        """The path of the queue that a pod of YuniKorn's belongs to; empty for pods that are not."""
        labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
        if pod.spec.scheduler_name != SCHEDULER and not _named_application(pod):
            return ""
        provided = annotations.get(QUEUE_ANNOTATION) or labels.get(QUEUE_LABEL, "")
        for rule in self.partition.placementrules or BY_DEFAULT:
            path = _apply(rule, provided, pod.metadata.namespace)
            if path in self.leaves:
                return path
        return qualified(provided) if provided else DEFAULT


BY_DEFAULT = (PlacementRule(name=PROVIDED), PlacementRule(name=FIXED, value=DEFAULT))
"""How queues are found where there are no rules."""


def application_of(pod: Pod) -> str:
    """The application that a pod is a part of; one that names none is an application by itself."""
    return _named_application(pod) or pod.key


def _named_application(pod: Pod) -> str:
    labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
    return next((found for name in APPLICATION_LABELS if (found := annotations.get(name) or labels.get(name, ""))), "")


def qualified(name: str) -> str:
    return name if name == ROOT or name.startswith(f"{ROOT}.") else f"{ROOT}.{name}"


def _apply(rule: PlacementRule, provided: str, namespace: str) -> str:
    """The path that a rule finds; empty if it has nothing to say."""
    tagged = namespace if rule.value == "namespace" else ""
    name = {PROVIDED: provided, FIXED: rule.value, TAG: tagged}[rule.name]
    if not name:
        return ""
    if rule.parent is None or name.startswith(f"{ROOT}."):
        return qualified(name)
    above = _apply(rule.parent, provided, namespace)
    return f"{above}.{name}" if above else ""


def _walk(queues: list[YuniKornQueue], above: str) -> Iterator[tuple[str, YuniKornQueue]]:
    for queue in queues:
        path = f"{above}.{queue.name}" if above else queue.name
        yield path, queue
        yield from _walk(queue.queues, path)


def _below_root(found: Mapping[str, YuniKornQueue]) -> dict[str, YuniKornQueue]:
    """Queues of a file that leaves out the root, which YuniKorn puts above them."""
    return {f"{ROOT}.{path}": queue for path, queue in found.items()}
