"""What the API server fills in."""

from typing import Any

import pytest
from manifest_builders import container, node_document, pod_document, priority_class_document

from mooring.errors import ManifestError
from mooring.model.api.meta import LabelSelectorRequirement
from mooring.model.api.pods import Pod, ResourceRequirements
from mooring.model.api.volumes import ObjectReference
from mooring.model.loading.manifests import build_manifests


def created(*others: dict[str, Any], **spec: Any) -> Pod:
    labels = spec.pop("labels", None)
    (pod,) = build_manifests([*others, pod_document(labels=labels, **spec)]).pods
    return pod


def claim_document(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}


def class_document(name: str, *, is_default: bool = False) -> dict[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
    }


def test_a_pod_gets_the_plain_defaults() -> None:
    pod = created()

    spec = pod.spec
    assert pod.metadata.namespace == "default"
    assert (spec.restart_policy, spec.scheduler_name, spec.termination_grace_period_seconds) == (
        "Always",
        "default-scheduler",
        30,
    )
    assert (spec.priority, spec.preemption_policy) == (0, "PreemptLowerPriority")
    assert spec.tolerations is None


def test_requests_come_from_limits_where_they_are_missing() -> None:
    pod = created(
        containers=[container(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1Gi"})],
        initContainers=[container("init", limits={"cpu": "3"})],
    )

    assert pod.spec.containers[0].resources == ResourceRequirements(
        requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "2", "memory": "1Gi"}
    )
    assert pod.spec.init_containers is not None
    assert pod.spec.init_containers[0].resources == ResourceRequirements(requests={"cpu": "3"}, limits={"cpu": "3"})


def test_amounts_finer_than_a_thousandth_are_rounded_up() -> None:
    pod = created(containers=[container(requests={"cpu": "100u", "memory": "1"})])

    assert pod.spec.containers[0].resources == ResourceRequirements(requests={"cpu": "1m", "memory": "1"})


def test_pod_level_requests_come_from_the_containers_first_and_then_from_the_limits() -> None:
    pod = created(
        containers=[container(requests={"cpu": "500m"}), container("side", requests={"cpu": "1"})],
        resources={"limits": {"cpu": "4", "memory": "8Gi"}},
    )

    assert pod.spec.resources == ResourceRequirements(
        requests={"cpu": "1500m", "memory": "8Gi"}, limits={"cpu": "4", "memory": "8Gi"}
    )


def test_pod_level_requests_without_limits_stay_as_given() -> None:
    pod = created(
        containers=[container(requests={"cpu": "500m", "memory": "1Gi"})], resources={"requests": {"cpu": "2"}}
    )

    assert pod.spec.resources == ResourceRequirements(requests={"cpu": "2"})


def test_pod_level_huge_pages_come_from_the_containers_limits() -> None:
    pod = created(
        containers=[container(limits={"hugepages-2Mi": "4Mi", "cpu": "1"})], resources={"requests": {"memory": "1Gi"}}
    )

    assert pod.spec.resources == ResourceRequirements(
        requests={"memory": "1Gi", "cpu": "1", "hugepages-2Mi": "4194304"}, limits={"hugepages-2Mi": "4194304"}
    )


@pytest.mark.parametrize(("host_network", "host_port"), [(False, 0), (True, 80)])
def test_ports_get_a_protocol_and_on_the_host_network_a_host_port(host_network: bool, host_port: int) -> None:
    pod = created(containers=[{"name": "main", "ports": [{"containerPort": 80}]}], hostNetwork=host_network)

    assert pod.spec.containers[0].ports is not None
    (port,) = pod.spec.containers[0].ports
    assert (port.protocol, port.host_port) == ("TCP", host_port)


def test_match_label_keys_are_merged_into_selectors_once() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["hash", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["hash"],
    }

    pod = created(
        labels={"hash": "abc", "tenant": "one"},
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        topologySpreadConstraints=[constraint],
    )
    again = build_manifests([pod]).pods[0]

    same = LabelSelectorRequirement(key="hash", operator="In", values=["abc"])
    other = LabelSelectorRequirement(key="tenant", operator="NotIn", values=["one"])
    for spec in (pod.spec, again.spec):
        assert spec.affinity is not None and spec.affinity.pod_anti_affinity is not None
        assert spec.affinity.pod_anti_affinity.required is not None
        selector = spec.affinity.pod_anti_affinity.required[0].label_selector
        assert selector is not None and selector.match_expressions == [same, other]
        assert spec.topology_spread_constraints is not None
        spread = spec.topology_spread_constraints[0].label_selector
        assert spread is not None and spread.match_expressions == [same]


def test_a_priority_comes_from_the_class_and_so_does_the_preemption_policy() -> None:
    high = priority_class_document("high", 1000, preemptionPolicy="Never")

    spec = created(high, priorityClassName="high").spec

    assert (spec.priority, spec.preemption_policy) == (1000, "Never")


def test_a_pod_without_class_gets_the_global_default() -> None:
    spec = created(priority_class_document("usual", 10, globalDefault=True)).spec

    assert (spec.priority, spec.priority_class_name) == (10, "usual")


def test_a_priority_without_a_class_stays_as_given() -> None:
    assert created(priority_class_document("usual", 10, globalDefault=True), priority=5).spec.priority == 5


@pytest.mark.parametrize(
    ("name", "priority"), [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)]
)
def test_the_system_classes_are_always_there(name: str, priority: int) -> None:
    assert created(priorityClassName=name).spec.priority == priority


