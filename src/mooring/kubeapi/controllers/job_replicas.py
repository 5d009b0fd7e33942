"""How many pods a Job has at the moment, which indexes they work on, and how long it waits after a failure."""

from typing import TYPE_CHECKING

from mooring.kubeapi.controllers.job_groups import keep_group
from mooring.kubeapi.controllers.job_pods import failures_of, finished_at, index_of, make_job_pod
from mooring.kubeapi.controllers.job_policies import IGNORE, on_failure
from mooring.kubeapi.controllers.pods import PodView, delete_pod, rank_for_deletion
from mooring.kubeapi.controllers.slices import SLICE, at_most
from mooring.kubeapi.status import ApiError
from mooring.model.kubelet.backoff import backoff_seconds

if TYPE_CHECKING:
    from mooring.kubeapi.controllers.jobs import JobTurn


class JobReplicas:
    """Makes and removes the pods of one Job; what it changes is seen in the turn's `active` and `pods`."""

    def __init__(self, turn: "JobTurn") -> None:
        self.turn = turn
        self.group = ""
        self._by_index: dict[int | None, list[PodView]] | None = None

    def manage(self) -> None:
        """Bring the number of active pods to what is wanted now."""
        if self.turn.is_suspended:
            self._remove(self.turn.active)
            return
        self.group = keep_group(self.turn.api, self.turn.job)
        if self.turn.is_indexed:
            self._drop_needless()
        wanted = self._wanted()
        terminating = (
            sum(pod.is_leaving and not pod.is_terminal for pod in self.turn.pods)
            if self.turn.replaces_failed_only
            else 0
        )
        if len(self.turn.active) > wanted:
            self._remove(rank_for_deletion(self.turn.active, {})[: len(self.turn.active) - wanted])
        elif len(self.turn.active) + terminating < wanted:
            self._create(wanted - len(self.turn.active) - terminating)

    def _wanted(self) -> int:
        succeeded = self.turn.status.get("succeeded", 0)
        if self.turn.completions is None:
            return len(self.turn.active) if succeeded > 0 else self._parallelism
        done = len(self.turn.succeeded_indexes | self.turn.failed_indexes) if self.turn.is_indexed else succeeded
        return min(self._parallelism, max(0, self.turn.completions - done))

    @property
    def _parallelism(self) -> int:
        return at_most(self.turn.controller, self.turn.job, self.turn.parallelism)

    def _drop_needless(self) -> None:
        """Two pods of one index, or one whose index is done or not there any more: one is too many."""
        seen: set[int] = set(self.turn.succeeded_indexes | self.turn.failed_indexes)
        needless = []
        for pod in sorted(self.turn.active, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name)):
            index = index_of(pod)
            if index is None or index in seen or index >= (self.turn.completions or 0):
                needless.append(pod)
            else:
                seen.add(index)
        self._remove(needless)

    def _remove(self, pods: list[PodView]) -> None:
        removed = pods[:SLICE]
        for pod in removed:
            delete_pod(self.turn.api, pod)
            self.turn.event("Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
        if len(pods) > SLICE:
            self.turn.controller.enqueue(self.turn.key)
        gone = {pod.metadata.uid for pod in removed}
        self.turn.active = [pod for pod in self.turn.active if pod.metadata.uid not in gone]

    def _create(self, count: int) -> None:
        is_part, count = count > SLICE, min(count, SLICE)
        indexes: list[int | None] = [None] * count
        if self.turn.is_indexed:
            indexes = list(self._free_indexes(count))
        elif (wait := self._wait_seconds(self._failures())) > 0:
            self.turn.controller.enqueue(self.turn.key, after=wait)
            return
        for index in indexes:
            failures = self._failures_of_index(index) if self.turn.per_index is not None else None
            try:
                created = self.turn.api.create("pods", make_job_pod(self.turn.job, index, failures, self.group))
            except ApiError as error:
                self.turn.event("Warning", "FailedCreate", f"Error creating: {error}")
                self.turn.controller.try_again(self.turn.key)
                return
            self.turn.event("Normal", "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")
            view = self.turn.controller.informers.pods.get(
                created["metadata"]["namespace"], created["metadata"]["name"]
            )
            if view is not None:
                self.turn.active.append(view)
                self.turn.pods.append(view)
        if is_part and len(indexes) == count:
            self.turn.controller.enqueue(self.turn.key)

    def _free_indexes(self, count: int) -> list[int]:
        """The lowest indexes that nobody works on and that need not wait."""
        held = {index_of(pod) for pod in self.turn.active}
        if self.turn.replaces_failed_only:
            held |= {index_of(pod) for pod in self.turn.pods if pod.is_leaving and not pod.is_terminal}
        taken = held | self.turn.succeeded_indexes | self.turn.failed_indexes
        found: list[int] = []
        shared_wait = self._wait_seconds(self._failures()) if self.turn.per_index is None else 0.0
        if shared_wait > 0:
            self.turn.controller.enqueue(self.turn.key, after=shared_wait)
            return []
        for index in range(self.turn.completions or 0):
            if len(found) == count:
                break
            if index in taken:
                continue
            wait = self._wait_seconds(self._ended_of_index(index)) if self.turn.per_index is not None else 0.0
            if wait > 0:
                self.turn.controller.enqueue(self.turn.key, after=wait)
            else:
                found.append(index)
        return found

    def _failures(self) -> list[PodView]:
        """The failed pods since the last success: they make the next one wait."""
        ended = sorted((pod for pod in self.turn.pods if pod.is_terminal or pod.is_leaving), key=finished_at)
        successes = [number for number, pod in enumerate(ended) if pod.status.phase == "Succeeded"]
        return ended[successes[-1] + 1 :] if successes else ended

    def _ended_of_index(self, index: int) -> list[PodView]:
        return sorted((pod for pod in self._pods_of(index) if pod.status.phase == "Failed"), key=finished_at)

    def _failures_of_index(self, index: int | None) -> int:
        pods = [pod for pod in self._pods_of(index) if self.turn.is_failed(pod)]
        counted = [
            failures_of(pod) + 1
            for pod in pods
            if on_failure(self.turn.spec.get("podFailurePolicy"), pod).action != IGNORE
        ]
        return max(counted, default=0)

    def _pods_of(self, index: int | None) -> list[PodView]:
        """The pods of an index that were there before any was made."""
        if self._by_index is None:
            self._by_index = {}
            for pod in self.turn.pods:
                self._by_index.setdefault(index_of(pod), []).append(pod)
        return self._by_index.get(index, [])

    def _wait_seconds(self, failures: list[PodView]) -> float:
        if not failures:
            return 0.0
        return finished_at(failures[-1]) + backoff_seconds(len(failures)) - self.turn.now
