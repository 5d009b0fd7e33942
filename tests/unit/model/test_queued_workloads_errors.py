"""What contradicts itself among queues and what queues is refused in one line."""

import pytest
from job_builders import Document, document, grouped_pod, job, job_set, load, plain_pod, replicated_job, template

from mooring.errors import ManifestError
from mooring.model.api.kueue import AdmissionCheck, ClusterQueue, LocalQueue, ResourceFlavor, Topology, Workload

KUEUE = "kueue.x-k8s.io/v1beta2"


def complaint(*documents: Document) -> str:
    with pytest.raises(ManifestError) as raised:
        load(*documents)
    return str(raised.value).removeprefix("<memory>: ")


def annotated(**annotations: str) -> Document:
    given = {f"kueue.x-k8s.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"annotations": given}


def labelled(**labels: str) -> Document:
    return {"labels": {f"kueue.x-k8s.io/{key.replace('_', '-')}": value for key, value in labels.items()}}


def wishing(**annotations: str) -> Document:
    return template(annotations=annotated(**annotations)["annotations"])


JOB = "document 1 (Job default/train): "
POD = "document 1 (Pod default/web): "


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            job(queue="Team A"),
            JOB + 'metadata.labels.kueue.x-k8s.io/queue-name: expected the name of a LocalQueue, found "Team A"',
            id="no name of a queue",
        ),
        pytest.param(
            job(queue="team", metadata=labelled(priority_class="vip")),
            JOB
            + "metadata.labels.kueue.x-k8s.io/priority-class: expected a known WorkloadPriorityClass (there is none), "
            'found "vip"',
            id="an unknown class",
        ),
        pytest.param(
            job(queue="team", metadata=labelled(max_exec_time_seconds="1h")),
            JOB + "metadata.labels.kueue.x-k8s.io/max-exec-time-seconds: expected a number of seconds greater than 0, "
            'found "1h"',
            id="no number of seconds",
        ),
        pytest.param(
            job(queue="team", parallelism=3, metadata=annotated(job_min_parallelism="3")),
            JOB
            + "metadata.annotations.kueue.x-k8s.io/job-min-parallelism: expected 1 or more, and less than the Job's 3 "
            'pods, found "3"',
            id="a minimum that is no less",
        ),
        pytest.param(
            job(queue="team", parallelism=3, metadata=annotated(job_min_parallelism="half")),
            JOB
            + "metadata.annotations.kueue.x-k8s.io/job-min-parallelism: expected 1 or more, and less than the Job's 3 "
            'pods, found "half"',
            id="a minimum that is no number",
        ),
        pytest.param(
            job(queue="team", template=wishing(podset_required_topology="rack", podset_preferred_topology="rack")),
            JOB + "spec.template.metadata.annotations.kueue.x-k8s.io/podset-preferred-topology: expected no "
            'podset-preferred-topology beside podset-required-topology, found "rack"',
            id="two wishes",
        ),
        pytest.param(
            job(queue="team", template=wishing(podset_slice_required_topology="rack", podset_slice_size="4")),
            JOB
            + "spec.template.metadata.annotations: expected slices of at most 1 pods, as there are no more, found 4",
            id="slices larger than the whole",
        ),
        pytest.param(
            plain_pod("web", **annotated(pod_group_total_count="2")),
            POD + "metadata.labels.kueue.x-k8s.io/pod-group-name: expected a name, as "
            "kueue.x-k8s.io/pod-group-total-count is set, found none",
            id="a total without a group",
        ),
        pytest.param(
            plain_pod("web", **labelled(pod_group_name="crew")),
            POD + "metadata.annotations.kueue.x-k8s.io/pod-group-total-count: expected how many pods the group has, a "
            "number of at least 1, found none",
            id="a group without a total",
        ),
        pytest.param(
            grouped_pod("web", 0),
            POD + "metadata.annotations.kueue.x-k8s.io/pod-group-total-count: expected how many pods the group has, a "
            'number of at least 1, found "0"',
            id="a group of none",
        ),
        pytest.param(
            document(
                "batch/v1",
                "CronJob",
                "nightly",
                {
                    "jobTemplate": {
                        "metadata": {**labelled(queue_name="team"), **annotated(job_min_parallelism="x")},
                        "spec": job()["spec"],
                    }
                },
            ),
            "document 1 (CronJob default/nightly): spec.jobTemplate.metadata.annotations."
            'kueue.x-k8s.io/job-min-parallelism: expected 1 or more, and less than the Job\'s 1 pods, found "x"',
            id="inside a CronJob",
        ),
        pytest.param(
            document(
                "apps/v1",
                "ReplicaSet",
                "web",
                {"template": {**template(), "metadata": labelled(queue_name="team", max_exec_time_seconds="-1")}},
            ),
            "document 1 (ReplicaSet default/web): spec.template.metadata.labels.kueue.x-k8s.io/max-exec-time-seconds: "
            'expected a number of seconds greater than 0, found "-1"',
            id="inside a template that queues by itself",
        ),
        pytest.param(
            job_set(
                "train",
                {"name": "w", "template": {"spec": {"template": wishing(podset_required_topology="no label")}}},
                queue="team",
            ),
            "document 1 (JobSet default/train): spec.replicatedJobs[0].template.spec.template.metadata.annotations."
            "kueue.x-k8s.io/podset-required-topology: expected a topology level: the key of a node label, found "
            '"no label"',
            id="inside a JobSet",
        ),
    ],
)
def test_a_mistake_of_what_queues_is_named_with_its_field(found: Document, expected: str) -> None:
    assert complaint(found) == expected


