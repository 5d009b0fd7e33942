"""Kinds around others: RayService, SparkApplication, Volcano's CronJob, AppWrapper; and what is said of the rest."""

from typing import Any

import pytest
from gang_manifests import only_gang, read, refusal

from mooring.model.api.workloads import Deployment
from mooring.model.gangs.dialects.lws import LeaderWorkerSet
from mooring.model.gangs.gang import Gang, Role
from mooring.model.keys import GangKey
from mooring.model.loading.unread import remarks
from mooring.model.queued.workloads import queued_workloads
from mooring.model.values.requests import pod_requests, whole_requests

POD = "{containers: [{name: main, image: x, resources: {requests: {cpu: '1'}}}]}"
MEBIBYTE = 1 << 20


def requests_of(manifests: Any) -> dict[str, dict[str, int]]:
    return {pod.metadata.name: whole_requests(pod_requests(pod)) for pod in manifests.pods}


def ray(kind: str, cluster: str) -> str:
    return f"""
apiVersion: ray.io/v1
kind: {kind}
metadata: {{name: serve}}
spec:
  {cluster}:
    enableInTreeAutoscaling: true
    headGroupSpec: {{template: {{spec: {POD}}}}}
    workerGroupSpecs: [{{groupName: gpu, replicas: 2, template: {{spec: {POD}}}}}]
"""


def test_a_ray_service_is_its_cluster_and_the_autoscaler_sits_beside_the_head() -> None:
    assert requests_of(read(ray("RayService", "rayClusterConfig"))) == {
        "serve-raycluster-head": {"cpu": 1500, "memory": 512 * MEBIBYTE},
        "serve-raycluster-gpu-worker-0": {"cpu": 1000},
        "serve-raycluster-gpu-worker-1": {"cpu": 1000},
    }


def test_the_autoscaler_asks_for_what_its_options_say() -> None:
    options = "autoscalerOptions: {resources: {requests: {cpu: 250m}}}"
    text = ray("RayService", "rayClusterConfig").replace("enableInTree", f"{options}\n    enableInTree")

    assert requests_of(read(text))["serve-raycluster-head"] == {"cpu": 1250}


def test_an_elastic_job_that_queues_may_scale_itself() -> None:
    marks = 'labels: {kueue.x-k8s.io/queue-name: team}, annotations: {kueue.x-k8s.io/elastic-job: "true"}'
    text = ray("RayService", "rayClusterConfig").replace("name: serve", f"name: serve, {marks}")

    assert len(read(text).pods) == 3


SPARK = """
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: pi}
spec:
  %s
  driver: {cores: 2, memory: 4g, nodeSelector: {pool: spark}}
  executor: {instances: 2, coreRequest: 500m, memory: 512m, gpu: {name: nvidia.com/gpu, quantity: 1}, %s}
"""


def test_a_spark_application_is_a_driver_and_its_executors_with_memory_for_more_than_java() -> None:
    manifests = read(SPARK % ("", ""))

    executor = {"cpu": 500, "memory": (512 + 384) * MEBIBYTE, "nvidia.com/gpu": 1}
    assert requests_of(manifests) == {
        "pi-driver": {"cpu": 2000, "memory": 4096 * MEBIBYTE + 4096 * MEBIBYTE // 10},
        "pi-exec-1": executor,
        "pi-exec-2": executor,
    }
    assert manifests.pods[0].spec.node_selector == {"pool": "spark"}


@pytest.mark.parametrize(
    ("spec", "executor", "names", "memory"),
    [
        pytest.param('memoryOverheadFactor: "0"', "", 3, 512, id="no more than Java's"),
        pytest.param("", "memoryOverhead: 1g", 3, 1536, id="so much more"),
        pytest.param("dynamicAllocation: {enabled: true, initialExecutors: 1}", "", 2, 896, id="grows by itself"),
        pytest.param("dynamicAllocation: {enabled: true, minExecutors: 5}", "", 3, 896, id="as many as it says"),
    ],
)
def test_spark_says_how_many_executors_and_how_much_memory(spec: str, executor: str, names: int, memory: int) -> None:
    found = requests_of(read(SPARK % (spec, executor)))

    assert (len(found), found["pi-exec-1"]["memory"]) == (names, memory * MEBIBYTE)


def test_an_older_spark_application_may_ask_for_a_part_of_a_core() -> None:
    text = (SPARK % ("", "")).replace("v1beta2", "v1beta1").replace("cores: 2", "cores: 0.1")

    assert requests_of(read(text))["pi-driver"]["cpu"] == 100


def test_an_executor_that_is_done_is_not_made_again() -> None:
    owner = "[{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, name: pi, uid: '1', controller: true}]"
    done = f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: pi-exec-1, labels: {{spark-role: executor}}, ownerReferences: {owner}}}
