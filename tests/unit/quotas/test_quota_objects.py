"""What claims, services and workloads take of a quota, and what follows when they are refused."""

from typing import Any

import pytest
from quota_documents import (
    Document,
    claim,
    container,
    limit_range,
    messages,
    pod,
    pod_names,
    quota,
    service,
    with_metadata,
    workload,
)

from mooring.model.loading.manifests import build_manifests


def exceeded(resource: str, requested: Any, used: Any, limited: Any) -> str:
    return (
        f"exceeded quota: team-a, requested: {resource}={requested}, used: {resource}={used}, "
        f"limited: {resource}={limited}"
    )


def test_claims_are_counted_and_their_storage_added_up() -> None:
    hard = {"persistentvolumeclaims": "3", "requests.storage": "10Gi"}

    found = messages(quota(hard), claim("a", "4Gi"), claim("b", "6Gi"), claim("c", "1"))

    assert found == ['persistentvolumeclaims "c" is forbidden: ' + exceeded("requests.storage", 1, "10Gi", "10Gi")]


def test_storage_is_limited_class_by_class() -> None:
    gold = "gold.storageclass.storage.k8s.io"
    hard = {f"{gold}/requests.storage": "5Gi", f"{gold}/persistentvolumeclaims": "1"}
    annotated = with_metadata(claim("b", "1Gi"), annotations={"volume.beta.kubernetes.io/storage-class": "gold"})

    found = messages(
        quota(hard),
        claim("a", "6Gi", storageClassName="gold"),
        annotated,
        claim("c", "1Gi", storageClassName="gold"),
        claim("d", "9Ti", storageClassName="slow"),
        claim("e", "9Ti"),
    )

    assert found == [
        'persistentvolumeclaims "a" is forbidden: ' + exceeded(f"{gold}/requests.storage", "6Gi", 0, "5Gi"),
        'persistentvolumeclaims "c" is forbidden: ' + exceeded(f"{gold}/persistentvolumeclaims", 1, 1, 1),
    ]


def test_the_default_class_is_the_class_of_claims_without_one() -> None:
    default = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gold", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "x",
    }
    resource = "gold.storageclass.storage.k8s.io/requests.storage"

    found = messages(quota({resource: "0"}), default, claim("a"))

    assert found == ['persistentvolumeclaims "a" is forbidden: ' + exceeded(resource, "1Gi", 0, 0)]


def test_a_bound_claim_is_counted_with_what_it_was_given() -> None:
    old = {**claim("old", "4Gi"), "status": {"phase": "Bound", "allocatedResources": {"storage": "8Gi"}}}

    found = messages(quota({"requests.storage": "10Gi"}), old, claim("new", "3Gi"))

    assert found == ['persistentvolumeclaims "new" is forbidden: ' + exceeded("requests.storage", "3Gi", "8Gi", "10Gi")]


