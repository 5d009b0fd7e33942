"""One run: a scenario under one policy with one seed, from an empty scheduler to its results."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from msgspec import structs

from mooring.assembly import Assembly, assemble
from mooring.config.scheduler import PluginRef, Plugins, PluginSet, ProfileConfig, SchedulerConfig
from mooring.config.settings import Settings
from mooring.drivers.sim.faults import Change, Chosen, Failures, Reclaims
from mooring.drivers.sim.provider import price_of
from mooring.drivers.sim.recorder import Recorder
from mooring.drivers.sim.settings import SimulationSettings
from mooring.drivers.sim.simulation import Simulation
from mooring.drivers.sim.submissions import Given, Submissions, is_work, put_documents, split
from mooring.drivers.sim.work import WorkPlan, in_order
from mooring.drivers.sim.world import Work, World
from mooring.engine.cycle import Scheduler
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.nodes import Node
from mooring.model.decisions import Decision
from mooring.model.devices.cards import WHOLE, Sharing
from mooring.model.events import Event, GangSeen, NodeSeen, PodSeen, WorkloadSeen
from mooring.model.kubelet.plan import DEFAULT_TIMINGS, Timings
from mooring.model.loading.catalog import Catalog
from mooring.model.values.requests import CPU
from mooring.observe.progress import Progress
from mooring.plugins.gpu_fragmentation import DEFAULT_TYPICAL_PODS, Fragmentation, TypicalPod, left_of
from mooring.report.simulation.results import Run

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class PolicyInput:
    """One way to schedule: configuration, and the objects that belong to it."""

    name: str
    settings: Settings = field(default_factory=Settings)
    documents: tuple[Given, ...] = ()
    plugin_files: tuple[Path, ...] = ()
    scores: tuple[str, ...] = ()
    """The Score plugins that alone decide between nodes; none: those of the settings."""
    schedulers: tuple[str, ...] = ()
    interval: float | None = None
    source: str = "configuration"
    digest: str = ""
    """Tells it from others, whatever they are called."""

    def assemble(self) -> Assembly:
        settings = self.settings
        if self.scores:
            config = _scoring_by(settings.scheduler, self.scores)
            settings = Settings(
                **{name: getattr(settings, name) for name in Settings.__dataclass_fields__ if name != "scheduler"},
                scheduler=config,
            )
        assembly = assemble(settings, plugin_files=self.plugin_files, source=self.source)
        return assembly.taking_on(self.schedulers)


def _scoring_by(config: SchedulerConfig, scores: tuple[str, ...]) -> SchedulerConfig:
    only = PluginSet(enabled=[PluginRef(name=name, weight=1) for name in scores], disabled=[PluginRef(name="*")])
    profiles = [
        structs.replace(profile, plugins=structs.replace(profile.plugins or Plugins(), score=only))
        for profile in config.profiles or [ProfileConfig()]
    ]
    return structs.replace(config, profiles=profiles)


@dataclass(frozen=True)
class Prepared:
    """A scenario that was read and checked."""

    name: str
    start: float
    horizon: float
    interval: float
    sample_every: float
    seeds: tuple[int, ...]
    documents: tuple[Given, ...]
    """The cluster at the start."""
    work: tuple[WorkPlan, ...]
    policies: dict[str, PolicyInput]
    faults: tuple[Failures | Reclaims, ...] = ()
    detection: float = 40.0
    changes: tuple[Change, ...] = ()
    prices: tuple[tuple[Chosen, float], ...] = ()
    timings: Timings = DEFAULT_TIMINGS
    typical_pods: tuple[TypicalPod, ...] = ()
    digest: str = ""
    """Tells it from others, but for its policies and seeds."""

    def price(self, node: Node) -> float:
        return next((price for chosen, price in self.prices if chosen.has(node)), 0.0)

    def settings(self, policy: PolicyInput, seed: int) -> SimulationSettings:
        return SimulationSettings(
            start=self.start,
            horizon=self.horizon,
            interval=self.interval if policy.interval is None else policy.interval,
            sample_every=self.sample_every,
            seed=seed,
            detection=self.detection,
            price=price_of(policy.settings.catalogue, self.price),
            catalogue=policy.settings.catalogue,
        )


def simulate(
    prepared: Prepared,
    policy: str,
    seed: int,
    progress: Progress | None = None,
    watch: Callable[[float, list[Decision]], None] | None = None,
    at_end: Callable[[World], None] | None = None,
) -> Run:
    """Run a scenario under one policy; `watch` is told every cycle's decisions, `at_end` what the world is then."""
    chosen = prepared.policies[policy]
    scheduler = chosen.assemble().new_scheduler(seed=seed)
    measure = FragmentationMeasure(scheduler, prepared.typical_pods)
    recorder = Recorder(measure.gpus)
    simulation = Simulation(scheduler, prepared.settings(chosen, seed), recorder)
    simulation.watch = watch
    catalog = Catalog()
    submissions = Submissions(catalog, prepared.timings)
    begin(simulation, catalog, (*prepared.documents, *chosen.documents), prepared)
    world = simulation.world
    for fault in prepared.faults:
        fault.begin(world, seed)
    for change in prepared.changes:
        change.note(world, catalog, submissions)
    works = [plan.works(submissions, prepared.start, seed, prepared.horizon) for plan in prepared.work]
    simulation.run(in_order(works), progress or Progress())
    if at_end is not None:
        at_end(world)
    return recorder.finish(policy, seed, prepared.horizon)


