"""Load from files: each may have documents of several kinds, or metrics in Prometheus' text form."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mooring.drivers.load.dcgm import from_dcgm, is_exposition
from mooring.errors import InputError
from mooring.model.api.koordinator import NodeMetric
from mooring.model.api.metrics import NodeMetrics, PodMetrics
from mooring.model.load.koordinator import from_node_metric
from mooring.model.load.load_watcher import WatcherMetrics, from_load_watcher
from mooring.model.load.metrics_api import from_metrics_api
from mooring.model.load.reports import LoadReport
from mooring.model.values.quantity import QuantityError, parse_quantity
from mooring.model.yaml_text import YamlProblem, read_yaml

KINDS: dict[str, type[Any]] = {"NodeMetrics": NodeMetrics, "PodMetrics": PodMetrics, "NodeMetric": NodeMetric}
EXPECTED = "NodeMetrics, PodMetrics, NodeMetric, a list of them, load-watcher's answer or DCGM exporter's metrics"


class Measured(NamedTuple):
    """What files say of load."""

    reports: list[LoadReport]
    node_metrics: list[NodeMetric]
    """Koordinator's, as they are: more than load follows from them."""


def read_loads(files: Sequence[Path], now: float | None = None) -> Measured:
    """All that files say of load, in their order; what comes without a time is of now."""
    kinds: tuple[type[Any], ...] = (*KINDS.values(), WatcherMetrics)
    found: dict[type[Any], list[Any]] = {kind: [] for kind in kinds}
    reports: list[LoadReport] = []
    for path in files:
        text = read_text(path)
        if is_exposition(text):
            reports += from_dcgm(text, str(path), now)
            continue
        for place, document in documents(text, str(path)):
            kind = WatcherMetrics if {"window", "data"} <= document.keys() else KINDS.get(document.get("kind", ""))
            if kind is None:
                raise InputError(f"{place}: kind: expected {EXPECTED}, found {document.get('kind') or 'none'}")
            found[kind].append(convert_document(document, kind, place))
    reports += from_metrics_api(found[NodeMetrics], found[PodMetrics])
    reports += map(from_node_metric, found[NodeMetric])
    reports += (report for one in found[WatcherMetrics] for report in from_load_watcher(one))
    return Measured(reports, found[NodeMetric])


def to_reports(measured: Iterable[dict[str, Any]], source: str) -> list[LoadReport]:
    """What documents of the kinds NodeMetrics, PodMetrics and NodeMetric say of load."""
    found: dict[type[Any], list[Any]] = {kind: [] for kind in KINDS.values()}
    for index, document in enumerate(measured):
        place, kind = f"{source}[{index}]", KINDS.get(document.get("kind", ""))
        if kind is None:
            raise InputError(f"{place}: kind: expected {', '.join(KINDS)}, found {document.get('kind') or 'none'}")
        found[kind].append(convert_document(document, kind, place))
    return [*from_metrics_api(found[NodeMetrics], found[PodMetrics]), *map(from_node_metric, found[NodeMetric])]


def read_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "other bytes"
        raise InputError(f"--metrics: {path}: expected a file of text, found {reason}") from error


def documents(text: str, source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each document, or member of a list, with its place."""
    try:
        for number, value, _ in read_yaml(text):
            place = f"{source}: document {number}"
            if value is None:
                continue
            if not isinstance(value, dict):
                raise InputError(f"{place}: expected {EXPECTED}, found {type(value).__name__}")
            items = value.get("items") if str(value.get("kind", "")).endswith("List") else None
            if not isinstance(items, list):
                yield place, value
                continue
            kind = str(value["kind"]).removesuffix("List")
            for index, item in enumerate(items):
                if not isinstance(item, dict):
                    raise InputError(f"{place}: items[{index}]: expected an object, found {type(item).__name__}")
                yield f"{place}: items[{index}]", ({"kind": kind} if kind else {}) | item
    except YamlProblem as problem:
        where = f": {problem.where}" if problem.where else ""
        raise InputError(f"{source}: document {problem.document}{where}: {problem.found}") from problem


def convert_document(document: dict[str, Any], kind: type[Any], place: str) -> Any:
    try:
        made = msgspec.convert(document, kind)
        _check_quantities(document, place)
    except msgspec.ValidationError as error:
        text, _, at = str(error).replace("`", "").partition(" - at ")
        expected, _, got = text.removeprefix("Expected ").partition(", got ")
        field = at.removeprefix("$").removeprefix(".") or "document"
        raise InputError(f"{place}: {field}: expected {expected}, found {got or 'otherwise'}") from error
    return made


def _check_quantities(value: Any, place: str, field: str = "") -> None:
    """Refuse amounts that are none: everything in `usage` and `resources` is a quantity."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            _check_quantities(item, place, f"{field}[{index}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            at = f"{field}.{name}".removeprefix(".")
            if name in ("usage", "resources") and isinstance(item, dict) and not _is_nested(item):
                for resource, amount in item.items():
                    try:
                        parse_quantity(amount)
                    except (QuantityError, TypeError) as error:
                        raise InputError(f'{place}: {at}.{resource}: expected a quantity, found "{amount}"') from error
            else:
                _check_quantities(item, place, at)


def _is_nested(found: dict[str, Any]) -> bool:
    return any(isinstance(value, dict) for value in found.values())
