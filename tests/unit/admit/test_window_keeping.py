"""Quota that is lent at night and taken back in the morning: who is told, who is kept out, and who has to go."""

from mooring.actions.admit.lifecycle.known_ends import PREEMPTIBLE
from mooring.config.queueing import QueueingSettings
from mooring.config.tenant_policy import QuotaWindow, TenantPolicy
from mooring.model.api.kueue import LOWER_PRIORITY, STRICT_FIFO, ClusterQueue
from mooring.model.api.kueue_workload import QUOTA_ENDS
from mooring.model.api.meta import timestamp_text
from mooring.model.decisions import Decision, Evict, Notice, Suspend, Wait
from mooring.model.values.durations import DURATION
from mooring.state.workloads import Stage
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import Job, TenantWorld, admitted, make_job, suspended, waits

HOUR = 3600.0
MIDNIGHT = 1_784_073_600.0
"""2026-07-15T00:00:00Z"""
MORNING = MIDNIGHT + 6 * HOUR
NOTICE = 1800
PATIENT = QueueingSettings(pods_ready=None)


def window(**given: object) -> QuotaWindow:
    """By night, what the day team has is everybody's."""
    values: dict[str, object] = {
        "queue": "day",
        "resource": "cpu",
        "flavor": "default",
        "from_": "22:00",
        "to": "06:00",
        "lending_limit": 8,
        "notice_seconds": NOTICE,
        **given,
    }
    return QuotaWindow(**values)  # type: ignore[arg-type]


def teams(**day: object) -> list[ClusterQueue]:
    """The day team owns 8 and lends none of it; the night team owns 2."""
    return [
        make_queue("day", make_group(default=make_quota(8, lending_limit=0)), cohort="all", **day),  # type: ignore[arg-type]
        make_queue("night", make_group(default=make_quota(2)), cohort="all"),
    ]


def at(
    moment: float, *jobs: Job, policy: TenantPolicy | None = None, queues: list[ClusterQueue] | None = None
) -> TenantWorld:
    policy = policy or TenantPolicy(quota_windows=[window()])
    return TenantWorld(queues or teams(), jobs, policy=policy, settings=PATIENT, now=moment)


def notices(decisions: list[Decision]) -> list[tuple[str, float]]:
    return [(found.workload, found.at) for found in decisions if isinstance(found, Notice)]


def go_to(world: TenantWorld, moment: float) -> list[Decision]:
    world.now = moment
    return world.settle()


# Lending.


def test_quota_is_lent_while_the_window_is_open() -> None:
    policy = TenantPolicy(quota_windows=[window(notice_seconds=0)])
    world = at(MIDNIGHT - 3 * HOUR, make_job("loan", queue="night", cpu=6), policy=policy)

    assert admitted(world.settle()) == []
    assert world.action.next_wake(world.scheduler.cluster, world.now) == MIDNIGHT - 2 * HOUR
    assert admitted(go_to(world, MIDNIGHT - 2 * HOUR)) == ["loan"]


def test_without_a_window_nothing_happens_by_the_clock() -> None:
    world = at(MIDNIGHT, make_job("loan", queue="night", cpu=6), policy=TenantPolicy())

    assert admitted(world.settle()) == []
    assert world.action.next_wake(world.scheduler.cluster, world.now) is None
    assert go_to(world, MORNING) == []


def test_nobody_who_holds_quota_loses_it_when_there_is_more() -> None:
    world = at(MIDNIGHT - 3 * HOUR, make_job("mine", queue="night", cpu=2))
    world.settle()

    assert go_to(world, MIDNIGHT) == []
    assert world.running() == ["mine-0"]


# Notice.


def test_who_will_have_to_give_back_is_told_once_and_in_time() -> None:
    own, loan = make_job("own", queue="night", cpu=2, second=1), make_job("loan", queue="night", cpu=6, second=2)
    world = at(MIDNIGHT, own, loan)
    assert admitted(world.settle()) == ["own", "loan"]
    assert world.action.next_wake(world.scheduler.cluster, world.now) == MORNING - NOTICE

    assert go_to(world, MORNING - NOTICE - 1) == []
    decisions = go_to(world, MORNING - NOTICE)

    assert decisions == [
        Notice(
            "default/loan",
            "At 2026-07-15T06:00:00Z there will be less quota of cpu of flavor default than ClusterQueue night uses: "
            "the workload will be suspended if somebody waits for it",
            MORNING,
        )
    ]
    assert go_to(world, MORNING - 60) == []
    assert world.action.next_wake(world.scheduler.cluster, world.now) == MORNING