def test_what_does_not_queue_may_carry_what_it_likes() -> None:
    assert len(load(job(metadata=labelled(priority_class="vip"))).pods) == 1


def test_pods_of_one_group_agree_on_its_total() -> None:
    assert complaint(grouped_pod("a", 2), grouped_pod("b", 3)) == (
        "document 2 (Pod default/b): metadata.annotations.kueue.x-k8s.io/pod-group-total-count: expected 2, as "
        "in pod a of "
        'the same group, found "3"'
    )


def test_pods_of_one_group_agree_on_its_queue() -> None:
    assert complaint(grouped_pod("a", 2), grouped_pod("b", 2, queue="other")) == (
        "document 2 (Pod default/b): metadata.labels.kueue.x-k8s.io/queue-name: expected team, as in pod a of the same "
        'group, found "other"'
    )


def group(*flavors: str, resources: tuple[str, ...] = ("cpu",), **limits: str) -> Document:
    quotas = [{"name": name, "nominalQuota": 1, **limits} for name in resources]
    return {"coveredResources": list(resources), "flavors": [{"name": name, "resources": quotas} for name in flavors]}


def cluster_queue(*groups: Document, **spec: object) -> Document:
    return document(KUEUE, "ClusterQueue", "all", {"resourceGroups": list(groups), **spec})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            cluster_queue(group("a"), group("b")),
            "(ClusterQueue all): spec.resourceGroups[1].coveredResources: expected each resource in one group "
            "only, found "
            "cpu also in spec.resourceGroups[0]",
            id="a resource in two groups",
        ),
        pytest.param(
            cluster_queue(group("a", "a")),
            "(ClusterQueue all): spec.resourceGroups[0].flavors[1]: expected each flavor once, found a again",
            id="a flavor twice",
        ),
        pytest.param(
            cluster_queue(group("a", resources=("cpu", "cpu"))),
            "(ClusterQueue all): spec.resourceGroups[0].coveredResources[1]: expected each resource once, found "
            "cpu again",
            id="a resource twice",
        ),
        pytest.param(
            cluster_queue(group("a"), fairSharing={"weight": "-1"}),
            '(ClusterQueue all): spec.fairSharing.weight: expected a quantity of at least 0, found "-1"',
            id="a negative weight",
        ),
        pytest.param(
            cluster_queue(group("a"), cohort="x", cohortName="y"),
            '(ClusterQueue all): spec.cohortName: expected the same as spec.cohort, or one of them, found "y" beside '
            'cohort "x"',
            id="two cohorts",
        ),
        pytest.param(
            cluster_queue(
                group("a"),
                admissionChecks=["one"],
                admissionChecksStrategy={"admissionChecks": [{"name": "two"}]},
            ),
            "(ClusterQueue all): spec.admissionChecks: expected none beside admissionChecksStrategy, found one",
            id="checks in two ways",
        ),
        pytest.param(
            cluster_queue(group("a"), admissionChecks=["one", "one"]),
            "(ClusterQueue all): spec.admissionChecks[1]: expected each check once, found one again",
            id="a check twice",
        ),
        pytest.param(
            document(KUEUE, "LocalQueue", "team", {}),
            "(LocalQueue default/team): spec.clusterQueue: expected a ClusterQueue's name, found none",
            id="a LocalQueue of nothing",
        ),
        pytest.param(
            document(KUEUE, "LocalQueue", "team", {"clusterQueue": "all", "fairSharing": {"weight": "x"}}),
            "(LocalQueue default/team): spec.fairSharing.weight: expected a quantity such as 500m, 2 or 1.5Gi, "
            'found "x"',
            id="a weight that is none",
        ),
        pytest.param(
            document(KUEUE, "AdmissionCheck", "capacity", {}),
            "(AdmissionCheck capacity): spec.controllerName: expected the controller that runs the check, found none",
            id="a check by nobody",
        ),
        pytest.param(
            document(KUEUE, "Topology", "dc", {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "rack"}]}),
            '(Topology dc): spec.levels[1].nodeLabel: expected each label once, found "rack"',
            id="a level twice",
        ),
        pytest.param(
            document(KUEUE, "ResourceFlavor", "spot", {"nodeTaints": [{"key": "spot", "effect": "Never"}]}),
            "(ResourceFlavor spot): spec.nodeTaints[0].effect: expected one of NoSchedule, PreferNoSchedule, "
            "NoExecute, "
            'found "Never"',
            id="an unknown effect",
        ),
        pytest.param(
            {
                **document(KUEUE, "Workload", "w", {"podSets": [{"template": template()}]}),
                "status": {"admissionChecks": [{"name": "capacity", "state": "Perhaps"}]},
            },
            "(Workload default/w): status.admissionChecks[0].state: expected one of Pending, Ready, Retry, "
            "Rejected, found "
            '"Perhaps"',
            id="an unknown state of a check",
        ),
        pytest.param(
            document(KUEUE, "Workload", "w", {"podSets": [{"template": template()}]}, creationTimestamp="yesterday"),
            "(Workload default/w): metadata.creationTimestamp: expected a time such as 2025-06-01T12:00:00Z, found "
            '"yesterday"',
            id="no time",
        ),
        pytest.param(
            document(KUEUE, "WorkloadPriorityClass", "vip", {}),
            "(WorkloadPriorityClass vip): value: expected a value, found none",
            id="a class without a value",
        ),
    ],
)
def test_queueing_objects_are_checked_as_they_are_loaded(found: Document, expected: str) -> None:
    assert complaint(found).removeprefix("document 1 ") == expected


