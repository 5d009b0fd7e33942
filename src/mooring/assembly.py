"""The composition root: everything that runs is named here, and put together from configuration."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from mooring.actions import ActionSettings, make_actions
from mooring.actions.shares.division import BY_SPEC, WEIGHTED
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.volcano.division import PROPORTION
from mooring.config.batching import BatchingArgs
from mooring.config.capacity_policy import Capacity
from mooring.config.catalogue import load_whole_catalogue
from mooring.config.colocation import ColocationConfig
from mooring.config.gangs import CoschedulingArgs, GangSchedulingArgs
from mooring.config.kai_shard import KaiShard
from mooring.config.load_sources import LoadSources
from mooring.config.node_pools import NodePoolsArgs
from mooring.config.old_scoring import rewrite, with_strategy
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.config.queueing import QueueingSettings
from mooring.config.rebalance_policy import Rebalancing
from mooring.config.scheduler import DEFAULT_SCHEDULER, PluginConfig, ProfileConfig, SchedulerConfig, convert
from mooring.config.settings import Settings, load_settings
from mooring.config.tenant_policy import QueueShares, TenantPolicy
from mooring.config.volcano_scheduler import ACTIONS, DRF, PRIORITY, VolcanoScheduler
from mooring.config.yunikorn import YuniKornConfig
from mooring.engine.cycle import Scheduler
from mooring.engine.held_pods import HeldPods
from mooring.engine.merge import POINTS, Enabled, Naming, plugins_by_point
from mooring.engine.plugin import (
    Bind,
    FilterAnswers,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    QueueSort,
    Reserve,
    ScoreAnswers,
    keys_read_by,
)
from mooring.engine.profile import Profile
from mooring.engine.queue.backoff import Backoff
from mooring.engine.registry import Registry
from mooring.engine.shortcuts import ChoosesCards, SpoiledByOthers
from mooring.errors import ConfigError
from mooring.model.devices.sharing_config import SharingConfig
from mooring.model.events import ObjectSeen
from mooring.plugins import DEFAULT_PLUGINS, OPTIONAL_PLUGINS, PLANNED_PLUGINS
from mooring.plugins.dynamic_resources import DynamicResources
from mooring.plugins.extenders import Extenders
from mooring.plugins.node_pools import NodePools
from mooring.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from mooring.plugins.preemption_toleration import PreemptionToleration
from mooring.plugins.priority_sort import PrioritySort
from mooring.state.cluster import Cluster

ABILITIES: dict[str, type[Plugin]] = {
    "pre_enqueue": PreEnqueue,
    "queue_sort": QueueSort,
    "pre_filter": FilterAnswers,
    "filter": FilterAnswers,
    "post_filter": PostFilter,
    "pre_score": ScoreAnswers,
    "score": ScoreAnswers,
    "reserve": Reserve,
    "permit": Permit,
    "pre_bind": PreBind,
    "bind": Bind,
    "post_bind": PostBind,
}
"""The extension points, and what a plugin must be able to do to run there."""

SETTINGS: dict[str, type[Any]] = {"Batching": BatchingArgs, "PreemptionCost": PreemptionCostArgs}
"""Entries of pluginConfig that are no plugins."""

LARGEST_TOTAL_WEIGHT = 1_000_000_000
"""A total score and its tie-breaker share one 64-bit number."""


@dataclass(frozen=True)
class Assembly:
    """Profiles by schedulerName, ready to decide, and the settings that go with them."""

    config: SchedulerConfig
    profiles: dict[str, Profile]
    batching: dict[str, BatchingArgs]
    """How many equal pods are placed together, by profile."""
    gangs: GangSchedulingArgs
    queueing: QueueingSettings = field(default_factory=QueueingSettings)
    tenants: TenantPolicy = field(default_factory=TenantPolicy)
    gang_backoff_seconds: float = 0.0
    """How long gangs stay behind that were tried in vain, at the least."""
    preemption_costs: dict[str, PreemptionCostArgs] = field(default_factory=dict)
    """What preemption may cost besides priorities, by the preemptor's profile."""
    volcano: VolcanoScheduler | None = None
    yunikorn: YuniKornConfig | None = None
    gpu_sharing: Mapping[str, SharingConfig] = field(default_factory=dict)
    """The device plugin's configurations, by name."""
    kai: KaiShard | None = None
    rebalancing: Rebalancing | None = None
    """Which strategies move pods that run; None: none do."""
    colocation: ColocationConfig | None = None
    capacity: Capacity | None = None
    """What nodes can be bought; None: none are."""
    remarks: tuple[str, ...] = ()
    """What was configured and changes nothing, in one line each."""
    load_sources: LoadSources | None = None
    """Where a running scheduler reads load from."""

    @property
    def default_profile(self) -> Profile:
        return next(iter(self.profiles.values()))

    def taking_on(self, schedulers: Iterable[str]) -> "Assembly":
        """The same, with the default profile under further names: pods that ask for those schedulers are ours too."""
        more = {name: self.default_profile for name in schedulers if name not in self.profiles}
        return replace(self, profiles={**self.profiles, **more})

    def under(self, names: Iterable[str]) -> "Assembly":
        """The same, with the default profile under these names alone."""
        return replace(self, profiles=dict.fromkeys(names, self.default_profile))

    def new_scheduler(
        self,
        *,
        clock: Callable[[], float] | None = None,
        on_batch: Callable[[int, float], None] | None = None,
        cached: bool = True,
        seed: int | None = 0,
    ) -> Scheduler:
        """A scheduler with an empty cluster. Time comes in from the driver; the engine has no clock of its own.

        `on_batch` is told how many pods each batch had and how many seconds it took, where there is a clock.
        """
        settings = ActionSettings(
            profiles=self.profiles,
            batching=self.batching,
            preemption_costs=self.preemption_costs,
            gangs=self.gangs,
            queueing=self.queueing,
            tenants=self.tenants,
            shares=share_settings(self.tenants, self.volcano),
            kai=self.kai,
            node_pools=node_pools(self.profiles),
            rebalancing=self.rebalancing,
            capacity=self.capacity,
            cached=cached,
            clock=clock,
            on_batch=on_batch,
        )
        backoff = Backoff(
            self.config.pod_initial_backoff_seconds, self.config.pod_max_backoff_seconds, self.gang_backoff_seconds
        )
        return Scheduler(self.new_cluster(seed), self.profiles, partial(make_actions, settings), backoff)

    def new_cluster(self, seed: int | None = 0) -> Cluster:
        """An empty cluster that keeps of each pod what these plugins read.

        The seed breaks ties between nodes; without one, the node that came first wins.
        """
        plugins = [plugin for profile in self.profiles.values() for plugin in profile.plugins]
        cluster = Cluster(read_keys=keys_read_by(plugins), seed=seed)
        for allocating in [plugin for plugin in plugins if isinstance(plugin, DynamicResources)][:1]:
            cluster.claims.search(packs=allocating.packs, most_steps=allocating.most_steps)
            cluster.claims.bind_within(allocating.binding_seconds)
        for name, profile in self.profiles.items():
            for plugin, _ in profile.scores:
                if isinstance(plugin, ChoosesCards):
                    cluster.nodes.cards.choose_by(name, plugin.card_policy())
            if any(isinstance(plugin, SpoiledByOthers) and plugin.is_strict_by_default for plugin in profile.filters):
                cluster.spread_by_default(name)
        cluster.share_gpus_by(self.gpu_sharing)
        if self.yunikorn is not None:
            cluster.observe(ObjectSeen(self.yunikorn.queues))
        return cluster


