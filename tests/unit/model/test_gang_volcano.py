"""Volcano's PodGroup and Job: roles, network topology, partitions, and the pods that a Job becomes."""

import pytest
from gang_manifests import memberships, only_gang, pod_named, read, refusal

from mooring.model.api.volcano_queue import Queue
from mooring.model.gangs.gang import Gang, Role
from mooring.model.keys import GangKey
from mooring.model.topology.requests import TopologyRequest

GROUP = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: train, namespace: ml}
spec:
  minMember: 5
  minTaskMember: {master: 1, worker: 4}
  minResources: {cpu: "8", nvidia.com/gpu: 32}
  queue: research
  networkTopology: {mode: hard, highestTierAllowed: 2}
"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: ml, annotations: {volcano.sh/preemptable: "false", note: private}}
spec:
  minAvailable: 3
  schedulerName: volcano
  queue: research
  plugins: {svc: [], ssh: []}
  policies:
  - {event: PodEvicted, action: RestartJob}
  tasks:
  - name: master
    replicas: 1
    policies:
    - {event: TaskCompleted, action: CompleteJob}
    template:
      metadata: {labels: {app: train}}
      spec:
        containers: [{name: main, resources: {requests: {cpu: "1"}}}]
        restartPolicy: OnFailure
  - name: worker
    replicas: 3
    minAvailable: 2
    template:
      spec:
        containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8}}}]
"""
HYPERNODES = """
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf-0}
spec:
  tier: 1
  tierName: leaf
  members: [{type: Node, selector: {exactMatch: {name: n0}}}]
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: spine-0}
spec:
  tier: 2
  tierName: spine
  members: [{type: HyperNode, selector: {exactMatch: {name: leaf-0}}}]
"""


def group(spec: str) -> str:
    return f"""
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: train}}
spec: {spec}
"""


def job(tasks: str, more: str = "") -> str:
    return f"""
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: train}}
spec:
  tasks: {tasks}
{more}
"""


def task(fields: str) -> str:
    return f"{{template: {{spec: {{containers: [{{name: main}}]}}}}, {fields}}}"


def test_a_pod_group_is_a_gang_with_roles_a_queue_and_a_place() -> None:
    assert only_gang(read(GROUP)) == Gang(
        key=GangKey("PodGroup.scheduling.volcano.sh/ml/train"),
        name="ml/train",
        minimum=5,
        roles=(Role("master", 1), Role("worker", 4)),
        min_resources={"cpu": "8", "nvidia.com/gpu": 32},
        queue="research",
        topology_request=TopologyRequest(required="hypernode-tier/2", preferred="hypernode-tier/1"),
    )


def test_minimums_of_roles_count_only_while_the_whole_covers_them() -> None:
    assert only_gang(read(group("{minMember: 4, minTaskMember: {a: 1, b: 4}}"))).roles == ()
    assert only_gang(read(group("{minMember: 5, minTaskMember: {a: 1, b: 4}}"))).roles == (Role("a", 1), Role("b", 4))


def test_a_group_that_names_no_queue_is_in_the_default_one() -> None:
    assert only_gang(read(group("{minMember: 1}"))).queue == "default"


@pytest.mark.parametrize(
    ("network", "topology_request"),
    [
        pytest.param("{mode: soft}", TopologyRequest(preferred="hypernode-tier/1"), id="soft"),
        pytest.param("{highestTierAllowed: 1}", TopologyRequest(required="hypernode-tier/1"), id="hard by default"),
        pytest.param(
            "{highestTierName: spine}",
            TopologyRequest(required="hypernode-tier/2", preferred="hypernode-tier/1"),
            id="a tier by its name",
        ),
        pytest.param(
            "{highestTierName: core}",
            TopologyRequest(required="hypernode-tier/core", preferred="hypernode-tier/1"),
            id="a name that no tier has",
        ),
    ],
)
def test_network_topology_is_a_wish_for_hypernodes(network: str, topology_request: TopologyRequest) -> None:
    manifests = read(group(f"{{minMember: 1, networkTopology: {network}}}") + HYPERNODES)

    assert only_gang(manifests).topology_request == topology_request


def test_subgroups_are_slices_of_a_role() -> None:
    gang = only_gang(
        read(
            group(
                """
  minMember: 8
  subGroupPolicy:
  - name: worker
    subGroupSize: 4
    minSubGroups: 2
    labelSelector: {matchLabels: {volcano.sh/task-spec: worker}}
    matchLabelKeys: [volcano.sh/partition-id]
    networkTopology: {mode: hard, highestTierAllowed: 1}