def test_who_says_that_it_was_told_before_a_restart_is_not_told_again() -> None:
    for known, told in ((MORNING, []), (MORNING - HOUR, [("default/loan", MORNING)])):
        annotations = {QUOTA_ENDS: timestamp_text(known)}
        world = at(MIDNIGHT, make_job("loan", queue="night", cpu=6, annotations=annotations))
        world.settle()

        assert notices(go_to(world, MORNING - NOTICE)) == told


def test_with_evict_always_the_notice_leaves_no_doubt() -> None:
    policy = TenantPolicy(quota_windows=[window(evict="Always")])
    world = at(MIDNIGHT, make_job("loan", queue="night", cpu=6), policy=policy)
    world.settle()

    (notice,) = go_to(world, MORNING - NOTICE)

    assert isinstance(notice, Notice)
    assert notice.message.endswith("the workload will be suspended")


def test_who_will_be_done_by_then_is_not_told() -> None:
    job = make_job("loan", queue="night", cpu=6, annotations={DURATION: "5h"})
    world = at(MIDNIGHT, job)
    assert admitted(world.settle()) == ["loan"]

    assert go_to(world, MORNING - NOTICE) == []


def test_low_priorities_and_those_that_started_last_are_told_first() -> None:
    jobs = [
        make_job("important", queue="night", cpu=2, priority=5, second=1),
        make_job("older", queue="night", cpu=3, second=2),
    ]
    world = at(MIDNIGHT, *jobs)
    world.settle()
    world.submit(make_job("newer", queue="night", cpu=3, second=3))
    go_to(world, MIDNIGHT + 60)

    assert notices(go_to(world, MORNING - NOTICE)) == [
        ("default/newer", MORNING),
        ("default/older", MORNING),
    ]


def test_no_more_are_told_than_it_takes() -> None:
    jobs = [make_job(f"loan-{number}", queue="night", cpu=2, second=number) for number in range(4)]
    world = at(MIDNIGHT, *jobs)
    world.settle()

    # The night team owns 2 of the 8 that it uses: one of four may stay.
    assert len(notices(go_to(world, MORNING - NOTICE))) == 3


# The gate.


def test_shortly_before_quota_is_taken_back_nobody_new_gets_it() -> None:
    world = at(MORNING - NOTICE, make_job("late", queue="night", cpu=6))

    decisions = world.settle()

    said = "the quota that it would use is taken back at 2026-07-15T06:00:00Z, and nobody says how long it runs"
    assert waits(decisions) == {"late-0": said}
    assert [found.reason for found in decisions if isinstance(found, Wait)] == ["WaitingForQuota"]


def test_before_the_notice_anybody_may_have_it() -> None:
    world = at(MORNING - NOTICE - 1, make_job("early", queue="night", cpu=6))

    assert admitted(world.settle()) == ["early"]


def test_who_says_how_long_it_runs_is_judged_by_that_alone() -> None:
    for duration, starts in (("20m", True), ("30m", True), ("31m", False)):
        job = make_job("job", queue="night", cpu=6, annotations={DURATION: duration})
        assert bool(admitted(at(MORNING - NOTICE, job).settle())) is starts, duration
    long = make_job("long", queue="night", cpu=6, annotations={DURATION: "7h"})
    decisions = at(MIDNIGHT, long).settle()
    assert waits(decisions)["long-0"].endswith("is taken back at 2026-07-15T06:00:00Z, before its 25200s are over")


def test_the_longest_that_a_workload_may_run_counts_as_how_long_it_runs() -> None:
    assert admitted(at(MORNING - NOTICE, make_job("job", queue="night", cpu=6, max_seconds=600)).settle()) == ["job"]


