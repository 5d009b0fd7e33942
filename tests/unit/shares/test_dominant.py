"""Dominant shares: the classic example, and resources that count for more than others."""

import numpy as np
import pytest

from mooring.actions.shares.division import BY_SPEC
from mooring.actions.shares.drf import DominantShares
from mooring.actions.shares.resources import ResourceTable
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.volcano.division import PROPORTION
from mooring.testing.share_builders import amounts, fill, make_share_job, make_share_queue, make_sharing

GIB = 2**30


def test_dominant_shares_come_out_equal_as_far_as_whole_tasks_allow() -> None:
    """The example of the paper with 8 CPUs and 32 GiB: tasks of 2 CPUs and 4 GiB beside tasks of 1 CPU and 8 GiB."""
    total = amounts(cpu=8, memory=32 * GIB)
    users = {"one": amounts(cpu=2, memory=4 * GIB), "two": amounts(cpu=1, memory=8 * GIB)}
    jobs = [make_share_job(name, "all", members=100, request=request) for name, request in users.items()]
    sharing = make_sharing([make_share_queue("all")], jobs, total=total)
    found = sharing.cache.jobs
    progress = []

    while (offer := sharing.next_job()) is not None:
        sharing.allocate(offer.job, offer.members)
        progress.append((offer.job, found["one"].share, found["two"].share))

    # In turns, each bringing up whoever is behind; the last task has no partner that would still fit.
    assert progress == [
        ("one", 0.25, 0.0),
        ("two", 0.25, 0.25),
        ("one", 0.5, 0.25),
        ("two", 0.5, 0.5),
        ("one", 0.75, 0.5),
    ]
    assert [found[name].held_members for name in users] == [3, 2]


def test_the_same_between_queues_with_nine_cpus() -> None:
    """9 CPUs and 18 GB, tasks of 1 CPU and 4 GB beside tasks of 3 CPUs and 1 GB: three of the one, two of the other."""
    settings = ShareSettings(division=BY_SPEC, is_hierarchical=True)
    total = amounts(cpu=9, memory=18)
    jobs = [
        make_share_job("a", "a", members=9, request=amounts(cpu=1, memory=4)),
        make_share_job("b", "b", members=9, request=amounts(cpu=3, memory=1)),
    ]
    sharing = make_sharing([make_share_queue("a"), make_share_queue("b")], jobs, total=total, settings=settings)

    fill(sharing)

    shares = {key: job.share for key, job in sharing.cache.jobs.items()}
    assert {key: job.held_members for key, job in sharing.cache.jobs.items()} == {"a": 3, "b": 2}
    assert shares == {"a": pytest.approx(2 / 3), "b": pytest.approx(2 / 3)}


def test_one_gpu_weighs_as_much_as_ten_cpus() -> None:
    total = amounts(cpu=1000, gpu=8)
    table = ResourceTable(total)
    shares = DominantShares(table, table.row(total), {"cpu": 1.0, "nvidia.com/gpu": 0.08})

    assert shares.share(table.amount(amounts(gpu=1))) == pytest.approx(shares.share(table.amount(amounts(cpu=10))))
    assert shares.dominant(table.amount(amounts(cpu=9, gpu=1))) == table.column_of["nvidia.com/gpu"]
    assert shares.dominant(table.amount(amounts(cpu=11, gpu=1))) == table.column_of["cpu"]


def test_weights_change_who_is_next() -> None:
    """By parts of the cluster 4 of 8 GPUs are more than 60 of 1000 CPUs; by worth the CPUs weigh more."""
    total = amounts(cpu=1000, gpu=8)
    jobs = [
        make_share_job("gpus", "all", members=8, held=4, request=amounts(gpu=1)),
        make_share_job("cpus", "all", members=10, held=6, request=amounts(cpu=10)),
    ]
    worth = {"cpu": 1.0, "nvidia.com/gpu": 0.08}

    plain = make_sharing([make_share_queue("all")], jobs, total=total)
    by_worth = ShareSettings(PROPORTION, resource_weights=worth)
    weighted = make_sharing([make_share_queue("all")], jobs, total=total, settings=by_worth)

    first, second = plain.next_job(), weighted.next_job()
    assert first is not None and first.job == "cpus"
    assert second is not None and second.job == "gpus"


def test_the_memory_of_gpus_is_a_resource_of_its_own() -> None:
    memory = "volcano.sh/gpu-memory"
    total = amounts(gpu=8) | {memory: 8 * 80_000}
    jobs = [
        make_share_job("many", "all", members=8, held=4, request=amounts(gpu=1) | {memory: 10_000}),
        make_share_job("large", "all", members=8, held=2, created=1.0, request=amounts(gpu=1) | {memory: 200_000}),
    ]

    sharing = make_sharing([make_share_queue("all")], jobs, total=total)

    # Half of the GPUs against 400 of 640 GB of their memory.
    assert {key: job.share for key, job in sharing.cache.jobs.items()} == {"many": 0.5, "large": 0.625}
    offer = sharing.next_job()
    assert offer is not None and offer.job == "many"


def test_what_the_cluster_does_not_have_counts_as_all_of_it() -> None:
    table = ResourceTable(["cpu", "nvidia.com/gpu"])
    shares = DominantShares(table, np.array([1000, 0]))

    assert shares.share({0: 500, 1: 1}) == 1.0
    assert shares.share({0: 500, 1: 0}) == 0.5
    assert shares.dominant({}) is None