def test_a_cycle_of_cohorts_is_refused() -> None:
    cohorts = [document(KUEUE, "Cohort", name, {"parentName": parent}) for name, parent in (("b", "a"), ("a", "b"))]

    assert complaint(*cohorts) == (
        "document 2 (Cohort a): spec.parentName: expected a cohort that is not below this one, found a cycle, a "
        "-> b -> a"
    )


def test_a_workload_holds_quota_where_its_local_queue_points() -> None:
    queue = document(KUEUE, "LocalQueue", "team", {"clusterQueue": "all"})
    found = document(KUEUE, "Workload", "w", {"queueName": "team", "podSets": [{"template": template()}]})
    found["status"] = {"admission": {"clusterQueue": "other", "podSetAssignments": [{"name": "main"}]}}

    assert complaint(queue, found) == (
        "document 2 (Workload default/w): status.admission.clusterQueue: expected all, which LocalQueue team "
        "stands for, "
        'found "other"'
    )


def test_both_versions_are_loaded_and_given_their_defaults() -> None:
    manifests = load(
        document("kueue.x-k8s.io/v1beta1", "ClusterQueue", "old", {"cohort": "x", "admissionChecks": ["capacity"]}),
        document(KUEUE, "ClusterQueue", "new", {"cohortName": "x"}),
        document("kueue.x-k8s.io/v1beta1", "LocalQueue", "team", {"clusterQueue": "old"}),
        document("kueue.x-k8s.io/v1beta1", "ResourceFlavor", "spot", {}),
        document("kueue.x-k8s.io/v1beta1", "AdmissionCheck", "capacity", {"controllerName": "example.com/buyer"}),
        document("kueue.x-k8s.io/v1alpha1", "Topology", "dc", {"levels": [{"nodeLabel": "rack"}]}),
        document("kueue.x-k8s.io/v1beta1", "Workload", "w", {"podSets": [{"template": template()}]}),
    )

    old, new = manifests.of(ClusterQueue)
    assert old.spec.cohort_name == new.spec.cohort_name == "x"
    assert old.spec.queueing_strategy == "BestEffortFIFO"
    strategy = old.spec.admission_checks_strategy
    assert strategy is not None and [rule.name for rule in strategy.admission_checks or ()] == ["capacity"]
    assert old.metadata.namespace == "" and manifests.of(LocalQueue)[0].metadata.namespace == "default"
    assert [len(manifests.of(type_)) for type_ in (ResourceFlavor, AdmissionCheck, Topology, Workload)] == [1, 1, 1, 1]
    assert not manifests.ignored


def test_a_queue_of_a_flavor_that_is_missing_is_no_mistake() -> None:
    assert len(load(cluster_queue(group("gone"))).of(ClusterQueue)) == 1


def test_the_kind_of_another_api_is_not_taken_for_a_queues() -> None:
    manifests = load(document("example.com/v1", "Topology", "dc", {"levels": "many"}), replicated_set())

    assert dict(manifests.ignored) == {"Topology.example.com": 1}


def replicated_set() -> Document:
    return job_set("train", replicated_job("worker"))