def assemble(
    config: Settings | SchedulerConfig | Path | None = None,
    *,
    plugin_files: Sequence[Path] = (),
    extra_plugins: Iterable[type[Plugin]] = (),
    catalogue: Path | None = None,
    source: str = "configuration",
) -> Assembly:
    """Put profiles together from a configuration (or its file) and everybody's plugins.

    `catalogue` is the file of an InstanceTypeCatalogue, where the configuration has none.
    """
    if isinstance(config, Path):
        source = str(config)
        config = load_settings(config)
    settings = config if isinstance(config, Settings) else Settings(config or SchedulerConfig())
    if catalogue is not None:
        settings = replace(settings, catalogue=load_whole_catalogue(catalogue))
    config = settings.scheduler
    registry = Registry([*(plugin for plugin, _ in DEFAULT_PLUGINS), *OPTIONAL_PLUGINS])
    registry.add_installed()
    for path in plugin_files:
        registry.add_file(path)
    if config.extenders:
        registry.add(Extenders, "configuration")
    for plugin in extra_plugins:
        registry.add(plugin, "code")
        registry.from_files.append(plugin.__name__)
    profiles = config.profiles or [ProfileConfig()]
    built: list[Profile] = []
    spoiled: dict[str, Sequence[SpoiledByOthers]] = {}
    batching: dict[str, BatchingArgs] = {}
    costs: dict[str, PreemptionCostArgs] = {}
    gangs: GangSchedulingArgs | None = None
    coscheduling: CoschedulingArgs | None = None
    node_sort = settings.yunikorn.scoring_strategy() if settings.yunikorn is not None else None
    for index, profile in enumerate(profiles):
        rewritten = rewrite(profile, source, f"profiles[{index}]")
        rewritten = rewritten if node_sort is None else with_strategy(rewritten, node_sort)
        arguments = _arguments(rewritten.plugin_config or [], registry, _naming(registry, source, index))
        _leave_to_extenders(arguments, config)
        made = _build_profile(rewritten, config, registry, arguments, spoiled, _naming(registry, source, index))
        batching[made.name] = arguments.get("Batching", BatchingArgs())
        costs[made.name] = _preemption_cost(made, arguments)
        gangs = gangs or arguments.get("GangScheduling")
        coscheduling = coscheduling or arguments.get("Coscheduling")
        built.append(made)
    _check_queue_sort(built, source)
    by_name = {profile.name: profile for profile in built}
    coscheduling = coscheduling or CoschedulingArgs()
    gangs = gangs or GangSchedulingArgs(
        timeout_seconds=coscheduling.timeout_seconds or GangSchedulingArgs().timeout_seconds
    )
    remarks = tuple(settings.remarks)
    backoff = float(coscheduling.pod_group_backoff_seconds)
    return Assembly(
        config,
        by_name,
        batching,
        gangs,
        settings.queueing,
        settings.tenants,
        backoff,
        costs,
        settings.volcano,
        settings.yunikorn,
        settings.gpu_sharing,
        settings.kai,
        settings.rebalancing,
        settings.colocation,
        settings.capacity,
        remarks,
        settings.load_sources,
    )