"""
            )
        )
    )

    assert gang.roles == (Role("worker", 8, TopologyRequest(slice_size=4, slice_level="hypernode-tier/1")),)


def test_subgroups_of_all_pods_are_slices_of_the_gang() -> None:
    gang = only_gang(
        read(
            group(
                """
  minMember: 2
  networkTopology: {highestTierAllowed: 3}
  subGroupPolicy: [{subGroupSize: 2, minSubGroups: 3, networkTopology: {highestTierAllowed: 1}}]
"""
            )
        )
    )

    assert gang.minimum == 6
    assert gang.topology_request == TopologyRequest("hypernode-tier/3", "hypernode-tier/1", 2, "hypernode-tier/1")


def test_a_job_becomes_the_pods_of_its_tasks() -> None:
    manifests = read(JOB)

    assert memberships(manifests) == {
        "train-master-0": ("ml/train", "master", 0),
        "train-worker-0": ("ml/train", "worker", 0),
        "train-worker-1": ("ml/train", "worker", 1),
        "train-worker-2": ("ml/train", "worker", 2),
    }
    master = pod_named(manifests, "train-master-0")
    assert master.spec.scheduler_name == "volcano"
    assert master.metadata.labels == {
        "app": "train",
        "volcano.sh/job-name": "train",
        "volcano.sh/job-namespace": "ml",
        "volcano.sh/queue-name": "research",
        "volcano.sh/task-index": "0",
        "volcano.sh/task-spec": "master",
    }
    assert master.metadata.annotations == {
        "scheduling.k8s.io/group-name": "train",
        "volcano.sh/job-name": "train",
        "volcano.sh/job-version": "0",
        "volcano.sh/preemptable": "false",
        "volcano.sh/queue-name": "research",
        "volcano.sh/task-spec": "master",
        "volcano.sh/template-uid": "train-master",
    }
    (owner,) = master.metadata.owner_references or []
    assert (owner.api_version, owner.kind, owner.name) == ("batch.volcano.sh/v1alpha1", "Job", "train")


def test_a_job_is_the_gang_that_its_pod_group_would_declare() -> None:
    assert only_gang(read(JOB)) == Gang(
        key=GangKey("PodGroup.scheduling.volcano.sh/ml/train"),
        name="ml/train",
        minimum=3,
        roles=(Role("master", 1), Role("worker", 2)),
        queue="research",
        restarts_whole=True,
    )


def test_a_job_without_a_minimum_needs_what_its_tasks_need() -> None:
    gang = only_gang(read(job(f"[{task('name: a, replicas: 2')}, {task('name: b, replicas: 4, minAvailable: 1')}]")))

    assert (gang.minimum, gang.roles, gang.restarts_whole) == (3, (Role("a", 2), Role("b", 1)), False)


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ("[{event: PodEvicted, action: RestartJob}]", True),
        ("[{events: [PodFailed, PodEvicted], action: AbortJob}]", True),
        ("[{event: '*', action: TerminateJob}]", True),
        ("[{event: PodEvicted, action: RestartTask}, {event: '*', action: RestartJob}]", False),
        ("[{event: PodFailed, action: RestartJob}]", False),
        ("[]", False),
    ],
)
def test_policies_tell_whether_the_loss_of_one_stops_all(policies: str, expected: bool) -> None:
    tasks = f"[{task('name: a, replicas: 2')}]"

    assert only_gang(read(job(tasks, f"  policies: {policies}"))).restarts_whole is expected


def test_a_task_that_only_loses_itself_keeps_the_job() -> None:
    tasks = f"[{task('name: a, replicas: 2, policies: [{event: PodEvicted, action: RestartTask}]')}]"

    assert not only_gang(read(job(tasks, "  policies: [{event: PodEvicted, action: RestartJob}]"))).restarts_whole


def test_partitions_are_slices_and_labelled() -> None:
    fields = """name: w, replicas: 4, partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 1,
      networkTopology: {highestTierAllowed: 1}}, minAvailable: 1"""
    manifests = read(job(f"[{task(fields)}]"))

    assert only_gang(manifests).roles == (Role("w", 2, TopologyRequest(slice_size=2, slice_level="hypernode-tier/1")),)
    assert [(pod.metadata.labels or {})["volcano.sh/partition-id"] for pod in manifests.pods] == ["0", "0", "1", "1"]


def test_tasks_without_a_name_are_numbered_and_the_class_and_claims_of_the_job_are_its_pods() -> None:
    manifests = read(
        """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 50
