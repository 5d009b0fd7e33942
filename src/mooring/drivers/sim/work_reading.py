"""The `work` of a scenario: sources of jobs, read and checked."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mooring.config.scheduler import suggestion
from mooring.drivers.sim.arrival import Arrival
from mooring.drivers.sim.forms import FORMS
from mooring.drivers.sim.pods import Checkpoints
from mooring.drivers.sim.scenario import CheckpointRule, Size, WorkSource
from mooring.drivers.sim.work import DrawnSize, DrawnWork, ManifestWork, Times, TraceWork, WorkPlan
from mooring.model.kubelet.distributions import NEVER
from mooring.model.values.quantity import QuantityError, parse_quantity

if TYPE_CHECKING:
    from mooring.drivers.sim.reading import ScenarioReader

SINGLE = ("drawn jobs (every or at)", "trace", "manifests or objects")


class WorkReader:
    """Reads all sources of a scenario."""

    def __init__(self, reader: "ScenarioReader") -> None:
        self._reader, self._places = reader, reader.places

    def read(self, sources: Sequence[WorkSource], horizon: float) -> tuple[WorkPlan, ...]:
        names: set[str] = set()
        found = []
        for index, source in enumerate(sources):
            field = f"work[{index}]"
            if not source.name or source.name in names:
                said = f'"{source.name}" again' if source.name else '""'
                raise self._places.error(f"{field}.name", expected="a name that no other work has", found=said)
            names.add(source.name)
            if source.as_ not in FORMS:
                expected = f"one of {', '.join(FORMS)}{suggestion(source.as_, FORMS)}"
                raise self._places.error(f"{field}.as", expected=expected, found=f'"{source.as_}"')
            found.append(self._source(field, source, horizon))
        return tuple(found)

    def _source(self, field: str, source: WorkSource, horizon: float) -> WorkPlan:
        checkpoints = self._checkpoints(f"{field}.checkpoints", source.checkpoints)
        if source.trace is not None:
            return self._trace(field, source, checkpoints)
        times = self._times(field, source, horizon)
        if source.manifests or source.objects:
            given = self._reader.given(field, source.objects, source.manifests)
            if not given:
                raise self._places.error(f"{field}.manifests", expected="at least one object", found="none")
            duration = self._reader.distribution(f"{field}.duration", source.duration) if source.duration else NEVER
            return ManifestWork(source.name, times, given, duration, checkpoints)
        sizes = tuple(self._sizes(field, source))
        return DrawnWork(source.name, times, source.as_, sizes, self._places.place(field), checkpoints)

    def _trace(self, field: str, source: WorkSource, checkpoints: Checkpoints) -> TraceWork:
        assert source.trace is not None
        if source.every or source.at:
            raise self._places.error(f"{field}.trace", expected=f"one of {', '.join(SINGLE)}", found="several")
        path = self._reader.trace(f"{field}.trace", source.trace, "read_work")
        place = self._places.place(field)
        form, options = source.trace.format, source.trace.options
        plan = TraceWork(source.name, form, path, options, source.as_, place, source.count, checkpoints)
        last = -math.inf
        for arrival in plan.arrivals():  # all of it, so that what is wrong is said before anything runs
            if arrival.time < last:
                expected = f"times in order in {path}"
                raise self._places.error(f"{field}.trace.path", expected=expected, found=f"{arrival.name} before")
            last = arrival.time
        return plan

    def _times(self, field: str, source: WorkSource, horizon: float) -> Times:
        if bool(source.every) == bool(source.at):
            found = "both" if source.every else "neither"
            raise self._places.error(field, expected="every or at, to say when jobs arrive", found=found)
        begin = self._reader.moment(f"{field}.from", source.from_, horizon)
        end = self._reader.duration(f"{field}.until", source.until) if source.until else math.inf
        if end < begin:
            raise self._places.error(f"{field}.until", expected=f"not before {source.from_}", found=source.until)
        if source.count is not None and source.count < 0:
            raise self._places.error(f"{field}.count", expected="at least 0", found=str(source.count))
        if source.every:
            return Times(self._reader.positive(f"{field}.every", source.every), (), begin, end, source.count)
        at = [self._reader.moment(f"{field}.at[{index}]", text, horizon) for index, text in enumerate(source.at)]
        for index in range(1, len(at)):
            if at[index] < at[index - 1]:
                expected = f"a time that is not before {source.at[index - 1]}"
                raise self._places.error(f"{field}.at[{index}]", expected=expected, found=f'"{source.at[index]}"')
        return Times(None, tuple(at), begin, end, source.count)

    def _checkpoints(self, field: str, rule: CheckpointRule) -> Checkpoints:
        if not rule.interval:
            return Checkpoints(on_eviction=rule.on_eviction)
        interval = self._reader.duration(f"{field}.interval", rule.interval)
        if not interval:
            raise self._places.error(f"{field}.interval", expected="more than 0s", found=f'"{rule.interval}"')
        return Checkpoints(interval, rule.on_eviction)

    def _sizes(self, field: str, source: WorkSource) -> Iterator[DrawnSize]:
        sizes = source.sizes or [Size()]
        weights = [size.weight for size in sizes]
        for index, weight in enumerate(weights):
            if not 0 < weight < math.inf:
                raise self._places.error(f"{field}.sizes[{index}].weight", expected="more than 0", found=f"{weight:g}")
        total, reached = sum(weights), 0.0
        for index, size in enumerate(sizes):
            reached += size.weight
            at = f"{field}.sizes[{index}]" if source.sizes else field
            share = math.inf if index == len(sizes) - 1 else reached / total
            yield self._size(at, field, source, size, share)

    def _size(self, at: str, field: str, source: WorkSource, size: Size, share: float) -> DrawnSize:
        """One size; what it leaves out stands at the work itself."""
        pods = source.pods if size.pods is None else size.pods
        if pods < 1:
            where = field if size.pods is None else at
            raise self._places.error(f"{where}.pods", expected="at least 1", found=str(pods))
        text, where = (source.duration, field) if size.duration is None else (size.duration, at)
        if not text:
            raise self._places.error(f"{at}.duration", expected="how long each pod works, or never", found="none")
        duration = self._reader.distribution(f"{where}.duration", text)
        requests, where = (source.requests, field) if size.requests is None else (size.requests, at)
        labels = source.node_labels if size.node_labels is None else size.node_labels
        example = Arrival(
            0.0,
            source.name,
            dict(self._requests(f"{where}.requests", requests)),
            pods,
            queue=source.queue,
            priority=source.priority if size.priority is None else size.priority,
            namespace=source.namespace,
            labels=source.labels,
            annotations=source.annotations,
            node_labels={
                label: (values,) if isinstance(values, str) else tuple(values) for label, values in labels.items()
            },
        )
        return DrawnSize(share, example, duration)

    def _requests(self, field: str, requests: Mapping[str, str | int | float]) -> Iterator[tuple[str, str]]:
        for name, amount in requests.items():
            try:
                is_fine = parse_quantity(str(amount)) >= 0
            except QuantityError:
                is_fine = False
            if not is_fine:
                expected = "a quantity such as 8, 500m or 64Gi"
                raise self._places.error(f"{field}.{name}", expected=expected, found=f'"{amount}"')
            yield name, str(amount)
