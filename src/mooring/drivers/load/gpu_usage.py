"""GPU usage by pod over time, from the metrics of DCGM exporter: a file a scrape, or samples with times."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from mooring.drivers.load.dcgm import CARD_LABELS, FREE, RESERVED, USED, UTILIZATION, is_exposition
from mooring.drivers.load.reading import read_text
from mooring.errors import InputError
from mooring.model.defaults import DEFAULT_NAMESPACE
from mooring.model.rightsizing.gpus import GpuSample

POD_LABELS, NAMESPACE_LABELS = ("exported_pod", "pod"), ("exported_namespace", "namespace")
"""A scrape by Prometheus keeps the exporter's own labels under other names."""


def read_gpu_usage(files: Sequence[Path]) -> list[GpuSample]:
    """All samples of GPUs that a pod has, in the order of time; a file without times counts as one moment."""
    samples: list[GpuSample] = []
    for number, path in enumerate(files):
        text = read_text(path)
        if is_exposition(text):
            samples += _samples(text, str(path), float(number))
    return sorted(samples, key=lambda sample: (sample.at, sample.namespace, sample.pod, sample.card))


def _samples(text: str, source: str, moment: float) -> list[GpuSample]:
    found: dict[tuple[float, str, str, str, str], dict[str, float]] = {}
    try:
        families = list(text_string_to_metric_families(text))
    except (ValueError, KeyError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{source}: expected metrics in Prometheus' text form, found {said}") from error
    for sample in (sample for family in families for sample in family.samples):
        pod = _label(sample.labels, POD_LABELS)
        if sample.name not in (UTILIZATION, USED, FREE, RESERVED) or not pod:
            continue
        card = _label(sample.labels, CARD_LABELS)
        if not card:
            expected = " or ".join(CARD_LABELS)
            raise InputError(f"{source}: {sample.name}: expected a label {expected}, found none of them")
        if sample.value < 0:
            raise InputError(f"{source}: {sample.name} of pod {pod}: expected at least 0, found {sample.value:g}")
        at = moment if sample.timestamp is None else float(sample.timestamp)
        namespace = _label(sample.labels, NAMESPACE_LABELS) or DEFAULT_NAMESPACE
        key = (at, namespace, pod, card, sample.labels.get("modelName", ""))
        found.setdefault(key, {})[sample.name] = sample.value
    return [
        GpuSample(
            *key, values[UTILIZATION], values[USED], sum(values.get(name, 0.0) for name in (USED, FREE, RESERVED))
        )
        for key, values in found.items()
        if UTILIZATION in values and USED in values
    ]


def _label(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")
