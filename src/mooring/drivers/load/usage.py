"""Usage over time from files: PodMetrics of many moments, each a sample of every container of a pod.

A history with holes would look like one of idle containers, so it is refused unless the user allows it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from mooring.drivers.load.dcgm import is_exposition
from mooring.drivers.load.reading import convert_document, documents, read_text
from mooring.errors import InputError
from mooring.model.api.meta import timestamp_seconds, timestamp_text
from mooring.model.api.metrics import PodMetrics
from mooring.model.defaults import DEFAULT_NAMESPACE
from mooring.model.load.reports import to_amounts
from mooring.model.rightsizing.amounts import CONTROLLED, CPU, MEMORY
from mooring.model.rightsizing.samples import UsageSample

MOST_INTERVALS = 10
"""A history has a gap where the next sample of a container is later than this many usual intervals."""


def read_usage(files: Sequence[Path], *, allow_gaps: bool = False) -> list[UsageSample]:
    """All samples of containers that files have, in the order of time."""
    samples: list[UsageSample] = []
    for path in files:
        text = read_text(path)
        if is_exposition(text):  # of GPUs, which gpu_usage.py reads
            continue
        for place, document in documents(text, str(path)):
            if document.get("kind") == "PodMetrics":
                samples += _samples(convert_document(document, PodMetrics, place), place)
    samples.sort(key=lambda sample: sample.at)
    if not allow_gaps:
        _check_gaps(samples, ", ".join(map(str, files)))
    return samples


def _samples(found: PodMetrics, place: str) -> Iterator[UsageSample]:
    at = timestamp_seconds(found.timestamp)
    if at is None:
        said = f'"{found.timestamp}"' if found.timestamp else "none"
        raise InputError(f"{place}: timestamp: expected a time such as 2026-03-02T12:00:00Z, found {said}")
    metadata = found.metadata
    if not metadata.name:
        raise InputError(f"{place}: metadata.name: expected the name of a pod, found none")
    for index, container in enumerate(found.containers):
        field = f"{place}: containers[{index}]"
        amounts = to_amounts(container.usage)
        for name in CONTROLLED:
            if name not in amounts:
                raise InputError(f"{field}.usage: expected cpu and memory, found no {name}")
            if amounts[name] < 0:
                amount = container.usage[name]
                raise InputError(f'{field}.usage.{name}: expected a quantity of at least 0, found "{amount}"')
        yield UsageSample(
            at,
            metadata.namespace or DEFAULT_NAMESPACE,
            metadata.name,
            container.name,
            amounts[CPU],
            amounts[MEMORY],
            metadata.labels or {},
        )


def _check_gaps(samples: Sequence[UsageSample], source: str) -> None:
    """Refuse a container with a hole in its history: far more time between two samples than usual for it."""
    times: dict[tuple[str, str, str], list[float]] = {}
    for sample in samples:
        times.setdefault((sample.namespace, sample.pod, sample.container), []).append(sample.at)
    for (namespace, pod, container), found in times.items():
        steps = [(after - before, before) for before, after in pairwise(found) if after > before]
        if len(steps) < 2:
            continue
        usual = median(length for length, _ in steps)
        longest, begins = max(steps)
        if longest > MOST_INTERVALS * usual:
            where = f"{source}: pod {namespace}/{pod}, container {container}"
            said = f"none from {timestamp_text(begins)} to {timestamp_text(begins + longest)}"
            raise InputError(
                f"{where}: expected a sample every {usual:g}s, found {said} (--allow-gaps takes it as it is)"
            )
