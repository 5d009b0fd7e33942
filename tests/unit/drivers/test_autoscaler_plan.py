"""What the Cluster Autoscaler would do about manifests: groups grow for pods that wait, else shrink where they can."""

from typing import Any

import pytest

from mooring.assembly import assemble
from mooring.config.autoscaler_flags import parse_autoscaler_flags, parse_priorities
from mooring.config.node_groups import parse_node_groups
from mooring.drivers.offline.autoscaler import AutoscalerPlan, plan_node_groups
from mooring.errors import ConfigError
from mooring.model.loading.manifests import build_manifests
from mooring.state.loading import imply_namespaces

Json = dict[str, Any]
NOW = 1_800_000_000.0


def node(name: str, pool: str = "small", cpu: int = 4) -> Json:
    status = {"allocatable": {"cpu": str(cpu), "memory": "16Gi", "pods": "110"}}
    metadata = {"name": name, "labels": {"pool": pool, "kubernetes.io/hostname": name}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": status | {"capacity": status["allocatable"]},
    }


def pod_spec(cpu: str) -> Json:
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]}


def deployment(name: str, replicas: int, cpu: str) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(cpu)}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def running(name: str, on: str, cpu: str) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    metadata = {"name": name, "namespace": "default", "ownerReferences": [owner]}
    spec = {**pod_spec(cpu), "nodeName": on}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


GROUPS: Json = {
    "nodeGroups": [
        {
            "name": "small",
            "minSize": 1,
            "maxSize": 5,
            "nodeSelector": {"pool": "small"},
            "template": node("t", "small", 4),
        },
        {
            "name": "large",
            "minSize": 0,
            "maxSize": 5,
            "nodeSelector": {"pool": "large"},
            "template": node("t", "large", 16),
        },
    ]
}


def plan(documents: list[Json], *arguments: str, groups: Json = GROUPS, **given: Any) -> AutoscalerPlan:
    manifests = build_manifests(documents, source="m.yaml")
    imply_namespaces(manifests)
    flags = parse_autoscaler_flags(arguments, "args", given.pop("priorities", None))
    described = parse_node_groups([groups], "groups.yaml")
    return plan_node_groups(assemble(), manifests, described, flags, now=given.pop("now", NOW), **given)


def sizes(found: AutoscalerPlan) -> dict[str, tuple[int, int]]:
    return {growth.group.name: (growth.group.target, growth.size) for growth in found.scale_up.growths}


def test_a_group_grows_for_the_pods_of_a_deployment() -> None:
    found = plan([node("a"), deployment("web", 8, "3")], "--expander=least-nodes")

    assert sizes(found) == {"large": (0, 2)}
    assert len(found.scale_up.fits) == 1
    assert len(found.scale_up.triggered) == 7
    assert found.scale_down is None


def test_priorities_say_which_group_grows() -> None:
    config_map = {"data": {"priorities": "10: [small]\n50: ['^lar']"}}
    documents = [node("a"), deployment("web", 2, "3")]

    found = plan(documents, "--expander=priority", priorities=parse_priorities(config_map, "cm.yaml"))

    assert sizes(found) == {"large": (0, 1)}
    assert sizes(plan(documents, "--expander=priority,least-waste")) == {"small": (1, 2)}


def test_flags_limit_what_a_group_grows_by() -> None:
    found = plan(
        [node("a"), deployment("web", 8, "3")], "--expander=most-pods", "--nodes=0:2:small", "--nodes=0:1:large"
    )

    assert sizes(found) == {"large": (0, 1)}


USED = [node("a"), node("b"), running("one", "a", "1"), running("two", "b", "1500m"), running("three", "a", "2")]


def test_a_node_stays_whose_pods_would_have_no_place() -> None:
    found = plan(USED).scale_down

    assert found is not None and found.unneeded == ()
    assert {name: why.reason for name, why in found.unremovable.items()} == {
        "a": "NotUnderutilized",
        "b": "NoPlaceToMovePods",
    }


def test_a_node_goes_once_it_has_not_been_needed_for_long_enough() -> None:
    first = plan([*USED, node("c")]).scale_down
    assert first is not None
    second, third = (
        plan([*USED, node("c")], now=NOW + seconds, memory=first.memory).scale_down for seconds in (600, 601)
    )

    assert first.unneeded == ("c",)
    assert second is not None and second.unremovable["c"].reason == "NotUnneededLongEnough"
    assert third is not None and third.delete.empty == ("c",)


def test_an_expendable_pod_keeps_no_node() -> None:
    document = running("batch", "a", "3")
    document["spec"]["priority"] = -100

    found = plan([node("a"), node("b"), document]).scale_down

    assert found is not None and sorted(found.unneeded) == ["a", "b"]


def test_scale_down_can_be_switched_off() -> None:
    assert plan([node("a"), node("b")], "--scale-down-enabled=false").scale_down is None


def test_pods_that_fit_keep_the_node_that_they_fit_on() -> None:
    alone = plan([node("a"), node("b")]).scale_down
    taken = plan([node("a"), node("b"), deployment("web", 2, "3")]).scale_down

    assert alone is not None and len(alone.unneeded) == 2
    assert taken is not None and taken.unneeded == ()


@pytest.mark.parametrize(
    ("groups", "arguments", "message"),
    [
        pytest.param(
            {"nodeGroups": [{"name": "small", "nodeSelector": {"pool": "small"}}]},
            [],
            "group small: expected minSize and maxSize, or --nodes for it, found neither",
            id="no sizes",
        ),
        pytest.param(
            GROUPS,
            ["--nodes=0:3:smal"],
            '--nodes: expected a group that is described (small, large), found "smal"',
            id="unknown group",
        ),
        pytest.param(
            {"nodeGroups": [{"name": name, "minSize": 0, "maxSize": 1, "nodes": ["a"]} for name in ("one", "two")]},
            [],
            "nodeGroups: expected each node in one group, found a in one and two",
            id="a node in two groups",
        ),
    ],
)
def test_groups_that_make_no_sense_are_refused_in_one_line(groups: Json, arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        plan([node("a")], *arguments, groups=groups)

    assert str(refused.value) == f"node groups: {message}"