def _preemption_cost(profile: Profile, arguments: Mapping[str, Any]) -> PreemptionCostArgs:
    """What preemption may cost; one of its plugins heeds what PriorityClasses tolerate."""
    args: PreemptionCostArgs = arguments.get("PreemptionCost", PreemptionCostArgs())
    if any(isinstance(plugin, PreemptionToleration) for plugin in profile.post_filter):
        args = structs.replace(args, heed_tolerations=True)
    return args


def _leave_to_extenders(arguments: dict[str, Any], config: SchedulerConfig) -> None:
    """Resources that extenders manage alone are none that nodes must have, as kube-scheduler has it."""
    managed = (found for extender in config.extenders or () for found in extender.managed_resources)
    names = dict.fromkeys(found.name for found in managed if found.ignored_by_scheduler)
    if names:
        fit: NodeResourcesFitArgs = arguments.get(NodeResourcesFit.__name__, NodeResourcesFitArgs())
        ignored = [*fit.ignored_resources, *names]
        arguments[NodeResourcesFit.__name__] = structs.replace(fit, ignored_resources=ignored)


def node_pools(profiles: Mapping[str, Profile]) -> dict[str, NodePoolsArgs]:
    """The node pools of each profile that has any."""
    plugins = ((name, plugin) for name, profile in profiles.items() for plugin in profile.plugins)
    return {name: plugin.args for name, plugin in plugins if isinstance(plugin, NodePools) and plugin.args.pools}


