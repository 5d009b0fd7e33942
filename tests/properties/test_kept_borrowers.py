"""Candidates for preemption are kept from search to search, and always what a search from nothing would find."""

from hypothesis import given
from hypothesis import strategies as st

from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.preemption.classical import ClassicalPreemption
from mooring.actions.admit.preemption.fair import FairPreemption
from mooring.actions.admit.preemption.targets import Preemptor
from mooring.actions.admit.quota.fair_sharing import Shares
from mooring.actions.admit.quota.ledger import Ledger
from mooring.model.api.kueue import ANY, LOWER_PRIORITY
from mooring.testing.queueing_builders import make_admission, make_group, make_queue, make_quota, make_workload

QUEUES = 5


def same_victims(kept: FairPreemption | ClassicalPreemption, admission: Admission) -> None:
    """Compare with a search from nothing, by shares from nothing: who computes one tells the tree that it is known."""
    ledger = admission.ledger
    waiting = [(line.queue, pending) for line in admission.pending for pending in line.waiting()]
    for queue, pending in waiting:
        preemptor = Preemptor(pending, queue, {0: 3000}, frozenset((0,)))
        forget_shares(ledger)
        found = kept.find_victims(ledger, preemptor)
        forget_shares(ledger)
        assert found == from_nothing(kept, ledger).find_victims(ledger, preemptor)
    forget_shares(ledger)


def from_nothing(kept: FairPreemption | ClassicalPreemption, ledger: Ledger) -> FairPreemption | ClassicalPreemption:
    return FairPreemption(Shares(ledger.tree)) if isinstance(kept, FairPreemption) else ClassicalPreemption()


def forget_shares(ledger: Ledger) -> None:
    for node in range(len(ledger.tree.nodes)):
        ledger.tree.share_is_stale[node] = 1


@given(
    is_fair=st.booleans(),
    policy=st.sampled_from([ANY, LOWER_PRIORITY]),
    running=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=15, max_size=25),
    priority=st.integers(0, 3),
    removed=st.lists(st.integers(0, 1000), max_size=4),
)
def test_kept_or_from_nothing_the_victims_are_the_same(
    is_fair: bool, policy: str, running: list[tuple[int, int]], priority: int, removed: list[int]
) -> None:
    """Three queues take what five have; then somebody waits in each of the five, and some are gone after all."""
    queues = [
        make_queue(f"queue-{number}", make_group(flavor=make_quota(4)), cohort="all", reclaim=policy)
        for number in range(QUEUES)
    ]
    takers = [
        make_workload(f"runs-{number}", queue=f"queue-{queue}", cpu=1, priority=own, second=number)
        for number, (queue, own) in enumerate(running)
    ]
    admission = make_admission(queues, takers, fair_sharing=is_fair)
    ledger = admission.ledger
    kept = FairPreemption(Shares(ledger.tree)) if is_fair else ClassicalPreemption()
    for cycle in range(len(takers)):
        admission.run_cycle(float(cycle))
    for number in range(QUEUES):
        waits = make_workload(f"waits-{number}", queue=f"queue-{number}", cpu=3, priority=priority, second=100 + number)
        admission.add(waits)
    same_victims(kept, admission)
    held = sorted(ledger.admitted_workloads(), key=lambda found: found.pending.key)
    with ledger.what_if():
        for index in {index % len(held) for index in removed}:
            ledger.remove(held[index])
        same_victims(kept, admission)
    admission.finish([held[index].pending.key for index in {index % len(held) for index in removed}])
    same_victims(kept, admission)
