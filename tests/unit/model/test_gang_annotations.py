"""Gangs that Jobs and pods declare by annotations alone."""

import pytest
from gang_manifests import memberships, only_gang, pod_named, read, refusal

from mooring.model.gangs.gang import Gang, Role
from mooring.model.keys import GangKey
from mooring.model.topology.requests import TopologyRequest

POD_SPEC = "{restartPolicy: Never, containers: [{name: main}]}"


def job(annotations: str, spec: str = "parallelism: 4, completions: 4", template: str = "") -> str:
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: train, annotations: {{{annotations}}}}}
spec:
  {{{spec}, template: {{metadata: {{annotations: {{{template}}}}}, spec: {POD_SPEC}}}}}
"""


def pod(name: str, annotations: str, more: str = "", owner: str = "") -> str:
    return f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  annotations: {{{annotations}}}
  {more}
  ownerReferences: [{owner}]
spec: {{containers: [{{name: main}}]}}
"""


def pods(*annotations: str) -> str:
    return "".join(pod(f"train-{index}", found) for index, found in enumerate(annotations))


@pytest.mark.parametrize(
    ("annotations", "spec", "minimum"),
    [
        ('mooring.dev/gang: "true"', "parallelism: 4, completions: 4", 4),
        ('mooring.dev/gang: "true"', "parallelism: 8, completions: 5", 5),
        ('mooring.dev/gang: "true"', "parallelism: 3", 3),
        ('mooring.dev/gang-minimum: "2"', "parallelism: 4", 2),
        ('mooring.dev/gang: "true", mooring.dev/gang-minimum: "3"', "parallelism: 4", 3),
    ],
)
def test_a_job_may_ask_to_start_as_a_whole(annotations: str, spec: str, minimum: int) -> None:
    manifests = read(job(annotations, spec))

    assert only_gang(manifests) == Gang(key=GangKey("Job.batch/default/train"), name="default/train", minimum=minimum)
    assert {gang for gang, _, _ in memberships(manifests).values()} == {"default/train"}


def test_ranks_are_completion_indexes() -> None:
    manifests = read(job('mooring.dev/gang: "true"', "parallelism: 3, completions: 3, completionMode: Indexed"))

    assert [rank for _, _, rank in memberships(manifests).values()] == [0, 1, 2]


def test_pods_of_a_job_share_their_annotations() -> None:
    first, second, *_ = read(job('mooring.dev/gang: "true"', template="note: x")).pods

    assert first.metadata.annotations == {"mooring.dev/gang": "true", "note": "x"}
    assert first.metadata.annotations is second.metadata.annotations


@pytest.mark.parametrize("annotations", ["", 'mooring.dev/gang: "false"', 'mooring.dev/duration: "30m"'])
def test_a_job_that_does_not_ask_is_no_gang(annotations: str) -> None:
    assert read(job(annotations)).gangs == []


def test_a_cron_job_asks_in_its_template() -> None:
    text = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    metadata: {annotations: {mooring.dev/gang: "true"}}
    spec: {parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: main}]}}}
