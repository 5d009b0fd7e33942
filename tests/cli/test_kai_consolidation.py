"""Jobs of KAI's queues move closer together so that another one has room, as `mooring schedule` decides."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from mooring.cli.main import run

Json = dict[str, Any]


def node(name: str, gpus: int = 4, **spec: Any) -> Json:
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "50", "nvidia.com/gpu": str(gpus)}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": {"allocatable": amounts}}


def queue(name: str, parent: str = "", quota: int = -1) -> Json:
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"gpu": {"quota": quota, "limit": -1, "overQuotaWeight": 1}, "cpu": free, "memory": free}
    spec = {"resources": resources, **({"parentQueue": parent} if parent else {})}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def pod(
    name: str, gpus: float, on: str = "", *, group: str = "", owner: str = "own", priority: str = "train", **spec: Any
) -> Json:
    metadata: Json = {"name": name, "labels": {"kai.scheduler/queue": "team", "priorityClassName": priority}}
    if owner:
        own = owner if owner != "own" else name
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": own, "uid": own, "controller": True}
        metadata["ownerReferences"] = [reference]
    is_part = gpus < 1
    metadata["annotations"] = ({"pod-group-name": group} if group else {}) | (
        {"gpu-fraction": str(gpus)} if is_part else {}
    )
    limits = {} if is_part else {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "i", "resources": {"limits": limits}}
    spec |= {"schedulerName": "kai-scheduler", "containers": [container]} | ({"nodeName": on} if on else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def gang(name: str, minimum: int, priority: str = "train") -> Json:
    spec = {"minMember": minimum, "queue": "team", "priorityClassName": priority}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}


NODES = [node("a"), node("b")]
QUEUES = [queue("department"), queue("team", "department", 16)]


class Commands:
    """`mooring schedule` on two nodes with four GPUs each, and a queue that may have all of them."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._directory, self._capsys = directory, capsys

    def schedule(self, *objects: Json, nodes: list[Json] = NODES, shard: Json | None = None) -> Json:
        file, config = self._directory / "cluster.yaml", self._directory / "shard.yaml"
        file.write_text(yaml.safe_dump_all([*nodes, *QUEUES, *objects]))
        options = ["-f", str(file), "--as", "kai-scheduler"]
        if shard is not None:
            document = {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "spec": shard}
            config.write_text(yaml.safe_dump({**document, "metadata": {"name": "default"}}))
            options += ["--config", str(config)]
        assert run(["schedule", *options, "-q", "-o", "json"]) == 0
        found: Json = msgspec.json.decode(self._capsys.readouterr().out)
        return found


@pytest.fixture
def mooring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(tmp_path, capsys)


def evicted(found: Json) -> list[tuple[str, str]]:
    return [(each["pod"], each["reason"]) for each in found["evicted"]]


def placed(found: Json) -> dict[str, str]:
    return {each["pod"]: each["node"] for each in found["placements"]}


def test_a_pod_moves_so_that_a_larger_one_has_a_node(mooring: Commands) -> None:
    found = mooring.schedule(pod("x", 1, "a"), pod("y", 1, "b"), pod("new", 4))

    assert evicted(found) == [("y", "Moved to make room for pod default/new in queue team")]
    assert placed(found) == {"y": "a", "new": "b"}


def test_a_gang_that_waits_gets_all_its_places_or_nobody_moves(mooring: Commands) -> None:
    running = [pod("x", 1, "a"), pod("y", 1, "b"), pod("z", 1, "c")]
    three = [*NODES, node("c")]
    members = [gang("g", 2), pod("g-0", 4, group="g"), pod("g-1", 4, group="g")]

    found = mooring.schedule(*running, *members, nodes=three)
    in_vain = mooring.schedule(*running, pod("w", 2, "a"), *members, nodes=three)

    assert placed(found) == {"y": "a", "z": "a", "g-0": "b", "g-1": "c"}
    assert (evicted(in_vain), placed(in_vain)) == ([], {})


