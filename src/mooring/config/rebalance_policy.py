"""RebalancePolicy: what the DeschedulerPolicy has no words for, such as what a move may cost."""

from dataclasses import dataclass, field
from typing import Any

from mooring.config.descheduler import DeschedulerPolicy
from mooring.config.scheduler import ConfigObject, convert
from mooring.errors import ConfigError

KIND = "RebalancePolicy"
API_VERSION = "config.mooring.dev/v1alpha1"


class RebalancePolicy(ConfigObject):
    """The document as a whole; gains and costs are in points, of which a node that becomes empty is worth 100."""

    api_version: str = API_VERSION
    kind: str = KIND
    interval_seconds: float = 300.0
    """How often the strategies run: the descheduler's own interval in most manifests."""
    quiet_seconds: float = 3600.0
    """For how long a pod stays where it was moved to."""
    most_moves_per_run: int = 100
    """How many pods leave in one run: those that all restart at a moment are many enough."""
    restart_cost: float = 1.0
    """The points that one restart costs: a move that relieves a node by less than a percentage point is not made."""
    start_over_cost_per_hour: float = 20.0
    """The points that each hour costs which a pod has run, if its controller starts its work over, as a Job does."""
    defragment_gpus: bool = False
    """Whether pods with devices are moved so that pods and gangs that wait for whole devices have room."""
    compatible: bool = False
    """Whether pods are evicted as the descheduler evicts them: without knowing where they go, and without a gain."""


def parse_rebalance_policy(document: Any, source: str) -> RebalancePolicy:
    """Give a document of the kind RebalancePolicy its type; say what is wrong with it if it has none."""
    version = str(document.get("apiVersion", ""))
    if version != API_VERSION:
        raise ConfigError(source, "apiVersion", expected=API_VERSION, found=f'"{version}"')
    policy = convert(document, RebalancePolicy, source)
    if policy.interval_seconds <= 0:
        raise ConfigError(source, "intervalSeconds", expected="a number above 0", found=f"{policy.interval_seconds:g}")
    if policy.most_moves_per_run < 1:
        found = str(policy.most_moves_per_run)
        raise ConfigError(source, "mostMovesPerRun", expected="a whole number above 0", found=found)
    for name, value in (
        ("quietSeconds", policy.quiet_seconds),
        ("restartCost", policy.restart_cost),
        ("startOverCostPerHour", policy.start_over_cost_per_hour),
    ):
        if value < 0:
            raise ConfigError(source, name, expected="a number of at least 0", found=f"{value:g}")
    return policy


@dataclass(frozen=True, slots=True)
class Rebalancing:
    """Both policies together: which strategies run, and how."""

    descheduler: DeschedulerPolicy
    policy: RebalancePolicy = field(default_factory=RebalancePolicy)
