"""Workloads become pods."""

from typing import Any

import pytest
from manifest_builders import node_document, pod_document, workload_document

from mooring.errors import ManifestError
from mooring.model.api.pods import Pod
from mooring.model.loading.manifests import Manifests, build_manifests


def names(manifests: Manifests) -> list[str]:
    return [pod.metadata.name for pod in manifests.pods]


def bases(manifests: Manifests) -> list[str]:
    """The names without what stands for the lots that controllers draw."""
    return [name.rpartition("-")[0] for name in names(manifests)]


def owner(pod: Pod) -> tuple[str, str, bool]:
    (reference,) = pod.metadata.owner_references or []
    return reference.kind, reference.name, reference.controller


def owned_pod(name: str, kind: str, owner_name: str, **spec: Any) -> dict[str, Any]:
    document = pod_document(name, **spec)
    document["metadata"]["ownerReferences"] = [{"kind": kind, "name": owner_name, "controller": True}]
    return document


def test_replicas_are_counted_share_their_spec_and_name_their_owner() -> None:
    manifests = build_manifests([workload_document("ReplicaSet", replicas=3)])

    assert bases(manifests) == ["web"] * 3
    assert len(set(names(manifests))) == 3
    assert {id(pod.spec) for pod in manifests.pods} == {id(manifests.replica_sets[0].spec.template.spec)}
    assert [owner(pod) for pod in manifests.pods] == [("ReplicaSet", "web", True)] * 3


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController", "StatefulSet", "Job"])
def test_one_replica_is_the_default(kind: str) -> None:
    assert bases(build_manifests([workload_document(kind)])) == ["web"]


def test_names_are_as_controllers_make_them_and_the_same_each_time() -> None:
    indexed = workload_document("Job", "run", completionMode="Indexed", completions=2, parallelism=2)
    documents = [workload_document("Deployment"), workload_document("ReplicaSet", "set"), indexed]

    assert (
        names(build_manifests(documents))
        == names(build_manifests(documents))
        == ["web-545c4d5b65-ftp4s", "set-wcbch", "run-0-l942k", "run-1-7cw8z"]
    )


def test_workloads_of_one_name_make_pods_of_different_names() -> None:
    kinds = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "Job", "DaemonSet")
    documents = [workload_document(kind, replicas=40) for kind in kinds[:4]]
    documents += [workload_document("Job", parallelism=40, completions=40), workload_document("DaemonSet")]

    manifests = build_manifests([*documents, pod_document("web"), *(node_document(f"n{i}") for i in range(40))])

    assert len(manifests.pods) == len(set(names(manifests))) == 241


def test_a_deployment_creates_a_replica_set_that_owns_the_pods() -> None:
    document = workload_document("Deployment", replicas=2, selector={"matchLabels": {"app": "web"}})

    manifests = build_manifests([document])

    (replica_set,) = manifests.replica_sets
    text = replica_set.metadata.name.removeprefix("web-")
    labels = {"app": "web", "pod-template-hash": text}
    assert bases(manifests) == [f"web-{text}"] * 2
    assert [owner(pod) for pod in manifests.pods] == [("ReplicaSet", f"web-{text}", True)] * 2
    assert [pod.metadata.labels for pod in manifests.pods] == [labels, labels]
    assert replica_set.spec.selector is not None and replica_set.spec.selector.match_labels == labels


def test_what_a_dump_lists_is_not_created_again() -> None:
    replica_set = workload_document("ReplicaSet", "web-abc", replicas=2)
    replica_set["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "web", "controller": True}]

    manifests = build_manifests(
        [workload_document("Deployment", replicas=2), replica_set, owned_pod("web-abc-xyz", "ReplicaSet", "web-abc")]
    )

    assert bases(manifests) == ["web-abc", "web-abc"]
    assert len(manifests.replica_sets) == 1


def test_a_stateful_set_names_ordinals_and_creates_claims() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    given = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-db-1"}, "spec": {}}
    document = workload_document("StatefulSet", "db", replicas=2, ordinals={"start": 1}, volumeClaimTemplates=[claim])

    manifests = build_manifests([given, document])

    first = manifests.pods[0]
    assert names(manifests) == ["db-1", "db-2"]
    assert first.metadata.labels == {
        "app": "db",
        "apps.kubernetes.io/pod-index": "1",
        "statefulset.kubernetes.io/pod-name": "db-1",
    }
    assert [
        volume.persistent_volume_claim.claim_name
        for volume in first.spec.volumes or ()
        if volume.persistent_volume_claim
    ] == ["data-db-1"]
    assert [found.metadata.name for found in manifests.persistent_volume_claims] == ["data-db-1", "data-db-2"]
    assert manifests.persistent_volume_claims[0].spec.resources is None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, 1, id="one by default"),
        pytest.param({"parallelism": 2}, 2, id="a work queue"),
        pytest.param({"parallelism": 5, "completions": 2}, 2, id="no more than completions"),
        pytest.param({"parallelism": 2, "suspend": True}, 0, id="suspended"),
    ],
)
def test_a_job_runs_its_parallel_pods(spec: dict[str, Any], expected: int) -> None:
    assert bases(build_manifests([workload_document("Job", "run", **spec)])) == ["run"] * expected