def test_a_pod_that_has_its_priority_may_name_a_class_that_is_not_listed() -> None:
    assert created(priorityClassName="gone", priority=7).spec.priority == 7


def test_an_unknown_class_is_refused() -> None:
    with pytest.raises(ManifestError) as caught:
        created(priorityClassName="hgih")

    assert str(caught.value) == (
        "<memory>: document 1 (Pod default/web): spec.priorityClassName: expected a known PriorityClass "
        '(system-cluster-critical, system-node-critical), found "hgih"'
    )


def test_a_priority_that_contradicts_the_class_is_refused() -> None:
    with pytest.raises(ManifestError) as caught:
        created(priority_class_document("high", 1000), priorityClassName="high", priority=5)

    assert str(caught.value) == (
        "<memory>: document 2 (Pod default/web): spec.priority: "
        "expected 1000, the value of class high, or no priority, found 5"
    )


def test_two_global_defaults_are_refused() -> None:
    with pytest.raises(ManifestError) as caught:
        created(
            priority_class_document("one", 1, globalDefault=True), priority_class_document("two", 2, globalDefault=True)
        )

    assert str(caught.value) == (
        "<memory>: document 2 (PriorityClass two): globalDefault: "
        "expected at most one global default, found a second one besides one"
    )


def test_a_node_without_allocatable_uses_its_capacity_and_gets_its_hostname() -> None:
    document = node_document("a")
    document["status"] = {"capacity": {"cpu": "4"}}

    (node,) = build_manifests([document]).nodes

    assert node.status.allocatable == {"cpu": "4"}
    assert node.metadata.labels == {"kubernetes.io/hostname": "a"}


def test_a_namespace_carries_its_name_as_a_label() -> None:
    (namespace,) = build_manifests([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}}]).namespaces

    assert namespace.metadata.labels == {"kubernetes.io/metadata.name": "prod"}


def test_a_claim_gets_the_default_class_and_waits() -> None:
    manifests = build_manifests([class_document("slow"), class_document("fast", is_default=True), claim_document()])

    (claim,) = manifests.persistent_volume_claims
    assert (claim.spec.storage_class_name, claim.spec.volume_mode, claim.status.phase) == (
        "fast",
        "Filesystem",
        "Pending",
    )
    assert {found.volume_binding_mode for found in manifests.storage_classes} == {"Immediate"}


def test_an_empty_class_name_stays_empty() -> None:
    manifests = build_manifests([class_document("fast", is_default=True), claim_document(storageClassName="")])

    assert manifests.persistent_volume_claims[0].spec.storage_class_name == ""


def test_a_claim_that_names_its_volume_is_bound_to_it() -> None:
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {}}

    manifests = build_manifests([volume, claim_document(volumeName="disk")])

    (claim,), (found,) = manifests.persistent_volume_claims, manifests.persistent_volumes
    assert (claim.status.phase, claim.metadata.annotations) == ("Bound", {"pv.kubernetes.io/bind-completed": "yes"})
    assert (found.status.phase, found.spec.claim_ref) == (
        "Bound",
        ObjectReference(kind="PersistentVolumeClaim", namespace="default", name="data"),
    )


def test_a_claim_that_says_it_is_pending_is_believed() -> None:
    document = {**claim_document(volumeName="disk"), "status": {"phase": "Pending"}}

    (claim,) = build_manifests([document]).persistent_volume_claims

    assert (claim.status.phase, claim.metadata.annotations) == ("Pending", None)