DIVISIONS = {division.name: division for division in (PROPORTION, BY_SPEC, WEIGHTED)}
"""By their names in a TenantPolicy."""


def share_settings(policy: TenantPolicy, volcano: VolcanoScheduler | None = None) -> ShareSettings:
    """How the shares of Volcano's queues are decided: by its own configuration where there is one, else by ours."""
    given = _shares_of(policy, volcano)
    actions = ACTIONS if volcano is None else volcano.action_names
    drf = None if volcano is None else volcano.plugin(DRF)
    by_priority = volcano is None or volcano.plugin(PRIORITY) is not None
    return ShareSettings(
        division=DIVISIONS[given.division.lower()],
        enqueues="enqueue" in actions,
        backfills="backfill" in actions,
        reclaims="reclaim" in actions,
        preempts="preempt" in actions and by_priority,
        takes_for_spares=False,
        overcommit_factor=None if volcano is None else volcano.overcommit_factor,
        orders_jobs_by_priority=by_priority,
        orders_jobs_by_share=volcano is None or (drf is not None and drf.enable_job_order is not False),
        stays_within_deserved=given.stays_within_deserved,
        keeps_guarantees=given.keeps_guarantees,
        moves_parent_shares=given.moves_parent_shares,
        is_hierarchical=given.hierarchical,
        resource_weights=given.resource_weights,
        half_life_seconds=policy.usage_half_life_seconds or None,
        minimum_runtime_seconds=policy.minimum_runtime_before_reclaim_seconds,
    )


def _shares_of(policy: TenantPolicy, volcano: VolcanoScheduler | None) -> QueueShares:
    """What a TenantPolicy says of shares, with what Volcano's own configuration selects instead."""
    if volcano is None:
        return policy.shares
    drf, is_by_spec = volcano.plugin(DRF), volcano.plugin("capacity") is not None
    is_hierarchical = drf is not None and bool(drf.enable_hierarchy)
    division = "Capacity" if is_by_spec or is_hierarchical else policy.shares.division
    if volcano.plugin("proportion") is not None and division == "Capacity":
        division = "Proportion"
    return structs.replace(policy.shares, division=division, hierarchical=is_hierarchical)


def _naming(registry: Registry, source: str, index: int) -> Naming:
    return Naming(source, f"profiles[{index}]", [*registry.classes, *PLANNED_PLUGINS])


