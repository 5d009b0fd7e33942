"""What is wrong with a pod is said in one line."""

from typing import Any

import pytest
from manifest_builders import container, pod_document

from mooring.errors import ManifestError
from mooring.model.loading.manifests import build_manifests

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(ManifestError) as caught:
        build_manifests([document], "a.yaml")
    return str(caught.value)


def pod_refusal(**spec: Any) -> str:
    """The message after its first part, which is the same for all."""
    message = refusal(pod_document(**spec))
    start = "a.yaml: document 1 (Pod default/web): spec."
    assert message.startswith(start), message
    return message.removeprefix(start)


def node_terms(*expressions: dict[str, Any], fields: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions), "matchFields": fields or []}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


def pod_term(**term: Any) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}


def spread(**constraint: Any) -> list[dict[str, Any]]:
    return [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **constraint}]


def test_a_quantity_with_two_points_is_refused() -> None:
    assert refusal(pod_document(containers=[container(requests={"cpu": "1.5.2"})])) == (
        "a.yaml: document 1 (Pod default/web): spec.containers[0].resources.requests.cpu: "
        'expected a quantity such as 500m, 2 or 1.5Gi, found "1.5.2"'
    )


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        pytest.param(
            {"requests": {"cpu": "-1"}}, 'requests.cpu: expected a quantity of at least 0, found "-1"', id="negative"
        ),
        pytest.param(
            {"requests": {"cpu": True}},
            "requests.cpu: expected a quantity such as 500m, 2 or 1.5Gi, found true",
            id="a boolean",
        ),
        pytest.param(
            {"limits": {"memory": "1gb"}},
            'limits.memory: expected a quantity such as 500m, 2 or 1.5Gi, found "1gb"',
            id="a limit",
        ),
        pytest.param(
            {"requests": {"nvidia.com/gpu": "500m"}},
            'requests.nvidia.com/gpu: expected a whole number, found "500m"',
            id="half a device",
        ),
        pytest.param(
            {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
            'requests.cpu: expected at most the limit, 1, found "2"',
            id="more than the limit",
        ),
    ],
)
def test_bad_resources_are_refused(resources: dict[str, Any], message: str) -> None:
    found = pod_refusal(containers=[container("a"), container("b", **resources)])
    assert found == f"containers[1].resources.{message}"