def test_a_job_that_is_over_runs_nothing() -> None:
    document = workload_document("Job", "run")
    document["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}

    assert names(build_manifests([document])) == []


def succeeded(name: str, owner_name: str = "run") -> dict[str, Any]:
    return {**owned_pod(name, "Job", owner_name), "status": {"phase": "Succeeded"}}


def failed(name: str) -> dict[str, Any]:
    return {**owned_pod(name, "Job", "run"), "status": {"phase": "Failed"}}


@pytest.mark.parametrize(
    ("spec", "given", "made"),
    [
        pytest.param({"parallelism": 3}, [owned_pod("run-1", "Job", "run")], ["run"] * 2, id="one runs"),
        pytest.param({"parallelism": 2}, [owned_pod("run-x7", "Job", "run")], ["run"], id="by another name"),
        pytest.param({"parallelism": 3, "completions": 3}, [succeeded("run-1")], ["run"] * 2, id="one is done"),
        pytest.param({"parallelism": 2, "completions": 2}, [failed("run-0")], ["run"] * 2, id="one has failed"),
        pytest.param({"parallelism": 2, "completions": 9}, [succeeded("run-0")], ["run"] * 2, id="much to do"),
        pytest.param({"parallelism": 3}, [succeeded("run-1")], [], id="a work queue that is empty"),
        pytest.param(
            {"parallelism": 3, "completions": 4, "completionMode": "Indexed"},
            [succeeded("run-1-abcde-1"), owned_pod("run-2", "Job", "run")],
            ["run-0", "run-3"],
            id="indexes that are done or taken",
        ),
    ],
)
def test_a_job_makes_only_the_pods_that_it_lacks(spec: dict[str, Any], given: list[Any], made: list[str]) -> None:
    manifests = build_manifests([*given, workload_document("Job", "run", **spec)])

    assert bases(manifests)[len(given) :] == made


def test_pods_of_an_indexed_job_carry_their_index() -> None:
    manifests = build_manifests(
        [workload_document("Job", "run", completionMode="Indexed", completions=2, parallelism=2)]
    )

    assert [pod.metadata.labels for pod in manifests.pods] == [
        {
            "app": "run",
            "batch.kubernetes.io/job-name": "run",
            "job-name": "run",
            "batch.kubernetes.io/job-completion-index": str(index),
        }
        for index in range(2)
    ]


def test_a_cron_job_runs_its_template_once() -> None:
    job = workload_document("Job", "unused", parallelism=2)
    document = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"jobTemplate": {"spec": job["spec"]}},
    }

    manifests = build_manifests([document])

    assert bases(manifests) == ["nightly", "nightly"]
    assert owner(manifests.pods[0]) == ("Job", "nightly", True)


def test_a_daemon_set_runs_on_each_node_that_suits_it() -> None:
    template = {"spec": {"containers": [{"name": "main"}], "nodeSelector": {"disk": "ssd"}}}
    nodes = [
        node_document("a", labels={"disk": "ssd"}),
        node_document("b", labels={"disk": "hdd"}),
        node_document("c", labels={"disk": "ssd"}, taints=[{"key": "gpu", "effect": "NoSchedule"}]),
        node_document(
            "d", labels={"disk": "ssd"}, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
        ),
    ]

    manifests = build_manifests([workload_document("DaemonSet", "agent", template=template), *nodes])

    assert [_pinned(pod) for pod in manifests.pods] == ["a", "d"]
    assert bases(manifests) == ["agent", "agent"]
    assert [
        toleration.key.removeprefix("node.kubernetes.io/") for toleration in manifests.pods[0].spec.tolerations or ()
    ] == [
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    ]


def _pinned(pod: Pod) -> str:
    affinity = pod.spec.affinity
    assert affinity is not None and affinity.node_affinity is not None and affinity.node_affinity.required is not None
    (term,) = affinity.node_affinity.required.node_selector_terms
    (requirement,) = term.match_fields or []
    assert (requirement.key, requirement.operator) == ("metadata.name", "In")
    return (requirement.values or [])[0]


def test_a_daemon_on_the_host_network_does_not_wait_for_the_network() -> None:
    template = {"spec": {"containers": [{"name": "main"}], "hostNetwork": True}}

    (pod,) = build_manifests([workload_document("DaemonSet", "net", template=template), node_document()]).pods

    assert (pod.spec.tolerations or [])[-1].key == "node.kubernetes.io/network-unavailable"


def test_a_node_that_has_the_daemon_gets_no_second_one() -> None:
    manifests = build_manifests(
        [
            workload_document("DaemonSet", "agent"),
            node_document("a"),
            node_document("b"),
            owned_pod("agent-x", "DaemonSet", "agent", nodeName="a"),
        ]
    )

    assert bases(manifests) == ["agent", "agent"]
    assert _pinned(manifests.pods[1]) == "b"


def test_replicas_with_label_keys_share_the_merged_spec() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["pod-template-hash"],
    }
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main"}], "topologySpreadConstraints": [constraint]},
    }

    first, second = build_manifests([workload_document("Deployment", template=template, replicas=2)]).pods

    (spread,) = first.spec.topology_spread_constraints or []
    assert first.spec is second.spec
    assert spread.label_selector is not None and len(spread.label_selector.match_expressions or ()) == 1


def test_a_replication_controller_selects_its_template_by_default() -> None:
    (controller,) = build_manifests([workload_document("ReplicationController")]).replication_controllers

    assert controller.spec.selector == {"app": "web"}


def test_terminal_pods_stay_in_the_list() -> None:
    document = {**pod_document(), "status": {"phase": "Succeeded"}}

    assert [pod.is_terminal for pod in build_manifests([document]).pods] == [True]


def test_a_replica_with_the_name_of_a_bare_pod_is_refused() -> None:
    with pytest.raises(ManifestError) as caught:
        build_manifests([pod_document("web-0"), workload_document("StatefulSet")])

    assert str(caught.value) == (
        "<memory>: document 2 (Pod default/web-0): metadata.name: expected a name that is not taken, "
        "found Pod default/web-0, which <memory>: document 1 has already"
    )
