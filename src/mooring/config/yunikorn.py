"""YuniKorn's queues.yaml as configuration: which of it counts, what is refused, and what is said to change nothing."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mooring.config.scheduler import ConfigObject, convert
from mooring.errors import ConfigError
from mooring.model.api.yunikorn_queues import (
    BY_DEFAULT,
    DISABLED,
    ENABLED,
    FAIR,
    FENCE,
    FIFO,
    FIXED,
    KIND,
    PREEMPTION_DELAY,
    PREEMPTION_POLICY,
    PRIORITY_OFFSET,
    PRIORITY_POLICY,
    PROVIDED,
    SORT_POLICY,
    SORT_PRIORITY,
    TAG,
    USER,
    ChildTemplate,
    Filter,
    Given,
    Limit,
    NodeSortPolicy,
    Partition,
    PlacementRule,
    Properties,
    YuniKornQueue,
    YuniKornQueues,
    queues_of,
)
from mooring.model.queued.yunikorn_placement import NAMESPACE
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration
from mooring.model.values.quantity import QuantityError, parse_quantity

CHOICES = {
    SORT_POLICY: (FIFO, FAIR, "stateaware"),
    SORT_PRIORITY: (ENABLED, DISABLED),
    PRIORITY_POLICY: (BY_DEFAULT, FENCE),
    PREEMPTION_POLICY: (BY_DEFAULT, FENCE, DISABLED),
}
"""What properties can be; stateaware is what fifo was called once."""
USED_PROPERTIES = {*CHOICES, PRIORITY_OFFSET, PREEMPTION_DELAY}
NOT_USED = ("usergroupresolver", "statedumpfilepath")
NODE_SORTS = {"fair": "LeastAllocated", "binpacking": "MostAllocated"}
"""The scoring strategy of NodeResourcesFit that each type of nodesortpolicy is."""
LARGEST_WEIGHT = 100
RULES = (PROVIDED, FIXED, TAG, USER)


class YuniKornConfig(ConfigObject):
    """What was read, and what of it changes nothing."""

    queues: YuniKornQueues
    unused: list[str] = []
    node_sort: NodeSortPolicy | None = None

    def scoring_strategy(self) -> dict[str, Any] | None:
        """What its nodesortpolicy is as a scoring strategy; None if it has none."""
        given = self.node_sort
        if given is None:
            return None
        named = {name: weight for name, weight in given.resourceweights.items() if weight}
        scale = LARGEST_WEIGHT / max(named.values(), default=1.0)
        resources = [
            {"name": "cpu" if name == "vcore" else name, "weight": max(1, round(weight * scale))}
            for name, weight in sorted(named.items())
        ]
        strategy: dict[str, Any] = {"type": NODE_SORTS[given.type.lower() or "fair"]}
        return {**strategy, "resources": resources} if resources else strategy

    def remarks(self) -> list[str]:
        return [f"{KIND}: not used here: {', '.join(self.unused)}"] if self.unused else []


def is_yunikorn(document: Any) -> bool:
    return isinstance(document, dict) and "kind" not in document and "partitions" in document


def parse_yunikorn(document: Any, source: str) -> YuniKornConfig:
    """The default partition of a queues.yaml; in Kubernetes all nodes are in it, and others never have any."""
    partitions = document["partitions"]
    if not isinstance(partitions, list) or not partitions:
        raise ConfigError(source, "partitions", expected="a list of partitions", found=type(partitions).__name__)
    given = [convert(found, Partition, source, f"partitions[{index}]") for index, found in enumerate(partitions)]
    index = next((index for index, found in enumerate(given) if found.name == "default"), None)
    if index is None:
        raise ConfigError(source, "partitions", expected="one named default", found=", ".join(p.name for p in given))
    partition, at = given[index], f"partitions[{index}]"
    for number, queue in enumerate(partition.queues):
        _Check(source, f"{at}.queues[{number}]").queue(queue)
    _Check(source, at).limits(partition.limits)
    _Check(source, at).node_sort(partition.nodesortpolicy or NodeSortPolicy())
    for number, rule in enumerate(partition.placementrules):
        _Check(source, f"{at}.placementrules[{number}]").rule(rule)
    unused = [f"partition {found.name}, as all nodes are in default" for found in given if found.name != "default"]
    unused += [name for name in NOT_USED if getattr(partition, name)]
    unused += ["quotapreemptionenabled"] if partition.preemption and partition.preemption.quotapreemptionenabled else []
    unused += sorted(set(_unused_properties(partition.queues)))
    unused += sorted(set(_unused_tags(partition.placementrules)))
    return YuniKornConfig(queues=queues_of(partition), unused=unused, node_sort=partition.nodesortpolicy)


def _unused_properties(queues: list[YuniKornQueue]) -> Iterator[str]:
    for queue in queues:
        template = queue.childtemplate or ChildTemplate()
        yield from {*(queue.properties or {}), *(template.properties or {})} - USED_PROPERTIES
        yield from _unused_properties(queue.queues)


def _unused_tags(rules: list[PlacementRule]) -> Iterator[str]:
    for rule in rules:
        if rule.name == TAG and rule.value.lower() != NAMESPACE:
            yield f"tag {rule.value} of placement rules"
        yield from _unused_tags([rule.parent] if rule.parent else [])


class _Check:
    """Refuses what makes no sense at one place of the file, and below it."""

    def __init__(self, source: str, path: str) -> None:
        self._source, self._path = source, path

    def _refuse(self, field: str, expected: str, found: object) -> None:
        raise ConfigError(self._source, f"{self._path}.{field}", expected=expected, found=str(found))

    def queue(self, queue: YuniKornQueue) -> None:
        self._count("maxapplications", queue.maxapplications)
        self._properties("properties", queue.properties or {})
        template = queue.childtemplate or ChildTemplate()
        self._count("childtemplate.maxapplications", template.maxapplications)
        self._properties("childtemplate.properties", template.properties or {})
        for at, resources in (("resources", queue.resources), ("childtemplate.resources", template.resources)):
            for name in ("guaranteed", "max"):
                self._amounts(f"{at}.{name}", getattr(resources, name) if resources is not None else None)
        self.limits(queue.limits)
        for index, below in enumerate(queue.queues):
            _Check(self._source, f"{self._path}.queues[{index}]").queue(below)

    def _properties(self, at: str, properties: Properties) -> None:
        for name, value in properties.items():
            choices = CHOICES.get(name)
            if choices and str(value).lower() not in choices:
                self._refuse(f"{at}.{name}", f"{', '.join(choices[:-1])} or {choices[-1]}", f'"{value}"')
            if name == PRIORITY_OFFSET and re.fullmatch(r"[+-]?\d{1,10}", str(value)) is None:
                self._refuse(f"{at}.{name}", "a whole number", f'"{value}"')
            if name == PREEMPTION_DELAY and parse_duration(str(value)) is None:
                self._refuse(f"{at}.{name}", EXPECTED_DURATION, f'"{value}"')

    def limits(self, limits: list[Limit]) -> None:
        seen: set[tuple[str, str]] = set()
        for index, limit in enumerate(limits):
            at = f"limits[{index}]"
            if not limit.users and not limit.groups:
                self._refuse(at, "users or groups", "neither")
            if not limit.maxresources and not limit.maxapplications:
                self._refuse(at, "maxresources or maxapplications", "neither")
            self._count(f"{at}.maxapplications", limit.maxapplications)
            self._amounts(f"{at}.maxresources", limit.maxresources)
            for field, names in (("users", limit.users), ("groups", limit.groups)):
                for name in names:
                    if (field, name) in seen:
                        self._refuse(f"{at}.{field}", "each name once", f'"{name}" again')
                    seen.add((field, name))

    def node_sort(self, given: NodeSortPolicy) -> None:
        if given.type.lower() not in ("", *NODE_SORTS):
            self._refuse("nodesortpolicy.type", " or ".join(NODE_SORTS), f'"{given.type}"')
        for name, weight in given.resourceweights.items():
            if not 0 <= weight < float("inf"):
                self._refuse(f"nodesortpolicy.resourceweights.{name}", "a number of at least 0", f"{weight:g}")

    def rule(self, rule: PlacementRule) -> None:
        if rule.name not in RULES:
            self._refuse("name", f"one of {', '.join(RULES)}", f'"{rule.name}"')
        if rule.name in (FIXED, TAG) and not rule.value:
            self._refuse("value", "the name of a queue" if rule.name == FIXED else "the name of a tag", "none")
        self._filter(rule.filter or Filter())
        if rule.parent is not None:
            _Check(self._source, f"{self._path}.parent").rule(rule.parent)

    def _filter(self, given: Filter) -> None:
        if given.type.lower() not in ("", "allow", "deny"):
            self._refuse("filter.type", "allow or deny", f'"{given.type}"')
        for field, names in (("users", given.users), ("groups", given.groups)):
            try:
                re.compile(names[0] if len(names) == 1 else "")
            except re.error:
                self._refuse(f"filter.{field}", "names, or one regular expression", f'"{names[0]}"')

    def _count(self, field: str, value: int) -> None:
        if value < 0:
            self._refuse(field, "a number of at least 0", value)

    def _amounts(self, field: str, amounts: Given | Mapping[str, str | int] | None) -> None:
        for name, value in (amounts or {}).items():
            try:
                amount = parse_quantity(str(value))
            except QuantityError:
                self._refuse(f"{field}.{name}", "a quantity such as 8, 500m or 64Gi", f'"{value}"')
            else:
                if amount < 0:
                    self._refuse(f"{field}.{name}", "a quantity of at least 0", f'"{value}"')