def test_init_containers_and_overhead_and_pod_level_resources_are_checked_too() -> None:
    assert pod_refusal(initContainers=[container("init", requests={"cpu": "x"})]) == (
        'initContainers[0].resources.requests.cpu: expected a quantity such as 500m, 2 or 1.5Gi, found "x"'
    )
    assert pod_refusal(overhead={"cpu": "x"}) == (
        'overhead.cpu: expected a quantity such as 500m, 2 or 1.5Gi, found "x"'
    )
    assert pod_refusal(resources={"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}) == (
        'resources.requests: expected only cpu, memory and hugepages for a whole pod, found "nvidia.com/gpu"'
    )


def test_a_pod_without_containers_is_refused() -> None:
    assert pod_refusal(containers=[]) == "containers: expected at least one container, found none"


def test_container_names_are_needed_and_differ() -> None:
    assert pod_refusal(containers=[{}]) == "containers[0].name: expected a name, found none"
    assert pod_refusal(containers=[{"name": "a"}], initContainers=[{"name": "a"}]) == (
        'initContainers[0].name: expected a name that no other container has, found "a"'
    )


@pytest.mark.parametrize(
    ("port", "message"),
    [
        pytest.param({}, "containerPort: expected a port from 1 to 65535, found none", id="no port"),
        pytest.param(
            {"containerPort": 70000}, "containerPort: expected a port from 1 to 65535, found 70000", id="too high"
        ),
        pytest.param(
            {"containerPort": 80, "hostPort": -1},
            "hostPort: expected a port from 0 to 65535, found -1",
            id="a negative host port",
        ),
        pytest.param(
            {"containerPort": 80, "protocol": "tcp"},
            'protocol: expected one of TCP, UDP, SCTP, found "tcp"',
            id="protocol",
        ),
        pytest.param(
            {"containerPort": 80, "hostPort": 81},
            "hostPort: expected 80, the containerPort, as hostNetwork is true, found 81",
            id="host network",
        ),
    ],
)
def test_bad_ports_are_refused(port: dict[str, Any], message: str) -> None:
    found = pod_refusal(containers=[{"name": "main", "ports": [port]}], hostNetwork=True)
    assert found == f"containers[0].ports[0].{message}"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(
            {"key": "a", "operator": "in", "values": ["b"]},
            'operator: expected one of In, NotIn, Exists, DoesNotExist, Gt, Lt, found "in"',
            id="operator",
        ),
        pytest.param({"key": "a", "operator": "In"}, "values: expected at least one value for In, found none", id="In"),
        pytest.param(
            {"key": "a", "operator": "Exists", "values": ["b"]},
            "values: expected no values for Exists, found 1",
            id="Exists",
        ),
        pytest.param(
            {"key": "a", "operator": "Gt", "values": ["1", "2"]},
            "values: expected exactly one integer for Gt, found 2",
            id="Gt with two",
        ),
        pytest.param(
            {"key": "a", "operator": "Lt", "values": ["x"]},
            'values[0]: expected an integer for Lt, found "x"',
            id="Lt without a number",
        ),
        pytest.param({"key": "", "operator": "Exists"}, "key: expected a label key, found none", id="empty key"),
        pytest.param({"operator": "Exists"}, "key: expected a value, found none", id="no key"),
    ],
)
def test_bad_node_expressions_are_refused(expression: dict[str, Any], message: str) -> None:
    document = pod_document(affinity=node_terms(expression))
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
    assert refusal(document) == f"a.yaml: document 1 (Pod default/web): {path}.{message}"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        pytest.param(
            {"key": "kind", "operator": "In", "values": ["a"]},
            'key: expected one of metadata.name, found "kind"',
            id="key",
        ),
        pytest.param(
            {"key": "metadata.name", "operator": "Exists"},
            'operator: expected one of In, NotIn, found "Exists"',
            id="operator",
        ),
        pytest.param(
            {"key": "metadata.name", "operator": "In", "values": ["a", "b"]},
            "values: expected exactly one node name, found 2",
            id="two names",
        ),
    ],
)
def test_bad_node_fields_are_refused(field: dict[str, Any], message: str) -> None:
    assert pod_refusal(affinity=node_terms(fields=[field])) == (
        f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[0].{message}"
    )


def test_required_node_affinity_needs_a_term() -> None:
    assert pod_refusal(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}) == (
        f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: expected at least one term, found none"
    )


@pytest.mark.parametrize("weight", [0, 101])
def test_weights_are_from_1_to_100(weight: int) -> None:
    preferred = [{"weight": weight, "preference": {}}]
    weighted = [{"weight": weight, "podAffinityTerm": {"topologyKey": "zone"}}]

    for side, terms in (("nodeAffinity", preferred), ("podAntiAffinity", weighted)):
        assert pod_refusal(affinity={side: {PREFERRED: terms}}) == (
            f"affinity.{side}.{PREFERRED}[0].weight: expected a weight from 1 to 100, found {weight}"
        )


@pytest.mark.parametrize(
    ("term", "message"),
    [
        pytest.param({"topologyKey": ""}, "topologyKey: expected a label key, found none", id="empty topology key"),
        pytest.param(
            {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}},
            'labelSelector.matchExpressions[0].operator: expected one of In, NotIn, Exists, DoesNotExist, found "Gt"',
            id="operator for nodes only",
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn"}]}},
            "namespaceSelector.matchExpressions[0].values: expected at least one value for NotIn, found none",
            id="namespaces",
        ),
        pytest.param(
            {"matchLabelKeys": ["app"]},
            'matchLabelKeys: expected no keys, as there is no labelSelector, found "app"',
            id="keys without a selector",
        ),
    ],
)
def test_bad_pod_affinity_is_refused(term: dict[str, Any], message: str) -> None:
    assert pod_refusal(affinity=pod_term(**term)) == f"affinity.podAffinity.{REQUIRED}[0].{message}"


