"""What a cycle of admission costs grows with the number of queues in a cohort, not with its square."""

import sys
from collections.abc import Callable
from types import FrameType

from mooring.actions.admit.concessions import find_outlook
from mooring.actions.admit.cycle.cycle import Admission
from mooring.model.api.kueue import ANY, LOWER_PRIORITY, Workload
from mooring.testing.queueing_builders import make_admission, make_group, make_queue, make_quota, make_workload


def count_calls(run: Callable[[], object]) -> int:
    """How many functions are called: a measure of time that is the same on every machine."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


def one_cohort(queues: int, *, every: int = 1) -> Admission:
    """Queues that own 2 CPU each; every so manieth has 4 workloads of 1 CPU that wait."""
    made = [
        make_queue(
            f"queue-{number:04}",
            make_group(flavor=make_quota(2)),
            cohort="all",
            reclaim=ANY,
            within_queue=LOWER_PRIORITY,
        )
        for number in range(queues)
    ]
    return make_admission(made, jobs(queues, range(0, queues, every)))


def jobs(queues: int, of: range) -> list[Workload]:
    return [
        make_workload(f"work-{number:04}-{index}", queue=f"queue-{number:04}", cpu=1, second=number % 3000)
        for number in of
        for index in range(4)
    ]


def run_out(admission: Admission) -> None:
    """Run cycles until nothing is decided; victims go at once."""
    for cycle in range(40):
        report = admission.run_cycle(float(cycle))
        admission.finish_evictions([found.workload for found in report.preempted])
        if not report.admitted and not report.preempted:
            return


def test_heads_for_which_there_is_no_quota_left_do_not_ask_every_queue() -> None:
    def cost(queues: int) -> int:
        admission = one_cohort(queues)
        return count_calls(lambda: run_out(admission))

    assert cost(200) < 2.5 * cost(100)


def test_queues_that_take_back_what_is_theirs_do_not_ask_every_borrower() -> None:
    def cost(queues: int) -> int:
        admission = one_cohort(queues, every=2)
        run_out(admission)
        for workload in jobs(queues, range(1, queues, 2)):
            admission.add(workload)
        return count_calls(lambda: run_out(admission))

    assert cost(200) < 2.5 * cost(100)


def test_what_would_help_each_workload_that_waits_does_not_ask_every_queue() -> None:
    def cost(queues: int) -> int:
        admission = one_cohort(queues)
        run_out(admission)
        waiting = [pending for pending_queue in admission.pending for pending in pending_queue.waiting()]
        assert len(waiting) == 2 * queues
        return count_calls(lambda: [find_outlook(admission, pending) for pending in waiting])

    assert cost(200) < 2.5 * cost(100)
