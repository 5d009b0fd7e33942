"""volcano-scheduler.conf: which actions and plugins of Volcano's decide about its queues.

It has no kind; `actions` and `tiers` tell it. What it names is what runs for pods of Volcano's queues. What is known
and has no counterpart, and what nobody knows, is said in one line each.
"""

from typing import Any

import msgspec

from mooring.config.scheduler import ConfigObject, convert, suggestion
from mooring.errors import ConfigError

NAME = "volcano-scheduler.conf"

ACTIONS = ("enqueue", "allocate", "backfill", "reclaim", "preempt")
WITH_GANGS = {"gangreclaim": "reclaim", "gangpreempt": "preempt"}
"""Actions that take gangs as a whole, or what they can do without: here the plain ones do so too."""
OTHER_ACTIONS = ("shuffle",)

PROPORTION, CAPACITY, DRF, PRIORITY, OVERCOMMIT = "proportion", "capacity", "drf", "priority", "overcommit"
USED = (PROPORTION, CAPACITY, DRF, PRIORITY, OVERCOMMIT)
OVERCOMMIT_FACTOR, DEFAULT_OVERCOMMIT = "overcommit-factor", 1.2
BUILT_IN = ("gang", "predicates", "conformance")
"""What these do is done anyway."""
NOT_USED = (
    *("binpack", "cdp", "deviceshare", "extender", "network-topology-aware", "nodegroup", "nodeorder", "numaaware"),
    *("pdb", "rescheduling", "resource-strategy-fit", "resourcequota", "sla", "task-topology", "tdm", "usage"),
)


class PluginOption(msgspec.Struct, kw_only=True, rename="camel"):
    """A plugin of a tier; switches for its single functions are not told apart, except those named here."""

    name: str
    enable_hierarchy: bool | None = None
    enable_job_order: bool | None = msgspec.field(default=None, name="enableJobOrder")
    arguments: dict[str, Any] | None = None


class Tier(ConfigObject):
    plugins: list[PluginOption] = []


class VolcanoScheduler(ConfigObject):
    """The document as a whole."""

    actions: str = "enqueue, allocate, backfill"
    tiers: list[Tier] = []
    configurations: list[dict[str, Any]] = []
    metrics: dict[str, Any] | None = None

    def plugin(self, name: str) -> PluginOption | None:
        return next((found for tier in self.tiers for found in tier.plugins if found.name == name), None)

    @property
    def overcommit_factor(self) -> float | None:
        """How many times what is there jobs are let in for; None if nothing limits that but their queues."""
        option = self.plugin(OVERCOMMIT)
        if option is None:
            return None
        return float((option.arguments or {}).get(OVERCOMMIT_FACTOR, DEFAULT_OVERCOMMIT))

    @property
    def action_names(self) -> list[str]:
        names = [name.strip() for name in self.actions.split(",") if name.strip()]
        return [WITH_GANGS.get(name, name) for name in names]

    def remarks(self) -> list[str]:
        """What it names that changes nothing here, each in one line."""
        plugins = [found.name for tier in self.tiers for found in tier.plugins]
        unused = [name for name in self.action_names if name in OTHER_ACTIONS]
        unused += [name for name in plugins if name in NOT_USED]
        known = (*USED, *BUILT_IN, *NOT_USED)
        unknown = [f"{name}{suggestion(name, known)}" for name in plugins if name not in known]
        lines = [f"{NAME}: not used here: {', '.join(unused)}"] if unused else []
        return lines + ([f"{NAME}: unknown plugins: {', '.join(unknown)}"] if unknown else [])


def is_volcano_scheduler(document: Any) -> bool:
    return isinstance(document, dict) and "kind" not in document and ("tiers" in document or "actions" in document)


def parse_volcano_scheduler(document: Any, source: str) -> VolcanoScheduler:
    found = convert(document, VolcanoScheduler, source)
    known = (*ACTIONS, *OTHER_ACTIONS)
    for name in found.action_names:
        if name not in known:
            expected = f"actions out of {', '.join(known)}{suggestion(name, known)}"
            raise ConfigError(source, "actions", expected=expected, found=f'"{name}"')
    if "allocate" not in found.action_names:
        raise ConfigError(source, "actions", expected="allocate among them", found=f'"{found.actions}"')
    _check_overcommit(found, source)
    by_weight, hierarchical = found.plugin(PROPORTION), found.plugin(DRF)
    if by_weight is not None and found.plugin(CAPACITY) is not None:
        raise ConfigError(source, "tiers", expected="either proportion or capacity", found="both")
    if by_weight is not None and hierarchical is not None and hierarchical.enable_hierarchy:
        raise ConfigError(source, "tiers", expected="no proportion where drf has enableHierarchy", found="both")
    return found


def _check_overcommit(given: VolcanoScheduler, source: str) -> None:
    for tier_number, tier in enumerate(given.tiers):
        for number, option in enumerate(tier.plugins):
            value = (option.arguments or {}).get(OVERCOMMIT_FACTOR, DEFAULT_OVERCOMMIT)
            if option.name != OVERCOMMIT or (_is_number(value) and 1 <= float(value) < 1e6):
                continue
            at = f"tiers[{tier_number}].plugins[{number}].arguments.{OVERCOMMIT_FACTOR}"
            raise ConfigError(source, at, expected="a number of at least 1", found=f'"{value}"')


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and float(value) == float(value)
    except (TypeError, ValueError):
        return False
