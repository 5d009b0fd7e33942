"""The pipeline in process: what each verb does to an object, and what it refuses."""

from typing import Any

import pytest

from mooring.kubeapi.api import Api
from mooring.kubeapi.registry import Registry
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.records import Event
from mooring.kubeapi.store.store import Store
from mooring.kubeapi.strategy import Strategy

NOON = 1_800_000_000.0


class Graceful(Strategy):
    def grace_period(self, obj: dict[str, Any], asked: int | None) -> int:
        return 30 if asked is None else asked


@pytest.fixture
def api() -> Api:
    graceful, plain = Graceful(), Strategy()
    return Api(
        Store(), Registry(), strategy_of=lambda each: graceful if each.key == "pods" else plain, now=lambda: NOON
    )


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "c", "image": "pause"}]}}


def status_of(refused: pytest.ExceptionInfo[ApiError]) -> tuple[int, str, str]:
    return refused.value.code, refused.value.reason, refused.value.message


def test_a_created_object_gets_what_the_server_gives(api: Api) -> None:
    created = api.create("configmaps", config_map("a", x="1"), "team")

    uid = created["metadata"].pop("uid")
    assert len(uid) == 36
    assert created == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "a",
            "namespace": "team",
            "creationTimestamp": "2027-01-15T08:00:00Z",
            "resourceVersion": "2",
        },
        "data": {"x": "1"},
    }


def test_what_is_handed_in_stays_the_callers(api: Api) -> None:
    given = config_map("a")

    api.create("configmaps", given, "team")["data"]["x"] = "changed"

    assert given == config_map("a")
    assert api.get("configmaps", "team", "a")["data"] == {}


def test_a_name_is_made_up_where_only_its_beginning_is_given(api: Api) -> None:
    created = api.create("configmaps", {"metadata": {"generateName": "run-"}}, "team")

    assert created["metadata"]["name"].startswith("run-")
    assert len(created["metadata"]["name"]) == len("run-") + 5


def test_a_name_that_is_taken_is_refused(api: Api) -> None:
    api.create("configmaps", config_map("a"), "team")

    with pytest.raises(ApiError) as refused:
        api.create("configmaps", config_map("a"), "team")
    assert status_of(refused) == (409, "AlreadyExists", 'configmaps "a" already exists')


def test_an_update_of_an_older_state_is_refused(api: Api) -> None:
    first = api.create("configmaps", config_map("a"), "team")
    second = api.update("configmaps", {**first, "data": {"x": "1"}})

    with pytest.raises(ApiError) as refused:
        api.update("configmaps", {**first, "data": {"x": "2"}})
    assert status_of(refused)[:2] == (409, "Conflict")
    assert api.get("configmaps", "team", "a") == second


def test_an_update_that_changes_nothing_makes_no_revision(api: Api) -> None:
    first = api.create("configmaps", config_map("a", x="1"), "team")

    assert api.update("configmaps", first) == first
    assert api.store.revision == 2


def test_an_update_keeps_what_only_the_server_writes(api: Api) -> None:
    first = api.create("configmaps", config_map("a"), "team")
    sent = {"metadata": {"name": "a", "namespace": "team", "creationTimestamp": None, "labels": {"x": "y"}}}

    updated = api.update("configmaps", sent)

    assert updated["metadata"] == {**first["metadata"], "labels": {"x": "y"}, "resourceVersion": "3"}


def test_an_update_of_the_status_changes_nothing_else(api: Api) -> None:
    first = api.create("pods", pod("a"), "team")
    sent = {**first, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}

    updated = api.update("pods", sent, subresource="status")

    assert (updated["spec"], updated["status"]) == (first["spec"], {"phase": "Running"})


def test_a_dry_run_changes_nothing(api: Api) -> None:
    api.create("configmaps", config_map("a"), "team", dry_run=True)
    kept = api.create("configmaps", config_map("b"), "team")
    api.update("configmaps", {**kept, "data": {"x": "1"}}, dry_run=True)
    api.delete("configmaps", "team", "b", dry_run=True)

    assert api.list("configmaps") == [kept]


