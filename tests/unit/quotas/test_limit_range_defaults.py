"""What a LimitRange gives to containers that say nothing."""

from quota_documents import Document, container, limit_range, messages, pod, quota, workload

from mooring.model.api.pods import Pod, ResourceRequirements
from mooring.model.loading.manifests import build_manifests


def admitted(*documents: Document) -> Pod:
    manifests = build_manifests(documents)
    assert manifests.refused == []
    return manifests.pods[0]


def resources(found: Pod, index: int = 0) -> tuple[dict[str, object], dict[str, object]]:
    """Requests and limits of a container."""
    given = found.spec.containers[index].resources or ResourceRequirements()
    return dict(given.requests or {}), dict(given.limits or {})


def test_requests_and_limits_are_filled_in_and_noted() -> None:
    limit = {
        "type": "Container",
        "default": {"cpu": "1", "memory": "1Gi"},
        "defaultRequest": {"cpu": "100m", "memory": "512Mi"},
    }

    found = admitted(limit_range(limit), pod("web", container("main"), container("helper", requests={"cpu": "0.5"})))

    assert resources(found) == ({"cpu": "100m", "memory": "512Mi"}, {"cpu": "1", "memory": "1Gi"})
    assert resources(found, 1) == ({"cpu": "0.5", "memory": "512Mi"}, {"cpu": "1", "memory": "1Gi"})
    assert (found.metadata.annotations or {})["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container main; cpu, memory limit for container main; "
        "memory request for container helper; cpu, memory limit for container helper"
    )


def test_what_is_stated_stays() -> None:
    limit = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}

    found = admitted(limit_range(limit), pod("web", container(limits={"cpu": "3"})))

    assert resources(found) == ({"cpu": "3"}, {"cpu": "3"})
    assert found.metadata.annotations is None


def test_limits_come_from_the_maximum_requests_from_the_limit_or_the_minimum() -> None:
    assert resources(admitted(limit_range({"type": "Container", "max": {"cpu": "2"}}), pod())) == (
        {"cpu": "2"},
        {"cpu": "2"},
    )
    assert resources(admitted(limit_range({"type": "Container", "default": {"cpu": "2"}}), pod())) == (
        {"cpu": "2"},
        {"cpu": "2"},
    )
    assert resources(admitted(limit_range({"type": "Container", "min": {"cpu": "2"}}), pod())) == ({"cpu": "2"}, {})


def test_init_containers_are_filled_in_too() -> None:
    limit = {"type": "Container", "defaultRequest": {"cpu": "100m"}}

    found = admitted(
        limit_range(limit), pod("web", container(requests={"cpu": 1}), initContainers=[container("setup")])
    )

    assert (found.spec.init_containers or [])[0].resources == ResourceRequirements(requests={"cpu": "100m"})
    note = "LimitRanger plugin set: cpu request for init container setup"
    assert found.metadata.annotations == {"kubernetes.io/limit-ranger": note}


def test_each_limit_range_fills_in_what_those_before_it_left_open() -> None:
    first = limit_range({"type": "Container", "defaultRequest": {"cpu": "1"}}, name="first")
    second = limit_range({"type": "Container", "defaultRequest": {"cpu": "2", "memory": "1Gi"}}, name="second")

    assert resources(admitted(first, second, pod())) == ({"cpu": "1", "memory": "1Gi"}, {})


def test_a_pod_limit_gives_no_defaults() -> None:
    limit = {"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "4"}}

    found = messages(limit_range(limit), pod())

    assert found == [
        'pods "web" is forbidden: [minimum cpu usage per Pod is 1.  No request is specified, '
        "maximum cpu usage per Pod is 4.  No limit is specified]"
    ]


def test_defaults_can_make_a_pod_invalid() -> None:
    limit = {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}}
    hungry = container(requests={"cpu": "2", "memory": "2Gi"})

    manifests = build_manifests([limit_range(limit), pod("web", hungry)])

    assert [refusal.message for refusal in manifests.refused] == [
        'Pod "web" is invalid: [spec.containers[0].resources.requests: Invalid value: "2": '
        "must be less than or equal to cpu limit of 1, "
        'spec.containers[0].resources.requests: Invalid value: "2Gi": '
        "must be less than or equal to memory limit of 1Gi]"
    ]


def test_devices_cannot_be_overcommitted_by_a_default() -> None:
    limit = {"type": "Container", "default": {"nvidia.com/gpu": "2"}}

    found = messages(limit_range(limit), pod("web", container(requests={"nvidia.com/gpu": "1"})))

    assert found == [
        'Pod "web" is invalid: spec.containers[0].resources.requests: Invalid value: "1": '
        "must be equal to nvidia.com/gpu limit of 2"
    ]


def test_defaults_of_containers_must_fit_the_pod_as_a_whole() -> None:
    limit = {"type": "Container", "default": {"cpu": "3"}, "defaultRequest": {"cpu": "2"}}
    whole = pod("web", resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})

    assert messages(limit_range(limit), whole) == [
        'Pod "web" is invalid: [spec.resources.requests[cpu]: Invalid value: "1": '
        "must be greater than or equal to aggregate container requests of 2, "
        'spec.resources.containers[0][cpu].limits: Invalid value: "3": must be less than or equal to pod limits of 2]'
    ]


def test_quotas_count_what_limits_have_filled_in() -> None:
    limit = limit_range({"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}})

    found = messages(limit, quota({"requests.cpu": "1", "limits.cpu": "2"}), pod("a"), pod("b"))

    assert found == [
        'pods "b" is forbidden: exceeded quota: team-a, requested: limits.cpu=2,requests.cpu=1, '
        "used: limits.cpu=2,requests.cpu=1, limited: limits.cpu=2,requests.cpu=1"
    ]


def test_replicas_share_one_changed_spec_and_the_template_stays_as_it_was() -> None:
    limit = limit_range({"type": "Container", "defaultRequest": {"cpu": "1"}})
    workloads = [workload("Deployment", "web", replicas=50), workload("Job", "batch", parallelism=9)]

    manifests = build_manifests([limit, *workloads])

    assert len({id(found.spec) for found in manifests.pods}) == 2
    assert len({id(found.metadata.annotations) for found in manifests.pods}) <= 2
    assert all(found.spec.containers[0].resources for found in manifests.pods)
    template = manifests.deployments[0].spec.template.spec
    assert (template.containers[0].resources or ResourceRequirements()).requests is None


def test_pods_that_differ_in_their_volumes_alone_share_their_containers() -> None:
    limit = limit_range({"type": "Container", "defaultRequest": {"cpu": "1"}})
    claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]

    manifests = build_manifests([limit, workload("StatefulSet", "db", replicas=5, volumeClaimTemplates=claims)])

    assert len({id(found.spec) for found in manifests.pods}) == 5
    assert len({id(found.spec.containers) for found in manifests.pods}) == 1
    assert [found.spec.volumes[0].persistent_volume_claim.claim_name for found in manifests.pods][:2] == [  # type: ignore[index,union-attr]
        "data-db-0",
        "data-db-1",
    ]
