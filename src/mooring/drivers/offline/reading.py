"""Everything that an offline command reads: configuration and plugins, which are small, then manifests."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, chain
from pathlib import Path

from mooring.actions.admit.quota.windows import QuotaSchedule
from mooring.assembly import Assembly, assemble
from mooring.config.scheduler import suggestion
from mooring.drivers.load.reading import read_loads
from mooring.drivers.offline.driver import Offline
from mooring.drivers.offline.lending import lend
from mooring.errors import ConfigError, InputError
from mooring.model.api.kueue import ClusterQueue, Workload
from mooring.model.api.meta import timestamp_seconds
from mooring.model.decisions import Decision
from mooring.model.events import NodeLoadSeen
from mooring.model.load.reports import LoadReport
from mooring.model.loading.fields import FieldChecks, Validation
from mooring.model.loading.manifests import Manifests, load_manifests
from mooring.model.loading.steps import load_steps
from mooring.model.objects.job_kinds import JOB_KINDS
from mooring.model.queued.not_built import not_built
from mooring.model.values.durations import parse_duration
from mooring.observe.progress import Progress
from mooring.plugins.resources_compiled import load_if_worthwhile
from mooring.state.loading import imply_namespaces

BETWEEN_STEPS = 60.0
"""Seconds that pass before a step that does not say how many."""
NO_CONFIGURATION = (
    "decided by the default configuration, as the scheduler of this cluster has published none: if it has one of its "
    "own (quota windows, policies, plugins), give it by --config; a ConfigMap as kubectl prints it will do"
)
_STEP = re.compile(r"(?:(?P<after>[-+]?[0-9.]*[0-9][0-9.a-zA-Zµ]*):)?(?P<file>.+)", re.DOTALL)
"""What begins with a number is meant as a duration: `5x` is a slip of the hand, not the beginning of a file's name."""


@dataclass(frozen=True)
class Step:
    """A file with what happens, and after how many seconds."""

    file: str
    after: float


def parse_step(text: str) -> Step:
    """`FILE`, or `10m:FILE` for what happens ten minutes later."""
    match = _STEP.fullmatch(text)
    if match is None:
        raise InputError(f"--then: expected FILE or DURATION:FILE, found {text!r}")
    if match["after"] is None:
        return Step(match["file"], BETWEEN_STEPS)
    after = parse_duration(match["after"])
    if after is None:
        raise InputError(f"--then: expected a duration such as 90s or 10m before the colon, found {match['after']!r}")
    return Step(match["file"], after)


@dataclass(frozen=True)
class Inputs:
    """What the user gave."""

    files: list[str]
    config: Path | None = None
    plugins: tuple[Path, ...] = ()
    seed: int = 0
    then: tuple[Step, ...] = ()
    """What happens after the first picture."""
    now: float | None = None
    """The time at first, in seconds since 1970; None: the last moment that the manifests speak of."""
    schedulers: tuple[str, ...] = ()
    """Whose pods are taken on besides our own: their schedulerNames."""
    validation: Validation = "strict"
    """What is done about unknown fields and duplicate keys."""
    kubeconfig: Path | None = None
    """A cluster in place of files."""
    context: str | None = None
    """Of the kubeconfig, if not its current one."""
    namespace: str = ""
    """Where the names are that a user asks about; everywhere, if it is empty."""
    metrics: tuple[Path, ...] = ()
    """Files of what was measured."""


@dataclass(frozen=True)
class Loaded:
    """Everything that was read."""

    inputs: Inputs
    assembly: Assembly
    pictures: list[Manifests]
    """The whole cluster as it is at first, and after each step."""
    warnings: list[str]
    """Unknown fields and duplicate keys, if they are not mistakes."""
    loads: tuple[LoadReport, ...] = ()
    """What was measured, as far as it is known at first."""
    is_published: bool = False
    """Whether the configuration is the one that the cluster's scheduler has published."""

    @property
    def manifests(self) -> Manifests:
        """What it ends with."""
        return self.pictures[-1]

    @property
    def remarks(self) -> list[str]:
        """What was configured or written, is understood, and changes nothing: a line each."""
        is_known = self.inputs.kubeconfig is None or self.inputs.config is not None or self.is_published
        asked = [] if is_known else [NO_CONFIGURATION]
        return [*self.assembly.remarks, *not_built(self.pictures), *asked]

    @property
    def tells_time(self) -> bool:
        """Whether it matters what time it is: somebody says so, or quotas depend on it."""
        is_said = self.inputs.now is not None or latest_moment(self.pictures[0]) > 0
        return is_said or bool(self.assembly.tenants.quota_windows)

    def begin(self) -> Offline:
        """A driver that has the first picture, and has decided nothing yet."""
        first = self.pictures[0]
        scheduler = self.assembly.new_scheduler(seed=self.inputs.seed)
        now = self.first_moment
        scheduler.load(first, now)
        scheduler.handle(*map(NodeLoadSeen, self.loads))
        load_if_worthwhile(scheduler.cluster)
        return Offline(scheduler, now, first)

    @property
    def first_moment(self) -> float:
        """What time it is at first: the last moment that manifests or measurements speak of, unless somebody says."""
        if self.inputs.now is not None:
            return self.inputs.now
        return max([latest_moment(self.pictures[0]), *(report.at or 0.0 for report in self.loads)])

    def let_happen(self, offline: Offline, number: int, progress: Progress) -> list[Decision]:
        """Let a driver see the step of this number, from 1; what was decided while time passed until then."""
        step = self.inputs.then[number - 1]
        meanwhile = offline.pass_time(step.after, progress)
        try:
            offline.change(self.pictures[number - 1], self.pictures[number])
        except InputError as error:
            raise InputError(f"{step.file}: {error}") from error
        return meanwhile

    def start(self) -> Offline:
        """A driver that has decided on every picture but the last, which has just happened."""
        offline, progress = self.begin(), Progress()
        for number in range(1, len(self.pictures)):
            offline.decide(progress)
            self.let_happen(offline, number, progress)
        return offline


