"""Who reclaims from whom by KAI's rules: fair shares, quotas, and how saturated departments are in the end."""

import pytest

from mooring.actions.shares.demands import JobDemand, QueueSpec, Role
from mooring.actions.shares.kai.tree_shares import KAI
from mooring.actions.shares.reclaim_victims import Reclamation
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.sharing import Sharing
from mooring.state.undo import UndoLog

GPU = "nvidia.com/gpu"


def queue(name: str, parent: str = "", quota: int = 0) -> QueueSpec:
    return QueueSpec(name, parent, deserved={GPU: quota}, weights={GPU: 1.0})


def job(name: str, in_queue: str, held: int = 1, *, is_preemptible: bool = True) -> JobDemand:
    roles = (Role({GPU: 1}, members=1, minimum=1, held=held),)
    return JobDemand(name, in_queue, roles, is_preemptible=is_preemptible, created=float(name[-1]))


def victims(queues: list[QueueSpec], jobs: list[JobDemand], total: int) -> list[str]:
    sharing = Sharing(queues, {GPU: total}, ShareSettings(division=KAI), log=UndoLog())
    for demand in (*jobs, job("wants-0", "wants", held=0)):
        assert not sharing.add(demand)
    found = sharing.find_victims("wants-0", 0.0)
    return [victim.job for victim in found.victims] if isinstance(found, Reclamation) else []


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [(8, ["theirs-7"]), (5, [])],
    ids=["saturated more than ours will be", "saturated less in the end"],
)
def test_a_department_beyond_its_share_takes_from_one_that_stays_further_beyond(
    theirs: int, expected: list[str]
) -> None:
    """Each department's fair share is 4 of 12. Ours holds 4, which cannot be taken; one of its teams wants a fifth."""
    queues = [queue("ours"), queue("kept", "ours"), queue("wants", "ours"), queue("theirs"), queue("starving")]
    jobs = [job(f"kept-{index}", "kept", is_preemptible=False) for index in range(4)]
    jobs += [job(f"theirs-{index}", "theirs") for index in range(theirs)]
    jobs += [job(f"starving-{index}", "starving", held=0) for index in range(4)]
    jobs += [job(f"starving-{index + 4}", "starving") for index in range(max(0, 8 - theirs))]

    assert victims(queues, jobs, total=12) == expected


def test_who_stays_within_its_quota_takes_from_who_is_beyond_its_own_however_fair_that_is() -> None:
    queues = [queue("wants", quota=2), queue("theirs", quota=1)]
    jobs = [job(f"theirs-{index}", "theirs") for index in range(2)]

    assert victims(queues, jobs, total=2) == ["theirs-1"]
