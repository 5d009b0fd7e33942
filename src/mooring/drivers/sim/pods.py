"""Pods and jobs of a simulation: on which node, how far their work has come, and what of it an eviction loses.

How a pod lives on its node is `model/kubelet`'s, as on the embedded control plane. What is added here is what outlives
one pod: the work that its job has saved, which the next pod goes on from.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mooring.drivers.sim.amounts import asked_by
from mooring.drivers.sim.submissions import Member, Submitted
from mooring.drivers.world.pods import made_anew
from mooring.drivers.world.sizes import as_recommended
from mooring.model.api.pods import Pod
from mooring.model.kubelet.distributions import Distribution
from mooring.model.kubelet.life import PodLife
from mooring.model.kubelet.plan import PodPlan
from mooring.state.related import RelatedObjects

if TYPE_CHECKING:
    from mooring.drivers.sim.machines import Machine


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """When jobs save their work."""

    interval: float = math.inf
    """Seconds of work between two of them; never, if nobody says."""
    on_eviction: bool = False
    """Whether a pod that is told to stop saves first; one whose node fails cannot."""


NO_CHECKPOINTS = Checkpoints()


class SimulatedJob:
    """A job from its arrival to its end."""

    __slots__ = (
        "bound",
        "broken_at",
        "checkpoints",
        "failures",
        "is_running",
        "more",
        "pods",
        "row",
        "submitted",
        "yet_to_run",
    )

    def __init__(self, submitted: Submitted, row: int, checkpoints: Checkpoints) -> None:
        self.submitted, self.checkpoints = submitted, checkpoints
        self.row = row
        """Of the results."""
        self.pods: dict[str, SimulatedPod] = {}
        """Those that are not over, by key."""
        self.more = submitted.more
        self.yet_to_run = len(submitted.members)
        """How many pods have not run at all."""
        self.bound = 0
        """How many are on a node."""
        self.is_running = False
        """Whether all are."""
        self.failures = 0
        self.broken_at = math.nan
        """When a rank failed for which all began anew; nan once all run again."""


class SimulatedPod:
    """One pod of a job, through all the pods of its name that are made one after the other."""

    __slots__ = (
        "asked",
        "attempts",
        "bound_at",
        "given",
        "has_run",
        "index",
        "is_leaving",
        "job",
        "key",
        "life",
        "machine",
        "member",
        "pod",
        "saved",
        "since",
        "stay",
        "total",
        "turn",
    )

    def __init__(self, pod: Pod, member: Member, job: SimulatedJob, index: int, given: float) -> None:
        self.key = pod.key
        self.pod, self.member, self.job, self.index = pod, member, job, index
        self.asked = member.asked
        """What it holds on its node: what its job asked for, or what it was given since."""
        self.given = self.total = given
        """Seconds of work in all; nan until its first life has drawn them."""
        self.saved = 0.0
        """Seconds of work that no eviction can take any more."""
        self.life: PodLife | None = None
        self.machine: Machine | None = None
        self.bound_at = self.since = math.nan
        """When it came to its node, and when its containers began to run; nan while they do not."""
        self.stay = -1
        """Row of the results."""
        self.turn = 0
        """Rises when what was expected to happen to it will not."""
        self.attempts = 0
        """How often it was made anew."""
        self.is_leaving = self.has_run = False

    def begin(self, now: float, seed: int, machine: "Machine") -> PodLife:
        """Start the life of the pod on its node, with the work that is left."""
        plan = without_failure(self.member.plan) if self.attempts else self.member.plan
        if not math.isnan(self.total):
            plan = with_duration(plan, max(0.0, self.total - self.saved))
        identity = f"{self.key}#{self.attempts}" if self.attempts else self.key
        self.life = PodLife(plan, identity=identity, at=now, seed=seed, index=self.index, images=machine.images)
        return self.life

    def note_running(self) -> None:
        """Its containers run: since when, and how long they will."""
        assert self.life is not None
        self.since = max(one.started_at for one in self.life.containers)
        if math.isnan(self.total):
            self.total = max(one.ends_at - one.started_at for one in self.life.containers)

    def stop_work(self, now: float, *, can_save: bool) -> float:
        """The pod's work ends before it is done: keep what is saved, and return the seconds that are lost."""
        if math.isnan(self.since):
            return 0.0
        checkpoints = self.job.checkpoints
        done = min(self.saved + max(0.0, now - self.since), self.total)
        self.since = math.nan
        if can_save and checkpoints.on_eviction:
            self.saved = done
        elif math.isfinite(checkpoints.interval):
            self.saved = max(self.saved, math.floor(done / checkpoints.interval) * checkpoints.interval)
        return max(0.0, done - self.saved)

    def leave(self) -> None:
        """It is on no node any more."""
        self.machine = self.life = None
        self.is_leaving = False
        self.since = math.nan
        self.turn += 1

    def made_anew(self, related: RelatedObjects) -> Pod:
        """The pod as its controller makes it again: of the same name, and yet another, as its autoscaler sizes it."""
        self.attempts += 1
        was, self.pod = self.pod, as_recommended(made_anew(self.pod, self.attempts), related)
        if self.asked is not self.member.asked or self.pod.spec.containers is not was.spec.containers:
            self.asked = asked_by(self.pod)
        return self.pod

    def begin_anew(self) -> None:
        """Another piece of the job's work, from its beginning."""
        self.saved, self.total = 0.0, self.given


def without_failure(plan: PodPlan) -> PodPlan:
    """The plan of a pod that has failed once, as it was to."""
    if not any(one.fail_once for one in plan.containers):
        return plan
    return replace(plan, containers=tuple(replace(one, fail_once=None) for one in plan.containers))


def with_duration(plan: PodPlan, seconds: float) -> PodPlan:
    """The plan of a pod whose work takes so long: that of every container that ends by itself."""
    duration = Distribution(seconds)
    containers = tuple(
        replace(one, duration=duration) if one.duration.kind or one.duration.first < math.inf else one
        for one in plan.containers
    )
    return replace(plan, containers=containers)
