"""What is wrong with any other object is said in one line."""

from typing import Any

import pytest
from manifest_builders import node_document, pod_document, priority_class_document, workload_document

from mooring.errors import ManifestError
from mooring.model.loading.manifests import build_manifests


def refusal(document: Any) -> str:
    with pytest.raises(ManifestError) as caught:
        build_manifests([document], "a.yaml")
    return str(caught.value)


def changed(document: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {**document, **parts}


def test_an_object_needs_a_kind_and_a_name() -> None:
    assert refusal({"metadata": {"name": "a"}}) == (
        "a.yaml: document 1: kind: expected a kind such as Pod or Node, found none"
    )
    assert refusal(changed(pod_document(), metadata={})) == (
        "a.yaml: document 1 (Pod): metadata.name: expected a name, found none"
    )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(5, ": expected an object, found 5", id="no object"),
        pytest.param({"kind": 5}, ": kind: expected a string, found 5", id="kind"),
        pytest.param(
            {"kind": "List", "items": ["x"]}, ' (List): items[0]: expected an object, found "x"', id="an item"
        ),
        pytest.param({"kind": "List", "items": 5}, " (List): items: expected a list, found 5", id="items"),
        pytest.param(
            workload_document("Deployment", replicas="3"),
            ' (Deployment default/web): spec.replicas: expected an integer, found "3"',
            id="text for a number",
        ),
        pytest.param(
            {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {}},
            " (Deployment default/web): spec.template: expected a value, found none",
            id="a missing field",
        ),
        pytest.param(
            changed(pod_document(), metadata={"name": "web", "labels": {"a": "b", "rack": 1}}),
            " (Pod default/web): metadata.labels.rack: expected a string, found 1",
            id="a label that is a number",
        ),
        pytest.param(
            changed(pod_document(), metadata={"name": "web", "labels": {1: "b"}}),
            " (Pod default/web): metadata.labels: expected keys that are strings, found 1",
            id="a label key that is a number",
        ),
        pytest.param(
            pod_document(containers=[{"name": "a", "resources": {"requests": {"cpu": ["1"]}}}]),
            " (Pod default/web): spec.containers[0].resources.requests.cpu: "
            "expected a quantity such as 500m, 2 or 1.5Gi, found a list",
            id="a list for a quantity",
        ),
        pytest.param(
            pod_document(hostNetwork="yes"),
            ' (Pod default/web): spec.hostNetwork: expected true or false, found "yes"',
            id="text for a boolean",
        ),
        pytest.param(
            changed(pod_document(), spec=[]),
            " (Pod default/web): spec: expected an object, found a list",
            id="a list for an object",
        ),
    ],
)
def test_wrong_types_are_refused(document: Any, message: str) -> None:
    assert refusal(document) == f"a.yaml: document 1{message}"


@pytest.mark.parametrize(
    ("taint", "message"),
    [
        pytest.param({"key": "", "effect": "NoSchedule"}, "key: expected a taint key, found none", id="key"),
        pytest.param(
            {"key": "a"},
            "effect: expected one of NoSchedule, PreferNoSchedule, NoExecute, found none",
            id="no effect",
        ),
        pytest.param(
            {"key": "a", "effect": "No"},
            'effect: expected one of NoSchedule, PreferNoSchedule, NoExecute, found "No"',
            id="effect",
        ),
    ],
)
def test_bad_taints_are_refused(taint: dict[str, Any], message: str) -> None:
    assert refusal(node_document(taints=[taint])) == f"a.yaml: document 1 (Node node): spec.taints[0].{message}"


