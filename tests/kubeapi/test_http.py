"""The API over HTTPS: verbs, lists, watches, and the Status of everything that is refused."""

import json
import threading
from typing import Any
from urllib.parse import quote

import pytest
from running import Client, Running, WatchStream

from mooring.kubeapi.controllers import namespace_contents

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def status_of(answer: tuple[int, Any]) -> tuple[int, str, int]:
    code, status = answer
    assert (status["kind"], status["status"]) == ("Status", "Failure")
    return code, status["reason"], status["code"]


def test_an_object_lives_from_post_to_delete(client: Client) -> None:
    code, created = client.ask("POST", CONFIG_MAPS, config_map("life", x="1"))
    got = client.get(f"{CONFIG_MAPS}/life")
    put = client.ask("PUT", f"{CONFIG_MAPS}/life", {**created, "data": {"x": "2"}})
    merged = client.ask(
        "PATCH", f"{CONFIG_MAPS}/life", {"data": {"y": "3"}}, content_type="application/merge-patch+json"
    )
    gone = client.ask("DELETE", f"{CONFIG_MAPS}/life")

    assert (code, got) == (201, (200, created))
    assert (put[0], put[1]["data"]) == (200, {"x": "2"})
    assert (merged[0], merged[1]["data"]) == (200, {"x": "2", "y": "3"})
    assert (gone[0], gone[1]["status"]) == (200, "Success")
    assert status_of(client.get(f"{CONFIG_MAPS}/life")) == (404, "NotFound", 404)


def test_a_stale_update_is_a_conflict(client: Client) -> None:
    _, created = client.ask("POST", CONFIG_MAPS, config_map("stale"))
    client.ask("PUT", f"{CONFIG_MAPS}/stale", {**created, "data": {"x": "1"}})

    refused = client.ask("PUT", f"{CONFIG_MAPS}/stale", {**created, "data": {"x": "2"}})

    assert status_of(refused) == (409, "Conflict", 409)


def test_a_list_comes_in_chunks_of_one_moment(client: Client) -> None:
    for number in range(7):
        client.ask("POST", "/api/v1/namespaces/kube-public/secrets", secret(f"chunk-{number}"))
    path = "/api/v1/namespaces/kube-public/secrets?limit=3"

    _, first = client.get(path)
    client.ask("POST", "/api/v1/namespaces/kube-public/secrets", secret("chunk-9"))
    client.ask("DELETE", "/api/v1/namespaces/kube-public/secrets/chunk-4")
    _, second = client.get(f"{path}&continue={quote(first['metadata']['continue'])}")
    _, third = client.get(f"{path}&continue={quote(second['metadata']['continue'])}")

    names = [[each["metadata"]["name"] for each in chunk["items"]] for chunk in (first, second, third)]
    assert names == [["chunk-0", "chunk-1", "chunk-2"], ["chunk-3", "chunk-4", "chunk-5"], ["chunk-6"]]
    assert [chunk["metadata"].get("remainingItemCount") for chunk in (first, second, third)] == [4, 1, None]
    assert len({chunk["metadata"]["resourceVersion"] for chunk in (first, second, third)}) == 1
    assert "continue" not in third["metadata"]


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_pod_waits_a_moment_for_the_account_of_its_new_namespace(
    server: Running, client: Client, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespace_contents.ServiceAccounts, "sync", lambda self, key: None)  # it has other things to do
    namespace = f"new-{method.lower()}"
    client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": "main", "image": "a"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}

    def create() -> int:
        if method == "POST":
            return client.ask("POST", pods, pod)[0]
        return client.ask("PATCH", f"{pods}/a?fieldManager=test", pod, content_type="application/apply-patch+yaml")[0]

    too_early = create()
    account = {"metadata": {"name": "default"}}
    timer = threading.Timer(0.3, server.call, (server.cluster.api.create, "serviceaccounts", account, namespace))
    timer.start()
    in_time = create()
    timer.join()

    assert (too_early, in_time) == (403, 201)


def secret(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}


def test_a_watch_begins_with_what_is_there_and_goes_on(client: Client) -> None:
    client.ask("POST", "/api/v1/namespaces/kube-public/configmaps", config_map("first"))
    path = (
        "/api/v1/namespaces/kube-public/configmaps?watch=1&allowWatchBookmarks=true&sendInitialEvents=true"
        "&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name%3Dfirst"
    )
    stream = WatchStream(client, path)

    added, bookmark = stream.next(), stream.next()
    client.ask("POST", "/api/v1/namespaces/kube-public/configmaps", config_map("second"))
    client.ask("DELETE", "/api/v1/namespaces/kube-public/configmaps/first")
    deleted = stream.next()
    stream.close()

    assert (added["type"], added["object"]["metadata"]["name"]) == ("ADDED", "first")
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert (deleted["type"], deleted["object"]["metadata"]["name"]) == ("DELETED", "first")
    assert int(deleted["object"]["metadata"]["resourceVersion"]) > int(
        bookmark["object"]["metadata"]["resourceVersion"]
    )


