"""What a LimitRange does not let in, in the API server's words."""

import pytest
from quota_documents import Document, claim, container, limit_range, messages, pod, with_metadata

from mooring.model.api.pods import ResourceRequirements
from mooring.model.loading.manifests import build_manifests


def limited(limit: Document, **resources: Document) -> list[str]:
    """What is said of a pod with one container under one limit, without the words that begin every message."""
    found = messages(limit_range(limit), pod("web", container("main", **resources)))
    start = 'pods "web" is forbidden: '
    assert all(message.startswith(start) for message in found)
    return [message.removeprefix(start) for message in found]


MIN = {"type": "Container", "min": {"cpu": "250m"}}
MAX = {"type": "Container", "max": {"cpu": "2"}}
RATIO = {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}
POD_MIN = {"type": "Pod", "min": {"memory": "1Gi"}}
POD_MAX = {"type": "Pod", "max": {"memory": "1Gi"}}


@pytest.mark.parametrize(
    ("limit", "resources", "said"),
    [
        (MIN, {"requests": {"cpu": "250m"}}, []),
        (MIN, {"requests": {"cpu": "0.2"}}, ["minimum cpu usage per Container is 250m, but request is 200m"]),
        (POD_MIN, {}, ["minimum memory usage per Pod is 1Gi.  No request is specified"]),
        (POD_MIN, {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}, []),
        (MAX, {"requests": {"cpu": 1}, "limits": {"cpu": 2}}, []),
        (MAX, {"limits": {"cpu": "4"}}, ["maximum cpu usage per Container is 2, but limit is 4"]),
        (POD_MAX, {"requests": {"memory": "1Gi"}}, ["maximum memory usage per Pod is 1Gi.  No limit is specified"]),
        (POD_MAX, {"limits": {"memory": "1025Mi"}}, ["maximum memory usage per Pod is 1Gi, but limit is 1025Mi"]),
        (RATIO, {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}, []),
        (
            RATIO,
            {"requests": {"cpu": "300m"}, "limits": {"cpu": "1"}},
            ["cpu max limit to request ratio per Container is 2, but provided ratio is 3.333333"],
        ),
        (
            RATIO,
            {"requests": {"cpu": "0"}, "limits": {"cpu": "1"}},
            ["cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"],
        ),
        (
            RATIO,
            {"requests": {"cpu": "1"}},
            ["cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"],
        ),
    ],
)
def test_each_bound_has_its_words(limit: Document, resources: dict[str, Document], said: list[str]) -> None:
    assert limited(limit, **resources) == said


def test_several_faults_stand_in_brackets_each_once() -> None:
    limit = {"type": "Container", "max": {"memory": "1Gi", "cpu": "2"}}
    greedy = {"limits": {"cpu": "4", "memory": "2Gi"}}

    found = messages(limit_range(limit), pod("web", container("a", **greedy), container("b", **greedy)))

    assert found == [
        'pods "web" is forbidden: [maximum cpu usage per Container is 2, but limit is 4, '
        "maximum memory usage per Container is 1Gi, but limit is 2Gi]"
    ]


def test_the_same_fault_twice_needs_no_brackets() -> None:
    greedy = {"limits": {"cpu": "4"}}

    found = messages(limit_range(MAX), pod("web", container("a", **greedy), container("b", **greedy)))

    assert found == ['pods "web" is forbidden: maximum cpu usage per Container is 2, but limit is 4']


@pytest.mark.parametrize("restart", [{}, {"restartPolicy": "Always"}])
def test_init_containers_and_sidecars_are_containers(restart: Document) -> None:
    init = {**container("setup", limits={"cpu": "3"}), **restart}

    found = messages(limit_range(MAX), pod("web", container(limits={"cpu": "1"}), initContainers=[init]))

    assert found == ['pods "web" is forbidden: maximum cpu usage per Container is 2, but limit is 3']


def test_a_pod_is_its_containers_and_sidecars_or_its_largest_step_of_initialising() -> None:
    limit = limit_range({"type": "Pod", "max": {"cpu": "3"}})
    two = {"limits": {"cpu": "2"}}
    sidecar = {**container("log", **two), "restartPolicy": "Always"}

    with_sidecar = pod("with-sidecar", container("main", **two), initContainers=[sidecar])
    with_setup = pod("with-setup", container("main", **two), initContainers=[container("setup", limits={"cpu": "3"})])
    after_sidecar = pod(
        "after-sidecar", container(limits={"cpu": "1"}), initContainers=[sidecar, container("x", **two)]
    )

    assert messages(limit, with_sidecar, with_setup, after_sidecar) == [
        'pods "with-sidecar" is forbidden: maximum cpu usage per Pod is 3, but limit is 4',
        'pods "after-sidecar" is forbidden: maximum cpu usage per Pod is 3, but limit is 4',
    ]


def test_pod_level_resources_are_what_a_pod_as_a_whole_has() -> None:
    whole = pod("whole", resources={"limits": {"cpu": "4"}})

    found = messages(limit_range({"type": "Pod", "max": {"cpu": "3"}}), whole)

    assert found == ['pods "whole" is forbidden: maximum cpu usage per Pod is 3, but limit is 4']


def test_the_first_limit_range_that_objects_is_quoted() -> None:
    first = limit_range({"type": "Container", "max": {"cpu": "8"}}, name="wide")
    second = limit_range(MAX, name="tight")
    third = limit_range({"type": "Pod", "max": {"cpu": "1"}}, name="tighter")

    found = messages(first, second, third, pod("web", container(limits={"cpu": "4"})))

    assert found == ['pods "web" is forbidden: maximum cpu usage per Container is 2, but limit is 4']


def test_what_runs_is_left_alone() -> None:
    running = pod("old", container(limits={"cpu": "4"}), nodeName="n")
    bare = pod("bare", nodeName="n")

    manifests = build_manifests([limit_range(MAX), running, bare])

    assert manifests.refused == []
    assert manifests.pods[1].spec.containers[0].resources == ResourceRequirements()


STORAGE = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}


def test_claims_have_bounds_too() -> None:
    bound = {**claim("bound", "9Gi"), "status": {"phase": "Bound"}}
    silent = {**claim("silent"), "spec": {}}

    manifests = build_manifests(
        [limit_range(STORAGE), claim("small", "1M"), claim("fine", "2Gi"), claim("large", "10Gi"), bound, silent]
    )

    assert [refusal.message for refusal in manifests.refused] == [
        'persistentvolumeclaims "small" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, '
        "but request is 1M",
        'persistentvolumeclaims "large" is forbidden: maximum storage usage per PersistentVolumeClaim is 5Gi, '
        "but request is 10Gi",
        'persistentvolumeclaims "silent" is forbidden: [minimum storage usage per PersistentVolumeClaim is 1Gi.  '
        "No request is specified, maximum storage usage per PersistentVolumeClaim is 5Gi.  No request is specified]",
    ]
    assert [found.metadata.name for found in manifests.persistent_volume_claims] == ["fine", "bound"]


def test_a_claim_that_the_api_server_has_let_in_is_not_asked_again() -> None:
    assert messages(limit_range(STORAGE), with_metadata(claim("old", "10Gi"), resourceVersion="5")) == []
