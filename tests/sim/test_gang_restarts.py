"""A rank fails, and its gang begins anew: where it is, or from the queue on. And what a resized pod holds."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from scenario_parts import cluster, node

from mooring.bench import gang_restarts
from mooring.drivers.sim.runs import Prepared, simulate
from mooring.drivers.sim.world import World
from mooring.errors import ManifestError


def gang(policy: str, fail: str = "1@60s", **parts: Any) -> dict[str, Any]:
    """Two pods that work for 100 s; the second one fails after a minute of its first run."""
    annotations = {"mooring.dev/gang-restart": policy, "mooring.dev/fail-once": fail, "mooring.dev/start-delay": "10s"}
    return {
        "name": "train",
        "at": ["0s"],
        "as": "PodGroup",
        "pods": 2,
        "requests": {"cpu": 4},
        "duration": "100s",
        "annotations": annotations,
        **parts,
    }


def play(prepared: Prepared) -> tuple[list[tuple[float, float]], Any]:
    found: list[tuple[float, float]] = []

    def note(world: World) -> None:
        found.extend((one.failed_at - prepared.start, one.whole_at - prepared.start) for one in world.gang_restarts)

    run = simulate(prepared, "default", 0, at_end=note)
    return found, run


def test_in_place_all_ranks_begin_anew_on_their_nodes(prepare: Callable[..., Prepared]) -> None:
    restarts, run = play(prepare(horizon="10m", cluster=cluster(), work=[gang("InPlace")]))

    assert restarts == [(70.0, 80.0)]
    assert len(run.stays.pod) == 2
    assert list(run.jobs.ended) == [180.0]
    assert list(run.jobs.evictions) == [0]


def test_made_anew_all_ranks_leave_and_come_back(prepare: Callable[..., Prepared]) -> None:
    work = gang("Recreate")
    work["annotations"]["mooring.dev/stop-delay"] = "5s"
    restarts, run = play(prepare(horizon="10m", cluster=cluster(), work=[work]))

    assert restarts == [(70.0, 85.0)]
    assert len(run.stays.pod) == 4
    assert list(run.jobs.ended) == [185.0]


def test_what_was_saved_is_not_done_again(prepare: Callable[..., Prepared]) -> None:
    work = gang("InPlace", checkpoints={"interval": "50s"})

    _, run = play(prepare(horizon="10m", cluster=cluster(), work=[work]))

    assert list(run.jobs.ended) == [130.0]


def test_a_misspelt_policy_is_refused(prepare: Callable[..., Prepared]) -> None:
    expected = r'mooring.dev/gang-restart: expected one of InPlace, Recreate, found "inplace"'
    with pytest.raises(ManifestError, match=expected):
        prepare(horizon="10m", cluster=cluster(), work=[gang("inplace")])


def test_the_command_prints_both_in_the_simulator(capsys: pytest.CaptureFixture[str]) -> None:
    gang_restarts.main(["--only", "simulator", "--pods", "16", "--start", "3", "--stop", "4", "-o", "json"])

    found = json.loads(capsys.readouterr().out)
    assert found == {"pods": 16, "seconds_until_whole": {"simulator": {"InPlace": 3.0, "Recreate": 7.0}}}


def autoscaler(cpu: str) -> dict[str, Any]:
    amounts = {"cpu": cpu}
    one = {"containerName": "main", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"},
            "updatePolicy": {"updateMode": "InPlace", "minReplicas": 1},
        },
        "status": {"recommendation": {"containerRecommendations": [one]}},
    }


def test_allocation_follows_a_resize(prepare: Callable[..., Prepared]) -> None:
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": "2"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    web = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    change = {"at": "300s", "objects": [autoscaler("6")]}

    later = {"name": "later", "at": ["599s"], "duration": "1s", "requests": {"cpu": 1}, "as": "Pod"}

    _, run = play(
        prepare(horizon="600s", sampleEvery="100s", cluster=cluster(node(cpu=8), web), changes=[change], work=[later])
    )

    cpu = run.amounts.resource == "cpu"
    allocated = [float(each) for each in run.amounts.allocated[cpu]]
    assert (allocated[2], allocated[4]) == (2.0, 6.0)