def test_a_deletion_answers_with_a_status(api: Api) -> None:
    created = api.create("configmaps", config_map("a"), "team")

    assert api.delete("configmaps", "team", "a") == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]},
    }
    assert api.list("configmaps") == []


def test_an_object_with_finalizers_waits_for_them(api: Api) -> None:
    given = config_map("a")
    given["metadata"]["finalizers"] = ["example.com/wait"]
    api.create("configmaps", given, "team")

    going = api.delete("configmaps", "team", "a")
    still = api.get("configmaps", "team", "a")
    api.update("configmaps", {**still, "metadata": {**still["metadata"], "finalizers": []}})

    assert going["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:00Z"
    assert api.find("configmaps", "team", "a") is None


def test_a_pod_has_its_grace_and_may_be_hurried(api: Api) -> None:
    api.create("pods", pod("a"), "team")

    graceful = api.delete("pods", "team", "a")["metadata"]
    hurried = api.delete("pods", "team", "a", grace_period=5)["metadata"]
    slower = api.delete("pods", "team", "a", grace_period=60)["metadata"]
    api.delete("pods", "team", "a", grace_period=0)

    seconds = [each["deletionGracePeriodSeconds"] for each in (graceful, hurried, slower)]
    assert seconds == [30, 5, 5]
    assert graceful["deletionTimestamp"] == "2027-01-15T08:00:30Z"
    assert api.find("pods", "team", "a") is None


def test_a_deletion_of_another_incarnation_is_refused(api: Api) -> None:
    api.create("configmaps", config_map("a"), "team")

    with pytest.raises(ApiError) as refused:
        api.delete("configmaps", "team", "a", uid="another")
    assert status_of(refused)[:2] == (409, "Conflict")


@pytest.mark.parametrize(
    ("propagation", "finalizers"), [("Orphan", ["orphan"]), ("Foreground", ["foregroundDeletion"])]
)
def test_a_propagation_policy_waits_for_the_garbage_collector(
    api: Api, propagation: str, finalizers: list[str]
) -> None:
    api.create("replicasets.apps", {"metadata": {"name": "a"}, "spec": {}}, "team")

    api.delete("replicasets.apps", "team", "a", propagation=propagation)

    assert api.get("replicasets.apps", "team", "a")["metadata"]["finalizers"] == finalizers


def test_deleting_a_collection_takes_what_is_selected(api: Api) -> None:
    for name, colour in (("a", "red"), ("b", "blue"), ("c", "red")):
        api.create("configmaps", {"metadata": {"name": name, "labels": {"colour": colour}}}, "team")

    api.delete_collection("configmaps", "team", labels="colour=red")

    assert [each["metadata"]["name"] for each in api.list("configmaps")] == ["b"]


def test_a_pod_is_bound_once(api: Api) -> None:
    api.create("pods", pod("a"), "team")
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}

    api.create_sub("pods", "team", "a", "binding", binding)
    bound = api.get("pods", "team", "a")
    with pytest.raises(ApiError) as refused:
        api.create_sub("pods", "team", "a", "binding", binding)

    assert bound["spec"]["nodeName"] == "n1"
    assert [(each["type"], each["status"]) for each in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    assert status_of(refused)[:2] == (409, "Conflict")


def running(api: Api, name: str) -> None:
    created = api.create("pods", pod(name, app="web"), "team")
    created["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    api.update("pods", created, subresource="status")


def test_an_eviction_keeps_to_the_budget(api: Api) -> None:
    for name in "ab":
        running(api, name)
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    created = api.create("poddisruptionbudgets.policy", budget, "team")
    created["status"] = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1}
    api.update("poddisruptionbudgets.policy", created, subresource="status")

    api.create_sub("pods", "team", "a", "eviction", {"deleteOptions": {"gracePeriodSeconds": 0}})
    with pytest.raises(ApiError) as refused:
        api.create_sub("pods", "team", "b", "eviction", {})

    assert api.find("pods", "team", "a") is None
    assert status_of(refused) == (
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
    )


def test_a_scale_sets_the_replicas(api: Api) -> None:
    deployment = {"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}}
    api.create("deployments.apps", deployment, "team")

    scale = api.get_sub("deployments.apps", "team", "web", "scale")
    api.update_sub("deployments.apps", "team", "web", "scale", {**scale, "spec": {"replicas": 5}})

    assert scale["status"] == {"replicas": 0, "selector": "app=web"}
    assert api.get("deployments.apps", "team", "web")["spec"]["replicas"] == 5


def test_subscribers_hear_of_changes_in_order_with_what_was_before(api: Api) -> None:
    heard: list[tuple[str, Any, Any]] = []

    def note(event: Event) -> None:
        heard.append((event.type, event.object.get("data"), (event.old or {}).get("data")))

    stop = api.subscribe("configmaps", note)
    created = api.create("configmaps", config_map("a", x="1"), "team")
    api.update("configmaps", {**created, "data": {"x": "2"}})
    api.delete("configmaps", "team", "a")
    api.store.flush()
    stop()
    api.create("configmaps", config_map("b"), "team")
    api.store.flush()

    assert heard == [
        ("ADDED", {"x": "1"}, None),
        ("MODIFIED", {"x": "2"}, {"x": "1"}),
        ("DELETED", {"x": "2"}, {"x": "2"}),
    ]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("", ["a", "b", "c"]),
        ("colour=red", ["a"]),
        ("colour==red", ["a"]),
        ("colour!=red", ["b", "c"]),
        ("colour in (red, blue)", ["a", "b"]),
        ("colour notin (red,blue)", ["c"]),
        ("colour", ["a", "b"]),
        ("!colour", ["c"]),
        ("colour,example.com/size=big", ["b"]),
        ("rank>2", ["c"]),
    ],
)
def test_label_selectors_select_as_kubernetes_does(api: Api, selector: str, found: list[str]) -> None:
    for name, labels in (
        ("a", {"colour": "red", "rank": "1"}),
        ("b", {"colour": "blue", "example.com/size": "big"}),
        ("c", {"rank": "3"}),
    ):
        api.create("configmaps", {"metadata": {"name": name, "labels": labels}}, "team")

    assert [each["metadata"]["name"] for each in api.list("configmaps", "team", selector)] == found


