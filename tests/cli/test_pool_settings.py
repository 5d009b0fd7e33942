"""Node pools as policy, as `mooring schedule` decides by them."""

from pathlib import Path

import msgspec
import pytest
import yaml

from mooring.cli.main import run

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint: {{enabled: [{{name: NodePools, weight: 100}}]}}
    pluginConfig:
      - name: NodePools
        args: {{pools: [{pool}]}}
"""


def pod(name: str, cpu: str, namespace: str = "default", **spec: object) -> dict[str, object]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


def node(name: str, pool: str) -> dict[str, object]:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"pool": pool}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pool: str, *pods: dict[str, object]
) -> tuple[dict[str, str], dict[str, str]]:
    """Where pods go on a node of the pool and one of nobody's, and what is said to those that wait."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}}
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 0}
    (tmp_path / "cluster.yaml").write_text(
        yaml.safe_dump_all([namespace, urgent, node("ours", "research"), node("other", "none"), *pods])
    )
    (tmp_path / "config.yaml").write_text(CONFIG.format(pool=pool))
    files = ["-f", str(tmp_path / "cluster.yaml"), "--config", str(tmp_path / "config.yaml")]
    assert run(["schedule", *files, "-q", "-o", "json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    placed = {each["pod"]: each["node"] for each in found["placements"]}
    return placed, {each["pod"]: each["message"].partition(" preemption:")[0] for each in found["waiting"]}


def test_a_dedicated_pool_takes_its_own_pods_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = "{name: r, nodeLabels: {pool: research}, namespaces: [research], policy: Dedicated}"
    pods = [pod("a", "3", "research"), pod("b", "2", "research"), pod("c", "1")]
    placed, waiting = place(tmp_path, capsys, pool, *pods)
    assert placed == {"a": "ours", "c": "other"}
    assert waiting == {
        "b": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were outside of the pod's dedicated pool."
    }
    placed, waiting = place(tmp_path, capsys, pool, pod("a", "1", "research"), pod("c", "3"), pod("d", "2"))
    assert placed == {"a": "ours", "c": "other"}
    assert waiting == {
        "d": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were in a pool dedicated to others."
    }


def test_a_shared_pool_is_filled_first_by_its_own_pods_and_last_by_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = "{name: r, nodeLabels: {pool: research}, namespaces: [research]}"
    own = [pod("a", "2", "research"), pod("b", "2", "research"), pod("c", "2", "research")]
    assert place(tmp_path, capsys, pool, *own)[0] == {"a": "ours", "b": "ours", "c": "other"}
    others = [pod("a", "2"), pod("b", "2"), pod("c", "2")]
    assert place(tmp_path, capsys, pool, *others)[0] == {"a": "other", "b": "other", "c": "ours"}


def test_others_do_not_fill_what_a_pool_reserves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = "{name: r, nodeLabels: {pool: research}, namespaces: [research], policy: Reserved, reservedPercent: 50}"
    pods = [pod("a", "2"), pod("b", "2"), pod("c", "1"), pod("d", "2"), pod("e", "1", "research")]
    placed, waiting = place(tmp_path, capsys, pool, *pods)
    assert placed == {"a": "other", "b": "other", "c": "ours", "e": "ours"}
    assert waiting == {
        "d": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) kept the rest of their capacity for their pool."
    }


def test_what_owners_use_of_a_reserve_does_not_count_against_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The owners of `ours` use 2 of its 4 cores: others may have the other 2, and not one pod more."""
    pool = "{name: r, nodeLabels: {pool: research}, namespaces: [research], policy: Reserved, reservedPercent: 50}"
    running = [pod("a", "2", "research", nodeName="ours"), pod("b", "4", nodeName="other")]
    placed, _ = place(tmp_path, capsys, pool, *running, pod("c", "2"))
    assert placed == {"c": "ours"}
    running = [pod("a", "1", "research", nodeName="ours"), pod("b", "4", nodeName="other")]
    placed, waiting = place(tmp_path, capsys, pool, *running, pod("c", "2"), pod("d", "1"))
    assert placed == {"c": "ours"}
    assert waiting == {
        "d": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) kept the rest of their capacity for their pool."
    }


def test_places_for_pods_are_reserved_like_any_resource(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = "{name: r, nodeLabels: {pool: research}, namespaces: [research], policy: Reserved, reservedPercent: 70}"
    others = [pod(f"o{index}", "0") for index in range(13)]
    placed, _ = place(tmp_path, capsys, pool, pod("b", "1", nodeName="other"), *others)
    assert sorted(placed.values()) == ["other"] * 9 + ["ours"] * 3


def test_who_preempts_a_stranger_on_a_reserved_node_leaves_its_owners_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That an owner goes would not help: strangers use as much of the node as before."""
    pool = "{name: r, nodeLabels: {pool: research}, namespaces: [research], policy: Reserved, reservedPercent: 50}"
    running = [
        pod("own", "1", "research", nodeName="ours", priority=0),
        pod("stranger", "2", nodeName="ours", priority=5),
        pod("elsewhere", "4", nodeName="other", priority=9),
    ]
    place(tmp_path, capsys, pool, *running, pod("urgent", "1", priority=9))
    files = ["-f", str(tmp_path / "cluster.yaml"), "--config", str(tmp_path / "config.yaml")]
    assert run(["schedule", *files, "-q", "-o", "json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert [each["pod"] for each in found["evicted"]] == ["stranger"]
    assert {each["pod"]: each["node"] for each in found["placements"]} == {"urgent": "ours"}


def test_a_pool_may_belong_to_a_priority_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = "{name: r, nodeLabels: {pool: research}, priorityClasses: [urgent], policy: Reserved, reservedPercent: 100}"
    pods = [pod("a", "2", priorityClassName="urgent"), pod("b", "2"), pod("c", "2"), pod("d", "2")]
    placed, waiting = place(tmp_path, capsys, pool, *pods)
    assert placed == {"a": "ours", "b": "other", "c": "other"}
    assert list(waiting) == ["d"]


def test_all_kinds_of_owners_that_are_given_must_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    owners = "namespaces: [research], podLabels: {app: a}, priorityClasses: [urgent]"
    pool = f"{{name: r, nodeLabels: {{pool: research}}, {owners}, policy: Dedicated}}"
    urgent = {"priorityClassName": "urgent"}
    pods = [pod("b", "1", "research", **urgent), pod("a", "1", "research", **urgent)]
    pods += [{**pod("c", "1", **urgent), "metadata": {"name": "c", "namespace": "default", "labels": {"app": "a"}}}]
    assert place(tmp_path, capsys, pool, *pods)[0] == {"a": "ours", "b": "other", "c": "other"}


def test_who_has_a_dedicated_pool_is_not_told_that_others_keep_theirs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pools = (
        "{name: mine, nodeLabels: {pool: research}, namespaces: [research], policy: Dedicated},"
        "{name: theirs, nodeLabels: {pool: none}, namespaces: [x], policy: Reserved, reservedPercent: 100}"
    )
    _, waiting = place(tmp_path, capsys, pools, pod("a", "3", "research", nodeName="ours"), pod("b", "2", "research"))
    assert waiting == {
        "b": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were outside of the pod's dedicated pool."
    }


@pytest.mark.parametrize(
    ("pool", "problem"),
    [
        ("{name: r, nodeLabels: {}, namespaces: [a]}", "nodeLabels: expected at least one label, found none"),
        (
            "{name: r, nodeLabels: {a: b}}",
            "expected namespaces, podLabels or priorityClasses, which say whose pool it is, found none of them",
        ),
        (
            "{name: r, nodeLabels: {a: b}, namespaces: [a], policy: Reserved}",
            "reservedPercent: expected 1 or more with policy Reserved, else none, found 0",
        ),
        (
            "{name: r, nodeLabels: {a: b}, namespaces: [a], policy: Reserved, reservedPercent: 101}",
            "reservedPercent: expected from 0 to 100, found 101",
        ),
        (
            "{name: r, nodeLabels: {a: b}, namespaces: [a], policy: Dedicated, movesBack: true}",
            "movesBack: expected false with policy Dedicated, whose own pods go nowhere else, found true",
        ),
        (
            "{name: r, nodeLabels: {a: b}, priorityClasses: urgent}",
            "priorityClasses: expected array, found str",
        ),
    ],
)
def test_a_pool_that_makes_no_sense_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pool: str, problem: str
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG.format(pool=pool))
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(node("n", "a")))
    assert run(["schedule", "-f", str(tmp_path / "cluster.yaml"), "--config", str(tmp_path / "config.yaml")]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1
