"""Answer recorded scenarios of Koordinator. See tests/golden-koordinator/README.md."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mooring.actions.rebalance.descheduler.situation import Situation
from mooring.actions.rebalance.koordinator.low_node_load import LowNodeLoad
from mooring.config.low_node_load import parse_low_node_load
from mooring.model.api.koordinator import NodeMetric
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.colocation.profiles import EXTENDED_SPEC_ANNOTATION
from mooring.model.load.koordinator import from_node_metric
from mooring.model.load.reports import NodeReport
from mooring.model.values.quantity import QuantityError, parse_quantity
from mooring.testing.colocation_conformance import answer_colocation, answer_profile
from mooring.testing.quota_conformance import answer_quotas
from mooring.testing.reservation_conformance import answer_reservations

Json = dict[str, Any]


def is_koordinator(scenario: Json) -> bool:
    """Tell a scenario of Koordinator from the others."""
    return _form(scenario) is not None


def _form(scenario: Json) -> Callable[[Json], Json] | None:
    """How to answer a scenario, by the fields that only its kind has."""
    return next((answer for fields, answer in FORMS if fields <= scenario.keys()), None)


def answer_scenario(scenario: Json) -> Json:
    """Decide one scenario, in the form of its `expect`."""
    answer = _form(scenario)
    assert answer is not None
    return {"id": scenario["id"], **answer(scenario)}


def _answer_rounds(scenario: Json) -> Json:
    """Which pods LowNodeLoad evicts, round by round."""
    now = timestamp_seconds(scenario["now"])
    assert now is not None
    situation = Situation(
        now, msgspec.convert(scenario["nodes"], list[Node]), msgspec.convert(scenario["pods"], list[Pod])
    )
    strategy = LowNodeLoad(parse_low_node_load(scenario["args"], "args"))
    metrics: dict[str, NodeReport] = {}
    evicted = []
    for one in scenario["rounds"]:
        if one.get("nodeMetrics") is not None:
            reports = msgspec.convert(one["nodeMetrics"], list[NodeMetric])
            metrics = {report.metadata.name: from_node_metric(report) for report in reports}
        evicted.append(list(strategy.balance(situation, metrics)))
    return {"evicted": evicted}


FORMS: tuple[tuple[frozenset[str], Callable[[Json], Json]], ...] = (
    (frozenset({"rounds", "args"}), _answer_rounds),
    (frozenset({"profiles", "priorityClasses", "pod"}), answer_profile),
    (frozenset({"now", "config", "node", "pods"}), answer_colocation),
    (frozenset({"args", "features", "quotas", "try"}), answer_quotas),
    (frozenset({"nodes", "reservations", "pods", "try"}), answer_reservations),
)


AMOUNTS = frozenset({"resources", "overhead", "requests", "limits"})
"""Below these, texts are quantities: `1` is `1000m`."""


def differences(expected: Json, answer: Json) -> Iterator[tuple[str, Any, Any]]:
    for field in expected:
        want, have = _plain(expected[field], field in AMOUNTS), _plain(answer.get(field), field in AMOUNTS)
        if want != have:
            yield field, expected[field], answer.get(field)


def _plain(value: Any, is_amount: bool) -> Any:
    """A value in a form that compares: quantities as numbers, JSON in an annotation as what it says."""
    if isinstance(value, dict):
        found = {}
        for key, held in value.items():
            is_json = key == EXTENDED_SPEC_ANNOTATION and isinstance(held, str)
            inner = msgspec.json.decode(held) if is_json else held
            found[key] = _plain(inner, is_amount or is_json or key in AMOUNTS)
        return found
    if isinstance(value, list):
        return [_plain(item, is_amount) for item in value]
    if not is_amount or not isinstance(value, str):
        return value
    try:
        return parse_quantity(value)
    except QuantityError:
        return value