---
"""
        + job(
            f"[{task('replicas: 1')}]",
            "  priorityClassName: high\n  volumes: [{mountPath: /d, volumeClaimName: data}, {mountPath: /s}]",
        )
    )

    (pod,) = manifests.pods
    assert pod.metadata.name == "train-default0-0"
    assert (pod.spec.priority, only_gang(manifests).priority) == (50, 50)
    assert [
        volume.persistent_volume_claim.claim_name for volume in pod.spec.volumes or () if volume.persistent_volume_claim
    ] == ["data"]
    assert pod.spec.scheduler_name == "default-scheduler"


@pytest.mark.parametrize("phase", ["Completed", "Aborted", "Terminated", "Failed", "Completing", "Aborting"])
def test_a_job_that_is_over_makes_no_pods_and_no_gang(phase: str) -> None:
    manifests = read(JOB + f"status: {{state: {{phase: {phase}}}}}")

    assert manifests.pods == []
    assert manifests.gangs == []


def dumped_pod(name: str, group: str, uid: str = "", api_version: str = "batch.volcano.sh/v1alpha1") -> str:
    return f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: ml
  annotations: {{scheduling.k8s.io/group-name: {group}, volcano.sh/task-spec: worker}}
  ownerReferences: [{{apiVersion: {api_version}, kind: Job, name: train, uid: "{uid}", controller: true}}]
spec:
  nodeName: n1
  containers: [{{name: main}}]
"""


def test_what_a_dump_has_is_not_made_again_and_new_pods_join_its_group() -> None:
    dump = JOB.replace("{name: train, ", "{name: train, uid: u1, ") + dumped_pod("train-worker-1", "train-u1", "u1")
    dump += GROUP.replace("apiVersion", "---\napiVersion").replace("name: train", "name: train-u1")

    manifests = read(dump)

    assert sorted(pod.metadata.name for pod in manifests.pods) == [
        "train-master-0",
        "train-worker-0",
        "train-worker-1",
        "train-worker-2",
    ]
    assert {gang for gang, _, _ in memberships(manifests).values()} == {"ml/train-u1"}
    assert only_gang(manifests).minimum == 5, "the object goes before what the Job would declare"


RUNS_AGAIN = ["train-master-0", "train-worker-0", "train-worker-1", "train-worker-2"]


@pytest.mark.parametrize(
    ("phase", "job", "is_made_anew"),
    [
        pytest.param("Failed", JOB, True, id="failed, and the loss of one restarts all"),
        pytest.param("Failed", JOB.replace("PodEvicted", "PodFailed"), True, id="failed, and that restarts all"),
        pytest.param("Failed", JOB.replace("RestartJob", "AbortJob"), False, id="failed, and that ends it"),
        pytest.param("Failed", JOB.replace("PodEvicted", "TaskFailed"), False, id="failed, and nobody minds"),
        pytest.param("Succeeded", JOB, False, id="succeeded"),
        pytest.param("Succeeded", f"{JOB}status: {{state: {{phase: Restarting}}}}", True, id="the job restarts"),
        pytest.param("Succeeded", f"{JOB}status: {{version: 2}}", True, id="the job has restarted since"),
        pytest.param("Succeeded", f"{JOB}status: {{version: 1}}", False, id="succeeded since the last restart"),
    ],
)
def test_pods_that_are_over_are_made_anew_when_their_job_restarts(phase: str, job: str, is_made_anew: bool) -> None:
    over = dumped_pod("train-worker-1", "train") + f"status: {{phase: {phase}}}\n"
    over = over.replace("volcano.sh/task-spec", 'volcano.sh/job-version: "1", volcano.sh/task-spec')

    manifests = read(job + over)
    pod = pod_named(manifests, "train-worker-1")

    assert sorted(found.metadata.name for found in manifests.pods) == RUNS_AGAIN
    assert (pod.status.phase == phase, pod.spec.node_name) == ((False, "") if is_made_anew else (True, "n1"))
    assert bool(pod.metadata.uid) is is_made_anew, "another pod of the same name"
    assert memberships(manifests)["train-worker-1"] == ("ml/train", "worker", 1)


