"""Workloads that a dump holds, work that runs already, and pods that are held or let go."""

from typing import Any

import pytest
from job_builders import (
    Document,
    document,
    grouped_pod,
    held,
    job,
    job_set,
    load,
    owned,
    plain_pod,
    replicated_job,
    template,
)
from manifest_builders import node_document

from mooring.errors import ManifestError
from mooring.model.api.kueue import ResourceFlavor, ResourceFlavorSpec
from mooring.model.api.pods import Pod, PodSpec, SchedulingGate, Toleration
from mooring.model.queued.workloads import (
    QueuedWorkload,
    ResumeError,
    flavor_terms,
    queued_workloads,
    resume,
    resume_pods,
)

KUEUE = "kueue.x-k8s.io/v1beta2"
GATES = [SchedulingGate(name="kueue.x-k8s.io/admission")]


def workload(
    name: str = "job-train-0a1b2",
    *,
    owner: tuple[str, str] | None = ("Job", "train"),
    count: int = 2,
    admitted: str = "",
    conditions: tuple[str, ...] = (),
    pod_set: str = "main",
    **metadata: Any,
) -> Document:
    """A Workload; `admitted` names the flavor that it was given, in ClusterQueue `all`."""
    found = document(
        KUEUE,
        "Workload",
        name,
        {"queueName": "team", "podSets": [{"name": pod_set, "count": count, "template": template()}]},
        **metadata,
    )
    if owner is not None:
        kind, owner_name = owner
        found["metadata"]["ownerReferences"] = [{"kind": kind, "name": owner_name, "controller": True}]
    status: Document = {"conditions": [{"type": type_, "status": "True"} for type_ in conditions]}
    if admitted:
        usage = {"cpu": str(count)}
        assignment = {"name": pod_set, "flavors": {"cpu": admitted}, "resourceUsage": usage, "count": count}
        status["admission"] = {"clusterQueue": "all", "podSetAssignments": [assignment]}
        status["conditions"] += [{"type": type_, "status": "True"} for type_ in ("QuotaReserved", "Admitted")]
    return {**found, "status": status}


def queues(*flavors: str) -> list[Document]:
    """LocalQueue team of ClusterQueue all, which has CPUs of the given flavors; each flavor labels its nodes."""
    quotas = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": 10}]} for name in flavors]
    groups = [{"coveredResources": ["cpu"], "flavors": quotas}]
    return [
        document(KUEUE, "LocalQueue", "team", {"clusterQueue": "all"}),
        document(KUEUE, "ClusterQueue", "all", {"resourceGroups": groups, "namespaceSelector": {}}),
        *(document(KUEUE, "ResourceFlavor", name, {"nodeLabels": {"pool": name}}) for name in flavors),
    ]


def only(*documents: Document) -> QueuedWorkload:
    (queued,) = queued_workloads(load(*documents))
    return queued


def assignments(queued: QueuedWorkload) -> list[tuple[str, dict[str, str] | None, Any, int | None]] | None:
    admission = queued.workload.status.admission
    if admission is None:
        return None
    return [(found.name, found.flavors, found.resource_usage, found.count) for found in admission.pod_set_assignments]


def test_a_workload_that_is_given_is_used_as_it_is() -> None:
    given = workload(count=7, conditions=("QuotaReserved",))

    queued = only(job("train", queue="team", parallelism=2), given)

    assert queued.workload.metadata.name == "job-train-0a1b2"
    assert queued.workload.spec.pod_sets[0].count == 7
    assert queued.pods == {"main": ["default/train-96gf9", "default/train-x99kp"]}


@pytest.mark.parametrize(
    ("found", "given"),
    [
        pytest.param(
            job("train", queue="team", metadata={"labels": {"kueue.x-k8s.io/prebuilt-workload-name": "mine"}}),
            workload("mine", owner=None),
            id="by the name that the job gives",
        ),
        pytest.param(
            job("train", queue="team"), workload("job-train-e5b0e", owner=None), id="by the name it would have"
        ),
        pytest.param(plain_pod("web"), workload("pod-web-12345", owner=("Pod", "web")), id="by its pod"),
    ],
)
def test_a_given_workload_is_found(found: Document, given: Document) -> None:
    assert only(found, given).workload.metadata.name == given["metadata"]["name"]


