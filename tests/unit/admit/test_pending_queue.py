"""Lines of waiting workloads, as they come and go."""

import pytest

from mooring.model.api.kueue import HOLD, STRICT_FIFO
from mooring.testing.queueing_builders import make_queue
from mooring.testing.tenant_builders import TenantWorld, make_job


@pytest.mark.parametrize("is_held", [True, False], ids=["held", "blocked by a strict head"])
@pytest.mark.parametrize("priority", [0, 1], ids=["of one shape", "of many shapes"])
def test_a_line_keeps_nothing_of_workloads_that_left_it(is_held: bool, priority: int) -> None:
    queue = make_queue() if is_held else make_queue(strategy=STRICT_FIFO)
    queue.spec.stop_policy = HOLD if is_held else None
    world = TenantWorld([queue], [make_job("runs", cpu=8, priority=9_000), make_job("head", cpu=8, priority=8_000)])
    world.settle()

    for number in range(300):
        job = make_job(f"job-{number:03}", cpu=1, priority=priority * number, second=number % 60)
        world.submit(job)
        world.cycle(10.0)
        world.delete(job)
        world.cycle(1.0)

    pending_queue = world.admission.pending.pending_queues["queue"]
    assert sum(len(heads) for heads in pending_queue._heads.values()) <= 80
    assert sum(len(bucket._heap) for buckets in pending_queue._buckets.values() for bucket in buckets) <= 80
    assert [pending.key for pending in pending_queue.in_order()][:1] == (
        ["default/runs"] if is_held else ["default/head"]
    )