@pytest.mark.parametrize("selector", ["a in", "a in (b", "=x", "a=b c", "a b", "-a=x", "a in ()x"])
def test_a_selector_that_makes_no_sense_is_a_bad_request(api: Api, selector: str) -> None:
    with pytest.raises(ApiError) as refused:
        api.list("configmaps", None, selector)
    assert status_of(refused)[:2] == (400, "BadRequest")


def test_fields_select_by_name(api: Api) -> None:
    for name in "abc":
        api.create("configmaps", config_map(name), "team")

    assert [each["metadata"]["name"] for each in api.list("configmaps", "team", fields="metadata.name!=b")] == [
        "a",
        "c",
    ]
    with pytest.raises(
        ApiError, match=r'"data\.x" is not a known field selector: only "metadata\.name", "metadata\.namespace"'
    ):
        api.list("configmaps", "team", fields="data.x=1")


def test_a_resource_of_a_definition_takes_the_place_of_a_built_in_one() -> None:
    from mooring.kubeapi.registry import Resource

    registry = Registry()
    built_in = registry.find("workloads.kueue.x-k8s.io")
    registry.add(Resource("kueue.x-k8s.io", "workloads", "Workload", ("v9",), definition="workloads.kueue.x-k8s.io"))

    assert registry.at("kueue.x-k8s.io", "v1beta1", "workloads") is None
    assert registry.of_kind("kueue.x-k8s.io/v9", "Workload").definition == "workloads.kueue.x-k8s.io"
    registry.remove("workloads.kueue.x-k8s.io")
    assert registry.find("workloads.kueue.x-k8s.io") == built_in