@pytest.mark.parametrize(
    ("operator", "values", "within"),
    [
        ("In", ["fast"], ["fast", "was-fast", "gets-fast"]),
        ("NotIn", ["fast"], ["plain", "slow"]),
        ("Exists", None, ["fast", "slow", "was-fast", "gets-fast"]),
        ("DoesNotExist", None, ["plain"]),
    ],
)
def test_claims_are_selected_by_their_attributes_class(
    operator: str, values: list[str] | None, within: list[str]
) -> None:
    expression = {"scopeName": "VolumeAttributesClass", "operator": operator, "values": values}
    claims = [
        claim("plain"),
        claim("fast", volumeAttributesClassName="fast"),
        claim("slow", volumeAttributesClassName="slow"),
        {**claim("was-fast"), "status": {"currentVolumeAttributesClassName": "fast"}},
        {**claim("gets-fast"), "status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "fast"}}},
    ]

    manifests = build_manifests(
        [quota({"persistentvolumeclaims": 0}, scopeSelector={"matchExpressions": [expression]}), *claims, pod()]
    )

    assert [refusal.found.metadata.name for refusal in manifests.refused] == within


PORTS = [{"port": 80}, {"port": 81, "nodePort": 30081}]


@pytest.mark.parametrize(
    ("spec", "resource", "taken"),
    [
        ({}, "services", 1),
        ({}, "count/services", 1),
        ({"type": "NodePort", "ports": PORTS}, "services.nodeports", 2),
        ({"type": "LoadBalancer", "ports": PORTS}, "services.loadbalancers", 1),
        ({"type": "LoadBalancer", "ports": PORTS}, "services.nodeports", 2),
        (
            {"type": "LoadBalancer", "ports": PORTS, "allocateLoadBalancerNodePorts": False},
            "services.nodeports",
            1,
        ),
    ],
)
def test_services_are_counted_with_their_ports_and_balancers(spec: Document, resource: str, taken: int) -> None:
    found = messages(quota({resource: 0}), service("web", **spec))

    assert found == ['services "web" is forbidden: ' + exceeded(resource, taken, 0, 0)]


def test_a_plain_service_takes_no_ports() -> None:
    plain = service("web", type="ClusterIP", ports=PORTS)

    assert messages(quota({"services.nodeports": 0, "services.loadbalancers": 0}), plain) == []


@pytest.mark.parametrize(
    ("document", "resource"),
    [
        (workload("Deployment"), "deployments.apps"),
        (workload("StatefulSet"), "statefulsets.apps"),
        (workload("Job"), "jobs.batch"),
        (workload("CronJob"), "cronjobs.batch"),
        (workload("ReplicationController"), "replicationcontrollers"),
    ],
)
def test_a_workload_that_is_refused_makes_no_pods(document: Document, resource: str) -> None:
    manifests = build_manifests([quota({f"count/{resource}": 0}), document])

    message = f'{resource} "web" is forbidden: ' + exceeded(f"count/{resource}", 1, 0, 0)
    assert manifests.pods == []
    assert {refusal.message for refusal in manifests.refused} == {message}
    assert manifests.refused[0].found.kind == document["kind"]
    assert manifests.refused[-1].key.startswith("default/web-")


def test_what_a_workload_makes_on_the_way_to_its_pods_is_counted_too() -> None:
    manifests = build_manifests(
        [quota({"count/replicasets.apps": 1}), workload("Deployment", "a"), workload("Deployment", "b")]
    )

    assert [name.partition("-")[0] for name in pod_names(manifests)] == ["a"]
    assert [refusal.found.kind for refusal in manifests.refused] == ["ReplicaSet", "Pod"]
    assert len(manifests.replica_sets) == 1


def test_existing_objects_are_counted_and_the_rules_count_themselves() -> None:
    existing = with_metadata(workload("Job", "old", parallelism=0), resourceVersion="3")
    hard = {"count/jobs.batch": 1, "resourcequotas": 0, "count/limitranges": 0}

    found = messages(quota(hard), limit_range(), existing, workload("Job", "new", parallelism=0))

    assert found == ['jobs.batch "new" is forbidden: ' + exceeded("count/jobs.batch", 1, 1, 1)]


def test_a_stateful_set_gets_no_pod_whose_claim_is_refused() -> None:
    templates = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]
    reader = pod("reader", container(), volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data-db-1"}}])

    manifests = build_manifests(
        [
            quota({"requests.storage": "1Gi"}),
            workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=templates),
            reader,
        ]
    )

    message = 'persistentvolumeclaims "data-db-1" is forbidden: ' + exceeded("requests.storage", "1Gi", "1Gi", "1Gi")
    assert [(refusal.key, refusal.message) for refusal in manifests.refused] == [
        ("default/data-db-1", message),
        ("default/db-1", message),
    ]
    assert pod_names(manifests) == ["reader", "db-0"], "the reader exists, and waits for its claim"


def test_a_quota_with_scopes_is_not_about_other_objects() -> None:
    scoped = quota({"pods": 0}, scopes=["NotTerminating"])

    assert messages(scoped, claim(), service(), workload("Job", parallelism=0)) == []