spec: {{containers: [{{name: main}}]}}
status: {{phase: Succeeded}}
"""
    assert sorted(pod.metadata.name for pod in read(SPARK % ("", "") + done).pods) == [
        "pi-driver",
        "pi-exec-1",
        "pi-exec-2",
    ]


def test_a_spark_application_that_is_over_has_no_pods() -> None:
    assert read(SPARK % ("", "") + "status: {applicationState: {state: COMPLETED}}").pods == []


@pytest.mark.parametrize(
    ("spec", "executor", "message"),
    [
        (
            "",
            "memoryOverhead: lots",
            'spec.executor.memoryOverhead: expected an amount as Java writes it, such as 512m or 2g, found "lots"',
        ),
        ("memoryOverheadFactor: much", "", 'spec.memoryOverheadFactor: expected a number such as 0.1, found "much"'),
    ],
)
def test_amounts_that_spark_cannot_read_are_refused(spec: str, executor: str, message: str) -> None:
    assert refusal(SPARK % (spec, executor)) == f"1 (SparkApplication default/pi): {message}"


CRON_JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 1 * * *"
  %s
  jobTemplate:
    spec:
      queue: night
      %s
      tasks: [{name: work, replicas: 3, template: {spec: {containers: [{name: main, image: x}]}}}]
"""


def test_a_cron_job_of_volcano_is_the_gang_of_one_run() -> None:
    manifests = read(CRON_JOB % ("", "minAvailable: 2"))

    assert only_gang(manifests) == Gang(
        key=GangKey("PodGroup.scheduling.volcano.sh/default/nightly"),
        name="default/nightly",
        minimum=2,
        queue="night",
    )
    assert [pod.metadata.name for pod in manifests.pods] == [f"nightly-work-{index}" for index in range(3)]


def test_a_suspended_cron_job_runs_nothing() -> None:
    assert read(CRON_JOB % ("suspend: true", "minAvailable: 2")).pods == []


def test_a_job_inside_a_cron_job_is_checked_like_any_other() -> None:
    assert refusal(CRON_JOB % ("", "minAvailable: 4")) == (
        "1 (CronJob default/nightly): spec.jobTemplate.spec.minAvailable: "
        "expected at most 3, the replicas of all tasks, found 4"
    )


def test_one_event_has_one_policy() -> None:
    policies = "policies: [{event: PodFailed, action: RestartJob}, {event: PodFailed, action: AbortJob}]"

    assert refusal(CRON_JOB % ("", policies)) == (
        "1 (CronJob default/nightly): spec.jobTemplate.spec.policies[1].event: "
        'expected an event that no earlier policy names, found "PodFailed"'
    )


JOB_TEMPLATE = """
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: %s}
spec: {minAvailable: 2, tasks: [{name: work, replicas: 2, template: {spec: {containers: [{name: main, image: x}]}}}]}
"""
JOB_FLOW = """
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: flow}
spec:
  flows:
  - {name: first}
  - {name: second, dependsOn: {targets: [first]}}
  - {name: third, dependsOn: {targets: [%s]}}
  - {name: unknown}
"""
FIRST_IS_DONE = """
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: flow-first}
spec: {tasks: [{name: work, replicas: 2, template: {spec: {containers: [{name: main, image: x}]}}}]}
status: {state: {phase: Completed}}
"""
TEMPLATES = "".join(JOB_TEMPLATE % name for name in ("first", "second", "third"))


