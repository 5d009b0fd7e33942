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


class CardSamples:
    """Samples of DCGM exporter's metrics, gathered by node and card."""

    def __init__(self) -> None:
        self._samples: dict[str, dict[str, dict[str, float]]] = {}
        self._times: dict[str, float] = {}

    def add(self, name: str, labels: Mapping[str, str], value: float, at: float | None, prefers: str = "") -> None:
        """Take in a sample, of the node that the label `prefers` or else one of NODE_LABELS names.

        Raise InputError if no label names its node or its card. Metrics that are not read here are left out.
        """
        if name not in READ:
            return
        node = labels.get(prefers) or node_label(labels)
        card = _label(labels, CARD_LABELS)
        if node is None or card is None:
            expected = " or ".join(NODE_LABELS if node is None else CARD_LABELS)
            raise InputError(f"{name}: expected a label {expected}, found none of them")
        self._samples.setdefault(node, {}).setdefault(card, {})[name] = value
        if at is not None:
            self._times[node] = max(self._times.get(node, 0.0), at)

    def reports(self, now: float | None) -> Iterator[GpuReport]:
        """A report a node; samples without a time are of now."""
        for node, cards in self._samples.items():
            loads = {card: _card(found) for card, found in cards.items()}
            yield GpuReport(node, self._times.get(node, now), loads)


def from_dcgm(text: str, source: str, now: float | None) -> Iterator[GpuReport]:
    """A report a node; samples without a time are of now."""
    samples = CardSamples()
    try:
        families = list(text_string_to_metric_families(text))
    except (ValueError, KeyError) as error:
        raise InputError(f"{source}: expected metrics in Prometheus' text form, found {_line(error)}") from error
    for sample in (sample for family in families for sample in family.samples):
        at = None if sample.timestamp is None else float(sample.timestamp)
        try:
            samples.add(sample.name, sample.labels, sample.value, at)
        except InputError as error:
            raise InputError(f"{source}: {error}") from error
    return samples.reports(now)


def node_label(labels: Mapping[str, str]) -> str | None:
    """The node that labels name."""
    return _label(labels, NODE_LABELS)


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
