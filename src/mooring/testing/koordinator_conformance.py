"""Answer recorded scenarios of Koordinator. See tests/golden-koordinator/README.md."""

from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.actions.rebalance.descheduler.situation import Situation
from mooring.actions.rebalance.koordinator.low_node_load import LowNodeLoad
from mooring.config.low_node_load import parse_low_node_load
from mooring.model.api.koordinator import NodeMetric
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.load.koordinator import from_node_metric
from mooring.model.load.reports import NodeReport

Json = dict[str, Any]


def is_koordinator(scenario: Json) -> bool:
    """Tell a scenario of Koordinator's descheduler from the others."""
    return "rounds" in scenario and "args" in scenario


def answer_scenario(scenario: Json) -> Json:
    """Decide one scenario, in the form of its `expect`."""
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
    return {"id": scenario["id"], "evicted": evicted}


def differences(expected: Json, answer: Json) -> Iterator[tuple[str, Any, Any]]:
    for field in expected:
        if expected[field] != answer.get(field):
            yield field, expected[field], answer.get(field)
