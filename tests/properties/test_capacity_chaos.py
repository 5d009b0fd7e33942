"""Nodes from a provider that fails, answers late, launches the wrong type or none at all, and a killed
scheduler: nothing is bought twice for the same pods, nothing is forgotten, no pod is drained without a place."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "capacity"))

from provider_world import Faults, World, catalogue, chance, node_pool

from mooring.actions.capacity.karpenter.shapes import requests_of
from mooring.model.values.requests import CPU

POLICY = {
    "kind": "CapacityPolicy",
    "apiVersion": "config.mooring.dev/v1alpha1",
    "quietSeconds": 0,
    "registrationTimeoutSeconds": 120,
    "retrySeconds": 10,
}
OPEN = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}


@pytest.mark.parametrize("seed", range(12))
def test_a_bad_provider_costs_time_and_nothing_else(seed: int) -> None:
    """A day of trouble, then an hour without: all pods run, on about as many nodes as they need, and all are known."""
    dice = random.Random(seed)
    faults = Faults(
        refuse=chance(dice, 0.2),
        short=chance(dice, 0.2),
        wrong=chance(dice, 0.15),
        never=chance(dice, 0.15),
        delay=lambda: dice.choice((5.0, 30.0, 90.0)),
    )
    pools = [node_pool("first", weight=10, disruption=OPEN), node_pool("second", disruption=OPEN)]
    here = World([catalogue(), POLICY], pools, faults)
    here.begin()
    names = ("web", "api", "batch")
    for _ in range(25):
        match dice.randrange(6):
            case 0 | 1 | 2:
                name = dice.choice(names)
                here.scale(name, dice.randrange(8), cpu=str(names.index(name) + 1))
            case 3:
                here.restart()
            case 4 if here.nodes:
                here.reclaim(dice.choice(sorted(here.nodes)))
            case 5:
                here.refuses_evictions = dice.random() < 0.5
        here.run(dice.choice((10, 40, 120)), step=dice.choice((1.0, 5.0, 10.0)))
        here.check()
    here.faults = Faults()
    here.refuses_evictions = False
    here.run(1800)
    here.check()
    assert not here.waiting
    assert set(here.claims) == set(here.nodes), "a claim that nobody waits for, or a node without one"
    needed = sum(requests_of(pod)[CPU] for pod in here.pods.values())
    assert here.cpus() <= max(2 * needed, needed + 4000) if needed else not here.nodes


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_bought_twice_for_the_same_pods(seed: int) -> None:
    """Whatever the delays, and however often the scheduler is killed: one purchase for one batch of pods."""
    dice = random.Random(seed)
    here = World([catalogue(), POLICY], [node_pool()], Faults(delay=lambda: dice.uniform(5.0, 110.0)))
    here.begin()
    here.scale("web", 6, cpu="2")
    here.run(5, step=1.0)
    bought = list(here.launched)
    assert bought
    for _ in range(8):
        here.run(dice.uniform(1.0, 15.0), step=1.0)
        if dice.random() < 0.6:
            here.restart()
    here.run(150)
    assert here.launched == bought
    assert not here.waiting
