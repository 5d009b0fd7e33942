"""TenantPolicy: the named policies of our own for queues and quotas, beside what Kueue's Configuration says."""

import re
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from mooring.config.scheduler import ConfigObject, convert, suggestion
from mooring.errors import ConfigError
from mooring.model.api.meta import QuantityText
from mooring.model.values.quantity import QuantityError, parse_quantity

KIND = "TenantPolicy"
API_VERSION = "config.mooring.dev/v1alpha1"

NEVER, ON_REQUEST, ALWAYS = "Never", "OnRequest", "Always"
IF_WANTED = "IfWanted"
CHECK_PLACEMENT = "mooring.dev/check-placement"
"""The annotation by which a job asks to be admitted only when its pods can be placed."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)


class QuotaWindow(ConfigObject):
    """Other quotas of one queue for one flavor's resource, at certain times of certain days."""

    queue: str
    resource: str
    flavor: str
    from_: str = msgspec.field(name="from")
    to: str
    """Hours and minutes, such as 22:00; a window that ends before it begins ends on the next day."""
    days: list[str] | None = None
    """The days on which it begins; none named: every day."""
    time_zone: str = "UTC"
    nominal_quota: QuantityText | None = None
    lending_limit: QuantityText | None = None
    borrowing_limit: QuantityText | None = None
    notice_seconds: int = 0
    """How long before quota is taken away those who use it are told."""
    evict: str = IF_WANTED
    """Whether who holds more than the quota, once it is taken away, goes only if somebody waits for it, or Always."""


PROPORTION, CAPACITY, WEIGHTED = "Proportion", "Capacity", "Weighted"


class QueueShares(ConfigObject):
    """How the shares of Volcano's queues are decided."""

    division: str = PROPORTION
    """Proportion: what queues deserve follows from weights and demand; Capacity: their specs say it; Weighted: as
    Proportion, but in whole devices and never more than there is."""
    stays_within_deserved: bool = True
    """With shares by weight: whether a queue stops at what it deserves while others leave their share unused."""
    keeps_guarantees: bool = False
    """Whether all queues together leave what others are guaranteed; Volcano limits each of them alone."""
    moves_parent_shares: bool = False
    """Whether shares of queues above others move with every turn; Volcano's are those of the cycle's start."""
    hierarchical: bool = False
    """With Capacity: hierarchical dominant shares decide which queue comes first, and who gives back."""
    resource_weights: dict[str, float] = {}
    """What resources count for in dominant shares; 1 if not named. A GPU may weigh ten CPUs."""


class TenantPolicy(ConfigObject):
    """The document as a whole."""

    api_version: str = API_VERSION
    kind: str = KIND
    hold_freed_room: bool = False
    """Whether what preemption frees is held for the workload that it is freed for."""
    check_placement: str = ON_REQUEST
    """Which workloads are admitted only if their pods can be placed at once."""
    quota_windows: list[QuotaWindow] = []
    minimum_runtime_before_reclaim_seconds: int = 0
    usage_half_life_seconds: int = 0
    shares: QueueShares = msgspec.field(default_factory=QueueShares)


def parse_tenant_policy(document: Any, source: str) -> TenantPolicy:
    """Give a document of the kind TenantPolicy its type; say what is wrong with it if it has none."""
    version = str(document.get("apiVersion", ""))
    if version != API_VERSION:
        raise ConfigError(source, "apiVersion", expected=API_VERSION, found=f'"{version}"')
    policy = convert(document, TenantPolicy, source)
    _check_choice(source, "checkPlacement", policy.check_placement, (NEVER, ON_REQUEST, ALWAYS))
    for field, value in (
        ("minimumRuntimeBeforeReclaimSeconds", policy.minimum_runtime_before_reclaim_seconds),
        ("usageHalfLifeSeconds", policy.usage_half_life_seconds),
    ):
        _check_at_least_zero(source, field, value)
    for index, window in enumerate(policy.quota_windows):
        _check_window(source, f"quotaWindows[{index}]", window)
    _check_shares(source, policy.shares)
    return policy


def _check_shares(source: str, shares: QueueShares) -> None:
    _check_choice(source, "shares.division", shares.division, (PROPORTION, CAPACITY, WEIGHTED))
    if shares.hierarchical and shares.division != CAPACITY:
        raise ConfigError(
            source, "shares.hierarchical", expected=f"division: {CAPACITY} with it", found=shares.division
        )
    for name, weight in shares.resource_weights.items():
        if not 0 <= weight < float("inf"):
            field = f"shares.resourceWeights.{name}"
            raise ConfigError(source, field, expected="a number of at least 0", found=f"{weight:g}")


def _check_window(source: str, path: str, window: QuotaWindow) -> None:
    for field, name in (("queue", window.queue), ("resource", window.resource), ("flavor", window.flavor)):
        if not name:
            raise ConfigError(source, f"{path}.{field}", expected="a name", found='""')
    for field, time in (("from", window.from_), ("to", window.to)):
        if not _TIME.fullmatch(time):
            raise ConfigError(source, f"{path}.{field}", expected="a time of day such as 22:00", found=f'"{time}"')
    if window.from_ == window.to:
        raise ConfigError(source, f"{path}.to", expected=f"another time than from ({window.from_})", found=window.to)
    if window.days is not None and not window.days:
        raise ConfigError(source, f"{path}.days", expected="at least one day", found="none")
    for index, day in enumerate(window.days or ()):
        _check_choice(source, f"{path}.days[{index}]", day, DAYS)
        if day in (window.days or [])[:index]:
            raise ConfigError(source, f"{path}.days[{index}]", expected="each day once", found=f'"{day}" again')
    _check_zone(source, f"{path}.timeZone", window.time_zone)
    quotas = {
        "nominalQuota": window.nominal_quota,
        "lendingLimit": window.lending_limit,
        "borrowingLimit": window.borrowing_limit,
    }
    if all(text is None for text in quotas.values()):
        raise ConfigError(source, path, expected=f"at least one of {', '.join(quotas)}", found="none")
    for field, text in quotas.items():
        if text is not None:
            _check_quantity(source, f"{path}.{field}", text)
    _check_at_least_zero(source, f"{path}.noticeSeconds", window.notice_seconds)
    _check_choice(source, f"{path}.evict", window.evict, (IF_WANTED, ALWAYS))


def _check_zone(source: str, path: str, name: str) -> None:
    if name == "UTC":
        return
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:  # which of them depends on the form of the name
        expected = "a time zone such as Europe/Berlin"
        raise ConfigError(source, path, expected=expected, found=f'"{name}"') from error


def _check_quantity(source: str, path: str, text: QuantityText) -> None:
    expected = "a quantity such as 8, 500m or 64Gi, not below 0"
    try:
        nanos = parse_quantity(text)
    except QuantityError as error:
        raise ConfigError(source, path, expected=expected, found=f'"{text}"') from error
    if nanos < 0:
        raise ConfigError(source, path, expected=expected, found=f'"{text}"')


def _check_choice(source: str, path: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        expected = f"one of {', '.join(allowed)}{suggestion(value, allowed)}"
        raise ConfigError(source, path, expected=expected, found=f'"{value}"')


def _check_at_least_zero(source: str, path: str, value: int) -> None:
    if value < 0:
        raise ConfigError(source, path, expected="a whole number of at least 0", found=str(value))
