"""What one tenant sends holds up nobody else: sizes have limits, and what takes long leaves the event loop."""

import json
import threading
import time
from typing import Any
from urllib.parse import quote

import pytest
from running import Client, Running, rule

NAMESPACE = "/api/v1/namespaces/ten"
CONFIG_MAPS = f"{NAMESPACE}/configmaps"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY, YAML = "application/json-patch+json", "application/apply-patch+yaml", "application/yaml"
LONGEST_SECONDS = 10.0
"""That anyone else may have to wait, on a machine that does much else; without limits it was minutes there."""


@pytest.fixture(scope="module")
def tenant(server: Running) -> Client:
    return server.account("ten", "dev", [rule("*", "*"), rule("*", "*", "scheduling.x-k8s.io")])


class Neighbour(threading.Thread):
    """Someone else, who asks all the while whether the server is there."""

    def __init__(self, server: Running) -> None:
        super().__init__(daemon=True)
        self._client, self.waited, self.is_over = server.client(), 0.0, False

    def run(self) -> None:
        while not self.is_over:
            start = time.monotonic()
            assert self._client.get("/readyz") == (200, "ok")
            self.waited = max(self.waited, time.monotonic() - start)
            time.sleep(0.01)


@pytest.fixture
def neighbour(server: Running) -> Any:
    found = Neighbour(server)
    found.start()
    yield found
    found.is_over = True
    found.join()
    assert found.waited < LONGEST_SECONDS


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "x"}], **spec}}


