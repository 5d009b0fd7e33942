"""Everything at once: gangs, preemption, failures, cordons, quotas, spot nodes; the raw results hold together."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from scenario_parts import cluster, cluster_queue, job, node

from mooring.report.simulation.results import Run

HORIZON = 3000.0
NODES = {"a": 8, "b": 8, "c": 8, "spot": 8}


def story(seed: int) -> dict[str, Any]:
    spot = node("spot", labels={"pool": "spot"})
    gang = {**job("gang", at=["0s", "40s"], duration="300s", cpu=6, pods=2), "as": "PodGroup"}
    return {
        "horizon": f"{HORIZON:.0f}s",
        "seeds": [seed],
        "cluster": cluster(*(node(name) for name in "abc"), spot, *cluster_queue("team", 12)),
        "work": [
            {**gang, "checkpoints": {"interval": "60s"}},
            job("queued", every="exponential(60s)", at=[], duration="exponential(90s)", cpu=4, queue="team", count=12),
            job("urgent", at=["100s", "130s"], duration="60s", cpu=8, priority=10),
        ],
        "faults": {
            "nodeFailures": [{"every": "exponential(10m)", "repair": "exponential(2m)"}],
            "spotReclaims": [{"every": "exponential(5m)", "notice": "30s", "back": "2m", "nodes": {"pool": "spot"}}],
        },
        "changes": [
            # The gang is preempted, its node fails, its neighbours' quota goes, all in one moment.
            {"at": "100s", "fail": {"names": ["a"]}, "objects": cluster_queue("team", 4)[1:2]},
            {"at": "110s", "cordon": {"names": ["b", "c"]}},
            {"at": "400s", "repair": {}, "uncordon": {}, "objects": cluster_queue("team", 16)[1:2]},
        ],
    }


@pytest.mark.parametrize("seed", range(5))
def test_no_node_is_over_full_no_gang_runs_in_part_and_nobody_is_lost(run: Callable[..., Run], seed: int) -> None:
    found = run(seed=seed, **story(seed))
    jobs, stays = found.jobs, found.stays
    cpu = {"gang": 6, "queued": 4, "urgent": 8}
    steps: dict[str, list[tuple[float, int]]] = defaultdict(list)
    gangs: dict[int, list[tuple[int, float, float, str]]] = defaultdict(list)
    for number, pod, where, bound, ended, outcome in zip(
        *(stays.job.tolist(), stays.pod.tolist(), stays.node.tolist(), stays.bound.tolist(), stays.ended.tolist()),
        stays.outcome.tolist(),
        strict=True,
    ):
        name = jobs.job[number].removeprefix("default/").partition("-")[0]
        assert 0 <= bound <= ended <= HORIZON
        steps[found.nodes.node[where]] += [(bound, cpu[name]), (ended, -cpu[name])]
        if name == "gang":
            gangs[number].append((pod, bound, ended, outcome))

    for name, changes in steps.items():
        assert max(running(changes)) <= NODES[name]
    for rows in gangs.values():
        # Who lost its node comes back to those that still run or are done; nobody starts where the others wait.
        for pod, start, _, _ in rows:
            others = [row for row in rows if row[0] != pod]
            assert any(bound <= start < end or (end <= start and how == "Finished") for _, bound, end, how in others)
    assert len(jobs.job) == 2 + 12 + 2
    assert set(jobs.state) == {"Finished"}, list(zip(jobs.job, jobs.state, strict=True))
    assert found.totals.preemptions >= 1


def running(changes: list[tuple[float, int]]) -> list[int]:
    """The sum after each moment; what leaves, leaves before somebody comes."""
    total, found = 0, [0]
    for _, by in sorted(changes):
        total += by
        found.append(total)
    return found
