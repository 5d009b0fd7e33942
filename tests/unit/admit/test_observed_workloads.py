"""Admission reads what the world says of a workload, and leaves it as it is."""

from copy import deepcopy

from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import TenantWorld, make_job


def test_a_pod_template_is_not_filled_in_where_it_was_observed() -> None:
    job = make_job("train", queue="team")
    job.workload.spec.pod_sets[0].template.spec.scheduler_name = ""
    before = deepcopy(job.workload)
    world = TenantWorld([make_queue("team", make_group(default=make_quota(4)))], [job])

    world.settle()

    assert world.running() == ["train-0"]
    assert job.workload == before