"""
    gang = only_gang(read(text))

    assert (gang.key, gang.minimum) == ("Job.batch/default/nightly", 2)


def test_pods_that_a_dump_has_already_are_of_the_gang_too() -> None:
    owner = "{apiVersion: batch/v1, kind: Job, name: train, controller: true}"
    manifests = read(job('mooring.dev/gang-minimum: "3"') + pod("train-x7k2p", "note: mine", owner=owner))

    assert (only_gang(manifests).minimum, len(manifests.pods)) == (3, 4)
    assert "train-x7k2p" in memberships(manifests)
    assert list(memberships(manifests).values()) == [("default/train", "", None)] * 4


def test_plain_pods_name_their_gang() -> None:
    said = 'mooring.dev/gang-name: train, mooring.dev/gang-minimum: "3", mooring.dev/gang-timeout: 10m'
    manifests = read(pods(said, said, "mooring.dev/gang-name: train", said))

    assert only_gang(manifests) == Gang(
        key=GangKey("Gang.mooring.dev/default/train"), name="default/train", minimum=3, timeout_seconds=600.0
    )


def test_pods_that_name_no_minimum_are_all_needed_but_those_that_are_done() -> None:
    done = pod("train-9", "mooring.dev/gang-name: train").replace("spec:", "status: {phase: Succeeded}\nspec:")

    assert only_gang(read(pods(*["mooring.dev/gang-name: train"] * 3) + done)).minimum == 3


def test_a_gang_queues_since_its_first_pod_came() -> None:
    text = pod("a", "mooring.dev/gang-name: train", 'creationTimestamp: "1970-01-01T00:02:00Z"')
    text += pod("b", "mooring.dev/gang-name: train", 'creationTimestamp: "1970-01-01T00:01:00Z"')

    assert only_gang(read(text)).created == 60.0


def test_replicas_of_one_manifest_may_be_several_gangs() -> None:
    manifests = read(pod("train", 'mooring.dev/replicas: "6", mooring.dev/gang-name: "train-{i//3}"'))

    assert [(gang.name, gang.minimum) for gang in manifests.gangs] == [("default/train-0", 3), ("default/train-1", 3)]


def test_gangs_of_one_name_in_two_namespaces_are_two() -> None:
    text = pod("a", "mooring.dev/gang-name: train") + pod("b", "mooring.dev/gang-name: train", "namespace: other")

    assert [gang.name for gang in read(text).gangs] == ["default/train", "other/train"]


def test_the_template_of_a_stateful_set_may_ask_too() -> None:
    text = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  template:
    metadata: {annotations: {mooring.dev/gang-minimum: "2"}}
    spec: {containers: [{name: main}]}
"""
    gang = only_gang(read(text))

    assert (gang.key, gang.minimum) == ("StatefulSet.apps/default/db", 2)


def test_a_minimum_for_volcano_makes_a_gang_of_the_pods_of_a_deployment() -> None:
    text = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {scheduling.volcano.sh/group-min-member: "3"}}
spec:
  replicas: 4
  template:
    metadata: {annotations: {scheduling.volcano.sh/queue-name: research}}
    spec: {containers: [{name: main}]}
"""
    gang = only_gang(read(text))

    assert gang.key.startswith("PodGroup.scheduling.volcano.sh/default/podgroup-web-")
    assert (gang.minimum, gang.queue) == (3, "research")


def test_a_group_of_volcano_that_only_its_pods_declare() -> None:
    said = "scheduling.k8s.io/group-name: train, scheduling.volcano.sh/group-min-member: '2'"

    assert only_gang(read(pods(said, said))).minimum == 2


def test_a_group_of_coscheduling_that_only_its_pods_declare() -> None:
    labels = (
        "labels: {pod-group.scheduling.sigs.k8s.io/name: train, pod-group.scheduling.sigs.k8s.io/min-available: '2'}"
    )

    gang = only_gang(read(pod("a", "", labels) + pod("b", "", labels)))

    assert (gang.key, gang.minimum) == ("PodGroup.scheduling.x-k8s.io/default/train", 2)


@pytest.mark.parametrize(
    "said",
    [
        "annotations: {scheduling.k8s.io/group-name: train}",
        "annotations: {pod-group-name: train}",
        "labels: {scheduling.x-k8s.io/pod-group: train}",
        "labels: {grove.io/podgang: train}",
    ],
)
def test_a_gang_that_nobody_declares_is_none_but_its_pods_still_name_it(said: str) -> None:
    manifests = read(
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: a, {said}}}, spec: {{containers: [{{name: m}}]}}}}"
    )

    assert manifests.gangs == []
    assert memberships(manifests)["a"][0] == "default/train"


def test_an_object_goes_before_what_pods_declare() -> None:
    text = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 5}
"""
    said = "scheduling.k8s.io/group-name: train, scheduling.volcano.sh/group-min-member: '2'"

    assert only_gang(read(text + pods(said))).minimum == 5


