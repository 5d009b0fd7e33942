"""Budgets of NodePools, and the schedules on which they hold."""

from datetime import UTC, datetime

import pytest

from mooring.model.api.karpenter import EMPTY, UNDERUTILIZED, Budget, Disruption, NodePool, NodePoolSpec
from mooring.model.capacity.budgets import NO_LIMIT, allowed_disruptions
from mooring.model.capacity.cron import is_open, parse_schedule

MONDAY_NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("schedule", "duration", "expected"),
    [
        pytest.param("0 9 * * *", "3h", False, id="just over"),
        pytest.param("0 9 * * *", "3h1s", True, id="not yet over"),
        pytest.param("0 12 * * *", "10m", True, id="just begun"),
        pytest.param("30 11 * * 1-5", "1h", True, id="on weekdays"),
        pytest.param("0 11 * * mon", "90m", True, id="by the name of the day"),
        pytest.param("0 0 * * 0", "24h", False, id="on another day"),
        pytest.param("0 0 * * 0", "48h", True, id="since yesterday"),
        pytest.param("@hourly", "30m", True, id="every hour"),
        pytest.param("1-59/7 * * * *", "3m", False, id="three minutes after 11:57"),
        pytest.param("0 0 1 * mon", "13h", True, id="either day is enough if both are named"),
        pytest.param("0 0 1 mar *", "37h", True, id="by the name of the month"),
        pytest.param("@every 1h", "1h", True, id="at intervals"),
        pytest.param("0 0 31 2 *", "24h", False, id="on a day that never comes"),
    ],
)
def test_a_window_is_open_for_its_duration_after_each_start(schedule: str, duration: str, expected: bool) -> None:
    assert is_open(schedule, duration, MONDAY_NOON) is expected


@pytest.mark.parametrize("text", ["", "* * * *", "60 * * * *", "0 9 * * 7", "0 9 * * mo", "1-0 * * * *", "*/0 * * * *"])
def test_what_is_no_schedule_is_said_to_be_none(text: str) -> None:
    assert parse_schedule(text) is None


def make_pool(*budgets: Budget) -> NodePool:
    return NodePool(spec=NodePoolSpec(disruption=Disruption(budgets=list(budgets))))


@pytest.mark.parametrize(
    ("budgets", "allowed"),
    [
        pytest.param([Budget()], 2, id="ten percent of 11, rounded up"),
        pytest.param([Budget(nodes="3"), Budget(nodes="50%")], 3, id="the smaller of two"),
        pytest.param([Budget(nodes=0, reasons=[EMPTY])], NO_LIMIT, id="for another reason"),
        pytest.param([Budget(nodes=0, reasons=[UNDERUTILIZED])], 0, id="for this reason"),
        pytest.param([Budget(nodes=0, schedule="0 9 * * *", duration="1h")], NO_LIMIT, id="outside of its window"),
        pytest.param([Budget(nodes="many")], 0, id="one that cannot be read"),
        pytest.param([], NO_LIMIT, id="none"),
    ],
)
def test_the_smallest_budget_that_is_active_holds(budgets: list[Budget], allowed: int) -> None:
    assert allowed_disruptions(make_pool(*budgets), 11, UNDERUTILIZED, MONDAY_NOON) == allowed
