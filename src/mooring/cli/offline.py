"""Manifests in, a scheduler that has them out: what the offline commands have in common."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mooring.cli.progress import Progress

if TYPE_CHECKING:
    from mooring.assembly import Assembly
    from mooring.engine.cycle import Scheduler
    from mooring.model.decisions import Decision
    from mooring.model.manifests import Manifests

SLICE = 1024
"""Pods a cycle: a bar that moves a few times a second. Where nobody preempts, decisions are the same for any size."""


@dataclass(frozen=True)
class Inputs:
    """What the user gave."""

    files: list[str]
    config: Path | None = None
    plugins: tuple[Path, ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class Loaded:
    """Everything that was read, and a scheduler that knows it."""

    assembly: "Assembly"
    manifests: "Manifests"
    seed: int

    def new_scheduler(self) -> "Scheduler":
        scheduler = self.assembly.new_scheduler(seed=self.seed)
        scheduler.load(self.manifests)
        return scheduler


def read(inputs: Inputs, progress: Progress) -> Loaded:
    """Read configuration and plugins, which are small, before manifests, which may not be."""
    from mooring.assembly import assemble
    from mooring.model.manifests import load_manifests
    from mooring.state.loading import imply_namespaces

    assembly = assemble(inputs.config, plugin_files=inputs.plugins)
    progress.phase("reading manifests")
    manifests = load_manifests(inputs.files)
    imply_namespaces(manifests)
    return Loaded(assembly, manifests, inputs.seed)


def decide(scheduler: "Scheduler", progress: Progress, at_most: int | None = None) -> list["Decision"]:
    """Run cycles until nothing is left to try, or for so many pods."""
    total = len(scheduler.queue) if at_most is None else at_most
    progress.phase("placing pods", total)
    decisions: list[Decision] = []
    done = 0
    room_is_made = False
    while (len(scheduler.queue) or room_is_made) and (at_most is None or done < at_most):
        size = SLICE if at_most is None else min(SLICE, at_most - done)
        made, room_is_made = step(scheduler, size)
        decisions += made
        done += size
        progress.reached(total - len(scheduler.queue) if at_most is None else done)
    return decisions


def step(scheduler: "Scheduler", at_most: int) -> tuple[list["Decision"], bool]:
    """Run one cycle and complete its evictions at once; tell whether there were any, for whom a next cycle is due.

    Pods that ran before are gone. Pods that got their place only here wait again, as their workloads would see to it.
    """
    from mooring.model.decisions import Evict
    from mooring.model.events import PodLost, PodSeen

    decisions = scheduler.cycle(0.0, at_most=at_most)
    evicted = [decision.pod for decision in decisions if isinstance(decision, Evict)]
    for key in evicted:
        pod = scheduler.cluster.pods.records[key].pod
        scheduler.handle(PodLost(key))
        if not pod.spec.node_name:
            scheduler.handle(PodSeen(pod))
    return decisions, bool(evicted)


def remark_ignored(manifests: "Manifests", *, quiet: bool) -> None:
    """Mention the kinds that scheduling does not read, in one line."""
    if manifests.ignored and not quiet:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(manifests.ignored.items()))
        line = f"not read by scheduling: {kinds}"
        print(f"\x1b[2m{line}\x1b[0m" if sys.stderr.isatty() else line, file=sys.stderr)