def test_who_may_be_stopped_at_any_time_is_let_in() -> None:
    job = make_job("job", queue="night", cpu=6, annotations={PREEMPTIBLE: "true"})
    world = at(MORNING - 60, job)

    decisions = world.settle()

    assert admitted(decisions) == ["job"]
    assert notices(decisions) == [("default/job", MORNING)]


def test_quota_of_ones_own_is_not_taken_back_by_the_morning() -> None:
    mine, theirs = make_job("mine", queue="night", cpu=2), make_job("theirs", queue="day", cpu=8)

    assert sorted(admitted(at(MORNING - 60, mine, theirs).settle())) == ["mine", "theirs"]


def test_who_is_kept_out_is_looked_at_again_when_the_window_has_closed_and_opened() -> None:
    world = at(MORNING - 60, make_job("late", queue="night", cpu=6))
    world.settle()

    assert admitted(go_to(world, MORNING)) == []
    assert admitted(go_to(world, MIDNIGHT + 22 * HOUR)) == ["late"]


def test_those_let_in_together_do_not_count_on_the_same_quota() -> None:
    """At 6, only 2 are left: one of two jobs of 2 CPU is kept from starting."""
    jobs = [make_job(f"job-{number}", queue="night", cpu=2, second=number) for number in range(2)]

    assert admitted(at(MORNING - 60, *jobs).settle()) == ["job-0"]


def test_nobody_is_preempted_for_a_workload_that_is_then_kept_out() -> None:
    queues = [
        *teams(),
        make_queue(
            "bold",
            make_group(default=make_quota(0)),
            cohort="all",
            reclaim=LOWER_PRIORITY,
            borrow_policy=LOWER_PRIORITY,
        ),
    ]
    world = at(MIDNIGHT, make_job("loan", queue="night", cpu=8), queues=queues)
    world.settle()

    world.submit(make_job("bold", queue="bold", cpu=6, priority=5))
    decisions = go_to(world, MORNING - 60)

    assert suspended(decisions) == []
    assert waits(decisions)["bold-0"].startswith("the quota that it would use is taken back at")


def test_a_strict_queue_stays_strict() -> None:
    queues = teams()
    queues[1].spec.queueing_strategy = STRICT_FIFO
    jobs = [make_job("late", queue="night", cpu=6, second=1), make_job("small", queue="night", cpu=2, second=2)]

    assert admitted(at(MORNING - 60, *jobs, queues=queues).settle()) == []


# Taking back.


def night_over(evict: str = "IfWanted", **policy: object) -> TenantWorld:
    """The night team has 2 of its own and 6 of the day team's, and it is a second to six."""
    jobs = [
        make_job("own", queue="night", cpu=2, priority=1, second=1),
        make_job("loan", queue="night", cpu=4, second=2),
    ]
    given = TenantPolicy(quota_windows=[window(evict=evict, notice_seconds=0)], **policy)  # type: ignore[arg-type]
    world = at(MIDNIGHT, *jobs, policy=given)
    assert sorted(admitted(world.settle())) == ["loan", "own"]
    world.submit(make_job("small-loan", queue="night", cpu=2, second=3))
    assert admitted(go_to(world, MIDNIGHT + 60)) == ["small-loan"]
    go_to(world, MORNING - 1)
    return world


def test_nobody_has_to_go_as_long_as_nobody_waits() -> None:
    world = night_over()

    assert suspended(go_to(world, MORNING)) == []
    assert world.in_stage(Stage.ADMITTED) == ["loan", "own", "small-loan"]


def test_in_any_case_means_in_any_case() -> None:
    world = night_over("Always")

    decisions = go_to(world, MORNING)

    assert sorted(suspended(decisions)) == [("loan", "QuotaWindow"), ("small-loan", "QuotaWindow")]
    assert world.running() == ["own-0"]
    assert world.in_stage(Stage.WAITING) == ["loan", "small-loan"]