def _build_profile(
    profile: ProfileConfig,
    config: SchedulerConfig,
    registry: Registry,
    arguments: dict[str, Any],
    spoiled: dict[str, Sequence[SpoiledByOthers]],
    naming: Naming,
) -> Profile:
    points = plugins_by_point(profile, _defaults(profile, config, registry), _abilities(registry), naming)
    instances: dict[str, Plugin] = {}

    def at(point: str) -> list[Any]:
        found = []
        for enabled in points[point]:
            if enabled.name in PLANNED_PLUGINS:
                continue
            if enabled.name not in instances:
                instances[enabled.name] = _make(
                    registry.classes[enabled.name], arguments.get(enabled.name), naming.source
                )
            found.append(instances[enabled.name])
        return found

    queue_sort = at("queue_sort")
    if not queue_sort and any(enabled.name == "Coscheduling" for enabled in points["queue_sort"]):
        queue_sort = [PrioritySort()]  # gangs come by priority and age in any case, which is all that its order is
    if len(queue_sort) != 1:
        names = ", ".join(plugin.name for plugin in queue_sort) or "none"
        raise naming.error("plugins.queueSort", expected="exactly one plugin", found=names)
    scores = at("score")
    weights = {enabled.name: enabled.weight or 1 for enabled in points["score"]}
    if sum(weights.values()) > LARGEST_TOTAL_WEIGHT:
        expected = f"weights of at most {LARGEST_TOTAL_WEIGHT:,} in all"
        raise naming.error("plugins.score", expected=expected, found=f"{sum(weights.values()):,}")
    percentage = profile.percentage_of_nodes_to_score or config.percentage_of_nodes_to_score or 100
    made = {point: tuple(at(point)) for point in POINTS if point not in ("queue_sort", "score", "pre_filter")}
    if not made["bind"]:
        raise naming.error("plugins.bind", expected="at least one plugin", found="none")
    name = profile.scheduler_name or DEFAULT_SCHEDULER
    spoiled[name] = tuple(one for one in made["filter"] if isinstance(one, SpoiledByOthers))
    return Profile(
        name=name,
        queue_sort=queue_sort[0],
        filters=(*made["filter"], HeldPods(name, spoiled)),
        scores=tuple((plugin, weights[plugin.name]) for plugin in scores),
        pre_enqueue=made["pre_enqueue"],
        post_filter=made["post_filter"],
        reserve=made["reserve"],
        permit=made["permit"],
        pre_bind=made["pre_bind"],
        bind=made["bind"],
        post_bind=made["post_bind"],
        percentage_of_nodes_to_score=percentage,
        plugins=tuple(instances.values()),
    )


def _defaults(profile: ProfileConfig, config: SchedulerConfig, registry: Registry) -> list[Enabled]:
    """kube-scheduler's defaults, the extenders of the configuration with the weight that they have together, and
    plugins given as files unless the profile speaks of them itself."""
    defaults = [Enabled(plugin.__name__, weight) for plugin, weight in DEFAULT_PLUGINS]
    if config.extenders:
        weight = sum(found.weight for found in config.extenders if found.prioritize_verb)
        defaults.append(Enabled(Extenders.__name__, weight))
    named = _named(profile)
    return defaults + [Enabled(name) for name in registry.from_files if name not in named]


def _named(profile: ProfileConfig) -> set[str]:
    sets = [getattr(profile.plugins, name) for name in profile.plugins.__struct_fields__] if profile.plugins else []
    return {ref.name for found in sets if found for ref in (*(found.enabled or ()), *(found.disabled or ()))}


def _abilities(registry: Registry) -> dict[str, frozenset[str]]:
    return {
        name: frozenset(point for point, ability in ABILITIES.items() if issubclass(plugin, ability))
        for name, plugin in registry.classes.items()
    }


def _arguments(configs: Sequence[PluginConfig], registry: Registry, naming: Naming) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for index, given in enumerate(configs):
        at = f"pluginConfig[{index}]"
        naming.check(given.name, f"{at}.name", also=tuple(SETTINGS))
        if given.name in arguments:
            raise naming.error(f"{at}.name", expected="each plugin once", found=f'"{given.name}" again')
        plugin = registry.classes.get(given.name)
        others: dict[str, type[Any]] = {**PLANNED_PLUGINS, **SETTINGS}
        args_type = plugin.args_type if plugin else others[given.name]
        field = f"{naming.field}.{at}.args"
        args = convert(given.args or {}, args_type, naming.source, field)
        for problem, expected, found in getattr(args, "validate", lambda: ())():
            raise ConfigError(naming.source, f"{field}.{problem}", expected=expected, found=found)
        arguments[given.name] = args
    return arguments


def _make(plugin: type[Plugin], args: Any, source: str) -> Plugin:
    try:
        return plugin(args)
    except Exception as error:  # a user's plugin may raise anything while it is made
        found = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(source, plugin.__name__, expected="a plugin that can be made", found=found) from error


def _check_queue_sort(profiles: Sequence[Profile], source: str) -> None:
    names = {profile.queue_sort.name for profile in profiles}
    if len(names) > 1:
        found = " and ".join(sorted(names))
        raise ConfigError(source, "profiles", expected="the same queueSort plugin in every profile", found=found)
