"""Which gang a pod belongs to, in each dialect's own words."""

from typing import Any

import pytest

from mooring.model.api.meta import ObjectMeta, OwnerReference
from mooring.model.api.pods import Pod, PodSpec, SchedulingGroup, WorkloadReference
from mooring.model.gangs.gang import Membership
from mooring.model.gangs.membership import membership
from mooring.model.keys import GangKey

JOB = OwnerReference(api_version="batch/v1", kind="Job", name="train", controller=True)


def pod(
    name: str = "train-x7k2p", *, spec: PodSpec | None = None, owner: OwnerReference | None = None, **said: Any
) -> Pod:
    metadata = ObjectMeta(name=name, namespace="ml", owner_references=[owner] if owner else None, **said)
    return Pod(metadata=metadata, spec=spec or PodSpec())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(pod(), None, id="nothing said"),
        pytest.param(pod(labels={"app": "web"}, annotations={"note": "x"}), None, id="nothing of the kind said"),
        pytest.param(
            pod(spec=PodSpec(scheduling_group=SchedulingGroup(pod_group_name="train"))),
            Membership(GangKey("PodGroup.scheduling.k8s.io/ml/train")),
            id="schedulingGroup",
        ),
        pytest.param(
            pod(spec=PodSpec(workload_ref=WorkloadReference(name="llm", pod_group="workers"))),
            Membership(GangKey("Workload.scheduling.k8s.io/ml/llm/workers")),
            id="workloadRef",
        ),
        pytest.param(
            pod(spec=PodSpec(workload_ref=WorkloadReference(name="llm", pod_group="w", pod_group_replica_key="3"))),
            Membership(GangKey("Workload.scheduling.k8s.io/ml/llm/w/3")),
            id="workloadRef with a replica",
        ),
        pytest.param(
            pod(
                annotations={"scheduling.k8s.io/group-name": "train", "volcano.sh/task-spec": "worker"},
                labels={"volcano.sh/task-index": "7"},
            ),
            Membership(GangKey("PodGroup.scheduling.volcano.sh/ml/train"), "worker", 7),
            id="Volcano",
        ),
        pytest.param(
            pod(annotations={"scheduling.volcano.sh/group-name": "train"}, labels={"volcano.sh/task-spec": "ps"}),
            Membership(GangKey("PodGroup.scheduling.volcano.sh/ml/train"), "ps"),
            id="Volcano's other annotation",
        ),
        pytest.param(
            pod(annotations={"scheduling.volcano.sh/group-min-member": "4"}, owner=JOB),
            Membership(GangKey("PodGroup.scheduling.volcano.sh/ml/podgroup-train")),
            id="Volcano's minimum alone",
        ),
        pytest.param(
            pod(labels={"scheduling.x-k8s.io/pod-group": "train"}),
            Membership(GangKey("PodGroup.scheduling.x-k8s.io/ml/train")),
            id="Coscheduling",
        ),
        pytest.param(
            pod(labels={"pod-group.scheduling.sigs.k8s.io": "train"}),
            Membership(GangKey("PodGroup.scheduling.x-k8s.io/ml/train")),
            id="Coscheduling as it was",
        ),
        pytest.param(
            pod(labels={"pod-group.scheduling.sigs.k8s.io/name": "train"}),
            Membership(GangKey("PodGroup.scheduling.x-k8s.io/ml/train")),
            id="Coscheduling without an object",
        ),
        pytest.param(
            pod(annotations={"pod-group-name": "pg-1"}, labels={"kai.scheduler/subgroup-name": "decode"}),
            Membership(GangKey("PodGroup.scheduling.run.ai/ml/pg-1"), "decode"),
            id="KAI",
        ),
        pytest.param(
            pod(
                labels={
                    "grove.io/podgang": "llm-0",
                    "grove.io/podclique": "llm-0-prefill",
                    "grove.io/podclique-pod-index": "2",
                },
                annotations={"pod-group-name": "pg-llm"},
            ),
            Membership(GangKey("PodGang.scheduler.grove.io/ml/llm-0"), "llm-0-prefill", 2),
            id="Grove, which KAI has grouped again",
        ),
        pytest.param(
            pod(
                labels={
                    "leaderworkerset.sigs.k8s.io/name": "vllm",
                    "leaderworkerset.sigs.k8s.io/group-index": "1",
                    "leaderworkerset.sigs.k8s.io/worker-index": "3",
                }
            ),
            Membership(GangKey("LeaderWorkerSet.leaderworkerset.x-k8s.io/ml/vllm-1"), "worker", 3),
            id="a worker",
        ),
        pytest.param(
            pod(
                labels={
                    "leaderworkerset.sigs.k8s.io/name": "vllm",
                    "leaderworkerset.sigs.k8s.io/worker-index": "0",
                    "apps.kubernetes.io/pod-index": "1",
                }
            ),
            Membership(GangKey("LeaderWorkerSet.leaderworkerset.x-k8s.io/ml/vllm-1"), "leader", 0),
            id="a leader that only its StatefulSet has numbered",
        ),
        pytest.param(
            pod(
                labels={"leaderworkerset.sigs.k8s.io/name": "vllm", "leaderworkerset.sigs.k8s.io/group-index": "0"},
                annotations={"scheduling.k8s.io/group-name": "vllm-0-abc"},
            ),
            Membership(GangKey("PodGroup.scheduling.volcano.sh/ml/vllm-0-abc")),
            id="LeaderWorkerSet with PodGroups",
        ),
        pytest.param(
            pod(annotations={"mooring.dev/gang-name": "train"}),
            Membership(GangKey("Gang.mooring.dev/ml/train")),
            id="by name",
        ),
        pytest.param(
            pod(annotations={"mooring.dev/gang": "true"}, owner=JOB),
            Membership(GangKey("Job.batch/ml/train")),
            id="by owner",
        ),
        pytest.param(
            pod(annotations={"mooring.dev/gang-minimum": "8"}, owner=JOB),
            Membership(GangKey("Job.batch/ml/train")),
            id="by owner, with a minimum",
        ),
        pytest.param(
            pod(annotations={"mooring.dev/gang": "false", "mooring.dev/gang-minimum": "8"}, owner=JOB),
            None,
            id="explicitly none",
        ),
        pytest.param(pod(annotations={"mooring.dev/gang": "true"}), None, id="of an owner that it has not"),
        pytest.param(
            pod(
                annotations={"mooring.dev/gang-name": "train", "scheduling.k8s.io/group-name": "other"},
                labels={"training.kubeflow.org/replica-type": "master"},
            ),
            Membership(GangKey("Gang.mooring.dev/ml/train"), "master"),
            id="our own word first",
        ),
    ],
)
def test_a_pod_names_its_gang(given: Pod, expected: Membership | None) -> None:
    assert membership(given) == expected


@pytest.mark.parametrize(
    ("name", "labels", "rank"),
    [
        ("train-3-abcde", {"batch.kubernetes.io/job-completion-index": "3"}, 3),
        ("train-9", {"training.kubeflow.org/replica-index": "4"}, 4),
        ("train-9", {"apps.kubernetes.io/pod-index": "5"}, 5),
        ("train-9", {}, 9),
        ("train-9x", {}, None),
        ("9", {}, None),
        ("train-20240131", {}, None),
        ("train-0", {"volcano.sh/task-index": "x"}, 0),
    ],
)
def test_ranks_come_from_labels_and_else_from_the_name(name: str, labels: dict[str, str], rank: int | None) -> None:
    found = membership(pod(name, labels=labels, annotations={"mooring.dev/gang-name": "train"}))

    assert found is not None and found.rank == rank


def test_a_completion_index_may_be_an_annotation() -> None:
    annotations = {"mooring.dev/gang-name": "train", "batch.kubernetes.io/job-completion-index": "6"}

    found = membership(pod(annotations=annotations))

    assert found is not None and found.rank == 6
