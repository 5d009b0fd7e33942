"""One cycle of Volcano's queues decides what a session of Volcano's would, pod by pod.

Its loop is written again in `plain_volcano.py`, which is first held against recorded decisions of Volcano itself.
"""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_hierarchy import HierarchicalSession
from plain_volcano import Session, read_world
from volcano_worlds import crowded_world, organise, random_world

from mooring.assembly import assemble
from mooring.config.settings import parse_settings
from mooring.model.decisions import Bind
from mooring.model.loading.manifests import build_manifests
from mooring.testing.conformance import read_scenarios

RECORDED = sorted((Path(__file__).parents[1] / "golden-shares").glob("volcano-*.jsonl.gz"))
WORLDS_OF_A_SEED = 2
RUNS_OF_VOLCANO = 40


def decided(objects: list[dict[str, Any]], *, by_weight: bool, hierarchical: bool = False) -> set[str]:
    """The pods that one cycle binds."""
    shares = {"division": "Proportion" if by_weight else "Capacity", "hierarchical": hierarchical}
    policy = {"apiVersion": "config.mooring.dev/v1alpha1", "kind": "TenantPolicy", "shares": shares}
    scheduler = assemble(parse_settings([policy], "policy")).new_scheduler()
    scheduler.load(build_manifests(objects), 0.0)
    return {found.pod.partition("/")[2] for found in scheduler.cycle(1.0) if isinstance(found, Bind)}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.partition(".")[0])
def test_the_plain_loop_decides_as_volcano_was_recorded_to(path: Path) -> None:
    wrong = {}
    for scenario in read_scenarios(path):
        bound = Session(read_world(scenario["objects"], by_weight=scenario["mode"] == "proportion")).run()
        by_job = Counter(name.rpartition("-")[0] for name in bound)
        if by_job != scenario["expect"]["bound"]:
            wrong[scenario["id"]] = by_job

    assert wrong == {}


@pytest.mark.parametrize("by_weight", [True, False], ids=["proportion", "capacity"])
@pytest.mark.parametrize(("shapes", "with_roles"), [(1, False), (3, False), (2, True)], ids=["alike", "mixed", "roles"])
@given(seed=st.integers(0, 10**6))
def test_gangs_with_and_without_requests_are_placed_as_in_volcano(
    shapes: int, with_roles: bool, by_weight: bool, seed: int
) -> None:
    for number in range(WORLDS_OF_A_SEED):
        chance = Random(seed * WORLDS_OF_A_SEED + number)
        objects = random_world(chance, shapes=shapes, with_roles=with_roles, by_weight=by_weight)

        assert decided(objects, by_weight=by_weight) == Session(read_world(objects, by_weight=by_weight)).run()


@pytest.mark.parametrize("mode", ["proportion", "capacity", "capacity-tree"])
@given(seed=st.integers(0, 10**6))
def test_jobs_of_pods_of_mixed_sizes_get_the_last_places_as_in_volcano(mode: str, seed: int) -> None:
    for number in range(WORLDS_OF_A_SEED):
        seed_of_world = seed * WORLDS_OF_A_SEED + number
        objects = crowded_world(Random(seed_of_world), mode)
        by_weight = mode == "proportion"
        ours = decided(objects, by_weight=by_weight)

        # Go's maps have no order. Where that decides in Volcano, any of its answers will do.
        runs = (Session(read_world(objects, by_weight=by_weight), Random(run)).run() for run in range(RUNS_OF_VOLCANO))
        assert any(ours == run for run in runs)


@pytest.mark.parametrize("shapes", [1, 3], ids=["alike", "mixed"])
@given(seed=st.integers(0, 10**6))
def test_departments_have_their_turns_by_hierarchical_shares_as_in_volcano(shapes: int, seed: int) -> None:
    for number in range(WORLDS_OF_A_SEED):
        chance = Random(seed * WORLDS_OF_A_SEED + number)
        objects = random_world(chance, shapes=shapes, with_roles=False, by_weight=False)
        ways = organise(chance, objects)

        expected = HierarchicalSession(read_world(objects, by_weight=False), ways).run()
        assert decided(objects, by_weight=False, hierarchical=True) == expected
