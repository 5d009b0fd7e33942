"""Loads for shares: many queues below several departments, many jobs, the same ones every time."""

from mooring.actions.shares.demands import JobDemand, QueueSpec
from mooring.actions.shares.division import BY_SPEC
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.sharing import Sharing
from mooring.actions.shares.volcano.division import PROPORTION
from mooring.state.undo import UndoLog
from mooring.testing.share_builders import amounts, make_share_job, make_share_queue

GIB = 2**30


def make_share_load(queues: int, jobs: int, *, departments: int = 0, settings: ShareSettings | None = None) -> Sharing:
    """Queues of weights 1 to 4, below departments if there are any, and jobs of four sizes spread over them.

    The cluster has room for half of what is asked for, and each queue deserves its part of it.
    """
    sizes = [(1, 8, 1), (2, 4, 2), (4, 2, 8), (0, 16, 4)]
    demands: list[JobDemand] = []
    total: dict[str, int] = {}
    for number in range(jobs):
        gpus, cpus, members = sizes[number % len(sizes)]
        request = amounts(cpu=cpus, gpu=gpus, memory=4 * cpus * GIB)
        least = members if number % 3 else 1
        name = f"queue-{number * 7 % queues:04d}"
        demands.append(
            make_share_job(
                f"job-{number:06d}",
                name,
                members=members,
                min_members=least,
                priority=number % 5,
                created=float(number),
                request=request,
            )
        )
        for resource, amount in request.items():
            total[resource] = total.get(resource, 0) + amount * members
    total = {resource: amount // 2 for resource, amount in total.items()}
    sharing = Sharing(
        _make_queues(queues, departments, total), total, settings or ShareSettings(PROPORTION), log=UndoLog()
    )
    for demand in demands:
        sharing.add(demand)
    return sharing


def _make_queues(queues: int, departments: int, total: dict[str, int]) -> list[QueueSpec]:
    weights = [1 + number % 4 for number in range(queues)]
    part = {resource: amount // sum(weights) for resource, amount in total.items()}
    found = [make_share_queue(f"department-{number:03d}") for number in range(departments)]
    for number, weight in enumerate(weights):
        parent = f"department-{number % departments:03d}" if departments else ""
        deserved = {resource: amount * weight for resource, amount in part.items()}
        found.append(make_share_queue(f"queue-{number:04d}", parent=parent, weight=float(weight), deserved=deserved))
    return found


def capacity_settings(*, is_hierarchical: bool = False) -> ShareSettings:
    return ShareSettings(division=BY_SPEC, is_hierarchical=is_hierarchical)
