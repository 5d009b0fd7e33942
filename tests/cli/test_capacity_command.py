"""`mooring capacity`: what to buy, what could go, and what is said about bad input."""

import json
from pathlib import Path
from typing import Any

import pytest

from mooring.cli.main import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "capacity"
GROUPS, WAITING = (str(EXAMPLE / "node-groups" / name) for name in ("groups.yaml", "cluster.yaml"))
CLUSTER, WORK, CATALOGUE = (str(EXAMPLE / name) for name in ("cluster.yaml", "work.yaml", "catalogue.yaml"))


def decide(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["capacity", "-q", "-o", "json", "--catalogue", CATALOGUE, *arguments]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def test_nodes_are_bought_for_pods_that_wait(capfd: pytest.CaptureFixture[str]) -> None:
    found = decide(capfd, "-f", CLUSTER, "-f", WORK)

    bought = {(node["nodePool"], node["instanceType"], node["zone"], node["capacityType"]) for node in found["buy"]}
    assert bought == {("gpu", "gpu-4", "zone-b", "reserved"), ("general", "general-16", "zone-b", "on-demand")}
    assert found["costPerHour"] == pytest.approx(4.8)
    assert sorted(len(node["pods"]) for node in found["buy"]) == [1, 6]


def test_pods_that_nothing_can_be_bought_for_have_reasons(capfd: pytest.CaptureFixture[str]) -> None:
    found = decide(capfd, "-f", CLUSTER, "-f", WORK)

    reasons = {each["pod"].partition("-")[0]: each["reasons"] for each in found["unplaced"]}
    assert reasons["default/train"] == ["it waits for reserved capacity to come free"]
    assert "no instance type is large enough, matches and is on offer" in reasons["default/giant"]


def test_nodes_that_could_go_are_shown_and_the_others_say_why_not(capfd: pytest.CaptureFixture[str]) -> None:
    found = decide(capfd, "-f", CLUSTER)

    assert [(move["method"], move["nodes"], move["savesPerHour"]) for move in found["moves"]] == [
        ("Empty", ["old-3"], 0.4),
        ("Underutilized", ["old-1"], 0.4),
    ]
    assert found["moves"][1]["podsTo"] == {"by-hand": ["default/cache"]}
    assert {kept["node"]: kept["reason"] for kept in found["kept"]} == {
        "by-hand": "it is not a node that Karpenter launched",
        "old-2": "pod default/registry has the annotation karpenter.sh/do-not-disrupt",
    }


def test_an_old_provisioner_is_bought_from_like_a_pool(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    manifests = tmp_path / "m.yaml"
    manifests.write_text(
        "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: old}\n"
        "spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
        "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '3', memory: 1Gi}}}]}\n"
    )

    found = decide(capfd, "-f", str(manifests))

    assert [(node["nodePool"], node["instanceType"], node["pricePerHour"]) for node in found["buy"]] == [
        ("old", "general-4", 0.07)
    ]


def decide_groups(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["capacity", "-q", "-o", "json", "-f", WAITING, "--node-groups", GROUPS, *arguments]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def test_node_groups_grow_as_the_cluster_autoscaler_would(capfd: pytest.CaptureFixture[str]) -> None:
    found = decide_groups(capfd)
    assert (found["kind"], found["result"]) == ("NodeGroups", "ScaleUpSuccessful")
    assert found["grow"] == [{"group": "small", "fromSize": 1, "toSize": 3}]
    assert found["pods"] == ["default/web-0", "default/web-1"]
    assert [each["pods"] for each in found["unhelped"]] == [["default/giant"]]


def test_flags_of_the_autoscaler_change_which_group_grows(capfd: pytest.CaptureFixture[str]) -> None:
    found = decide_groups(capfd, "--autoscaler-flag=--expander=least-nodes")
    assert found["grow"] == [{"group": "large", "fromSize": 0, "toSize": 1}]


def test_node_groups_as_a_table(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["capacity", "-q", "-f", WAITING, "--node-groups", GROUPS]) == 0
    said = capfd.readouterr().out.splitlines()
    assert said[0] == "ScaleUpSuccessful: 2 nodes for 2 pods; no group for 1 pod"
    assert ["small", "1", "3"] in [line.split() for line in said]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["-f", CLUSTER],
            "error: expected --catalogue or --node-groups, found neither (see mooring capacity --help)",
            id="no catalogue",
        ),
        pytest.param(
            ["-f", CLUSTER, "--catalogue", CATALOGUE, "--autoscaler-flag=--expander=price"],
            "error: --autoscaler-flag: expected --node-groups with it, found none",
            id="a flag of the autoscaler without node groups",
        ),
        pytest.param(
            ["-f", CLUSTER, "--node-groups", GROUPS, "--autoscaler-flag=--expander=cheapest"],
            "error: --autoscaler-flag: --expander: expected some of random, most-pods, least-waste, price, priority, "
            'least-nodes, found "cheapest"',
            id="an unknown expander",
        ),
        pytest.param(
            ["-f", CLUSTER, "--catalogue", "nowhere.yaml"],
            "error: nowhere.yaml: expected a readable file, found No such file or directory",
            id="a catalogue that is not there",
        ),
        pytest.param(
            ["-f", CLUSTER, "--catalogue", CLUSTER],
            f"error: {CLUSTER}: expected one InstanceTypeCatalogue, found 11 documents",
            id="manifests as a catalogue",
        ),
        pytest.param(
            ["-f", str(EXAMPLE.parent / "zone-spread"), "--catalogue", CATALOGUE],
            "error: -f: expected at least one NodePool of karpenter.sh, found none",
            id="no pool",
        ),
    ],
)
def test_bad_input_is_said_in_one_line(arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["capacity", *arguments]) == 2

    said = capfd.readouterr()
    assert (said.out, said.err) == ("", message + "\n")
