"""What pods take of a quota, and what they are told when there is too little left."""

import pytest
from quota_documents import asking, container, limit_range, messages, pod, pod_names, quota, with_metadata, workload

from mooring.model.loading.manifests import build_manifests


def test_a_quota_lets_in_what_fits_in_the_order_given() -> None:
    manifests = build_manifests([quota({"requests.cpu": "4"}), *(asking(f"web-{i}", cpu="1500m") for i in range(4))])

    exceeded = "exceeded quota: team-a, requested: requests.cpu=1500m, used: requests.cpu=3, limited: requests.cpu=4"
    assert pod_names(manifests) == ["web-0", "web-1"]
    assert [refusal.key for refusal in manifests.refused] == ["default/web-2", "default/web-3"]
    assert manifests.refused[0].message == f'pods "web-2" is forbidden: {exceeded}'
    assert manifests.refused[0].reason == exceeded
    assert manifests.refused[0].plugin == "ResourceQuota"


def test_a_smaller_pod_may_still_fit_behind_one_that_does_not() -> None:
    pods = [asking("a", cpu="3"), asking("b", cpu="2"), asking("c", cpu="1")]

    manifests = build_manifests([quota({"requests.cpu": 4}), *pods])

    assert pod_names(manifests) == ["a", "c"]


def test_all_that_is_exceeded_is_named_and_nothing_else() -> None:
    hard = {"requests.cpu": "4", "requests.memory": "4Gi", "pods": "10"}

    found = messages(quota(hard), asking("a", cpu=3, memory="3Gi"), asking("b", cpu=2, memory="1.5Gi"))

    assert found == [
        'pods "b" is forbidden: exceeded quota: team-a, requested: requests.cpu=2,requests.memory=1536Mi, '
        "used: requests.cpu=3,requests.memory=3Gi, limited: requests.cpu=4,requests.memory=4Gi"
    ]


@pytest.mark.parametrize(
    ("resource", "requests", "limits", "taken"),
    [
        ("cpu", {"cpu": "2"}, {}, "2"),
        ("requests.cpu", {"cpu": "2"}, {}, "2"),
        ("limits.cpu", {"cpu": "1"}, {"cpu": "2"}, "2"),
        ("memory", {"memory": "2Gi"}, {}, "2Gi"),
        ("limits.memory", {}, {"memory": "2Gi"}, "2Gi"),
        ("requests.memory", {}, {"memory": "2Gi"}, "2Gi"),
        ("ephemeral-storage", {"ephemeral-storage": "2Gi"}, {}, "2Gi"),
        ("requests.ephemeral-storage", {"ephemeral-storage": "2Gi"}, {}, "2Gi"),
        ("limits.ephemeral-storage", {}, {"ephemeral-storage": "2Gi"}, "2Gi"),
        ("requests.nvidia.com/gpu", {}, {"nvidia.com/gpu": "2"}, "2"),
        ("hugepages-2Mi", {}, {"hugepages-2Mi": "4Mi"}, "4Mi"),
        ("requests.hugepages-2Mi", {}, {"hugepages-2Mi": "4Mi"}, "4Mi"),
        ("pods", {}, {}, "1"),
        ("count/pods", {}, {}, "1"),
    ],
)
def test_every_resource_of_pods_is_counted_under_its_name(
    resource: str, requests: dict[str, str], limits: dict[str, str], taken: str
) -> None:
    found = messages(quota({resource: "0"}), pod("web", container(requests=requests, limits=limits)))

    assert found == [
        f'pods "web" is forbidden: exceeded quota: team-a, requested: {resource}={taken}, used: {resource}=0, '
        f"limited: {resource}=0"
    ]


def test_a_device_under_its_bare_name_is_never_enforced() -> None:
    assert messages(quota({"nvidia.com/gpu": "0"}), pod("web", container(limits={"nvidia.com/gpu": "8"}))) == []


def test_who_asks_for_none_of_it_passes_a_quota_that_is_overdrawn() -> None:
    running = {**asking("old", cpu=9), "spec": {**asking("old", cpu=9)["spec"], "nodeName": "n"}}
    hard = {"requests.cpu": "1", "pods": "10"}

    assert messages(quota(hard), running, asking("zero", cpu=0)) == []


