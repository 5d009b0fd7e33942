"""Whatever queues: no pod is in two workloads, all pods of a workload wait, its Workload is one Kueue would take."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mooring.model.api.kueue_labels import ADMISSION_GATE, POD_GROUP, POD_GROUP_TOTAL, QUEUE_NAME
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import Manifests, build_manifests
from mooring.model.places import Place
from mooring.model.queued.workloads import QueuedWorkload, queued_workloads, resume_pods
from mooring.model.validation.kueue import validate_queueing
from mooring.testing.queueing_builders import make_admission, make_group, make_local_queue, make_queue, make_quota

Document = dict[str, Any]
COUNTS = st.integers(0, 3)


@st.composite
def templates(draw: st.DrawFn) -> Document:
    container = {"name": "main", "resources": {"requests": {"cpu": draw(st.integers(1, 4))}}}
    labels = {QUEUE_NAME: "team"} if draw(st.integers(0, 4)) == 4 else {}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container]}}


def job_spec(draw: st.DrawFn) -> Document:
    template = draw(templates())
    template["spec"]["restartPolicy"] = "Never"
    return {"parallelism": draw(COUNTS), "template": template}


def replicas(draw: st.DrawFn, *types: str) -> Document:
    first, *others = types
    found = {first: {"replicas": 1, "template": draw(templates())}}
    return found | {type_: {"replicas": draw(COUNTS), "template": draw(templates())} for type_ in others}


def ray_spec(draw: st.DrawFn) -> Document:
    groups = [
        {"groupName": f"g{i}", "replicas": draw(COUNTS), "template": draw(templates())} for i in range(draw(COUNTS))
    ]
    return {"headGroupSpec": {"template": draw(templates())}, "workerGroupSpecs": groups}


def spec_of(draw: st.DrawFn, kind: str, suspend: bool) -> tuple[str, Document]:
    match kind:
        case "Job":
            return "batch/v1", {**job_spec(draw), "suspend": suspend}
        case "JobSet":
            jobs = [
                {"name": f"r{i}", "replicas": draw(COUNTS), "template": {"spec": job_spec(draw)}}
                for i in range(draw(st.integers(1, 2)))
            ]
            return "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": jobs, "suspend": suspend}
        case "PyTorchJob":
            specs = replicas(draw, "Master", "Worker")
            return "kubeflow.org/v1", {"pytorchReplicaSpecs": specs, "runPolicy": {"suspend": suspend}}
        case "MPIJob":
            version = draw(st.sampled_from(["v1", "v2beta1"]))
            specs = replicas(draw, "Launcher", "Worker")
            return f"kubeflow.org/{version}", {"mpiReplicaSpecs": specs, "runPolicy": {"suspend": suspend}}
        case "RayCluster":
            return "ray.io/v1", {**ray_spec(draw), "suspend": suspend}
        case "RayJob":
            spec = {"rayClusterSpec": ray_spec(draw), "shutdownAfterJobFinishes": True, "suspend": suspend}
            return "ray.io/v1", spec
        case "LeaderWorkerSet":
            inner = {"size": draw(st.integers(1, 3)), "workerTemplate": draw(templates())}
            if draw(st.booleans()):
                inner["leaderTemplate"] = draw(templates())
            return "leaderworkerset.x-k8s.io/v1", {"replicas": draw(COUNTS), "leaderWorkerTemplate": inner}
        case _:
            return "apps/v1", {"replicas": draw(COUNTS), "template": draw(templates())}


KINDS = (
    *("Job", "JobSet", "PyTorchJob", "MPIJob", "RayCluster", "RayJob", "LeaderWorkerSet"),
    *("StatefulSet", "Deployment", "ReplicaSet"),
)


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    """Jobs of all kinds, some of which queue, and pods alone and in groups."""
    found = []
    for number in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(KINDS))
        api_version, spec = spec_of(draw, kind, draw(st.booleans()))
        labels = {QUEUE_NAME: "team"} if draw(st.booleans()) else {}
        metadata = {"name": f"w{number}", "labels": labels}
        found.append({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    total = draw(st.integers(1, 3))
    for number in range(draw(st.integers(0, 4))):
        pod = draw(templates())
        metadata = {"name": f"p{number}", "labels": {QUEUE_NAME: "team", POD_GROUP: "crew"}}
        metadata["annotations"] = {POD_GROUP_TOTAL: str(total)}
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]})
    return found


def held(manifests: Manifests) -> set[str]:
    return {
        pod.key
        for pod in manifests.pods
        if any(gate.name == ADMISSION_GATE for gate in pod.spec.scheduling_gates or ())
    }


def members(workload: QueuedWorkload) -> list[PodKey]:
    return [key for keys in workload.pods.values() for key in keys]


def without_order(workloads: list[QueuedWorkload]) -> dict[str, Any]:
    return {
        workload.workload.key: (
            workload.owner_key,
            workload.pods,
            [(found.name, found.count) for found in workload.workload.spec.pod_sets],
        )
        for workload in workloads
    }


@examples(60)
@given(documents())
def test_every_pod_that_waits_is_in_one_work_and_no_other_pod_waits(found: list[Document]) -> None:
    manifests = build_manifests(found)

    workloads = queued_workloads(manifests)

    listed = Counter(key for workload in workloads for key in members(workload))
    assert all(count == 1 for count in listed.values())
    assert listed.keys() <= held(manifests)
    left = held(manifests) - listed.keys()
    assert all(key.startswith("default/p") for key in left)  # only groups may lack pods, or have too many


@examples(60)
@given(documents())
def test_a_workload_is_valid_and_has_as_many_pods_as_it_says(found: list[Document]) -> None:
    for workload in queued_workloads(build_manifests(found)):
        validate_queueing(workload.workload, Place("<drawn>"))
        assert {name: len(keys) for name, keys in workload.pods.items()} == {
            pod_set.name: pod_set.count for pod_set in workload.workload.spec.pod_sets
        }


@examples(40)
@given(documents(), st.randoms(use_true_random=False))
def test_the_order_of_the_manifests_decides_only_who_is_first(found: list[Document], random: Any) -> None:
    jobs = [document for document in found if document["kind"] != "Pod"]
    shuffled = list(jobs)
    random.shuffle(shuffled)

    assert without_order(queued_workloads(build_manifests(jobs))) == without_order(
        queued_workloads(build_manifests(shuffled))
    )


@examples(40)
@given(documents())
def test_asking_twice_gives_the_same_works(found: list[Document]) -> None:
    manifests = build_manifests(found)

    assert queued_workloads(manifests) == queued_workloads(manifests)


@examples(40)
@given(documents())
def test_every_work_can_be_admitted_and_then_none_of_its_pods_is_held(found: list[Document]) -> None:
    manifests = build_manifests(found)
    workloads = queued_workloads(manifests)
    quotas = [make_quota(10_000), make_quota("1Ti", resource="memory")]  # a RayJob's submitter asks for memory too
    queue = make_queue("all", make_group(default=quotas))
    admission = make_admission([queue], local_queues=[make_local_queue("team", cluster_queue="all")])
    assert [admission.add(workload.workload) for workload in workloads] == [""] * len(workloads)

    admitted = {
        found.workload for cycle in range(len(workloads)) for found in admission.run_cycle(float(cycle)).admitted
    }

    assert admitted == {workload.workload.key for workload in workloads}
    by_key = {pod.key: pod for pod in manifests.pods}
    for workload in workloads:
        for pod in resume_pods([by_key[key] for key in members(workload)], {"pool": "a"}, []):
            assert pod.spec.scheduling_gates is None and pod.spec.node_selector == {"pool": "a"}
