"""Usage by autoscaler and container name, and the recommendations that follow from it."""

from collections.abc import Iterable, Sequence

import numpy as np

from mooring.model.api.autoscaling import ResourcePolicy
from mooring.model.rightsizing.amounts import CONTROLLED
from mooring.model.rightsizing.recommendations import Recommendation, cap_by_policy, container_policy, is_off
from mooring.model.rightsizing.samples import OutOfMemory, UsageSample
from mooring.state.usage.containers import ContainerUsage
from mooring.state.usage.estimates import Estimates, EstimateSettings, estimate


class Recommender:
    """Hears of what containers use; containers of one name under one autoscaler count together."""

    def __init__(self, settings: EstimateSettings | None = None) -> None:
        self.usage = ContainerUsage()
        self._settings = settings or EstimateSettings()
        self._aggregates: dict[tuple[str, str], int] = {}
        """By autoscaler and container name."""
        self._containers: dict[tuple[str, str, str], int] = {}
        """By autoscaler, pod (namespace/name) and container name."""

    def watch(self, autoscaler: str, pod: str, container: str) -> int:
        """The row of a container that counts for an autoscaler; made if it is new."""
        row = self._containers.get((autoscaler, pod, container))
        if row is None:
            row = self.usage.add_container(self._aggregate(autoscaler, container))
            self._containers[autoscaler, pod, container] = row
        return row

    def _aggregate(self, autoscaler: str, container: str) -> int:
        aggregate = self._aggregates.get((autoscaler, container))
        if aggregate is None:
            aggregate = self._aggregates[autoscaler, container] = self.usage.add_aggregate()
        return aggregate

    def hear(self, autoscaler: str, heard: Iterable[UsageSample | OutOfMemory]) -> None:
        """Take in what happened to the containers of one autoscaler, in this order."""
        batch: dict[int, UsageSample] = {}
        for one in heard:
            row = self.watch(autoscaler, f"{one.namespace}/{one.pod}", one.container)
            if isinstance(one, OutOfMemory):
                self._add(batch)
                batch = {}
                self.usage.see_out_of_memory(row, one.at, one.requested_bytes)
                continue
            if row in batch:
                self._add(batch)
                batch = {}
            batch[row] = one
        self._add(batch)

    def _add(self, batch: dict[int, UsageSample]) -> None:
        if not batch:
            return
        rows = np.fromiter(batch, np.intp, len(batch))
        times = np.array([one.at for one in batch.values()], np.float64)
        self.usage.see_cpu(rows, times, np.array([one.cpu_millis / 1000.0 for one in batch.values()]))
        self.usage.see_memory(rows, times, np.array([one.memory_bytes for one in batch.values()], np.int64))

    def sample_count(self, autoscaler: str, container: str) -> int:
        """How many samples of CPU there are."""
        aggregate = self._aggregates.get((autoscaler, container))
        return 0 if aggregate is None else int(self.usage.sample_counts[aggregate])

    def recommend(
        self, autoscaler: str, containers: Sequence[str], policy: ResourcePolicy | None
    ) -> list[Recommendation]:
        """Recommend for the containers of a pod, within their policies; those in mode Off are left out."""
        sized = [name for name in containers if not is_off(policy, name)]
        rows = np.array([self._aggregate(autoscaler, name) for name in sized], np.intp)
        estimates = estimate(self.usage, rows, np.full(len(sized), len(sized), np.int64), self._settings)
        raw = [_recommendation(policy, name, position, estimates) for position, name in enumerate(sized)]
        return cap_by_policy(raw, policy, {})


def _recommendation(policy: ResourcePolicy | None, name: str, position: int, estimates: Estimates) -> Recommendation:
    own = container_policy(policy, name)
    controlled = own.controlled_resources if own is not None else None
    kept = CONTROLLED if controlled is None else [one for one in CONTROLLED if one in controlled]
    target, lower, upper = (
        {one: int(amounts[one][position]) for one in kept}
        for amounts in (estimates.target, estimates.lower_bound, estimates.upper_bound)
    )
    return Recommendation(name, target, lower, upper, dict(target))