@pytest.mark.parametrize(("action", "phases"), [("RestartJob", ["", ""]), ("RestartTask", ["", "Succeeded"])])
def test_when_one_failure_restarts_a_job_those_that_succeeded_run_again_too(action: str, phases: list[str]) -> None:
    over = [
        dumped_pod(f"train-worker-{index}", "train") + f"status: {{phase: {phase}}}\n"
        for index, phase in enumerate(["Failed", "Succeeded"])
    ]
    manifests = read(JOB.replace("RestartJob", action) + "".join(over))

    found = [pod_named(manifests, f"train-worker-{index}").status.phase for index in range(2)]
    assert ["" if phase == "Pending" else phase for phase in found] == phases


def test_pods_of_a_job_of_kubernetes_with_the_same_name_are_not_its_own() -> None:
    manifests = read(JOB + dumped_pod("train-worker-1-x", "other", api_version="batch/v1"))

    assert len(manifests.pods) == 5


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param("{minMember: 1.5}", "spec.minMember: expected an integer, found 1.5", id="a fraction"),
        pytest.param("{}", "spec.minMember: expected a number of at least 1, found none", id="missing"),
        pytest.param("{minMember: 0}", "spec.minMember: expected a number of at least 1, found 0", id="zero"),
        pytest.param("{minMember: -1}", "spec.minMember: expected a number of at least 1, found -1", id="negative"),
        pytest.param('{minMember: "4"}', 'spec.minMember: expected an integer, found "4"', id="text"),
        pytest.param(
            "{minMember: 1, minTaskMember: {a: -1}}",
            "spec.minTaskMember.a: expected a number of at least 0, found -1",
            id="a negative role",
        ),
        pytest.param(
            "{minMember: 1, minTaskMember: {a: 0.5}}",
            "spec.minTaskMember.a: expected an integer, found 0.5",
            id="half a role",
        ),
        pytest.param(
            "{minMember: 1, minResources: {cpu: lots}}",
            'spec.minResources.cpu: expected a quantity such as 500m, 2 or 1.5Gi, found "lots"',
            id="no quantity",
        ),
        pytest.param(
            "{minMember: 1, networkTopology: {mode: rigid}}",
            'spec.networkTopology.mode: expected one of hard, soft, found "rigid"',
            id="mode",
        ),
        pytest.param(
            "{minMember: 1, networkTopology: {highestTierAllowed: -1}}",
            "spec.networkTopology.highestTierAllowed: expected a number of at least 0, found -1",
            id="tier",
        ),
        pytest.param(
            "{minMember: 1, networkTopology: {highestTierAllowed: 1, highestTierName: spine}}",
            'spec.networkTopology.highestTierName: expected none beside highestTierAllowed, found "spine"',
            id="two tiers",
        ),
        pytest.param(
            "{minMember: 1, subGroupPolicy: [{subGroupSize: 0}]}",
            "spec.subGroupPolicy[0].subGroupSize: expected a number of at least 1, found 0",
            id="subgroups of none",
        ),
        pytest.param(
            "{minMember: 1, subGroupPolicy: [{labelSelector: {matchLabels: {app: a}}}]}",
            "spec.subGroupPolicy[0].labelSelector: "
            "expected a selector of one volcano.sh/task-spec, or none for all pods, found another selector",
            id="subgroups across roles",
        ),
        pytest.param(
            "{minMember: 1, subGroupPolicy: [{}, {}]}",
            'spec.subGroupPolicy[1].labelSelector: expected other pods than an earlier policy, found ""',
            id="subgroups twice",
        ),
        pytest.param(
            "{minMember: 1, priorityClassName: urgent}",
            "spec.priorityClassName: expected a known PriorityClass "
            '(system-cluster-critical, system-node-critical), found "urgent"',
            id="class",
        ),
    ],
)
def test_bad_pod_groups_are_refused(spec: str, message: str) -> None:
    assert refusal(group(spec)) == f"1 (PodGroup default/train): {message}"


