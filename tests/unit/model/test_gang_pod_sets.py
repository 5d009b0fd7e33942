"""Pod sets that ask Kueue for a place in the topology: each is a gang, placed as a whole or not at all."""

from typing import Any

import pytest
from gang_manifests import memberships, only_gang
from job_builders import document, job, job_set, pytorch_job, ray_cluster, template, worker_group

from mooring.errors import ManifestError
from mooring.model.gangs.gang import Gang
from mooring.model.keys import GangKey
from mooring.model.loading.manifests import Manifests, build_manifests
from mooring.model.topology.requests import TopologyRequest

REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE_LEVEL = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
GROUP = "kueue.x-k8s.io/podset-group-name"


def read(*documents: dict[str, Any]) -> Manifests:
    return build_manifests(documents, "a.yaml")


def asking(**annotations: str) -> dict[str, Any]:
    return template(annotations=annotations)


IN_A_RACK = asking(**{REQUIRED: "rack"})


@pytest.mark.parametrize("queue", ["", "team"])
@pytest.mark.parametrize(
    ("annotations", "topology_request"),
    [
        ({REQUIRED: "rack"}, TopologyRequest(required="rack")),
        ({PREFERRED: "rack"}, TopologyRequest(preferred="rack")),
        ({UNCONSTRAINED: "true"}, TopologyRequest()),
        ({SLICE_LEVEL: "rack", SLICE_SIZE: "2"}, TopologyRequest(slice_level="rack", slice_size=2)),
    ],
)
def test_a_job_that_asks_for_a_topology_is_a_gang(
    queue: str, annotations: dict[str, str], topology_request: TopologyRequest
) -> None:
    manifests = read(job(queue=queue, parallelism=4, completions=6, template=asking(**annotations)))

    assert only_gang(manifests) == Gang(
        key=GangKey("Job.batch/default/train"), name="default/train", minimum=4, topology_request=topology_request
    )
    assert {gang for gang, _, _ in memberships(manifests).values()} == {"default/train"}


@pytest.mark.parametrize(
    "annotations",
    [{UNCONSTRAINED: "false"}, {REQUIRED: "rack", "mooring.dev/gang": "false"}, {"kai.scheduler/topology": "dc"}],
)
def test_a_job_that_does_not_ask_or_wants_no_gang_is_none(annotations: dict[str, str]) -> None:
    assert read(job(parallelism=4, template=asking(**annotations))).gangs == []


def test_a_job_that_may_be_admitted_with_fewer_pods_needs_no_more_of_them() -> None:
    metadata = {"annotations": {"kueue.x-k8s.io/job-min-parallelism": "3"}}
    queued = job(queue="team", parallelism=4, completions=4, metadata=metadata, template=IN_A_RACK)
    alone = job("alone", parallelism=4, completions=4, metadata=metadata, template=IN_A_RACK)

    assert {gang.name: gang.minimum for gang in read(queued, alone).gangs} == {"default/train": 3, "default/alone": 4}


def test_each_kind_of_pods_of_a_training_job_is_a_gang_if_it_asks() -> None:
    worker = {"replicas": 3, "template": IN_A_RACK}
    gangs = read(pytorch_job({"Master": 1, "Worker": worker})).gangs
    both = read(pytorch_job({"Master": {"replicas": 1, "template": IN_A_RACK}, "Worker": worker})).gangs

    assert {gang.key: gang.minimum for gang in gangs} == {"PyTorchJob.kubeflow.org/default/train/worker": 3}
    assert {gang.name: gang.minimum for gang in both} == {"default/train/master": 1, "default/train/worker": 3}


def test_pod_sets_of_one_group_are_one_gang() -> None:
    grouped = asking(**{REQUIRED: "rack", GROUP: "all"})
    replicas = {"Master": {"replicas": 1, "template": grouped}, "Worker": {"replicas": 3, "template": grouped}}
    gang = only_gang(read(pytorch_job(replicas)))

    assert (gang.name, gang.minimum, gang.topology_request) == (
        "default/train/all",
        4,
        TopologyRequest(required="rack"),
    )


def test_a_group_of_ray_workers_is_a_gang_if_it_asks() -> None:
    gang = only_gang(read(ray_cluster("ray", worker_group("big", replicas=2, template=IN_A_RACK))))

    assert (gang.name, gang.minimum) == ("default/ray/big", 2)


def test_the_pods_of_all_jobs_of_a_template_in_a_job_set_are_one_gang_and_slices_end_with_each_job() -> None:
    annotations = {REQUIRED: "block", SLICE_LEVEL: "rack", SLICE_SIZE: "3"}
    inner = {"parallelism": 3, "completions": 3, "template": asking(**annotations)}
    manifests = read(job_set("train", {"name": "worker", "replicas": 2, "template": {"spec": inner}}))
    gang = only_gang(manifests)
    ranks = {name.rpartition("-")[0]: rank for name, (_, _, rank) in memberships(manifests).items()}
    slices = {name: rank // 3 for name, rank in ranks.items()}

    assert (gang.key, gang.minimum) == ("JobSet.jobset.x-k8s.io/default/train/worker", 6)
    assert len(set(slices.values())) == 2
    assert {slices[f"train-worker-1-{index}"] for index in range(3)} == {slices["train-worker-1-0"]}


def test_a_group_of_plain_pods_is_a_gang_for_each_role_that_asks() -> None:
    marks = {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/pod-group-total-count": "4"}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"g-{index}", "annotations": {**marks, REQUIRED: "rack"}},
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]},
        }
        for index, cpu in enumerate(["1", "1", "1", "8"])
    ]

    assert sorted(gang.minimum for gang in read(*pods).gangs) == [1, 3]


def test_pods_beyond_the_total_of_their_group_are_not_waited_for() -> None:
    marks = {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/pod-group-total-count": "2", REQUIRED: "rack"}
    pods = [
        document("v1", "Pod", f"g-{index}", template()["spec"], queue="team", annotations=marks) for index in range(3)
    ]

    assert only_gang(read(*pods)).minimum == 2


def test_pods_that_queue_one_by_one_are_no_gang() -> None:
    spec = {"replicas": 3, "template": {**IN_A_RACK, "metadata": {**IN_A_RACK["metadata"], "labels": {"app": "web"}}}}
    spec["selector"] = {"matchLabels": {"app": "web"}}

    assert read(document("apps/v1", "Deployment", "web", spec, queue="team")).gangs == []
    assert [gang.minimum for gang in read(document("apps/v1", "StatefulSet", "db", spec, queue="team")).gangs] == [3]


def test_a_request_that_cannot_be_read_is_refused_wherever_it_stands() -> None:
    worker = {"replicas": 3, "template": asking(**{UNCONSTRAINED: "maybe"})}
    with pytest.raises(ManifestError, match='podset-unconstrained-topology: expected true or false, found "maybe"'):
        read(pytorch_job({"Worker": worker}))
