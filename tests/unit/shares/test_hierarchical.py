"""Hierarchical dominant shares: parts of an organisation side by side, whatever their children hold."""

import pytest

from mooring.actions.shares.demands import JobDemand, QueueSpec, Role
from mooring.actions.shares.division import BY_SPEC
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.sharing import Sharing
from mooring.actions.shares.volcano.division import PROPORTION
from mooring.errors import ConfigError
from mooring.model.api.volcano_queue import HierarchyStep
from mooring.testing.share_builders import amounts, fill, make_share_job, make_sharing

HIERARCHICAL = ShareSettings(division=BY_SPEC, is_hierarchical=True)
CPU, MEMORY = amounts(cpu=1), amounts(memory=1)


def make_queue(path: str, weights: str) -> QueueSpec:
    steps = zip(path.split("/"), weights.split("/"), strict=True)
    hierarchy = tuple(HierarchyStep(name, float(weight)) for name, weight in steps)
    return QueueSpec(path.replace("/", "-"), hierarchy=hierarchy)


def held(sharing: Sharing) -> dict[str, int]:
    return {job.key: job.held_members for job in sharing.cache.jobs.values()}


def test_a_department_is_not_set_back_by_teams_that_ask_for_different_things() -> None:
    """Science and engineering have equal weights; engineering's two teams together must not count as twice as much."""
    queues = [make_queue("science", "50"), make_queue("eng/dev", "50/50"), make_queue("eng/prod", "50/50")]
    jobs = [
        make_share_job("science", "science", members=10, request=CPU | MEMORY),
        make_share_job("dev", "eng-dev", members=10, request=CPU),
        make_share_job("prod", "eng-prod", members=10, request=MEMORY),
    ]

    sharing = make_sharing(queues, jobs, total=amounts(cpu=10, memory=10), settings=HIERARCHICAL)
    fill(sharing)

    assert held(sharing) == {"science": 5, "dev": 5, "prod": 5}


def test_a_child_that_can_get_no_more_does_not_block_its_sibling() -> None:
    """When CPU has run out, whoever asks for memory still gets it, however much CPU a sibling holds."""
    queues = [
        make_queue("one", "25"),
        make_queue("two", "25"),
        make_queue("three/a", "25/50"),
        make_queue("three/b", "25/50"),
        make_queue("four", "25"),
    ]
    requests = {"one": CPU, "two": CPU, "three-a": CPU, "three-b": MEMORY, "four": MEMORY}
    jobs = [make_share_job(name, name, members=30, request=request) for name, request in requests.items()]

    sharing = make_sharing(queues, jobs, total=amounts(cpu=30, memory=30), settings=HIERARCHICAL)
    fill(sharing)

    assert held(sharing) == {"one": 10, "two": 10, "three-a": 10, "three-b": 15, "four": 15}


def test_weights_decide_how_much_more_a_part_gets() -> None:
    queues = [make_queue("big", "3"), make_queue("small", "1")]
    jobs = [make_share_job(name, name, members=40, request=CPU) for name in ("big", "small")]

    sharing = make_sharing(queues, jobs, total=amounts(cpu=40), settings=HIERARCHICAL)
    fill(sharing)

    assert held(sharing) == {"big": 30, "small": 10}


def test_without_annotations_the_way_leads_along_the_parents() -> None:
    queues = [
        QueueSpec("left", weight=1.0),
        QueueSpec("left-a", parent="left"),
        QueueSpec("left-b", parent="left"),
        QueueSpec("right", weight=1.0),
    ]
    jobs = [make_share_job(name, name, members=20, request=CPU) for name in ("left-a", "left-b", "right")]

    sharing = make_sharing(queues, jobs, total=amounts(cpu=20), settings=HIERARCHICAL)
    fill(sharing)

    assert held(sharing) == {"left-a": 5, "left-b": 5, "right": 10}


def test_what_a_gone_job_held_counts_no_longer() -> None:
    queues = [make_queue("a", "1"), make_queue("b", "1")]
    jobs = [make_share_job("old", "a", members=4, held=4, request=CPU)]
    sharing = make_sharing(queues, jobs, total=amounts(cpu=8), settings=HIERARCHICAL)

    sharing.remove("old")
    for name in ("a", "b"):
        sharing.add(make_share_job(name, name, members=8, request=CPU))
    sharing.start_cycle(1.0)
    fill(sharing)

    assert held(sharing) == {"a": 4, "b": 4}


def test_a_job_that_has_all_it_asks_for_of_one_resource_comes_last() -> None:
    gang = JobDemand("gang", "a", (Role(CPU, 1, minimum=1), Role(MEMORY, 6)), min_members=3)
    queues = [make_queue("a", "1"), make_queue("b", "1")]
    plain = make_share_job("plain", "b", members=8, request=MEMORY)

    sharing = make_sharing(queues, [gang, plain], total=amounts(cpu=2, memory=8), settings=HIERARCHICAL)
    fill(sharing)

    # The gang starts with all its CPU: from then on the other has every turn.
    assert held(sharing) == {"gang": 3, "plain": 6}


def test_the_order_does_not_go_together_with_shares_by_weight() -> None:
    with pytest.raises(ConfigError) as raised:
        ShareSettings(PROPORTION, is_hierarchical=True)

    assert str(raised.value) == (
        "share settings: is_hierarchical: expected division by capacity,"
        " as shares by weight have an order of their own, found proportion"
    )
