"""One container as time passes: waiting, running, ended, and started again with the kubelet's backoff."""

import math
from typing import NamedTuple

from mooring.model.kubelet.distributions import Distribution, draw
from mooring.model.kubelet.plan import ContainerPlan

WAITING, RUNNING, TERMINATED = "waiting", "running", "terminated"

BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS, FORGIVEN_SECONDS = 10.0, 300.0, 600.0
"""A container that ends again waits 10 s, then twice as long each time, up to 5 minutes; 10 minutes of running start
that anew."""
KILLED_EXIT_CODE = 137


class Termination(NamedTuple):
    exit_code: int
    reason: str
    started_at: float
    finished_at: float


class ContainerLife:
    """One container of one pod. `due` is when something happens next, if nothing else does before."""

    __slots__ = (
        "due",
        "ends_at",
        "exit_code",
        "finished_at",
        "has_begun",
        "identity",
        "index",
        "is_ready",
        "is_started",
        "is_stopping",
        "last",
        "message",
        "plan",
        "pull_backoff",
        "ready_at",
        "reason",
        "restart_count",
        "seed",
        "started_at",
        "state",
        "wait_seconds",
    )

    def __init__(self, plan: ContainerPlan, seed: int, identity: str, index: int, reason: str) -> None:
        self.plan, self.seed, self.identity, self.index = plan, seed, identity, index
        self.state, self.reason, self.message = WAITING, reason, ""
        self.due = self.ends_at = self.ready_at = math.inf
        self.started_at = self.finished_at = 0.0
        self.exit_code = self.restart_count = 0
        self.has_begun = self.is_ready = self.is_started = self.is_stopping = False
        self.last: Termination | None = None
        self.wait_seconds = self.pull_backoff = 0.0

    def _draw(self, what: str) -> float:
        return draw(self.seed, self.identity, self.plan.name, self.restart_count, what)

    def _seconds(self, distribution: Distribution, what: str) -> float:
        return distribution.at(self._draw(what)) if distribution.kind else distribution.first

    def begin(self, at: float, has_image: bool) -> None:
        """Pull the image if the node lacks it, then start."""
        self.has_begun = True
        self.state = WAITING
        self.due = at + (0.0 if has_image else self._seconds(self.plan.pull, "pull"))
        if not self.plan.is_missing:
            self.due += self._seconds(self.plan.start, "start")

    def happen(self, at: float) -> bool:
        """Let what is due happen; tell whether the container ended."""
        if self.state == WAITING:
            if self.plan.is_missing:
                self._fail_to_pull(at)
            else:
                self._run(at)
            return False
        if at >= self.ends_at:
            self._terminate(at)
            return True
        if not self.is_started and at >= self.started_at + self.plan.started:
            self.is_started = True
        if at >= self.ready_at:
            self.is_ready = True
        self._look_ahead()
        return False

    def _fail_to_pull(self, at: float) -> None:
        """Say that the pull failed, then that it is not tried for a while, in turn."""
        image = self.plan.image
        if self.reason == "ErrImagePull":
            self.reason, self.message = "ImagePullBackOff", f'Back-off pulling image "{image}"'
            self.pull_backoff = min(LONGEST_BACKOFF_SECONDS, self.pull_backoff * 2 or BACKOFF_SECONDS)
            self.due = at + self.pull_backoff
        else:
            self.reason, self.message = "ErrImagePull", f'failed to pull image "{image}": not found'
            self.due = at + 1.0

    def _run(self, at: float) -> None:
        if self.last is not None:
            self.restart_count += 1
        self.state, self.reason, self.message = RUNNING, "", ""
        self.started_at = at
        self.is_started = self.plan.started == 0.0
        self.ends_at = at + self._seconds(self.plan.duration, "duration")
        self.exit_code = self._own_exit_code()
        once = self.plan.fail_once
        if once is not None and once[0] == self.index and not self.restart_count and at + once[1] < self.ends_at:
            self.ends_at, self.exit_code = at + once[1], self.plan.ending.exit_code or 1
        # An init container is ready when it has succeeded.
        self.ready_at = (
            math.inf if self.plan.is_init and not self.plan.is_sidecar else at + self._seconds(self.plan.ready, "ready")
        )
        self.is_ready = self.ready_at <= at
        self._look_ahead()

    def _own_exit_code(self) -> int:
        ending = self.plan.ending
        if ending.odd_indexes_fail:
            return self.index % 2
        if ending.failure_probability and self._draw("fails") < ending.failure_probability:
            return ending.exit_code or 1
        return 0 if ending.failure_probability else ending.exit_code

    def _look_ahead(self) -> None:
        self.due = self.ends_at
        if not self.is_started:
            self.due = min(self.due, self.started_at + self.plan.started)
        if not self.is_ready:
            self.due = min(self.due, self.ready_at)

    def _terminate(self, at: float) -> None:
        self.state, self.finished_at = TERMINATED, at
        self.reason = "Completed" if self.exit_code == 0 else "Error"
        self.is_ready = self.plan.is_init and not self.plan.is_sidecar and self.exit_code == 0
        self.is_started = False
        self.due = self.ends_at = self.ready_at = math.inf

    def fail(self, at: float, exit_code: int) -> None:
        """End now, with an exit code."""
        self.exit_code = exit_code
        self._terminate(at)

    def kill(self, at: float, grace_seconds: float) -> None:
        """Ask a running container to stop; at the end of its grace it is made to."""
        if self.state != RUNNING:
            self.due = math.inf
            return
        needs = self._seconds(self.plan.stop, "stop")
        ends_at = at + min(needs, grace_seconds)
        if ends_at < self.ends_at:
            self.ends_at = ends_at
            self.exit_code = KILLED_EXIT_CODE if needs > grace_seconds else self.plan.stop_code
        self.is_stopping = True
        self._look_ahead()

    def wait_to_restart(self, at: float) -> None:
        """Start again: at once the first time, later with a growing delay."""
        self.last = self.termination()
        if self.finished_at - self.started_at > FORGIVEN_SECONDS:
            self.wait_seconds = 0.0
        delay = self.wait_seconds
        self.wait_seconds = min(LONGEST_BACKOFF_SECONDS, delay * 2 or BACKOFF_SECONDS)
        self.due = at + delay
        self.state = WAITING
        if delay:
            self.reason = "CrashLoopBackOff"
            self.message = f"back-off {go_seconds(delay)} restarting failed container={self.plan.name}"
        else:
            self.reason, self.message = "ContainerCreating", ""

    def reset(self, at: float, reason: str) -> None:
        """Be as before the first start, but for what is counted and remembered."""
        if self.state == RUNNING:
            self.fail(at, KILLED_EXIT_CODE)
            self.reason = "RestartingAllContainers"
        if self.state == TERMINATED:
            self.last = self.termination()
        self.state, self.reason, self.message = WAITING, reason, ""
        self.has_begun = self.is_ready = self.is_started = False
        self.due = math.inf

    def termination(self) -> Termination:
        return Termination(self.exit_code, self.reason, self.started_at, self.finished_at)


def go_seconds(seconds: float) -> str:
    """Whole seconds as Go prints a duration.

    >>> go_seconds(80)
    '1m20s'
    """
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