def test_a_gang_moves_as_a_whole_and_is_bound_together(mooring: Commands) -> None:
    running = [gang("r", 2), pod("r-0", 1, "b", group="r", owner="r"), pod("r-1", 1, "b", group="r", owner="r")]

    found = mooring.schedule(pod("x", 2, "a", owner=""), *running, pod("new", 4))

    assert sorted(pod for pod, _ in evicted(found)) == ["r-0", "r-1"]
    assert placed(found) == {"r-0": "a", "r-1": "a", "new": "b"}


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(pod("y", 1, "b", owner=""), id="a pod that nobody would make anew"),
        pytest.param(pod("y", 1, "b", priority="build"), id="a job that is not preemptible"),
        pytest.param(pod("y", 1, "b", nodeSelector={"kubernetes.io/hostname": "b"}), id="a pod that wants its node"),
    ],
)
def test_who_cannot_move_stays(mooring: Commands, kept: Json) -> None:
    unmovable = pod("x", 1, "a", owner="")

    found = mooring.schedule(unmovable, kept, pod("new", 4))

    assert (evicted(found), placed(found)) == ([], {})


def test_a_disruption_budget_is_kept(mooring: Commands) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"kai.scheduler/queue": "team"}}},
    }

    found = mooring.schedule(pod("x", 1, "a"), pod("y", 1, "b"), pod("new", 4), budget)

    assert (evicted(found), placed(found)) == ([], {})


def test_nobody_moves_for_a_job_that_is_not_preemptible_or_too_large_in_any_case(mooring: Commands) -> None:
    build = mooring.schedule(pod("x", 1, "a"), pod("y", 1, "b"), pod("new", 4, priority="build"))
    large = mooring.schedule(pod("x", 3, "a"), pod("y", 3, "b"), pod("new", 3))

    assert placed(large) == {}
    assert all("Moved" not in reason for _, reason in evicted(build))


def test_it_is_off_where_pods_are_spread(mooring: Commands) -> None:
    found = mooring.schedule(
        pod("x", 1, "a"), pod("y", 1, "b"), pod("new", 4), shard={"placementStrategy": {"gpu": "spread"}}
    )

    assert (evicted(found), placed(found)) == ([], {})


def test_a_gang_that_runs_grows_by_a_pod_for_which_another_moves(mooring: Commands) -> None:
    grows = [gang("g", 1), pod("g-0", 2, "a", group="g", owner="g"), pod("g-1", 4, group="g", owner="g")]

    found = mooring.schedule(*grows, pod("y", 1, "b"))

    assert placed(found) == {"y": "a", "g-1": "b"}


def test_of_a_gang_that_has_more_than_it_needs_one_pod_moves_by_itself(mooring: Commands) -> None:
    elastic = [gang("r", 1), pod("r-0", 1, "a", group="r", owner="r"), pod("r-1", 1, "b", group="r", owner="r")]

    found = mooring.schedule(*elastic, pod("new", 4))

    assert placed(found) == {"r-1": "a", "new": "b"}


def test_parts_of_gpus_move_so_that_a_whole_node_is_free(mooring: Commands) -> None:
    two = [node("a", 2), node("b", 2)]

    found = mooring.schedule(pod("x", 0.5, "a"), pod("y", 0.5, "b"), pod("new", 2), nodes=two)

    assert placed(found) == {"y": "a", "new": "b"}


def test_a_part_of_a_gpu_gets_room_by_a_whole_one_that_moves(mooring: Commands) -> None:
    two = [node("a", 1), node("b", 1), node("c", 2)]
    selector = {"kubernetes.io/hostname": "a"}

    found = mooring.schedule(pod("x", 1, "a"), pod("y", 0.8, "b"), pod("new", 0.5, nodeSelector=selector), nodes=two)

    assert placed(found) == {"x": "c", "new": "a"}


def test_gpus_that_others_have_parts_of_are_not_taken_for_whole_ones(mooring: Commands) -> None:
    kept = [pod("x", 0.5, "a", owner=""), pod("y", 0.5, "b", owner="")]

    found = mooring.schedule(*kept, pod("z", 1, "b"), pod("new", 2), nodes=[node("a", 2), node("b", 2)])

    assert (evicted(found), placed(found)) == ([], {})
