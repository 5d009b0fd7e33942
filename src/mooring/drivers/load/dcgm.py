"""What DCGM exporter serves at /metrics, as reports of load."""

from collections.abc import Iterator, Mapping

from prometheus_client.parser import text_string_to_metric_families

from mooring.errors import InputError
from mooring.model.load.reports import CardLoad, GpuReport

UTILIZATION, TEMPERATURE, POWER = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE"
OCCUPANCY = "DCGM_FI_PROF_SM_OCCUPANCY"
USED, FREE, RESERVED = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED"
READ = frozenset((UTILIZATION, TEMPERATURE, POWER, OCCUPANCY, USED, FREE, RESERVED))
NODE_LABELS = ("Hostname", "node", "kubernetes_node", "nodename")
"""The label that names the node: DCGM exporter's own, or one that a scrape adds."""
CARD_LABELS = ("UUID", "gpu", "device")


def is_exposition(text: str) -> bool:
    """Tell metrics in Prometheus' text form from documents."""
    return any(name in text for name in READ)


def from_dcgm(text: str, source: str, now: float | None) -> Iterator[GpuReport]:
    """A report a node; samples without a time are of now."""
    samples: dict[str, dict[str, dict[str, float]]] = {}
    times: dict[str, float] = {}
    try:
        families = list(text_string_to_metric_families(text))
    except (ValueError, KeyError) as error:
        raise InputError(f"{source}: expected metrics in Prometheus' text form, found {_line(error)}") from error
    for sample in (sample for family in families for sample in family.samples if sample.name in READ):
        node = _label(sample.labels, NODE_LABELS)
        card = _label(sample.labels, CARD_LABELS)
        if node is None or card is None:
            expected = " or ".join(NODE_LABELS if node is None else CARD_LABELS)
            raise InputError(f"{source}: {sample.name}: expected a label {expected}, found none of them")
        samples.setdefault(node, {}).setdefault(card, {})[sample.name] = sample.value
        if sample.timestamp is not None:
            times[node] = max(times.get(node, 0.0), float(sample.timestamp))
    for node, cards in samples.items():
        yield GpuReport(node, times.get(node, now), {card: _card(found) for card, found in cards.items()})


def _label(labels: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)


def _card(found: Mapping[str, float]) -> CardLoad:
    total = sum(found.get(name, 0.0) for name in (USED, FREE, RESERVED))
    occupancy = found.get(OCCUPANCY)
    return CardLoad(
        found.get(UTILIZATION),
        100 * found[USED] / total if USED in found and total else None,
        found.get(TEMPERATURE),
        found.get(POWER),
        None if occupancy is None else 100 * occupancy,
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
