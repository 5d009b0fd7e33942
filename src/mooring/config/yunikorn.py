"""YuniKorn's queues.yaml as configuration: which of it counts, and what is said not to."""

from typing import Any

from mooring.config.scheduler import ConfigObject, convert
from mooring.errors import ConfigError
from mooring.model.api.yunikorn_queues import (
    FAIR,
    FIFO,
    FIXED,
    KIND,
    PROVIDED,
    SORT_POLICY,
    TAG,
    Partition,
    PlacementRule,
    YuniKornQueues,
)
from mooring.model.api.yunikorn_queues import YuniKornQueue as Queue
from mooring.model.values.quantity import QuantityError, parse_quantity

USED = {"name", "parent", "resources", "maxapplications", "properties", "queues"}
USED_OF_RULES = {"name", "value", "parent"}
NOT_USED_OF_PARTITION = ("limits", "preemption", "nodesortpolicy", "usergroupresolver", "statedumpfilepath")


class YuniKornConfig(ConfigObject):
    """What was read, and what of it changes nothing."""

    queues: YuniKornQueues
    unused: list[str] = []

    def remarks(self) -> list[str]:
        return [f"{KIND}: not used here: {', '.join(self.unused)}"] if self.unused else []


def is_yunikorn(document: Any) -> bool:
    return isinstance(document, dict) and "kind" not in document and "partitions" in document


def parse_yunikorn(document: Any, source: str) -> YuniKornConfig:
    """The default partition of a queues.yaml; others are said not to be used."""
    partitions = document["partitions"]
    if not isinstance(partitions, list) or not partitions:
        raise ConfigError(source, "partitions", expected="a list of partitions", found=type(partitions).__name__)
    given = [convert(found, Partition, source, f"partitions[{index}]") for index, found in enumerate(partitions)]
    index = next((index for index, found in enumerate(given) if found.name == "default"), None)
    if index is None:
        raise ConfigError(source, "partitions", expected="one named default", found=", ".join(p.name for p in given))
    unused = [f"partition {found.name}" for found in given if found.name != "default"]
    unused += [name for name in NOT_USED_OF_PARTITION if name in partitions[index]]
    unused += sorted(set(_unused(partitions[index].get("queues") or [])))
    unused += sorted(set(_unused_of_rules(partitions[index].get("placementrules") or [])))
    at = f"partitions[{index}]"
    for number, queue in enumerate(given[index].queues):
        _check_queue(queue, source, f"{at}.queues[{number}]")
    for number, rule in enumerate(given[index].placementrules):
        _check_rule(rule, source, f"{at}.placementrules[{number}]")
    queues = YuniKornQueues(partition=given[index])
    queues.leaves = [path for path, queue in queues.paths().items() if not queue.queues]
    return YuniKornConfig(queues=queues, unused=unused)


def _unused(queues: list[Any]) -> list[str]:
    found: list[str] = []
    for queue in queues:
        found += [name for name in queue if name not in USED]
        found += [name for name in queue.get("properties") or {} if name != SORT_POLICY]
        found += _unused(queue.get("queues") or [])
    return found


def _unused_of_rules(rules: list[Any]) -> list[str]:
    """What rules say besides how a queue is found; `create: false` is what happens here."""
    found: list[str] = []
    for rule in rules:
        found += [f"{name} of placement rules" for name in rule if name not in USED_OF_RULES and rule[name]]
        found += _unused_of_rules([rule["parent"]] if rule.get("parent") else [])
    return found


def _check_queue(queue: Queue, source: str, path: str) -> None:
    if queue.maxapplications < 0:
        found = str(queue.maxapplications)
        raise ConfigError(source, f"{path}.maxapplications", expected="a number of at least 0", found=found)
    policy = (queue.properties or {}).get(SORT_POLICY, FIFO)
    if policy not in (FIFO, FAIR):
        at = f"{path}.properties.{SORT_POLICY}"
        raise ConfigError(source, at, expected=f"{FIFO} or {FAIR}", found=f'"{policy}"')
    for field in ("guaranteed", "max"):
        amounts = getattr(queue.resources, field) if queue.resources is not None else None
        for name, value in (amounts or {}).items():
            at = f"{path}.resources.{field}.{name}"
            try:
                amount = parse_quantity(str(value))
            except QuantityError as error:
                raise ConfigError(
                    source, at, expected="a quantity such as 8, 500m or 64Gi", found=f'"{value}"'
                ) from error
            if amount < 0:
                raise ConfigError(source, at, expected="a quantity of at least 0", found=f'"{value}"')
    for index, below in enumerate(queue.queues):
        _check_queue(below, source, f"{path}.queues[{index}]")


def _check_rule(rule: PlacementRule, source: str, path: str) -> None:
    known = (PROVIDED, FIXED, TAG)
    if rule.name not in known:
        raise ConfigError(source, f"{path}.name", expected=f"one of {', '.join(known)}", found=f'"{rule.name}"')
    if rule.parent is not None:
        _check_rule(rule.parent, source, f"{path}.parent")
