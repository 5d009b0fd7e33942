"""The plan of rebalancing for manifests, or for a cluster as it is now: nothing is carried out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from mooring.actions.rebalance.action import RebalanceSection
from mooring.actions.rebalance.defragment.strategy import STRATEGY as DEFRAGMENT
from mooring.actions.rebalance.planned.steps import RebalancePlan
from mooring.actions.rebalance.situation import situation_of
from mooring.config.descheduler import KIND, DeschedulerPolicy, LowNodeUtilizationArgs
from mooring.config.low_node_load import LowNodeLoadArgs
from mooring.config.rebalance_policy import Rebalancing
from mooring.config.settings import load_settings
from mooring.drivers.offline.reading import Inputs, Loaded, read
from mooring.engine.action import Cycle
from mooring.errors import ConfigError
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind
from mooring.observe.progress import Progress


@dataclass(frozen=True)
class Planned:
    """A plan, and what it was made for."""

    loaded: Loaded
    plan: RebalancePlan
    running: list[Pod]
    """The pods that ran, or had ended, each with its node."""
    strategies: list[str]
    """The names of the strategies, in the order in which they run."""
    placed_first: int
    compatible: bool


def plan_rebalance(inputs: Inputs, policy: Path, *, compatible: bool, progress: Progress) -> Planned:
    """Place the pods that wait, then plan what to move. Time stands still."""
    rebalancing = _read_policy(policy, has_metrics=bool(inputs.metrics))
    if compatible:
        rebalancing = replace(rebalancing, policy=structs.replace(rebalancing.policy, compatible=True))
    loaded = read(inputs, progress)
    loaded = replace(loaded, assembly=replace(loaded.assembly, rebalancing=rebalancing))
    offline = loaded.begin()
    scheduler = offline.scheduler
    (section,) = scheduler.sections(RebalanceSection, offline.now)
    # Pods that wait are placed before any pod is moved for less than that.
    scheduler.cluster.note_run(section.name, offline.now)
    decisions = offline.decide(progress)
    progress.phase("planning moves")
    ended = [pod for pod in loaded.manifests.pods if pod.is_terminal and pod.spec.node_name]
    running = list(situation_of(scheduler.cluster, offline.now, ended).everywhere())
    plan = section.plan(Cycle(scheduler.cluster, scheduler.queue, offline.now), ended)
    names = list(_strategies(rebalancing.descheduler))
    if rebalancing.policy.defragment_gpus and not rebalancing.policy.compatible:
        names.append(DEFRAGMENT)
    bound = sum(isinstance(decision, Bind) for decision in decisions)
    return Planned(loaded, plan, running, names, bound, rebalancing.policy.compatible)


def _read_policy(path: Path, *, has_metrics: bool) -> Rebalancing:
    found = load_settings(path).rebalancing
    if found is None:
        raise ConfigError(str(path), "kind", expected=KIND, found="other kinds alone")
    for profile in found.descheduler.profiles:
        for name, args in profile.balance:
            is_measured = isinstance(args, LowNodeUtilizationArgs) and args.is_measured
            if (is_measured or isinstance(args, LowNodeLoadArgs)) and not has_metrics:
                inside = ".args.metricsUtilization" if is_measured else ""
                field = f"profiles[{profile.name}].pluginConfig[{name}]{inside}"
                raise ConfigError(str(path), field, expected="--metrics FILE with it", found="none")
    return found


def _strategies(policy: DeschedulerPolicy) -> Iterator[str]:
    for profile in policy.profiles:
        yield from (name for name, _ in profile.deschedule)
    for profile in policy.profiles:
        yield from (name for name, _ in profile.balance)