def bomb(kind: str = "ConfigMap", api_version: str = "v1", indent: str = "") -> bytes:
    """YAML of a few hundred bytes that means nine to the ninth values."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    head = [f"apiVersion: {api_version}", f"kind: {kind}", "metadata: {name: x}"]
    if indent:
        head.append("spec:")
    return "\n".join([*head, *(indent + line for line in lines)]).encode()


def test_aliases_of_yaml_are_not_written_out_without_end(tenant: Client, neighbour: Neighbour) -> None:
    groups = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ten/podgroups"
    group = bomb("PodGroup", "scheduling.x-k8s.io/v1alpha1", "  ")
    itself = b"apiVersion: v1\nkind: ConfigMap\nmetadata: &m\n  name: x\n  annotations: *m\n"
    answers = [
        tenant.ask("POST", CONFIG_MAPS, bomb(), content_type=YAML),
        tenant.ask("PATCH", f"{CONFIG_MAPS}/x?fieldManager=m", bomb(), content_type=APPLY),
        tenant.ask("POST", groups, group, content_type=YAML),
        tenant.ask("POST", CONFIG_MAPS, itself, content_type=YAML),
    ]

    assert [code for code, _ in answers] == [400] * 4
    assert "excessive aliasing" in answers[0][1]["message"]
    assert "contains itself" in answers[3][1]["message"]
    few = b"metadata: {name: few}\ndata: {a: &a text, b: *a}"
    assert tenant.ask("POST", CONFIG_MAPS, few, content_type=YAML)[1]["data"] == {"a": "text", "b": "text"}


def test_a_json_patch_copies_no_more_than_a_body_may_have(tenant: Client, neighbour: Neighbour) -> None:
    tenant.ask("POST", CONFIG_MAPS, {"metadata": {"name": "copies"}, "data": {"k": "v" * 900_000}})
    path = f"{CONFIG_MAPS}/copies"
    doubling = [{"op": "add", "path": "/x", "value": [1]}]
    doubling += [{"op": "copy", "from": "/x", "path": "/x/-"} for _ in range(40)]
    many = [{"op": "copy", "from": "/data", "path": f"/x{i}"} for i in range(10_000)]

    for patch in (doubling, many):
        assert tenant.ask("PATCH", path, patch, content_type=JSON_PATCH)[0] == 422
    code, status = tenant.ask("PATCH", path, [*many, many[0]], content_type=JSON_PATCH)
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


def test_keys_that_come_twice_are_found_in_one_pass(tenant: Client, neighbour: Neighbour) -> None:
    tenant.ask("POST", CONFIG_MAPS, {"metadata": {"name": "keys"}})
    body = "{" + ",".join(f'"{i:x}":""' for i in range(200_000)) + ',"0":""}'

    code, _ = tenant.ask("PATCH", f"{CONFIG_MAPS}/keys", f'{{"data":{body}}}'.encode(), content_type=MERGE)

    assert code == 413


def test_a_strategic_merge_of_long_lists_is_linear(tenant: Client, neighbour: Neighbour) -> None:
    first, second = ([f"a.b/{i}" for i in numbers] for numbers in (range(20_000), range(20_000, 40_000)))
    tenant.ask("POST", CONFIG_MAPS, {"metadata": {"name": "long", "finalizers": first}})

    patch = {"metadata": {"finalizers": second}}
    code, done = tenant.ask("PATCH", f"{CONFIG_MAPS}/long", patch, content_type=STRATEGIC)

    assert code in (200, 413), done
    tenant.ask("PATCH", f"{CONFIG_MAPS}/long", {"metadata": {"finalizers": None}}, content_type=MERGE)


def test_a_field_selector_of_spaces_is_read_in_one_pass(tenant: Client, neighbour: Neighbour) -> None:
    assert tenant.get(f"{NAMESPACE}/pods?fieldSelector={quote(' ' * 4000 + 'a')}")[0] == 400


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": f"c{i}", "image": "x"} for i in range(40_000)]},
        {"tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(40_000)]},
        {"volumes": [{"name": f"v{i}", "emptyDir": {}} for i in range(20_000)]},
    ],
    ids=["containers", "tolerations", "volumes"],
)
def test_a_large_object_is_refused_while_others_are_served(
    tenant: Client, neighbour: Neighbour, spec: dict[str, Any]
) -> None:
    code, status = tenant.ask("POST", f"{NAMESPACE}/pods", pod(**spec))

    assert code in (201, 413), status


def test_bodies_and_objects_have_a_largest_size(tenant: Client) -> None:
    body = json.dumps({"metadata": {"name": "big"}, "data": {"a": "x" * 3 * 2**20}}).encode()
    answers = [tenant.ask("POST", CONFIG_MAPS, body)]
    tenant.close()
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "ten"}, "reason": "r", "message": "x" * 2**21}
    answers.append(tenant.ask("POST", f"{NAMESPACE}/events", event))

    assert [(code, status["reason"]) for code, status in answers] == [(413, "RequestEntityTooLarge")] * 2


@pytest.mark.parametrize("count", ["1000000", "9" * 5000, "100001", "-1", "²"])
def test_a_template_stands_for_so_many_objects_at_most(tenant: Client, neighbour: Neighbour, count: str) -> None:
    many = pod()
    many["metadata"] = {"name": "many", "annotations": {"mooring.dev/replicas": count}}

    code, status = tenant.ask("POST", f"{NAMESPACE}/pods", many)

    assert (code, status["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_many_copies_are_made_in_turns(tenant: Client, neighbour: Neighbour, method: str) -> None:
    many = {**pod(), "apiVersion": "v1", "kind": "Pod"}
    name = f"turns-{method.lower()}"
    many["metadata"] = {"name": name, "labels": {"in": name}, "annotations": {"mooring.dev/replicas": "2000"}}
    path = f"{NAMESPACE}/pods" if method == "POST" else f"{NAMESPACE}/pods/{name}?fieldManager=me"

    assert tenant.ask(method, path, many, content_type="application/json" if method == "POST" else APPLY)[0] == 201

    assert len(tenant.get(f"{NAMESPACE}/pods?labelSelector=in={name}")[1]["items"]) == 2000


def test_a_collection_is_deleted_in_turns(server: Running, tenant: Client, neighbour: Neighbour) -> None:
    def fill() -> None:
        for number in range(4000):
            server.cluster.api.create("configmaps", {"metadata": {"name": f"m{number}", "labels": {"in": "m"}}}, "ten")

    server.call(fill)
    time.sleep(0.1)
    neighbour.waited, start = 0.0, time.monotonic()

    code, gone = tenant.ask("DELETE", f"{CONFIG_MAPS}?labelSelector=in=m")

    assert (code, len(gone["items"])) == (200, 4000)
    assert neighbour.waited < (time.monotonic() - start) / 2
    assert tenant.get(f"{CONFIG_MAPS}?labelSelector=in=m")[1]["items"] == []


def test_an_applied_template_is_applied_again(tenant: Client) -> None:
    many = {**pod(), "apiVersion": "v1", "kind": "Pod"}
    for value in ("1", "2"):
        labels = {"in": "again", "value": value}
        many["metadata"] = {"name": "again", "labels": labels, "annotations": {"mooring.dev/replicas": "3"}}
        code, done = tenant.ask("PATCH", f"{NAMESPACE}/pods/again?fieldManager=me", many, content_type=APPLY)
        assert code == 201, done

    found = tenant.get(f"{NAMESPACE}/pods?labelSelector=in=again")[1]["items"]
    assert [each["metadata"]["name"] for each in found] == ["again-0", "again-1", "again-2"]
    assert {each["metadata"]["labels"]["value"] for each in found} == {"2"}


def test_warnings_are_few_enough_for_any_client(tenant: Client) -> None:
    unknown = {f"x{i}": 1 for i in range(500)}
    assert tenant.ask("POST", CONFIG_MAPS, {"metadata": {"name": "unknown"}, **unknown})[0] == 201
    assert len(tenant.answer_headers.get_all("Warning") or ()) == 50


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"metadata":{"name":"s1"},"data":{"a":"\\ud800"}}', 201),
        ('{"metadata":{"name":"s2","labels":{"a":"\\ud800"}}}', 422),
        ('{"metadata":{"name":"\\ud800"}}', 422),
        ('{"metadata":{"name":"s3","annotations":{"\\udfff":"x"}}}', 422),
        ('{"metadata":{"name":"s4"},"data":{"a":NaN}}', 400),
        ('{"metadata":{"name":"s5","generation":1e999}}', 400),
    ],
)
def test_half_characters_and_odd_numbers_are_no_fault_of_the_server(tenant: Client, body: str, expected: int) -> None:
    assert tenant.ask("POST", CONFIG_MAPS, body.encode())[0] == expected


def test_keys_of_yaml_are_text(tenant: Client) -> None:
    body = b"metadata: {name: y1}\ndata: {2: a, true: b, 1.5: c}"
    assert tenant.ask("POST", CONFIG_MAPS, body, content_type=YAML)[1]["data"] == {"2": "a", "true": "b", "1.5": "c"}
    assert tenant.ask("POST", CONFIG_MAPS, b"metadata: {name: y2}\ndata: {null: a}", content_type=YAML)[0] == 400
