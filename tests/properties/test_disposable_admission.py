"""Admission is disposable: what it has to know is in the state, and the rest can be made anew at any moment."""

from itertools import count

import test_tenant_rules
import test_tenants
from hypothesis import given
from hypothesis import strategies as st

from mooring.config.tenant_policy import QuotaWindow, TenantPolicy
from mooring.model.decisions import Decision, Defer, Wait
from mooring.testing.tenant_builders import TenantWorld

moments = st.sets(st.integers(0, 20), min_size=1, max_size=6)
"""The cycles after which the action is thrown away."""


def decided(decisions: list[Decision]) -> list[str]:
    """What is decided. Why a workload waits is found out anew, and may be said again, or with the numbers of today."""
    return [repr(found) for found in decisions if not isinstance(found, Defer | Wait)]


@given(test_tenants.stories(changes=True), moments)
def test_an_action_that_is_thrown_away_is_not_missed(story: test_tenants.Story, thrown_away_after: set[int]) -> None:
    told: list[list[object]] = [[], []]
    for number, answers in enumerate(told):
        world = story.begin()

        def look(decisions: list[Decision], number: int = number, answers: list[object] = answers) -> None:
            answers.append(decided(decisions))
            if number and len(answers) in thrown_away_after:
                world.renew_admission()  # noqa: B023

        story.play(world, look)

    assert told[0] == told[1]


@given(test_tenant_rules.stories(reclaims=True), test_tenant_rules.drawn_windows(), moments)
def test_neither_is_one_that_keeps_windows(
    story: test_tenant_rules.Story, windows: list[QuotaWindow], thrown_away_after: set[int]
) -> None:
    policy = TenantPolicy(quota_windows=windows, minimum_runtime_before_reclaim_seconds=3600)
    cycles = count(1)

    def throw_away(world: TenantWorld, decisions: list[Decision]) -> None:
        if next(cycles) in thrown_away_after:
            world.renew_admission()

    # By the hour: an action that was made anew says once more why a workload waits, in a cycle of its own.
    kept = [decided(hour) for hour in story.play(policy, lambda world, decisions: None)]
    assert [decided(hour) for hour in story.play(policy, throw_away)] == kept
