"""`--then`: what is decided now, and after each of the things that happen next."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from mooring.drivers.offline.driver import Inputs, Loaded, Offline
from mooring.drivers.offline.window_targets import check_window_targets
from mooring.errors import InputError
from mooring.observe.progress import Progress
from mooring.report.placements import Result, make_result

if TYPE_CHECKING:
    from mooring.model.decisions import Decision
    from mooring.model.loading.manifests import Manifests

BETWEEN_STEPS = 60.0
"""Seconds that pass before a step that does not say how many."""
_STEP = re.compile(r"(?:(?P<after>[-+]?[0-9.]*[0-9][0-9.a-zA-Zµ]*):)?(?P<file>.+)", re.DOTALL)
"""What begins with a number is meant as a duration: `5x` is a slip of the hand, not the beginning of a file's name."""


@dataclass(frozen=True)
class Step:
    """A file with what happens, and after how many seconds."""

    file: str
    after: float


@dataclass(frozen=True)
class Moment:
    """A step when everything is decided that it brought about. The driver goes on with the next one."""

    step: Step
    said: str
    """The comment at the top of the file."""
    picture: "Manifests"
    offline: Offline
    decisions: list["Decision"]
    ran: set[str]
    """The pods that ran before anything was decided."""


class StepResult(Struct, rename="camel"):
    """One step of a story, and what was decided then."""

    file: str
    after_seconds: float
    said: str
    """The comment at the top of the file."""
    result: Result


class Story(Struct, rename="camel"):
    steps: list[StepResult]


def parse_step(text: str) -> Step:
    """`FILE`, or `10m:FILE` for what happens ten minutes later."""
    from mooring.model.values.durations import parse_duration

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
class LoadedStory(Loaded):
    """Everything that was read of a story; the manifests are what it ends with."""

    steps: list[Step]
    """What happens after the first picture."""
    pictures: list["Manifests"]

    def start(self) -> Offline:
        """A driver that has decided on every step but the last, which has just happened."""
        with Progress() as progress:
            offline = self.begin()
            for number in range(1, len(self.pictures)):
                offline.decide(progress)
                self.let_happen(offline, number)
        return offline

    def begin(self) -> Offline:
        return Loaded(self.assembly, self.pictures[0], self.seed).start()

    def let_happen(self, offline: Offline, number: int) -> None:
        offline.pass_time(self.steps[number - 1].after)
        offline.change(self.pictures[number - 1], self.pictures[number])


def read_story(inputs: Inputs, steps: list[Step], progress: Progress) -> LoadedStory:
    """Read configuration and plugins, then the cluster as it is after each step."""
    from mooring.assembly import assemble
    from mooring.model.loading.steps import load_steps
    from mooring.state.loading import imply_namespaces

    assembly = assemble(inputs.config, plugin_files=inputs.plugins)
    progress.phase("reading manifests")
    pictures = load_steps([inputs.files, *([step.file] for step in steps)])
    for picture in pictures:
        imply_namespaces(picture)
    check_window_targets(assembly, inputs.config, pictures)
    return LoadedStory(assembly, pictures[-1], inputs.seed, steps, pictures)


def moments(inputs: Inputs, steps: list[Step], progress: Progress) -> Iterator[Moment]:
    """Decide, let each step happen, and decide again."""
    story = read_story(inputs, steps, progress)
    offline = story.begin()
    first = Step(", ".join(inputs.files), 0.0)
    for number, (step, picture) in enumerate(zip([first, *steps], story.pictures, strict=True)):
        if number:
            story.let_happen(offline, number)
        ran = _running(offline, picture)
        decisions = offline.decide(progress)
        files = inputs.files if number == 0 else [step.file]
        yield Moment(step, _comment(files), picture, offline, decisions, ran)


def tell(
    inputs: Inputs, steps: list[Step], progress: Progress, pool_label: str | None
) -> tuple[Story, list[Mapping[str, str]]]:
    """What was decided at each step, with the pool of each node then."""
    from mooring.report.pools import pool_names

    told: list[StepResult] = []
    pools: list[Mapping[str, str]] = []
    for moment in moments(inputs, steps, progress):
        scheduler = moment.offline.scheduler
        pool_of = pool_names(scheduler.cluster, pool_label)
        result = make_result(scheduler, moment.picture, moment.decisions, pool_of, moment.ran, moment.offline.lost)
        told.append(StepResult(moment.step.file, moment.step.after, moment.said, result))
        pools.append(pool_of)
    return Story(told), pools


def _running(offline: Offline, picture: "Manifests") -> set[str]:
    """The pods that run before anything is decided."""
    bound = {pod.key for pod in picture.pods if pod.spec.node_name} | set(offline.placed)
    return bound - {lost.pod.key for lost in offline.lost}


def _comment(files: list[str]) -> str:
    """The comment at the top of the first file that has one."""
    for name in files:
        path = Path(name)
        found = sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
        for file in found:
            if file.suffix not in (".yaml", ".yml") or not file.is_file():
                continue
            lines = []
            for line in file.read_text(errors="replace").splitlines():
                if not line.startswith("#"):
                    break
                lines.append(line.lstrip("#").strip())
            if lines:
                return " ".join(lines).strip()
    return ""