def test_a_node_with_less_than_nothing_is_refused() -> None:
    assert refusal(changed(node_document(), status={"allocatable": {"cpu": "-1"}})) == (
        'a.yaml: document 1 (Node node): status.allocatable.cpu: expected a quantity of at least 0, found "-1"'
    )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            priority_class_document("high", 1_000_000_001),
            "value: expected at most 1000000000, found 1000000001",
            id="value",
        ),
        pytest.param(
            priority_class_document("system-node-critical", 5),
            "value: expected 2000001000 for system-node-critical, found 5",
            id="system value",
        ),
        pytest.param(
            priority_class_document("system-mine", 5),
            "metadata.name: expected no name with the prefix system- but "
            'system-cluster-critical, system-node-critical, found "system-mine"',
            id="system name",
        ),
        pytest.param(
            priority_class_document("high", 5, preemptionPolicy="x"),
            'preemptionPolicy: expected one of PreemptLowerPriority, Never, found "x"',
            id="policy",
        ),
    ],
)
def test_bad_priority_classes_are_refused(document: dict[str, Any], message: str) -> None:
    name = document["metadata"]["name"]
    assert refusal(document) == f"a.yaml: document 1 (PriorityClass {name}): {message}"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            workload_document("Deployment", replicas=-1),
            "spec.replicas: expected a number of at least 0, found -1",
            id="replicas",
        ),
        pytest.param(
            workload_document("Job", parallelism=-1),
            "spec.parallelism: expected a number of at least 0, found -1",
            id="parallelism",
        ),
        pytest.param(
            workload_document("Job", completionMode="Indexed"),
            "spec.completions: expected a number, as completionMode is Indexed, found none",
            id="an indexed job",
        ),
        pytest.param(
            workload_document("StatefulSet", ordinals={"start": -1}),
            "spec.ordinals.start: expected a number of at least 0, found -1",
            id="ordinals",
        ),
        pytest.param(
            workload_document("StatefulSet", volumeClaimTemplates=[{"spec": {}}]),
            "spec.volumeClaimTemplates[0].metadata.name: expected a name, found none",
            id="claim template",
        ),
        pytest.param(
            workload_document("ReplicationController", selector={"app": "other"}),
            "spec.template.metadata.labels: expected labels that match spec.selector, found app=web",
            id="selector",
        ),
        pytest.param(
            workload_document("DaemonSet", template={"spec": {}}),
            "spec.template.spec.containers: expected at least one container, found none",
            id="template",
        ),
        pytest.param(
            workload_document(
                "ReplicaSet", template={"spec": {"containers": [{"name": "a"}], "priorityClassName": "x"}}
            ),
            "spec.template.spec.priorityClassName: expected a known PriorityClass "
            '(system-cluster-critical, system-node-critical), found "x"',
            id="priority class of a template",
        ),
    ],
)
def test_bad_workloads_are_refused(document: dict[str, Any], message: str) -> None:
    assert refusal(document) == f"a.yaml: document 1 ({document['kind']} default/web): {message}"


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        pytest.param(
            "PodDisruptionBudget",
            {"minAvailable": 1, "maxUnavailable": 1},
            "spec: expected minAvailable or maxUnavailable, found both",
            id="both",
        ),
        pytest.param(
            "PodDisruptionBudget",
            {"minAvailable": "half"},
            'spec.minAvailable: expected a count or a percentage such as 50%, found "half"',
            id="a word",
        ),
        pytest.param(
            "PersistentVolumeClaim",
            {"resources": {"requests": {"storage": "big"}}},
            'spec.resources.requests.storage: expected a quantity such as 500m, 2 or 1.5Gi, found "big"',
            id="claim",
        ),
    ],
)
def test_bad_budgets_and_claims_are_refused(kind: str, spec: dict[str, Any], message: str) -> None:
    document = {"kind": kind, "metadata": {"name": "a"}, "spec": spec}
    assert refusal(document) == f"a.yaml: document 1 ({kind} default/a): {message}"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            {"kind": "StorageClass", "metadata": {"name": "a"}, "volumeBindingMode": "Later"},
            '(StorageClass a): volumeBindingMode: expected one of Immediate, WaitForFirstConsumer, found "Later"',
            id="binding mode",
        ),
        pytest.param(
            {"kind": "PersistentVolume", "metadata": {"name": "a"}, "spec": {"nodeAffinity": {"required": {}}}},
            "(PersistentVolume a): spec.nodeAffinity.required.nodeSelectorTerms: "
            "expected at least one term, found none",
            id="volume",
        ),
        pytest.param(
            {"kind": "CSIStorageCapacity", "metadata": {"name": "a"}, "capacity": "x"},
            '(CSIStorageCapacity default/a): capacity: expected a quantity such as 500m, 2 or 1.5Gi, found "x"',
            id="capacity",
        ),
    ],
)
def test_bad_storage_is_refused(document: dict[str, Any], message: str) -> None:
    assert refusal(document) == f"a.yaml: document 1 {message}"