def test_cpu_and_memory_under_a_quota_must_be_stated_by_every_container() -> None:
    containers = [
        container("main", limits={"cpu": "1"}),
        container("helper", requests={"cpu": "1", "memory": "1Gi"}),
    ]
    init = [container("setup", requests={"cpu": "1", "memory": "1Gi"})]

    found = messages(
        quota({"limits.cpu": "4", "requests.memory": "4Gi", "requests.ephemeral-storage": "1Gi"}),
        pod("web", *containers, initContainers=init),
    )

    assert found == [
        'pods "web" is forbidden: failed quota: team-a: must specify limits.cpu for: helper,setup; '
        "requests.memory for: main"
    ]


def test_what_cannot_be_measured_is_said_before_what_is_exceeded() -> None:
    found = messages(
        quota({"pods": "0"}, "first"), quota({"limits.cpu": "1"}, "second"), pod("web", container(requests={"cpu": 1}))
    )

    assert found == ['pods "web" is forbidden: failed quota: second: must specify limits.cpu for: main']


def test_of_several_quotas_the_first_that_is_exceeded_is_quoted() -> None:
    found = messages(quota({"pods": "9"}, "wide"), quota({"pods": "0"}, "tight"), quota({"pods": "0"}, "too"), pod())

    assert found == ['pods "web" is forbidden: exceeded quota: tight, requested: pods=1, used: pods=0, limited: pods=0']


def test_pod_level_resources_stand_for_the_containers() -> None:
    whole = pod("whole", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "3"}})

    found = messages(quota({"requests.cpu": "1", "limits.cpu": "9"}), whole)

    assert found == [
        'pods "whole" is forbidden: exceeded quota: team-a, requested: requests.cpu=2, used: requests.cpu=0, '
        "limited: requests.cpu=1"
    ]


def test_init_containers_count_by_their_peak_sidecars_with_the_containers_and_overhead_on_top() -> None:
    both = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    sidecar = {**container("log", **both), "restartPolicy": "Always"}
    heavy = container("setup", requests={"cpu": "4"}, limits={"cpu": "4"})
    document = pod("web", container("main", **both), initContainers=[sidecar, heavy], overhead={"cpu": "250m"})

    found = messages(quota({"requests.cpu": "5", "limits.cpu": "5"}), document)

    assert found == [
        'pods "web" is forbidden: exceeded quota: team-a, requested: limits.cpu=5250m,requests.cpu=5250m, '
        "used: limits.cpu=0,requests.cpu=0, limited: limits.cpu=5,requests.cpu=5"
    ]


def test_overhead_adds_to_no_limit_that_is_not_there() -> None:
    light = pod("web", container(requests={"ephemeral-storage": "1Gi"}), overhead={"ephemeral-storage": "1Gi"})

    assert messages(quota({"limits.ephemeral-storage": "0"}), light) == []
    assert messages(quota({"requests.ephemeral-storage": "1Gi"}), light) == [
        'pods "web" is forbidden: exceeded quota: team-a, requested: requests.ephemeral-storage=2Gi, '
        "used: requests.ephemeral-storage=0, limited: requests.ephemeral-storage=1Gi"
    ]


# Scopes.

BEST_EFFORT = pod("idle")
BURSTABLE = asking("busy", cpu=1)
ZERO = asking("zero", cpu=0, memory=0)
DEADLINE = pod("brief", container(requests={"cpu": "1"}), activeDeadlineSeconds=60)
TERM = {"topologyKey": "zone", "labelSelector": {}, "namespaces": ["other"]}
AFFINE = pod("affine", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}})
PREFERRED = {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "namespaceSelector": {}}}
AVERSE = pod("averse", affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]}})
LOCAL_TERM = {"topologyKey": "zone", "labelSelector": {}}
LOCAL = pod("local", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [LOCAL_TERM]}})
WHOLE = pod("whole", resources={"requests": {"cpu": "1"}})
EVERYONE = [BEST_EFFORT, BURSTABLE, ZERO, DEADLINE, AFFINE, AVERSE, LOCAL, WHOLE]