def put_cluster(catalog: Catalog, documents: tuple[Given, ...]) -> list[Event]:
    """Put the cluster at the start into a catalog; return what there is. What brings pods does not stay."""
    passing = []
    for each in documents:
        put = list(put_documents(catalog, [each]))
        if is_work(each[0]):
            passing += put
    events = catalog.changes()
    for identity in passing:
        catalog.remove(*identity)
    catalog.changes()
    return events


def begin(simulation: Simulation, catalog: Catalog, documents: tuple[Given, ...], prepared: Prepared) -> None:
    """Let the cluster be there as its manifests show it: pods with a node run on it, the others wait."""
    world = simulation.world
    events = put_cluster(catalog, documents)
    for event in events:
        if isinstance(event, NodeSeen):
            world.see_node(event.node)
        elif not isinstance(event, PodSeen | WorkloadSeen | GangSeen):
            world.tell(event)
    theirs = [event for event in events if isinstance(event, PodSeen | WorkloadSeen | GangSeen)]
    theirs.sort(key=lambda event: event.pod.metadata.creation_timestamp or "" if isinstance(event, PodSeen) else "")
    for submitted in split(theirs, [document for document, _ in documents], prepared.timings):
        stamps = [timestamp_seconds(pod.metadata.creation_timestamp) for pod in submitted.pods]
        at = min((stamp for stamp in stamps if stamp is not None), default=prepared.start)
        world.submit(Work(min(at, prepared.start), submitted))


class FragmentationMeasure:
    """How many GPUs are idle and of no use, as a cluster is now."""

    def __init__(self, scheduler: Scheduler, typical_pods: tuple[TypicalPod, ...]) -> None:
        self._cluster = scheduler.cluster
        self._fragmentation = Fragmentation(typical_pods or DEFAULT_TYPICAL_PODS)

    def gpus(self) -> float:
        rows = self._cluster.rows()
        if not len(rows) or not self._cluster.nodes.cards.of_row:
            return 0.0
        cards = rows.cards
        left = left_of(cards)
        counted = cards.sharing == Sharing.COUNTED
        if counted.any():  # where GPUs are only counted, no card is anybody's: the first ones are the free ones
            free = rows.free(GPU)[counted, np.newaxis]
            position = np.cumsum(left[counted] >= 0, axis=1)
            left[counted] = np.where(left[counted] < 0, -1, np.where(position <= free, WHOLE, 0))
        models = cards.models() if self._fragmentation.is_choosy else None
        return float(self._fragmentation.of(rows.free(CPU), left, models).sum()) / WHOLE