@pytest.mark.parametrize(
    ("tasks", "more", "message"),
    [
        pytest.param("[]", "", "spec.tasks: expected at least one task, found none", id="no task"),
        pytest.param(
            f"[{task('name: a, replicas: 2')}]",
            "  minAvailable: 3",
            "spec.minAvailable: expected at most 2, the replicas of all tasks, found 3",
            id="more than there are",
        ),
        pytest.param(
            f"[{task('name: a, replicas: 2')}]",
            "  minAvailable: 1.5",
            "spec.minAvailable: expected an integer, found 1.5",
            id="a fraction",
        ),
        pytest.param(
            f"[{task('name: a, replicas: 2')}]",
            "  minAvailable: -1",
            "spec.minAvailable: expected a number of at least 0, found -1",
            id="negative",
        ),
        pytest.param(
            f"[{task('name: a')}]",
            "",
            "spec.tasks[0].replicas: expected a number of at least 0, found none",
            id="count",
        ),
        pytest.param(
            f"[{task('name: a, replicas: -1')}]",
            "",
            "spec.tasks[0].replicas: expected a number of at least 0, found -1",
            id="a negative count",
        ),
        pytest.param(
            f"[{task('name: a, replicas: 2, minAvailable: 3')}]",
            "",
            "spec.tasks[0].minAvailable: expected at most 2, the replicas of the task, found 3",
            id="more than the task has",
        ),
        pytest.param(
            f"[{task('name: a, replicas: 1')}, {task('name: a, replicas: 1')}]",
            "",
            'spec.tasks[1].name: expected a name that is not taken, found "a"',
            id="a name twice",
        ),
        pytest.param(
            "[{name: a, replicas: 1, template: {spec: {}}}]",
            "",
            "spec.tasks[0].template.spec.containers: expected at least one container, found none",
            id="template",
        ),
        pytest.param(
            f"[{task('name: a, replicas: 5, partitionPolicy: {totalPartitions: 2, partitionSize: 2}')}]",
            "",
            "spec.tasks[0].partitionPolicy: "
            "expected totalPartitions times partitionSize to be 5, the replicas of the task, found 4",
            id="partitions that do not divide",
        ),
        pytest.param(
            f"[{task('replicas: 2, partitionPolicy: {totalPartitions: 2, partitionSize: 1, minPartitions: 3}')}]",
            "",
            "spec.tasks[0].partitionPolicy.minPartitions: expected at most 2, the partitions of the task, found 3",
            id="more partitions than there are",
        ),
        pytest.param(
            f"[{task('name: a, replicas: 1')}]",
            "  priorityClassName: urgent",
            "spec.priorityClassName: expected a known PriorityClass "
            '(system-cluster-critical, system-node-critical), found "urgent"',
            id="class of the job",
        ),
        pytest.param(
            "[{name: a, replicas: 1, template: {spec: {priorityClassName: urgent, containers: [{name: main}]}}}]",
            "",
            "spec.tasks[0].template.spec.priorityClassName: expected a known PriorityClass "
            '(system-cluster-critical, system-node-critical), found "urgent"',
            id="class",
        ),
    ],
)
def test_bad_jobs_are_refused(tasks: str, more: str, message: str) -> None:
    assert refusal(job(tasks, more)) == f"1 (Job default/train): {message}"


def test_a_minimum_for_a_task_that_the_job_has_not_is_refused() -> None:
    owner = "ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: train, controller: true}]"
    text = GROUP.replace("worker: 4", "wroker: 4").replace("namespace: ml", f"namespace: ml, {owner}")

    assert refusal(JOB + "---" + text) == (
        '2 (PodGroup ml/train): spec.minTaskMember.wroker: expected the name of a task (master, worker), found "wroker"'
    )


def test_a_task_that_no_pod_is_of_yet_is_waited_for() -> None:
    text = group("{minMember: 2, minTaskMember: {ps: 2}}").replace("name: train", "name: train, namespace: ml")
    pods = [dumped_pod(f"w-{i}", "train") for i in range(2)]

    assert read(text + "".join(pods)).gangs[0].roles == (Role("ps", 2),)


def test_a_queue_of_volcano_is_read_with_its_defaults() -> None:
    manifests = read("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: research}, spec: {}}")

    (queue,) = manifests.of(Queue)
    assert (queue.metadata.namespace, queue.spec.weight) == ("", 1)


def test_hypernodes_that_contradict_one_another_are_refused() -> None:
    leaf = HYPERNODES.split("---")[1]

    assert refusal(leaf + "---" + leaf.replace("leaf-0", "leaf-1")) == (
        "2 (HyperNode leaf-1): spec.members: "
        "expected each member in one HyperNode of tier 1 only, found n0 also in leaf-0"
    )
