"""Quota windows and minimum runtimes whatever happens: drawn stories, hour by hour, through the whole scheduler."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mooring.actions.admit.preemption.targets import (
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    IN_COHORT_RECLAMATION,
)
from mooring.actions.admit.windows.giving_back import find_overdrafts
from mooring.actions.admit.windows.keeping import QUOTA_WINDOW
from mooring.config.queueing import QueueingSettings
from mooring.config.tenant_policy import ALWAYS, IF_WANTED, QuotaWindow, TenantPolicy
from mooring.model.api.kueue import ANY, LOWER_OR_NEWER_EQUAL_PRIORITY, LOWER_PRIORITY, NEVER, ClusterQueue
from mooring.model.decisions import Admit, Decision, Notice, Suspend
from mooring.model.values.durations import DURATION
from mooring.state.workloads import Stage
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import Job, TenantWorld, make_job

HOUR = 3600
MIDNIGHT = 1_784_073_600.0
"""2026-07-15T00:00:00Z"""
HOURS = 30
SOME = 25
"""How many stories: each is a day and more of a whole scheduler."""
NAMES = ("a", "b", "c")

Look = Callable[[TenantWorld, list[Decision]], None]


@dataclass(frozen=True)
class Arrival:
    hour: int
    queue: str
    cpu: int
    priority: int
    hours: int


@dataclass(frozen=True)
class Story:
    queues: list[ClusterQueue]
    arrivals: list[Arrival]
    fair_sharing: bool = False

    def play(self, policy: TenantPolicy, look: Look, *, says_how_long: bool = True) -> list[list[Decision]]:
        """Let jobs come and finish on the hour; what was decided in each."""
        queueing = QueueingSettings(pods_ready=None, fair_sharing=self.fair_sharing)
        world = TenantWorld(self.queues, settings=queueing, policy=policy, now=MIDNIGHT)
        history = []
        for hour in range(HOURS):
            for number, found in enumerate(self.arrivals):
                if found.hour == hour:
                    world.submit(self._job(number, found, says_how_long))
            self._finish(world)
            decisions: list[Decision] = []
            for _ in range(12):
                made = world.cycle()
                decisions += made
                if world.action.lifecycle is not None:
                    look(world, made)
                if not made:
                    break
            history.append(decisions)
            world.now += HOUR
        return history

    @staticmethod
    def _job(number: int, found: Arrival, says_how_long: bool) -> Job:
        annotations = {DURATION: f"{found.hours}h"} if says_how_long else None
        return make_job(
            f"job-{number}",
            queue=found.queue,
            cpu=found.cpu,
            priority=found.priority,
            second=number,
            annotations=annotations,
        )

    def _finish(self, world: TenantWorld) -> None:
        for workload in list(world.scheduler.cluster.workloads.records.values()):
            number = int(workload.key.rpartition("-")[2])
            if (
                workload.stage is Stage.ADMITTED
                and workload.admitted_at + self.arrivals[number].hours * HOUR <= world.now
            ):
                world.succeed(f"{workload.key}-0")


@st.composite
def stories(draw: st.DrawFn, *, reclaims: bool = False) -> Story:
    queues = []
    for name in NAMES:
        nominal = draw(st.integers(0, 6))
        quota = make_quota(nominal, lending_limit=draw(st.none() | st.integers(0, nominal)))
        reclaim = draw(st.sampled_from((NEVER, LOWER_PRIORITY, ANY, ANY))) if reclaims else NEVER
        queues.append(
            make_queue(
                name,
                make_group(default=quota),
                cohort="all",
                reclaim=reclaim,
                within_queue=draw(st.sampled_from((NEVER, LOWER_OR_NEWER_EQUAL_PRIORITY))) if reclaims else NEVER,
                borrow_policy=NEVER if reclaim == NEVER else draw(st.sampled_from((NEVER, LOWER_PRIORITY))),
                weight=draw(st.sampled_from((1, 2))),
            )
        )
    arrivals = draw(
        st.lists(
            st.builds(
                Arrival,
                hour=st.integers(0, 20),
                queue=st.sampled_from(NAMES),
                cpu=st.integers(1, 5),
                priority=st.integers(0, 2),
                hours=st.integers(1, 12),
            ),
            min_size=3,
            max_size=12,
        )
    )
    return Story(queues, arrivals, draw(st.booleans()))


@st.composite
def drawn_windows(draw: st.DrawFn, *, evict: str = ALWAYS) -> list[QuotaWindow]:
    windows = []
    for _ in range(draw(st.integers(1, 3))):
        start, length = draw(st.integers(0, 23)), draw(st.integers(1, 12))
        values = draw(st.tuples(st.integers(0, 6), st.none() | st.integers(0, 6), st.none() | st.integers(0, 3)))
        windows.append(
            QuotaWindow(
                queue=draw(st.sampled_from(NAMES)),
                resource="cpu",
                flavor="default",
                from_=f"{start:02d}:00",
                to=f"{(start + length) % 24:02d}:00",
                lending_limit=values[0],
                nominal_quota=values[1],
                borrowing_limit=values[2],
                notice_seconds=draw(st.sampled_from((0, HOUR, 3 * HOUR))),
                evict=evict,
            )
        )
    return windows


def overdrawn(world: TenantWorld) -> int:
    tree = world.admission.structure.tree
    nodes = range(len(tree.nodes))
    return sum(found.amount for found in find_overdrafts(tree, nodes, range(len(tree.columns))))


def suspensions(decisions: list[Decision], *reasons: str) -> list[str]:
    return [found.workload for found in decisions if isinstance(found, Suspend) and found.reason in reasons]


# Windows.


@examples(SOME)
@given(stories(), drawn_windows(), st.booleans())
def test_where_everybody_must_go_nobody_holds_more_than_there_is(
    story: Story, windows: list[QuotaWindow], says_how_long: bool
) -> None:
    def look(world: TenantWorld, decisions: list[Decision]) -> None:
        if not decisions:
            assert overdrawn(world) == 0

    story.play(TenantPolicy(quota_windows=windows), look, says_how_long=says_how_long)


@examples(SOME)
@given(stories(), drawn_windows())
def test_who_says_how_long_it_runs_is_let_run_for_that_long(story: Story, windows: list[QuotaWindow]) -> None:
    """As long as the owners do not come for what is theirs: all jobs are in one queue."""
    story = replace(story, arrivals=[replace(found, queue="a") for found in story.arrivals])

    def look(world: TenantWorld, decisions: list[Decision]) -> None:
        assert suspensions(decisions, QUOTA_WINDOW) == []

    story.play(TenantPolicy(quota_windows=windows), look)


@examples(SOME)
@given(stories(), drawn_windows(evict=IF_WANTED))
def test_who_gives_back_does_so_for_somebody_who_waits_for_what_is_their_own(
    story: Story, windows: list[QuotaWindow]
) -> None:
    def look(world: TenantWorld, decisions: list[Decision]) -> None:
        if not suspensions(decisions, QUOTA_WINDOW):
            return
        tree, queues = world.admission.structure.tree, world.admission.structure.queues
        waiting = [found for line in world.admission.pending for found in line.waiting()]
        assert any(
            tree.usage_of(queues[found.queue_name].node, 0) + found.pod_sets[0].per_pod["cpu"]
            <= tree.subtree_of(queues[found.queue_name].node, 0)
            for found in waiting
        )

    story.play(TenantPolicy(quota_windows=windows), look, says_how_long=False)


@examples(SOME)
@given(stories(), drawn_windows())
def test_nobody_is_suspended_by_a_window_without_notice(story: Story, windows: list[QuotaWindow]) -> None:
    """With notice for at least an hour, everybody who has to go at a switch was told before, or came since."""
    for window in windows:
        window.notice_seconds = max(HOUR, window.notice_seconds)
    told: set[tuple[str, float]] = set()
    since: dict[str, float] = {}

    def look(world: TenantWorld, decisions: list[Decision]) -> None:
        for found in decisions:
            if isinstance(found, Notice):
                told.add((found.workload, found.at))
            elif isinstance(found, Admit):
                since[found.workload] = world.now
        for key in suspensions(decisions, QUOTA_WINDOW):
            assert (key, world.now) in told, key
            assert since[key] < world.now

    story.play(TenantPolicy(quota_windows=windows), look, says_how_long=False)


@examples(SOME)
@given(stories(reclaims=True), drawn_windows())
def test_windows_of_queues_elsewhere_change_no_decision(story: Story, windows: list[QuotaWindow]) -> None:
    for window in windows:
        window.queue = "elsewhere"

    plain = story.play(TenantPolicy(), lambda world, decisions: None)

    assert story.play(TenantPolicy(quota_windows=windows), lambda world, decisions: None) == plain


# Minimum runtime.


@pytest.mark.parametrize("minimum", [2 * HOUR, 5 * HOUR])
@examples(SOME)
@given(stories(reclaims=True))
def test_nobody_is_reclaimed_who_has_not_run_for_the_minimum(minimum: int, story: Story) -> None:
    since: dict[str, float] = {}

    def look(world: TenantWorld, decisions: list[Decision]) -> None:
        reclaimed = suspensions(
            decisions, IN_COHORT_FAIR_SHARING, IN_COHORT_RECLAMATION, IN_COHORT_RECLAIM_WHILE_BORROWING
        )
        for key in reclaimed:
            assert since[key] + minimum <= world.now
        for found in decisions:
            if isinstance(found, Admit):
                since[found.workload] = world.now

    story.play(TenantPolicy(minimum_runtime_before_reclaim_seconds=minimum), look)


@examples(SOME)
@given(stories(reclaims=True))
def test_a_memory_without_fair_sharing_changes_no_decision(story: Story) -> None:
    plain = Story(story.queues, story.arrivals).play(TenantPolicy(), lambda world, decisions: None)

    policy = TenantPolicy(usage_half_life_seconds=HOUR)

    assert Story(story.queues, story.arrivals).play(policy, lambda world, decisions: None) == plain