RACK = "kueue.x-k8s.io/podset-required-topology: example.com/rack"


def test_what_pods_ask_of_the_topology_is_their_gangs_wish() -> None:
    assert only_gang(read(job('mooring.dev/gang: "true"', template=RACK))).topology_request == TopologyRequest(
        "example.com/rack"
    )


def test_wishes_that_differ_by_role_are_those_of_the_roles() -> None:
    said, role = "mooring.dev/gang-name: train", "labels: {training.kubeflow.org/replica-type: %s}"
    text = pod("a", said, role % "master") + pod("b", f"{said}, {RACK}", role % "worker")

    gang = only_gang(read(text))

    assert (gang.topology_request, gang.roles) == (None, (Role("worker", 0, TopologyRequest("example.com/rack")),))


def test_the_wish_of_a_gang_goes_before_that_of_its_pods() -> None:
    text = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: train}
spec:
  schedulingPolicy: {gang: {minCount: 1}}
  schedulingConstraints: {topology: [{key: example.com/block}]}
---
apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {kueue.x-k8s.io/podset-required-topology: example.com/rack}}
spec: {schedulingGroup: {podGroupName: train}, containers: [{name: main}]}
"""

    assert only_gang(read(text)).topology_request == TopologyRequest("example.com/block")


NAMED = "mooring.dev/gang-name: train"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            pods(f"{NAMED}, mooring.dev/gang-minimum: '4'", f"{NAMED}, mooring.dev/gang-minimum: '5'"),
            "2 (Pod default/train-1): metadata.annotations.mooring.dev/gang-minimum: "
            'expected 4, as Pod default/train-0 says of the same gang, found "5"',
            id="two minimums",
        ),
        pytest.param(
            pods(f"{NAMED}, mooring.dev/gang-timeout: 1m", f"{NAMED}, mooring.dev/gang-timeout: 2m"),
            "2 (Pod default/train-1): metadata.annotations.mooring.dev/gang-timeout: "
            'expected 1m, as Pod default/train-0 says of the same gang, found "2m"',
            id="two timeouts",
        ),
        pytest.param(
            pods(
                "scheduling.k8s.io/group-name: a, scheduling.volcano.sh/group-min-member: '2'",
                "scheduling.k8s.io/group-name: a, scheduling.volcano.sh/group-min-member: '3'",
            ),
            "2 (Pod default/train-1): metadata.annotations.scheduling.volcano.sh/group-min-member: "
            'expected 2, as Pod default/train-0 says of the same gang, found "3"',
            id="two minimums for Volcano",
        ),
        pytest.param(
            pods(NAMED, f"{NAMED}, {RACK}"),
            "2 (Pod default/train-1): metadata.annotations: "
            "expected the topology that Pod default/train-0 asks for, as they are one gang, found another",
            id="two wishes",
        ),
        pytest.param(
            pods(f"{NAMED}, mooring.dev/gang-minimum: '1.5'"),
            "1 (Pod default/train-0): metadata.annotations.mooring.dev/gang-minimum: "
            'expected a whole number of at least 1, found "1.5"',
            id="a fraction",
        ),
        pytest.param(
            pods(f"{NAMED}, mooring.dev/gang-minimum: '0'"),
            "1 (Pod default/train-0): metadata.annotations.mooring.dev/gang-minimum: "
            'expected a whole number of at least 1, found "0"',
            id="zero",
        ),
        pytest.param(
            pods("mooring.dev/gang-name: ''"),
            "1 (Pod default/train-0): metadata.annotations.mooring.dev/gang-name: expected a name, found none",
            id="no name",
        ),
        pytest.param(
            pods("mooring.dev/gang-minimum: '4'"),
            "1 (Pod default/train-0): metadata.annotations.mooring.dev/gang-name: "
            "expected a name, as the pod has no controller, found none",
            id="no owner to be named after",
        ),
        pytest.param(
            pods(f"{NAMED}, mooring.dev/gang: 'yes'"),
            '1 (Pod default/train-0): metadata.annotations.mooring.dev/gang: expected one of true, false, found "yes"',
            id="neither true nor false",
        ),
        pytest.param(
            pods(f"{NAMED}, mooring.dev/gang-timeout: ten"),
            "1 (Pod default/train-0): metadata.annotations.mooring.dev/gang-timeout: "
            'expected a duration such as 90s, 10m or 1h30m, found "ten"',
            id="no timeout",
        ),
        pytest.param(
            pods("mooring.dev/duration: '30'"),
            "1 (Pod default/train-0): metadata.annotations.mooring.dev/duration: "
            'expected a duration such as 90s, 10m or 1h30m, found "30"',
            id="no duration",
        ),
        pytest.param(
            pods(f"{RACK}, kueue.x-k8s.io/podset-preferred-topology: example.com/rack"),
            "1 (Pod default/train-0): metadata.annotations.kueue.x-k8s.io/podset-preferred-topology: "
            'expected no podset-preferred-topology beside podset-required-topology, found "example.com/rack"',
            id="two topologies",
        ),
        pytest.param(
            pod("a", "", "labels: {pod-group.scheduling.sigs.k8s.io/min-available: many}"),
            "1 (Pod default/a): metadata.labels.pod-group.scheduling.sigs.k8s.io/min-available: "
            'expected a whole number of at least 1, found "many"',
            id="a label",
        ),
        pytest.param(
            job("mooring.dev/gang-minimum: '5'"),
            "1 (Job default/train): metadata.annotations.mooring.dev/gang-minimum: "
            "expected at most 4, the pods that it runs at once, found 5",
            id="more than the Job has",
        ),
        pytest.param(
            job("mooring.dev/gang: 'maybe'"),
            '1 (Job default/train): metadata.annotations.mooring.dev/gang: expected one of true, false, found "maybe"',
            id="on a Job",
        ),
        pytest.param(
            job("", template="mooring.dev/gang-minimum: '-1'"),
            "1 (Job default/train): spec.template.metadata.annotations.mooring.dev/gang-minimum: "
            'expected a whole number of at least 1, found "-1"',
            id="in a template",
        ),
        pytest.param(
            """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, annotations: {mooring.dev/gang-minimum: "two"}}