def test_a_job_flow_makes_the_jobs_that_depend_on_nothing_as_gangs() -> None:
    manifests = read(TEMPLATES + JOB_FLOW % "second")

    assert [(gang.name, gang.minimum) for gang in manifests.gangs] == [("default/flow-first", 2)]
    assert [pod.metadata.name for pod in manifests.pods] == ["flow-first-work-0", "flow-first-work-1"]


def test_a_job_flow_goes_on_when_a_job_has_completed() -> None:
    assert [gang.name for gang in read(TEMPLATES + JOB_FLOW % "second" + FIRST_IS_DONE).gangs] == [
        "default/flow-second"
    ]
    assert [gang.name for gang in read(TEMPLATES + JOB_FLOW % "first" + FIRST_IS_DONE).gangs] == [
        "default/flow-second",
        "default/flow-third",
    ]


def test_templates_without_a_flow_make_nothing() -> None:
    assert read(TEMPLATES).pods == []


def test_a_flow_that_waits_for_itself_is_refused() -> None:
    text = JOB_FLOW.replace("- {name: first}", "- {name: first, dependsOn: {targets: [second]}}") % "second"

    assert refusal(text) == (
        "1 (JobFlow default/flow): spec.flows[0].dependsOn.targets: expected a flow that does not wait for this one, "
        "found a cycle, first -> second -> first"
    )


WRAPPER = f"""
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {{name: app, namespace: team, labels: {{kueue.x-k8s.io/queue-name: queue}}}}
spec:
  components:
  - template:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {{name: web}}
      spec:
        replicas: 2
        selector: {{matchLabels: {{app: web}}}}
        template: {{metadata: {{labels: {{app: web}}}}, spec: {POD}}}
  - template:
      apiVersion: leaderworkerset.x-k8s.io/v1
      kind: LeaderWorkerSet
      metadata: {{name: serve}}
      spec: {{leaderWorkerTemplate: {{size: 2, workerTemplate: {{spec: {POD}}}}}}}
"""


def test_what_is_in_a_wrapper_is_read_as_if_it_stood_by_itself_and_queues_where_the_wrapper_does() -> None:
    manifests = read(WRAPPER)

    assert sorted((pod.metadata.namespace, pod.metadata.name.partition("-")[0]) for pod in manifests.pods) == [
        ("team", "serve"),
        ("team", "serve"),
        ("team", "web"),
        ("team", "web"),
    ]
    assert [gang.roles for gang in manifests.gangs] == [(Role("leader", 1), Role("worker", 1))]
    deployment: Deployment = manifests.deployments[0]
    assert deployment.metadata.labels == {"kueue.x-k8s.io/queue-name": "queue"}


def test_a_wrapper_that_queues_is_one_workload() -> None:
    (queued,) = queued_workloads(read(WRAPPER))

    assert queued.owner_key == ("AppWrapper", "team", "app")
    assert queued.workload.metadata.name.startswith("appwrapper-app-")
    assert queued.workload.spec.queue_name == "queue"
    assert [(pod_set.name, pod_set.count) for pod_set in queued.workload.spec.pod_sets] == [
        ("app-ps-0", 2),
        ("app-ps-1", 2),
    ]
    assert [len(pods) for pods in queued.pods.values()] == [2, 2]


def test_replicas_of_a_wrapped_set_are_one_pod_set() -> None:
    text = WRAPPER.replace("leaderWorkerTemplate: {size: 2,", "replicas: 3, leaderWorkerTemplate: {size: 2,")

    (queued,) = queued_workloads(read(text))

    assert [pod_set.count for pod_set in queued.workload.spec.pod_sets] == [2, 6]


def test_a_wrapper_that_is_suspended_and_does_not_queue_makes_nothing() -> None:
    text = WRAPPER.replace("kueue.x-k8s.io/queue-name", "other").replace("components:", "suspend: true\n  components:")

    assert read(text).pods == []