def test_a_watch_of_a_forgotten_past_ends_with_410(server: Running, client: Client) -> None:
    _, created = client.ask("POST", CONFIG_MAPS, config_map("forgotten"))
    client.ask("DELETE", f"{CONFIG_MAPS}/forgotten")
    server.call(server.cluster.store.compact)

    version = created["metadata"]["resourceVersion"]
    stream = WatchStream(client, f"{CONFIG_MAPS}?watch=1&resourceVersion={version}")
    event = stream.next()
    stream.close()

    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_a_watch_ends_when_its_time_is_up(client: Client) -> None:
    stream = WatchStream(client, f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0")

    assert all(event["type"] == "ADDED" for event in stream)
    stream.close()


def test_an_unknown_caller_gets_401(server: Running) -> None:
    stranger = Client(server.cluster, with_certificate=False)
    impostor = Client(server.cluster, with_certificate=False, token="not.a.token")

    assert status_of(stranger.get(CONFIG_MAPS)) == (401, "Unauthorized", 401)
    assert status_of(impostor.get(CONFIG_MAPS)) == (401, "Unauthorized", 401)
    assert stranger.get("/healthz") == (200, "ok")
    stranger.close()
    impostor.close()


def test_a_service_account_may_do_what_its_role_says(server: Running, client: Client) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
    client.ask("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    _, issued = client.ask(
        "POST",
        "/api/v1/namespaces/default/serviceaccounts/reader/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )
    reader = Client(server.cluster, with_certificate=False, token=issued["status"]["token"])
    before = reader.get(CONFIG_MAPS)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }
    client.ask("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding)
    after = reader.get(CONFIG_MAPS)
    write = reader.ask("POST", CONFIG_MAPS, config_map("mine"))
    elsewhere = reader.get("/api/v1/namespaces/kube-system/configmaps")
    reader.close()

    assert status_of(before) == (403, "Forbidden", 403)
    assert before[1]["message"] == (
        'configmaps is forbidden: User "system:serviceaccount:default:reader" cannot list resource "configmaps" '
        'in API group "" in the namespace "default"'
    )
    assert after[0] == 200
    assert (write[0], elsewhere[0]) == (403, 403)


def test_someone_may_be_impersonated_by_an_administrator(client: Client) -> None:
    allowed = client.get("/api/v1/nodes", **{"Impersonate-User": "jane", "Impersonate-Group": "system:masters"})
    refused = client.get("/api/v1/nodes", **{"Impersonate-User": "jane"})
    _, who = client.ask(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
        **{"Impersonate-User": "jane"},
    )

    assert (allowed[0], refused[0]) == (200, 403)
    assert who["status"]["userInfo"] == {"username": "jane", "groups": ["system:authenticated"]}


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type", "expected"),
    [
        pytest.param("POST", CONFIG_MAPS, b"{", "application/json", (400, "BadRequest", 400), id="malformed"),
        pytest.param("POST", CONFIG_MAPS, b"[]", "application/json", (400, "BadRequest", 400), id="a list"),
        pytest.param("POST", CONFIG_MAPS, b"{}", "text/plain", (415, "UnsupportedMediaType", 415), id="plain text"),
        pytest.param(
            "POST",
            CONFIG_MAPS,
            {"kind": "Pod", "apiVersion": "v1"},
            "application/json",
            (400, "BadRequest", 400),
            id="kind",
        ),
        pytest.param("GET", "/api/v1/wolves", None, "application/json", (404, "NotFound", 404), id="unknown resource"),
        pytest.param(
            "GET", "/apis/x.y/v1/wolves", None, "application/json", (404, "NotFound", 404), id="unknown group"
        ),
        pytest.param(
            "POST", "/api/v1/configmaps", {}, "application/json", (405, "MethodNotAllowed", 405), id="no namespace"
        ),
        pytest.param("GET", f"{CONFIG_MAPS}?limit=many", None, "", (400, "BadRequest", 400), id="limit"),
        pytest.param("GET", f"{CONFIG_MAPS}?labelSelector=a+b", None, "", (400, "BadRequest", 400), id="selector"),
        pytest.param("GET", f"{CONFIG_MAPS}?continue=x", None, "", (400, "BadRequest", 400), id="continue"),
        pytest.param("GET", f"{CONFIG_MAPS}?resourceVersion=x", None, "", (422, "Invalid", 422), id="resourceVersion"),
        pytest.param(
            "POST", f"{CONFIG_MAPS}?dryRun=Some", {}, "application/json", (400, "BadRequest", 400), id="dryRun"
        ),
        pytest.param(
            "PATCH", f"{CONFIG_MAPS}/x", b"{}", "text/plain", (415, "UnsupportedMediaType", 415), id="patch type"
        ),
        pytest.param(
            "PUT", f"{CONFIG_MAPS}/x", config_map("y"), "application/json", (400, "BadRequest", 400), id="name"
        ),
    ],
)
def test_a_bad_request_gets_the_right_status(
    client: Client, method: str, path: str, body: Any, content_type: str, expected: tuple[int, str, int]
) -> None:
    assert status_of(client.ask(method, path, body, content_type=content_type)) == expected


def test_a_body_that_is_too_large_is_413(client: Client) -> None:
    body = config_map("large", x="x" * (3 * 1024 * 1024))

    assert status_of(client.ask("POST", CONFIG_MAPS, body)) == (413, "RequestEntityTooLarge", 413)


def test_what_nodes_would_answer_says_that_they_are_simulated(server: Running, client: Client) -> None:
    pod = {"metadata": {"name": "silent"}, "spec": {"containers": [{"name": "c", "image": "pause"}]}}
    server.call(server.cluster.api.create, "pods", pod, "default")

    code, status = client.get("/api/v1/namespaces/default/pods/silent/log")

    assert (code, status["reason"]) == (501, "NotImplemented")
    assert "nodes are simulated" in status["message"]


def test_a_node_that_is_created_says_of_itself_what_a_kubelet_would(client: Client) -> None:
    status = {"allocatable": {"cpu": "4"}, "nodeInfo": {"kernelVersion": "6.1"}}
    client.ask("POST", "/api/v1/nodes", {"metadata": {"name": "described"}, "status": status})
    info = client.get("/api/v1/nodes/described")[1]["status"]["nodeInfo"]
    client.ask("DELETE", "/api/v1/nodes/described")

    assert (info["kubeletVersion"], info["osImage"], info["kernelVersion"]) == ("v1.37.1", "simulated", "6.1")


def test_discovery_names_every_resource_in_both_forms(server: Running, client: Client) -> None:
    _, core = client.get("/api/v1")
    _, groups = client.get("/apis")
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    _, together = client.get("/apis", Accept=aggregated)

    assert "pods/binding" in {each["name"] for each in core["resources"]}
    assert {group["name"] for group in groups["groups"]} == {item["metadata"]["name"] for item in together["items"]}
    for group in groups["groups"]:
        for version in group["versions"]:
            assert client.get(f"/apis/{version['groupVersion']}")[0] == 200


def test_a_table_has_rows_with_their_metadata(client: Client) -> None:
    client.ask("POST", CONFIG_MAPS, config_map("row"))
    _, table = client.get(f"{CONFIG_MAPS}/row", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")

    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["columnDefinitions"][0]["name"] == "Name"
    assert table["rows"][0]["cells"][0] == "row"
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_a_streamed_list_of_tables_has_the_columns_once(client: Client) -> None:
    for name in ("first", "second"):
        client.ask("POST", CONFIG_MAPS, {"metadata": {"name": name, "labels": {"streamed": "yes"}}})
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
    _, text = client.get(f"{CONFIG_MAPS}?{query}&labelSelector=streamed%3Dyes", Accept=table)
    _, alone = client.get(f"{CONFIG_MAPS}/second", Accept=table)

    first, second, end, *_ = [json.loads(line)["object"] for line in text.splitlines()]

    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert {**second, "rows": []} == {**alone, "columnDefinitions": None, "rows": []}
    assert [row["object"] for row in second["rows"]] == [row["object"] for row in alone["rows"]]
    (row,) = end["rows"]
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_cluster_wide_object_that_names_a_namespace_is_written_without_it(client: Client) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    role = {"metadata": {"name": "no-namespace", "namespace": "default"}, "rules": []}

    code, made = client.ask("POST", path, role)
    again, _ = client.ask("PUT", f"{path}/no-namespace", role)

    assert (code, made["metadata"].get("namespace"), again) == (201, None, 200)


def message(*fields: tuple[int, bytes]) -> bytes:
    """A protobuf message of short fields."""
    return b"".join(bytes((number << 3 | 2, len(value))) + value for number, value in fields)


def test_a_body_in_protobuf_is_read(client: Client) -> None:
    entry = message((1, b"x"), (2, b"1"))
    raw = message((1, message((1, b"binary"), (11, message((1, b"colour"), (2, b"red"))))), (2, entry))
    body = b"k8s\x00" + message((1, message((1, b"v1"), (2, b"ConfigMap"))), (2, raw))

    code, created = client.ask("POST", CONFIG_MAPS, body, content_type="application/vnd.kubernetes.protobuf")

    assert (code, created["data"], created["metadata"]["labels"]) == (201, {"x": "1"}, {"colour": "red"})


@pytest.mark.parametrize("body", [b"", b"k8s", b"k8s\x00\xff", b"k8s\x00\x0a\x05ab", b"k8s\x00\x12\xff\xff\xff\x01"])
def test_protobuf_that_is_none_is_a_bad_request(client: Client, body: bytes) -> None:
    refused = client.ask("POST", CONFIG_MAPS, body, content_type="application/vnd.kubernetes.protobuf")

    assert status_of(refused) == (400, "BadRequest", 400)


def test_items_of_a_built_in_list_do_not_say_again_what_they_are(client: Client) -> None:
    client.ask("POST", CONFIG_MAPS, config_map("item"))
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "item"}}
    client.ask("POST", "/apis/scheduling.volcano.sh/v1beta1/queues", queue)

    _, maps = client.get(f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Ditem")
    _, queues = client.get("/apis/scheduling.volcano.sh/v1beta1/queues?fieldSelector=metadata.name%3Ditem")
    _, partial = client.get(CONFIG_MAPS, Accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")

    assert (maps["kind"], set(maps["items"][0])) == ("ConfigMapList", {"metadata"})
    assert queues["items"][0]["kind"] == "Queue"
    assert partial["kind"] == "PartialObjectMetadataList"
    assert {tuple(item) for item in partial["items"]} == {("metadata",)}


def test_an_update_that_says_the_same_in_another_order_changes_nothing(client: Client) -> None:
    _, created = client.ask("POST", CONFIG_MAPS, config_map("order", a="1", b="2"))
    turned = dict(reversed(created.items()))

    _, updated = client.ask("PUT", f"{CONFIG_MAPS}/order", turned)

    assert updated["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_openapi_v2_comes_in_protobuf_for_those_who_ask(client: Client) -> None:
    asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    client.connection.request("GET", "/openapi/v2", headers={"Accept": asked})
    answer = client.connection.getresponse()
    data = answer.read()

    assert answer.headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert data.startswith(b"\x0a\x032.0\x12")
    assert b"io.k8s.api.core.v1.Pod" in data
    assert client.get("/openapi/v2")[1]["swagger"] == "2.0"


def test_the_kubeconfig_has_a_second_way_in_by_token(server: Running) -> None:
    token = server.cluster.kubeconfig()["users"][1]["user"]["token"]
    by_token = Client(server.cluster, with_certificate=False, token=token)

    assert by_token.get("/api/v1/nodes")[0] == 200
    by_token.close()


def test_times_of_long_ago_in_protobuf_are_read(client: Client) -> None:
    """Go's times begin with the year 1."""
    seconds = (-62135596798) & (2**64 - 1)
    varint = bytes([seconds >> shift & 0x7F | 0x80 for shift in range(0, 63, 7)]) + b"\x01"
    spec = message((4, b"\x08" + varint))
    raw = message((1, message((1, b"ancient"))), (2, spec))
    body = b"k8s\x00" + message((1, message((1, b"coordination.k8s.io/v1"), (2, b"Lease"))), (2, raw))
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

    code, lease = client.ask("POST", path, body, content_type="application/vnd.kubernetes.protobuf")

    assert (code, lease["spec"]) == (201, {"renewTime": "0001-01-01T00:00:02.000000Z"})


@pytest.mark.parametrize(("timeout", "code"), [("abc", 400), ("1", 400), ("-1s", 200), ("1m30s", 200), ("0", 200)])
def test_a_timeout_is_a_duration(client: Client, timeout: str, code: int) -> None:
    found, answer = client.get(f"{CONFIG_MAPS}?timeout={timeout}")

    assert found == code
    assert client.get(f"/version?timeout={timeout}")[0] == code
    if code == 400:
        assert answer["message"].startswith("invalid timeout specified in the request URL")


def test_discovery_says_in_which_version_objects_are_stored(client: Client) -> None:
    resources = {each["name"]: each for each in client.get("/api/v1")[1]["resources"]}

    assert resources["pods"]["storageVersionHash"] == "xPOwRZ+Yhw8="  # as every cluster has it
    assert "storageVersionHash" not in resources["pods/status"]


def test_binary_data_that_is_null_is_nothing(client: Client) -> None:
    assert client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "null"}, "binaryData": {"a": None}})[0] == 201


def test_an_approval_is_kept_and_what_comes_of_it_is_said(client: Client) -> None:
    requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    spec = {"signerName": "example.com/x", "request": "YQ==", "usages": ["client auth"]}
    _, found = client.ask("POST", requests, {"metadata": {"name": "jane"}, "spec": spec})
    found["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}

    code, approved = client.ask("PUT", f"{requests}/jane/approval", found)

    assert (code, approved["status"]["conditions"][0]["type"]) == (200, "Approved")