def read(inputs: Inputs, progress: Progress) -> Loaded:
    published = None
    if inputs.kubeconfig is not None and inputs.config is None:
        from mooring.drivers.live.watching.published import published_settings  # as below

        published = published_settings(inputs.kubeconfig, inputs.context)
    assembly = assemble(published or inputs.config, plugin_files=inputs.plugins).taking_on(inputs.schedulers)
    if assembly.config.extenders:
        expected, found = "none here (mooring run asks them)", f"{len(assembly.config.extenders)}"
        raise ConfigError(str(inputs.config), "extenders", expected=expected, found=found)
    progress.phase("reading manifests" if inputs.kubeconfig is None else "reading the cluster")
    checks = FieldChecks(inputs.validation)
    if inputs.kubeconfig is not None:
        from mooring.drivers.live.watching.snapshot import (
            read_cluster,  # the client is only loaded where there is a cluster
        )

        picture, checks.warnings = read_cluster(inputs.kubeconfig, inputs.context)
        pictures = [picture]
    elif inputs.then:
        pictures = load_steps([inputs.files, *([step.file] for step in inputs.then)], checks)
    else:
        pictures = [load_manifests(inputs.files, checks)]
    progress.phase("taking in the cluster")
    return take_in(inputs, assembly, pictures, checks.warnings, is_published=published is not None)


def take_in(
    inputs: Inputs, assembly: Assembly, pictures: list[Manifests], warnings: list[str], *, is_published: bool = False
) -> Loaded:
    """Check pictures that were read, however that was, and complete them by what was measured."""
    for picture in pictures:
        imply_namespaces(picture)
    check_window_targets(assembly, inputs.config, pictures)
    check_schedulers(inputs.schedulers, pictures)
    measured = read_loads(inputs.metrics, inputs.now if inputs.now is not None else latest_moment(pictures[0]))
    loaded = Loaded(inputs, assembly, pictures, warnings, tuple(measured.reports), is_published=is_published)
    if assembly.colocation is not None:
        moments = accumulate((step.after for step in inputs.then), initial=loaded.first_moment)
        for picture, moment in zip(pictures, moments, strict=True):
            lend(picture, measured.node_metrics, assembly.colocation, moment)
    return loaded


def parse_now(text: str) -> float:
    """A time as the API writes it: `2026-03-02T12:00:00Z`."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise InputError(f"--now: expected a time such as 2026-03-02T12:00:00Z, found {text!r}")
    return found.timestamp()


def latest_moment(manifests: Manifests) -> float:
    """The last moment that the manifests speak of: as far as they know, it is now."""
    work = chain.from_iterable(manifests.all_of(kind.type) for kind in JOB_KINDS)
    said = {found.metadata.creation_timestamp for found in chain(manifests.pods, manifests.of(Workload), work)}
    said.update(pod.status.start_time for pod in manifests.pods)
    said.update(
        condition.last_transition_time
        for workload in manifests.of(Workload)
        for condition in workload.status.conditions or ()
    )
    return max((timestamp_seconds(text) or 0.0 for text in said if text), default=0.0)


def check_window_targets(assembly: Assembly, config: Path | None, pictures: Iterable[Manifests]) -> None:
    """Refuse a quota window for a quota that no queue has at any time: a misspelt name would be one that never opens.

    Manifests without queues have no use for windows.
    """
    if not assembly.tenants.quota_windows:
        return
    queues = [queue for picture in pictures for queue in picture.of(ClusterQueue)]
    if not queues:
        return
    for problem in QuotaSchedule(assembly.tenants.quota_windows).unknown(queues):
        expected = problem.expected + suggestion(problem.name, problem.known)
        field = f"quotaWindows[{problem.window}].{problem.field}"
        raise ConfigError(str(config), field, expected=expected, found=f'"{problem.name}"')


def check_schedulers(schedulers: Sequence[str], pictures: Iterable[Manifests]) -> None:
    """Refuse the name of a scheduler that no pod asks for at any time: it is misspelt, or of no use."""
    if not schedulers:
        return
    named = {pod.spec.scheduler_name for picture in pictures for pod in picture.pods}
    for name in schedulers:
        if name not in named:
            known = ", ".join(sorted(named)) or "none"
            raise InputError(f'--as: expected the schedulerName of a pod ({known}), found "{name}"')