def test_a_workload_of_an_earlier_job_of_the_same_name_is_not_the_new_ones() -> None:
    given = workload()
    given["metadata"]["ownerReferences"][0]["uid"] = "old"

    workloads = queued_workloads(load(job("train", queue="team", metadata={"uid": "new"}), given))

    assert [(queued.workload.metadata.name, queued.pods) for queued in workloads] == [
        ("job-train-9404c", {"main": ["default/train-96gf9"]}),
        ("job-train-0a1b2", {"main": []}),
    ]


def test_of_several_workloads_the_one_that_holds_quota_counts() -> None:
    pending = workload("job-train-11111", creationTimestamp="2025-06-01T13:00:00Z")
    admitted = workload("job-train-22222", admitted="spot", creationTimestamp="2025-06-01T12:00:00Z")

    assert only(job("train", queue="team"), pending, admitted).workload.metadata.name == "job-train-22222"


def test_a_workload_without_its_job_still_counts() -> None:
    queued = only(workload(admitted="spot"))

    assert (queued.owner_key, queued.pods) == (("Job", "default", "train"), {"main": []})


@pytest.mark.parametrize("with_job", [True, False])
def test_a_finished_workload_is_left_out(with_job: bool) -> None:
    documents = [workload(conditions=("Finished",)), *([job("train", queue="team")] if with_job else [])]

    assert queued_workloads(load(*documents)) == []


def test_a_finished_job_does_not_leave_its_workload_behind() -> None:
    over = {**job("train", queue="team"), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}

    assert queued_workloads(load(over, workload(admitted="spot"))) == []


def test_admission_checks_are_read() -> None:
    given = workload(conditions=("QuotaReserved",))
    given["status"]["admissionChecks"] = [
        {"name": "capacity", "state": "Pending", "message": "asked for", "retryCount": 2}
    ]

    (check,) = only(job("train", queue="team"), given).workload.status.admission_checks or []

    assert (check.name, check.state, check.retry_count) == ("capacity", "Pending", 2)


def test_pods_of_admitted_work_go_where_their_flavor_is() -> None:
    flavor = document(
        KUEUE,
        "ResourceFlavor",
        "spot",
        {"nodeLabels": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]},
    )
    manifests = load(flavor, job("train", queue="team", parallelism=2, suspend=True), workload(admitted="spot"))

    assert held(manifests) == {"train-96gf9": False, "train-x99kp": False}
    for pod in manifests.pods:
        assert pod.spec.node_selector == {"pool": "spot"}
        assert [found.key for found in pod.spec.tolerations or ()] == ["spot"]
    assert len({id(pod.spec) for pod in manifests.pods}) == 1


def test_work_with_quota_but_not_admitted_yet_waits() -> None:
    given = workload(admitted="spot")
    given["status"]["conditions"].pop()  # quota is reserved, a check is pending

    manifests = load(job("train", queue="team", parallelism=2), given)

    assert held(manifests) == {"train-96gf9": True, "train-x99kp": True}


def test_of_work_admitted_in_part_the_rest_waits() -> None:
    given = workload(admitted="spot", count=3)
    given["status"]["admission"]["podSetAssignments"][0]["count"] = 2

    assert held(load(job("train", queue="team", parallelism=3), given)) == {
        "train-96gf9": False,
        "train-x99kp": False,
        "train-kd5q6": True,
    }


def test_what_a_check_adds_to_pods_is_added() -> None:
    given = workload(admitted="spot", count=1)
    update = {"name": "main", "nodeSelector": {"capacity": "booked"}}
    given["status"]["admissionChecks"] = [{"name": "capacity", "state": "Ready", "podSetUpdates": [update]}]

    (pod,) = load(job("train", queue="team"), given).pods

    assert pod.spec.node_selector == {"capacity": "booked"}


def test_an_admission_that_the_pods_contradict_is_refused() -> None:
    picky = job("train", queue="team", template=template(nodeSelector={"pool": "fast"}))

    with pytest.raises(ManifestError) as raised:
        load(*queues("spot"), picky, workload(admitted="spot", count=1))

    assert str(raised.value) == (
        "<memory>: document 5 (Workload default/job-train-0a1b2): status.admission: expected flavors that the "
        "pods of pod "
        "set main can run on, found node selector pool=fast contradicts pool=spot"
    )


def test_pods_that_run_hold_quota_though_no_workload_says_so() -> None:
    pods = [owned(plain_pod(f"train-{i}", queue="", node="node"), "Job", "train", "batch/v1") for i in range(2)]
    node = node_document("node", labels={"pool": "reserved"})

    queued = only(*queues("spot", "reserved"), node, job("train", queue="team", parallelism=2), *pods)

    assert assignments(queued) == [("main", {"cpu": "reserved"}, {"cpu": "2000m"}, 2)]
    assert queued.workload.status.admission is not None and queued.workload.status.admission.cluster_queue == "all"
    assert [type_ for type_ in ("QuotaReserved", "Admitted") if queued.workload.condition(type_)] == [
        "QuotaReserved",
        "Admitted",
    ]


