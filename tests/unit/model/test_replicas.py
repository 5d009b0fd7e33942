"""One manifest that stands for many."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifest_builders import node_document, pod_document, replicated_node

from mooring.errors import ManifestError
from mooring.model.api.nodes import Taint
from mooring.model.loading.manifests import build_manifests
from mooring.model.loading.replicas import compile_pattern, fill


def refusal(*documents: dict[str, Any]) -> str:
    with pytest.raises(ManifestError) as caught:
        build_manifests(documents)
    return str(caught.value)


def test_nodes_are_counted_and_called_by_their_own_hostname() -> None:
    nodes = build_manifests([replicated_node("gpu", "2", labels={"kubernetes.io/hostname": "gpu"})]).nodes

    assert [(node.name, node.metadata.labels, node.metadata.annotations) for node in nodes] == [
        ("gpu-0", {"kubernetes.io/hostname": "gpu-0"}, None),
        ("gpu-1", {"kubernetes.io/hostname": "gpu-1"}, None),
    ]


def test_expressions_tell_the_copies_apart() -> None:
    document = replicated_node("gpu-{i+1:03}", "3", labels={"rack": "r{i//2}"}, annotations={"zone": "z{i%2}"})
    document["spec"]["taints"] = [{"key": "group", "value": "g{i//2%4}", "effect": "NoSchedule"}]

    last = build_manifests([document]).nodes[-1]

    assert last.name == "gpu-003"
    assert last.metadata.labels == {"rack": "r1", "kubernetes.io/hostname": "gpu-003"}
    assert last.metadata.annotations == {"zone": "z0"}
    assert last.spec.taints == [Taint(key="group", value="g1", effect="NoSchedule")]


def test_copies_share_their_status() -> None:
    nodes = build_manifests([replicated_node("gpu", "3")]).nodes

    assert len({id(node.status) for node in nodes}) == 1


def test_an_annotation_in_json_is_left_alone() -> None:
    text = '{"driver": {"id": "{i}"}}'

    (node,) = build_manifests([replicated_node("gpu", "1", annotations={"csi": text})]).nodes

    assert node.metadata.annotations == {"csi": text}


def test_pods_are_replicated_too() -> None:
    document = pod_document("load-{i}", nodeName="node-{i//2}")
    document["metadata"]["annotations"] = {"mooring.dev/replicas": "3"}

    pods = build_manifests([document]).pods

    assert [(pod.metadata.name, pod.spec.node_name) for pod in pods] == [
        ("load-0", "node-0"),
        ("load-1", "node-0"),
        ("load-2", "node-1"),
    ]


@given(st.integers(min_value=0, max_value=10**6), st.integers(min_value=1, max_value=100))
def test_an_expression_means_what_it_means_in_python(i: int, n: int) -> None:
    assert fill(compile_pattern(f"a{{(i+{n})//{n}*2-i%{n}}}b{{i:05}}"), i) == f"a{(i + n) // n * 2 - i % n}b{i:05}"


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "many", "", "1000001"])
def test_a_count_that_is_no_positive_whole_number_is_refused(count: str) -> None:
    assert refusal(replicated_node("gpu", count)) == (
        "<memory>: document 1 (Node gpu): metadata.annotations.mooring.dev/replicas: "
        f'expected a whole number from 1 to 1000000, found "{count}"'
    )


@pytest.mark.parametrize(
    "expression", ["{j}", "{i**2}", "{i/2}", "{}", "{__import__('os')}", "{i.real}", "{i:>9}", "{1.5}", "{True}"]
)
def test_a_bad_expression_is_refused(expression: str) -> None:
    assert refusal(replicated_node("gpu", "2", labels={"rack": expression})) == (
        "<memory>: document 1 (Node gpu): metadata.labels.rack: "
        "expected an expression over i such as {i}, {i//8}, {i%3} or {i+1:03}, "
        f"found {expression}"
    )


def test_a_brace_that_is_not_closed_is_refused() -> None:
    assert refusal(replicated_node("gpu-{i", "2")) == (
        "<memory>: document 1 (Node gpu-{i): metadata.name: "
        "expected an expression over i such as {i}, {i//8}, {i%3} or {i+1:03}, found gpu-{i"
    )


def test_a_division_by_zero_is_refused() -> None:
    assert refusal(replicated_node("gpu", "3", labels={"rack": "{8//(2-i)}"})) == (
        "<memory>: document 1 (Node gpu): metadata.labels.rack: "
        "expected an expression over i such as {i}, {i//8}, {i%3} or {i+1:03}, "
        "found a division by zero in {8//(2-i)} for i = 2"
    )


def test_copies_with_one_name_are_refused() -> None:
    assert refusal(replicated_node("gpu-{i//2}", "2")) == (
        "<memory>: document 1 (Node gpu-0): metadata.name: expected a name that is not taken, "
        "found Node gpu-0, which <memory>: document 1 has already"
    )


def test_braces_mean_nothing_without_replicas() -> None:
    (node,) = build_manifests([node_document("a", labels={"rack": "{i}"})]).nodes

    assert node.metadata.labels == {"rack": "{i}", "kubernetes.io/hostname": "a"}