@pytest.mark.parametrize(
    ("scope", "within"),
    [
        ("BestEffort", ["idle", "zero", "affine", "averse", "local"]),
        ("NotBestEffort", ["busy", "brief", "whole"]),
        ("Terminating", ["brief"]),
        ("NotTerminating", ["idle", "busy", "zero", "affine", "averse", "local", "whole"]),
        ("CrossNamespacePodAffinity", ["affine", "averse"]),
    ],
)
def test_a_quota_is_about_the_pods_in_its_scope(scope: str, within: list[str]) -> None:
    by_scopes = build_manifests([quota({"pods": "0"}, scopes=[scope]), *EVERYONE])
    expression = {"scopeName": scope, "operator": "Exists"}
    by_selector = build_manifests([quota({"pods": "0"}, scopeSelector={"matchExpressions": [expression]}), *EVERYONE])

    assert [refusal.found.metadata.name for refusal in by_scopes.refused] == within
    assert by_selector.refused == by_scopes.refused


@pytest.mark.parametrize(
    ("operator", "values", "within"),
    [
        ("In", ["high", "other"], ["urgent"]),
        ("NotIn", ["high"], ["calm", "classless"]),
        ("Exists", None, ["urgent", "calm"]),
        ("DoesNotExist", None, ["classless"]),
    ],
)
def test_a_quota_selects_by_priority_class(operator: str, values: list[str] | None, within: list[str]) -> None:
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("high", 100), ("low", 1))
    ]
    pods = [pod("urgent", priorityClassName="high"), pod("calm", priorityClassName="low"), pod("classless")]
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}

    manifests = build_manifests(
        [quota({"pods": "0"}, scopeSelector={"matchExpressions": [expression]}), *classes, *pods]
    )

    assert [refusal.found.metadata.name for refusal in manifests.refused] == within


def test_all_scopes_of_a_quota_must_hold() -> None:
    found = build_manifests([quota({"pods": "0"}, scopes=["NotBestEffort", "Terminating"]), *EVERYONE]).refused

    assert [refusal.found.metadata.name for refusal in found] == ["brief"]


def test_a_limit_range_decides_first_what_is_best_effort() -> None:
    default = limit_range({"type": "Container", "defaultRequest": {"cpu": "100m"}})

    assert messages(quota({"pods": "0"}, scopes=["BestEffort"]), default, pod()) == []


# What exists already.


def test_what_runs_is_counted_and_never_refused() -> None:
    running = [pod(f"old-{i}", container(requests={"cpu": "3"}), nodeName="n") for i in range(2)]

    manifests = build_manifests([quota({"requests.cpu": "4"}), asking("new", cpu=1), *running])

    assert pod_names(manifests) == ["old-0", "old-1"]
    assert manifests.refused[0].reason == (
        "exceeded quota: team-a, requested: requests.cpu=1, used: requests.cpu=6, limited: requests.cpu=4"
    )


def test_a_pod_that_the_api_server_has_let_in_is_not_asked_again() -> None:
    admitted = with_metadata(asking("waiting", cpu=9), resourceVersion="7")

    manifests = build_manifests([quota({"requests.cpu": "4"}), admitted, asking("new", cpu=1)])

    assert pod_names(manifests) == ["waiting"]
    assert [refusal.key for refusal in manifests.refused] == ["default/new"]


def test_a_pod_that_is_over_takes_nothing_but_its_place_in_the_count_of_objects() -> None:
    over = {**asking("over", cpu=4), "status": {"phase": "Succeeded"}}

    manifests = build_manifests([quota({"requests.cpu": 4, "pods": 1, "count/pods": 2}), over, asking("a", cpu=4)])
    one_more = messages(quota({"count/pods": 1}), over, pod("b"))

    assert manifests.refused == []
    assert one_more == [
        'pods "b" is forbidden: exceeded quota: team-a, requested: count/pods=1, used: count/pods=1, '
        "limited: count/pods=1"
    ]


def test_quotas_govern_their_own_namespace_alone() -> None:
    elsewhere = with_metadata(pod("elsewhere"), namespace="other")

    assert pod_names(build_manifests([quota({"pods": 0}), elsewhere, pod("here")])) == ["elsewhere"]


def test_replicas_beyond_the_quota_are_not_created() -> None:
    manifests = build_manifests(
        [quota({"requests.cpu": 3}), workload("Deployment", "web", container(requests={"cpu": "1"}), replicas=5)]
    )

    assert [name.partition("-")[0] for name in pod_names(manifests)] == ["web"] * 3
    assert [refusal.key.partition("-")[0] for refusal in manifests.refused] == ["default/web"] * 2
