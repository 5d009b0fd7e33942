"""Whatever comes in, a Status comes out: the right code, never a traceback, never a server that is stuck."""

import json
import socket
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings
from running import Client, Running

FUZZ = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
"""`make fuzz` tries many more."""
SERVED_CODES = {200, 201, 400, 404, 405, 406, 409, 410, 413, 415, 422, 403, 501, 504}

RESOURCES = (
    ("/api/v1/namespaces/default/pods", "v1", "Pod"),
    ("/api/v1/namespaces/default/configmaps", "v1", "ConfigMap"),
    ("/api/v1/namespaces/default/services", "v1", "Service"),
    ("/api/v1/nodes", "v1", "Node"),
    ("/apis/apps/v1/namespaces/default/deployments", "apps/v1", "Deployment"),
    ("/apis/apps/v1/namespaces/default/statefulsets", "apps/v1", "StatefulSet"),
    ("/apis/batch/v1/namespaces/default/jobs", "batch/v1", "Job"),
    ("/apis/batch/v1/namespaces/default/cronjobs", "batch/v1", "CronJob"),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "policy/v1", "PodDisruptionBudget"),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", "scheduling.k8s.io/v1", "PriorityClass"),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("/apis/kueue.x-k8s.io/v1beta2/clusterqueues", "kueue.x-k8s.io/v1beta2", "ClusterQueue"),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("/apis/events.k8s.io/v1/namespaces/default/events", "events.k8s.io/v1", "Event"),
    ("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", "autoscaling/v1", "HorizontalPodAutoscaler"),
    ("/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims", "resource.k8s.io/v1beta1", "ResourceClaim"),
)
WORDS = (
    "metadata", "name", "namespace", "labels", "annotations", "generateName", "finalizers", "ownerReferences", "uid",
    "resourceVersion", "spec", "status", "template", "containers", "image", "resources", "requests", "limits", "cpu",
    "memory", "selector", "matchLabels", "matchExpressions", "key", "operator", "values", "replicas", "rules", "verbs",
    "ports", "port", "type", "data", "value", "schedule", "jobTemplate", "names", "plural", "versions",
    "schema", "openAPIV3Schema", "devices", "minAvailable", "volumes", "env", "affinity", "managedFields",
    "deletionTimestamp", "mooring.dev/replicas", "metrics", "conditions", "note", "regarding",
)  # fmt: skip

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "a", "A/B", "1", "100m", "-1", "1Gi", "x" * 300, "é", "{i}", "10%", "*/5 * * * *", "\u0000"]),
    st.text(max_size=20),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)),
    max_leaves=12,
)


def check(code: int, answer: Any) -> None:
    assert code in SERVED_CODES, (code, answer)
    if code >= 400:
        assert answer["kind"] == "Status", answer
        assert answer["code"] == code
        assert "Traceback" not in answer["message"]


@FUZZ
@given(
    st.sampled_from(RESOURCES),
    st.dictionaries(st.sampled_from(WORDS), values, max_size=5),
    st.one_of(st.none(), values),
    st.sampled_from(["POST", "PUT"]),
)
def test_any_object_gets_an_answer(
    client: Client, resource: tuple[str, str, str], body: dict[str, Any], metadata: Any, method: str
) -> None:
    path, api_version, kind = resource
    obj = {**body, "apiVersion": api_version, "kind": kind}
    obj["metadata"] = metadata if metadata is not None else {"name": "fuzzed"}
    check(*client.ask(method, f"{path}/fuzzed" if method == "PUT" else f"{path}?dryRun=All", obj))


PATCHES = (
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)
operations = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"]),
        "path": st.sampled_from(["", "/", "/metadata", "/data/x", "/metadata/labels/-", "/spec/containers/0", "~2"]),
    },
    optional={"value": values, "from": st.sampled_from(["/metadata/name", "/nowhere"])},
)


@FUZZ
@given(st.sampled_from(PATCHES), st.one_of(values, st.lists(operations, max_size=3)), st.sampled_from(RESOURCES[:2]))
def test_any_patch_gets_an_answer(client: Client, media_type: str, patch: Any, resource: tuple[str, str, str]) -> None:
    path, api_version, kind = resource
    spec = {"containers": [{"name": "c", "image": "pause"}]} if kind == "Pod" else None
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "patched"}}
    client.ask("POST", path, obj if spec is None else {**obj, "spec": spec})
    if media_type.endswith("yaml") and isinstance(patch, dict):
        patch = {**patch, "apiVersion": api_version, "kind": kind}
    query = "?fieldManager=fuzz&force=true" if media_type.endswith("yaml") else ""
    code, answer = client.ask("PATCH", f"{path}/patched{query}", patch, content_type=media_type)
    if code == 500:  # some patches that do not fit get this from Kubernetes too, without a reason
        assert "reason" not in answer, answer
    else:
        check(code, answer)


@FUZZ
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]),
    st.lists(
        st.sampled_from(
            ["api", "apis", "v1", "apps", "namespaces", "default", "pods", "nodes", "watch", "status", "scale", "log",
             "x", "..", "%2e%2e", "%00", "binding", "eviction", "token", "serviceaccounts", "openapi", "v2", "v3", ""]
        ),
        max_size=7,
    ),
    st.lists(
        st.sampled_from(
            ["limit=-1", "limit=9999999999999999999999", "continue=e30", "fieldSelector=a", "labelSelector=%3D%3D",
             "resourceVersion=-1", "resourceVersionMatch=Exact", "watch=maybe", "timeoutSeconds=1", "dryRun=None",
             "sendInitialEvents=true", "fieldValidation=Loose", "gracePeriodSeconds=x", "propagationPolicy=Odd", "%"]
        ),
        max_size=3,
    ),
    st.binary(max_size=40),
)  # fmt: skip
def test_any_request_gets_an_answer(
    client: Client, method: str, parts: list[str], query: list[str], body: bytes
) -> None:
    path = "/" + "/".join(parts)
    if method == "DELETE" and parts[:3] == ["api", "v1", "namespaces"]:
        query = [*query, "dryRun=All"]
    code, answer = client.ask(method, f"{path}?{'&'.join(query)}", body if method in ("POST", "PUT", "PATCH") else None)
    if code >= 400 and method != "HEAD":
        check(code, answer)


def test_deeply_nested_bodies_are_refused(client: Client) -> None:
    deep = b'{"metadata":{"name":"deep"},"data":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}"

    code, answer = client.ask("POST", "/api/v1/namespaces/default/configmaps", deep)

    assert (code, answer["reason"]) == (400, "BadRequest")


def test_clients_that_say_nothing_or_half_hold_up_nobody(server: Running, client: Client) -> None:
    """Connections without a word, without a handshake, with half a request, with a body that never comes."""
    address = ("127.0.0.1", server.cluster.port)
    silent = [socket.create_connection(address) for _ in range(50)]
    halves = []
    for text in (b"GET /api", b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"):
        for _ in range(20):
            secured = client.context.wrap_socket(socket.create_connection(address), server_hostname="127.0.0.1")
            secured.sendall(text)
            halves.append(secured)
    garbage = socket.create_connection(address)
    garbage.sendall(b"\x16\x03\x01 not TLS at all")

    assert client.get("/readyz") == (200, "ok")
    assert client.get("/api/v1/namespaces/default")[0] == 200
    for connection in (*silent, *halves, garbage):
        connection.close()
    assert json.loads(json.dumps(client.get("/version")[1]))["major"] == "1"