@pytest.mark.parametrize(
    ("toleration", "message"),
    [
        pytest.param(
            {"key": "a", "operator": "In"}, 'operator: expected one of Equal, Exists, Gt, Lt, found "In"', id="operator"
        ),
        pytest.param(
            {"value": "x"}, 'operator: expected Exists, as the key is empty, found "Equal"', id="no key needs Exists"
        ),
        pytest.param(
            {"key": "a", "operator": "Exists", "value": "x"},
            'value: expected no value for Exists, found "x"',
            id="Exists with a value",
        ),
        pytest.param(
            {"key": "a", "operator": "Gt", "value": "x"}, 'value: expected an integer for Gt, found "x"', id="number"
        ),
        pytest.param(
            {"key": "a", "effect": "Never"},
            'effect: expected one of NoSchedule, PreferNoSchedule, NoExecute, found "Never"',
            id="effect",
        ),
        pytest.param(
            {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5},
            'effect: expected NoExecute, as tolerationSeconds is set, found "NoSchedule"',
            id="seconds",
        ),
    ],
)
def test_bad_tolerations_are_refused(toleration: dict[str, Any], message: str) -> None:
    assert pod_refusal(tolerations=[toleration]) == f"tolerations[0].{message}"


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        pytest.param({"maxSkew": 0}, ".maxSkew: expected a number greater than 0, found 0", id="skew"),
        pytest.param({"topologyKey": ""}, ".topologyKey: expected a label key, found none", id="topology key"),
        pytest.param(
            {"whenUnsatisfiable": "Maybe"},
            '.whenUnsatisfiable: expected one of DoNotSchedule, ScheduleAnyway, found "Maybe"',
            id="when",
        ),
        pytest.param({"minDomains": 0}, ".minDomains: expected a number greater than 0, found 0", id="domains"),
        pytest.param(
            {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"},
            ".minDomains: expected no minDomains unless whenUnsatisfiable is DoNotSchedule, found 2",
            id="domains of a soft constraint",
        ),
        pytest.param(
            {"nodeTaintsPolicy": "honor"},
            '.nodeTaintsPolicy: expected one of Honor, Ignore, found "honor"',
            id="policy",
        ),
        pytest.param(
            {"matchLabelKeys": ["app"]},
            '.matchLabelKeys: expected no keys, as there is no labelSelector, found "app"',
            id="keys without a selector",
        ),
    ],
)
def test_bad_spread_constraints_are_refused(constraint: dict[str, Any], message: str) -> None:
    found = pod_refusal(topologySpreadConstraints=spread(**constraint))
    assert found == f"topologySpreadConstraints[0]{message}"


def test_a_second_spread_constraint_of_the_same_kind_is_refused() -> None:
    assert pod_refusal(topologySpreadConstraints=spread() + spread(maxSkew=2)) == (
        "topologySpreadConstraints[1]: expected no second constraint of this topologyKey and whenUnsatisfiable, "
        "found zone DoNotSchedule"
    )


def test_policies_are_checked() -> None:
    assert pod_refusal(preemptionPolicy="Always") == (
        'preemptionPolicy: expected one of PreemptLowerPriority, Never, found "Always"'
    )
    assert pod_refusal(restartPolicy="Sometimes") == (
        'restartPolicy: expected one of Always, OnFailure, Never, found "Sometimes"'
    )


def test_gates_of_any_name_are_fine() -> None:
    assert build_manifests([pod_document(schedulingGates=[{"name": "example.com/anything"}])]).pods


def test_a_reference_that_only_makes_a_pod_wait_is_fine() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "nowhere"}}]

    assert build_manifests([pod_document(volumes=volumes, nodeName="nowhere")]).pods