def test_what_the_owner_waits_for_is_given_back_and_no_more() -> None:
    world = night_over()
    go_to(world, MORNING)
    world.finishes_evictions = False
    world.submit(make_job("work", queue="day", cpu=4))

    decisions = world.cycle()

    message = "Suspended because there is less quota of cpu of flavor default now than ClusterQueue night uses"
    assert [found for found in decisions if isinstance(found, Suspend | Evict)] == [
        Suspend("default/small-loan", "QuotaWindow", message),
        Evict("default/small-loan-0", "node", "", message),
    ]
    said = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 2 more needed"
    assert waits(decisions)["work-0"] == said
    assert world.cycle() == []  # it is on its way: nobody else is told to go

    world.let_go()
    assert admitted(world.cycle()) == ["work"]
    assert world.in_stage(Stage.ADMITTED) == ["loan", "own", "work"]


def test_the_owner_starts_at_once_where_its_quota_is_idle() -> None:
    world = night_over()
    go_to(world, MORNING)

    world.submit(make_job("work", queue="day", cpu=2))

    decisions = world.settle()
    assert admitted(decisions) == ["work"]
    assert suspended(decisions) == []


def test_who_is_too_young_gives_back_when_it_is_old_enough() -> None:
    world = night_over("Always", minimum_runtime_before_reclaim_seconds=7 * 3600)

    assert suspended(go_to(world, MORNING)) == []
    assert world.action.next_wake(world.scheduler.cluster, world.now) == MIDNIGHT + 7 * HOUR
    assert suspended(go_to(world, MIDNIGHT + 7 * HOUR)) == [("loan", "QuotaWindow")]
    assert world.action.next_wake(world.scheduler.cluster, world.now) == MIDNIGHT + 7 * HOUR + 60
    assert suspended(go_to(world, MIDNIGHT + 7 * HOUR + 60)) == [("small-loan", "QuotaWindow")]


def test_a_queue_on_its_own_gives_back_what_its_window_takes() -> None:
    policy = TenantPolicy(
        quota_windows=[
            QuotaWindow(
                queue="queue",
                resource="cpu",
                flavor="default",
                from_="06:00",
                to="22:00",
                nominal_quota=4,
                evict="Always",
            )
        ]
    )
    jobs = [make_job(f"job-{number}", cpu=3, priority=number, second=number) for number in range(3)]
    world = at(MIDNIGHT, *jobs, policy=policy, queues=[make_queue()])
    world.settle()

    assert sorted(suspended(go_to(world, MORNING))) == [("job-0", "QuotaWindow"), ("job-1", "QuotaWindow")]
    assert sorted(admitted(go_to(world, MIDNIGHT + 22 * HOUR))) == ["job-0", "job-1"]


def test_a_lower_borrowing_limit_takes_back_what_is_beyond_it() -> None:
    queues = [make_queue("day", make_group(default=make_quota(8)), cohort="all"), teams()[1]]
    limit = window(queue="night", from_="06:00", to="22:00", lending_limit=None, borrowing_limit=3, evict="Always")
    jobs = [make_job(f"job-{number}", queue="night", cpu=2, second=number) for number in range(4)]
    world = at(MIDNIGHT, *jobs, policy=TenantPolicy(quota_windows=[limit]), queues=queues)
    world.settle()

    assert len(suspended(go_to(world, MORNING))) == 2


def test_what_may_still_be_borrowed_is_not_taken() -> None:
    """The night team owns less by day, but the day team lends: the usual rules of reclaiming decide."""
    queues = [make_queue("day", make_group(default=make_quota(8)), cohort="all"), teams()[1]]
    less = window(queue="night", from_="06:00", to="22:00", lending_limit=None, nominal_quota=0, evict="Always")
    world = at(
        MIDNIGHT, make_job("loan", queue="night", cpu=6), policy=TenantPolicy(quota_windows=[less]), queues=queues
    )
    world.settle()

    assert notices(go_to(world, MORNING - NOTICE)) == []
    assert suspended(go_to(world, MORNING)) == []


def test_changed_queues_and_open_windows_go_together() -> None:
    world = at(MIDNIGHT, make_job("loan", queue="night", cpu=8))
    assert admitted(world.settle()) == ["loan"]

    world.show(make_queue("day", make_group(default=make_quota(12, lending_limit=0)), cohort="all"))
    world.submit(make_job("more", queue="night", cpu=2))
    world.settle()

    assert world.in_stage(Stage.ADMITTED) == ["loan", "more"]  # 2 of its own and 8 that are lent