def test_what_is_missing_of_work_that_runs_in_part_does_not_wait() -> None:
    running = grouped_pod("a", 2, node="node")
    manifests = load(*queues("spot"), node_document("node", labels={"pool": "spot"}), running, grouped_pod("b", 2))

    assert held(manifests) == {"a": False, "b": False}
    (queued,) = queued_workloads(manifests)  # what admission added has not made another role of b
    assert list(queued.pods.values()) == [["default/a", "default/b"]]
    assert manifests.pods[1].spec.node_selector == {"pool": "spot"}


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param(["LocalQueue"], id="no LocalQueue"),
        pytest.param(["ClusterQueue"], id="no ClusterQueue"),
        pytest.param(["ResourceFlavor"], id="no flavor of that node"),
    ],
)
def test_pods_that_no_queue_could_have_started_hold_nothing(missing: list[str]) -> None:
    pod = owned(plain_pod("train-0", queue="", node="node"), "Job", "train", "batch/v1")
    given = [found for found in queues("spot") if found["kind"] not in missing]

    queued = only(*given, node_document("node", labels={"pool": "spot"}), job("train", queue="team"), pod)

    assert assignments(queued) is None


def test_a_workload_of_several_pod_sets_is_given_quota_for_each() -> None:
    found = job_set("train", replicated_job("driver"), replicated_job("worker", 2), queue="team")
    labels = {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/replicatedjob-name": "driver"}
    child = owned(job("train-driver-0"), "JobSet", "train")
    pod = owned(
        plain_pod("train-driver-0-x", queue="", node="node", labels=labels), "Job", "train-driver-0", "batch/v1"
    )

    queued = only(*queues("spot"), node_document("node", labels={"pool": "spot"}), found, child, pod)

    assert assignments(queued) == [
        ("driver", {"cpu": "spot"}, {"cpu": "1000m"}, 1),
        ("worker", {"cpu": "spot"}, {"cpu": "2000m"}, 2),
    ]


def pod_with(**spec: Any) -> Pod:
    return Pod(spec=PodSpec(**spec))


def test_resume_takes_the_gate_off_and_adds_what_the_flavor_says() -> None:
    spot, own = Toleration(key="spot", operator="Exists"), Toleration(key="gpu", operator="Exists")
    mine = SchedulingGate(name="example.com/mine")
    pod = pod_with(
        scheduling_gates=[*GATES, SchedulingGate(name="kueue.x-k8s.io/topology"), mine],
        node_selector={"zone": "a"},
        tolerations=[own],
    )

    resumed = resume(pod, {"pool": "spot", "zone": "a"}, [spot, own])

    assert resumed.spec.scheduling_gates == [mine]
    assert resumed.spec.node_selector == {"zone": "a", "pool": "spot"}
    assert resumed.spec.tolerations == [own, spot]
    assert pod.spec.scheduling_gates is not None and len(pod.spec.scheduling_gates) == 3


def test_resume_refuses_a_selector_that_contradicts_the_pods_own() -> None:
    with pytest.raises(ResumeError, match="node selector zone=a contradicts zone=b"):
        resume(pod_with(scheduling_gates=GATES, node_selector={"zone": "a"}), {"zone": "b"}, [])


def test_pods_that_share_a_spec_share_it_when_resumed() -> None:
    spec = PodSpec(scheduling_gates=GATES)

    first, second = resume_pods([Pod(spec=spec), Pod(spec=spec)], {"pool": "spot"}, [])

    assert first.spec is second.spec and first.spec.node_selector == {"pool": "spot"}


def test_flavors_of_one_pod_set_must_be_on_the_same_nodes() -> None:
    flavors = {
        name: ResourceFlavor(spec=ResourceFlavorSpec(node_labels=labels))
        for name, labels in {"a": {"pool": "x"}, "b": {"zone": "z"}, "c": {"pool": "y"}}.items()
    }

    assert flavor_terms(flavors, ["a", "b", "a", "gone"]) == ({"pool": "x", "zone": "z"}, [])
    with pytest.raises(ResumeError, match="pool=x contradicts pool=y"):
        flavor_terms(flavors, ["a", "c"])
