"""The life of one pod: what happens next and when, and in which phase it is then.

    life = PodLife(plan, identity=uid, at=bound_at)
    while life.next_at < math.inf:
        life.advance(life.next_at)

Whoever drives it (a simulated node, the simulator) asks `next_at`, calls `advance` when that time has come, and reads
`phase`, `is_ready` and `is_over`; the status document is made on request (`status.py`).
"""

import math
from collections.abc import MutableSet

from mooring.model.kubelet.containers import RUNNING, TERMINATED, WAITING, ContainerLife
from mooring.model.kubelet.plan import PodPlan

PENDING, POD_RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"
CRASHED_EXIT_CODE = 255
CREATING, INITIALIZING = "ContainerCreating", "PodInitializing"


class PodLife:
    """One pod on its node, from the moment that the node knows of it."""

    __slots__ = (
        "_deadline_at",
        "_images",
        "_init_done",
        "_main_begun",
        "containers",
        "everyone",
        "failures",
        "has_been_initialized",
        "init",
        "is_over",
        "is_rejected",
        "is_stopping",
        "message",
        "next_at",
        "phase",
        "plan",
        "reason",
        "started_at",
    )

    def __init__(
        self,
        plan: PodPlan,
        *,
        identity: str,
        at: float,
        seed: int = 0,
        index: int = 0,
        images: MutableSet[str] | None = None,
    ) -> None:
        """`images` are those that the node has; it gets those that are pulled. `index` is the completion index."""
        waits_for = INITIALIZING if plan.init else CREATING
        self.plan, self._images = plan, images
        self.init = [ContainerLife(one, seed, identity, index, waits_for) for one in plan.init]
        self.containers = [ContainerLife(one, seed, identity, index, waits_for) for one in plan.containers]
        self.everyone = self.init + self.containers if self.init else self.containers
        self.phase, self.reason, self.message = PENDING, "", ""
        self.started_at = at
        self.failures = 0
        self._deadline_at = at + plan.deadline_seconds
        self._init_done = 0
        self._main_begun = self.has_been_initialized = False
        self.is_over = self.is_stopping = self.is_rejected = False
        self.next_at = at
        self._settle(at)

    @property
    def is_ready(self) -> bool:
        """Whether all containers are ready; readiness gates are not asked."""
        if self.is_over or not self._main_begun:
            return False
        return all(one.is_ready for one in self.containers) and all(
            one.is_ready for one in self.init if one.plan.is_sidecar
        )

    def advance(self, now: float) -> bool:
        """Let everything happen that is due by now, each at its own moment; tell whether anything did."""
        has_changed = False
        while self.next_at <= now:
            at = self.next_at
            for container in [one for one in self.everyone if one.due <= at]:
                if container.happen(at) and self._ended(container, at):
                    break
            if self._deadline_at <= at:
                self._exceed_deadline(at)
            self._settle(at)
            has_changed = True
        return has_changed

    def stop(self, at: float, grace_seconds: float) -> None:
        """Stop every container, as when the pod is deleted; may be said again with a shorter grace."""
        self.advance(at)
        if self.is_over:
            return
        self.is_stopping = True
        self._deadline_at = math.inf
        for container in self.everyone:
            container.kill(at, grace_seconds)
        self._settle(at)

    def reject(self, reason: str, message: str) -> None:
        """Refuse the pod before anything of it starts, as a kubelet does that has no room for it."""
        self.phase, self.reason, self.message = FAILED, reason, message
        self.is_rejected = self.is_over = True
        self.next_at = math.inf

    def crash(self, at: float) -> None:
        """End every running container at once, as when the node loses power; those that may are started again."""
        for container in self.everyone:
            if container.state == RUNNING:
                container.fail(at, CRASHED_EXIT_CODE)
                if self._ended(container, at):
                    break
        self._settle(at)

    def restart(self, name: str, at: float) -> None:
        """Stop one container and start it again at once, as a resize may ask for."""
        for container in self.everyone:
            if container.plan.name == name and container.state == RUNNING:
                container.reset(at, CREATING)
                container.begin(at, has_image=True)
        self._settle(at)

    def restart_all(self, at: float) -> None:
        """Stop every container and begin anew where the pod is, init containers first."""
        self.advance(at)
        if self.is_over or self.is_stopping:
            return
        self._restart_all(at)
        self._settle(at)

    def _ended(self, container: ContainerLife, at: float) -> bool:
        """Start a container again if its policy says so; tell whether all are, because of it."""
        if self.is_stopping or container.is_stopping:
            return False
        self.failures += container.exit_code != 0
        if container.plan.rule_for(container.exit_code) == "RestartAllContainers":
            self._restart_all(at)
            return True
        if container.plan.is_sidecar or container.plan.restarts_after(container.exit_code):
            container.wait_to_restart(at)
        return False

    def _restart_all(self, at: float) -> None:
        reason = INITIALIZING if self.init else CREATING
        for container in self.everyone:
            container.reset(at, reason)
        self._init_done = 0
        self._main_begun = False

    def _exceed_deadline(self, at: float) -> None:
        self._deadline_at = math.inf
        self.reason, self.message = "DeadlineExceeded", DEADLINE_MESSAGE
        self.is_stopping = True
        for container in self.everyone:
            container.kill(at, math.inf)

    def _settle(self, at: float) -> None:
        """Start what may start now, see whether all has ended, and when something happens next."""
        if self.is_over:
            return
        if not self.is_stopping:
            self._start_next(at)
        if self._has_ended():
            self._end()
            return
        self.phase = self._running_phase()
        due = min(one.due for one in self.everyone)
        self.next_at = min(due, self._deadline_at)

    def _start_next(self, at: float) -> None:
        """Init containers one after the other, a sidecar's successor once it has started; then all the others."""
        while self._init_done < len(self.init):
            container = self.init[self._init_done]
            if not container.has_begun:
                self._begin(container, at)
            done = container.is_started if container.plan.is_sidecar else self._has_succeeded(container)
            if not done:
                return
            self._init_done += 1
        if not self._main_begun:
            self._main_begun = True
            for container in self.containers:
                self._begin(container, at)

    @staticmethod
    def _has_succeeded(container: ContainerLife) -> bool:
        return container.state == TERMINATED and container.exit_code == 0

    def _begin(self, container: ContainerLife, at: float) -> None:
        image = container.plan.image
        has_image = self._images is not None and image in self._images
        if self._images is not None and not container.plan.is_missing:
            self._images.add(image)
        container.begin(at, has_image)

    def _has_ended(self) -> bool:
        """All is over when no container runs or will; sidecars are stopped once nothing needs them."""
        if self.is_stopping:
            return not any(one.state == RUNNING for one in self.everyone)
        failed = any(one.state == TERMINATED and one.exit_code for one in self.init if not one.plan.is_sidecar)
        if not failed and not (self._main_begun and all(one.state == TERMINATED for one in self.containers)):
            return False
        sidecars = [one for one in self.init if one.plan.is_sidecar]
        for sidecar in sidecars:
            if sidecar.state == WAITING:
                sidecar.due = math.inf
            elif not sidecar.is_stopping:
                sidecar.kill(max((one.finished_at for one in self.everyone), default=0.0), math.inf)
        return not any(one.state == RUNNING for one in sidecars)

    def _end(self) -> None:
        self.is_over = True
        self.next_at = math.inf
        ran = [one for one in self.containers if one.state == TERMINATED]
        succeeded = len(ran) == len(self.containers) and not any(one.exit_code for one in ran)
        if self.is_stopping and not self.reason and not ran and not any(one.last for one in self.containers):
            # Deleted before anything ran: the kubelet calls that a failure as well.
            succeeded = False
        self.phase = SUCCEEDED if succeeded and not self.reason else FAILED

    def _running_phase(self) -> str:
        """Pending until every container has run once; then Running, also while some wait to be started again."""
        if self.has_been_initialized:
            return POD_RUNNING
        if any(one.state == WAITING and one.last is None for one in self.containers) or not self._main_begun:
            return PENDING
        self.has_been_initialized = True
        return POD_RUNNING