spec: {tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: main}]}}}]}
""",
            "1 (Pod default/train-a-0): metadata.annotations.mooring.dev/gang-minimum: "
            'expected a whole number of at least 1, found "two"',
            id="on another owner",
        ),
        pytest.param(
            """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  tasks:
  - name: a
    replicas: 1
    template:
      metadata: {annotations: {kai.scheduler/topology-required-placement: "a b"}}
      spec: {containers: [{name: main}]}
""",
            "1 (Pod default/train-a-0): metadata.annotations.kai.scheduler/topology-required-placement: "
            'expected a topology level: the key of a node label, found "a b"',
            id="a topology in another template",
        ),
    ],
)
def test_what_contradicts_or_cannot_be_read_is_refused(text: str, message: str) -> None:
    assert refusal(text.removeprefix("\n---")) == message


def test_names_that_are_shared_with_another_kind_stay_apart() -> None:
    manifests = read(
        job('mooring.dev/gang: "true"') + pods("mooring.dev/gang-name: train").replace("train-0", "other-0")
    )

    assert [(gang.key, gang.minimum) for gang in manifests.gangs] == [
        ("Gang.mooring.dev/default/train", 1),
        ("Job.batch/default/train", 4),
    ]
    assert pod_named(manifests, "other-0").metadata.annotations == {"mooring.dev/gang-name": "train"}