def test_a_mistake_inside_a_wrapper_is_said_with_its_place() -> None:
    assert refusal(WRAPPER.replace("replicas: 2", "replicas: two")) == (
        '1 (Deployment team/web): items[0].spec.replicas: expected an integer, found "two"'
    )


def disaggregated(policy: str = "") -> str:
    role = f"{{replicas: 2, leaderWorkerTemplate: {{size: 1, workerTemplate: {{spec: {POD}}}}}}}"
    return f"""
apiVersion: disaggregatedset.x-k8s.io/v1
kind: DisaggregatedSet
metadata: {{name: llm, namespace: serving}}
spec:
  slices: 2
  {policy}
  roles: [{{name: prefill, spec: {role}}}, {{name: decode, spec: {role}}}]
"""


def test_a_disaggregated_set_is_a_leader_worker_set_for_each_role_of_each_slice() -> None:
    manifests = read(disaggregated())

    assert [found.metadata.name for found in manifests.of(LeaderWorkerSet)] == [
        f"llm-{index}-{role}" for index in range(2) for role in ("prefill", "decode")
    ]
    assert len(manifests.pods) == 8
    assert {pod.metadata.namespace for pod in manifests.pods} == {"serving"}


def test_slices_that_are_exclusive_keep_together_and_away_from_others() -> None:
    manifests = read(disaggregated("placementPolicy: {type: ExclusiveTopology, topology: rack}"))

    affinity = next(pod for pod in manifests.pods if pod.metadata.name == "llm-1-decode-0").spec.affinity
    assert affinity is not None
    together, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    assert together is not None
    assert apart is not None
    terms = [*(together.required or ()), *(apart.required or ())]
    assert {term.topology_key for term in terms} == {"rack"}
    assert [
        [(found.key.partition("/")[2], found.operator, found.values) for found in term.label_selector.match_expressions]
        for term in terms
        if term.label_selector is not None and term.label_selector.match_expressions is not None
    ] == [
        [("name", "In", ["llm"]), ("slice", "In", ["1"])],
        [("name", "In", ["llm"]), ("slice", "Exists", None), ("slice", "NotIn", ["1"])],
        [("name", "Exists", None), ("name", "NotIn", ["llm"]), ("slice", "Exists", None)],
    ]


def test_a_placement_policy_needs_a_level() -> None:
    assert refusal(disaggregated("placementPolicy: {type: ExclusiveSlice}")) == (
        "1 (DisaggregatedSet): spec.placementPolicy.topology: expected the key of a node label, found none"
    )


def test_of_what_is_not_read_it_is_said_whether_that_matters() -> None:
    counts = {
        "ConfigMap": 2,
        "Role.rbac.authorization.k8s.io": 1,
        "Workflow.argoproj.io": 1,
        "WorkflowTemplate.argoproj.io": 1,
        "Sandbox.agents.x-k8s.io": 1,
        "Job.example.com": 1,
        "Thing.example.com": 1000,
    }

    assert list(remarks(counts)) == [
        "not read, of no concern to scheduling: 2 ConfigMap, 1 Role, 1 WorkflowTemplate",
        "not read yet, though it concerns scheduling: 1 Sandbox, 1 Workflow",
        "not read, of a kind that is not known here: 1 Job.example.com, 1,000 Thing",
    ]


def test_of_a_kind_without_a_controller_no_pods_are_made_and_it_does_not_queue() -> None:
    """The embedded control plane says so of kinds whose pods nothing makes there."""
    marks = "labels: {kueue.x-k8s.io/queue-name: team}, annotations: {mooring.dev/no-controller: none}"
    manifests = read((SPARK % ("", "")).replace("{name: pi}", f"{{name: pi, {marks}}}"))

    assert manifests.pods == []
    assert queued_workloads(manifests) == []


def test_an_app_wrapper_that_a_cluster_has_started_is_not_made_again() -> None:
    text = """
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: wrap}
spec: {components: [{template: {apiVersion: v1, kind: Pod, metadata: {name: inner}, spec: %s}}]}
"""
    assert len(read(text % POD).pods) == 1
    assert read((text % POD) + "status: {phase: Running}").pods == []
