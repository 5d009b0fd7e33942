"""The same object in several versions and groups, and templates that stand for many objects."""

from typing import Any

from running import Client


def test_an_event_is_seen_in_both_groups(client: Client) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "seen-twice"},
        "eventTime": "2027-01-15T08:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "hello",
        "reason": "Tested",
        "action": "Test",
        "type": "Normal",
        "reportingController": "example.com/tests",
        "reportingInstance": "here",
    }
    code, created = client.ask("POST", "/apis/events.k8s.io/v1/namespaces/default/events", event)
    _, core = client.get("/api/v1/namespaces/default/events/seen-twice")

    assert (code, created["note"], created["regarding"]["name"]) == (201, "hello", "p")
    assert (core["apiVersion"], core["message"], core["involvedObject"]["name"]) == ("v1", "hello", "p")
    assert core["reportingComponent"] == "example.com/tests"
    for field in ("source", "reportingComponent"):
        _, found = client.get(f"/api/v1/namespaces/default/events?fieldSelector={field}%3Dexample.com/tests")
        assert [each["metadata"]["name"] for each in found["items"]] == ["seen-twice"]


def test_an_autoscaler_of_version_1_has_a_metric_in_version_2(client: Client) -> None:
    path = "namespaces/default/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec: dict[str, Any] = {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 70}
    old = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": spec}
    code, created = client.ask("POST", f"/apis/autoscaling/v1/{path}", old)
    _, newer = client.get(f"/apis/autoscaling/v2/{path}/web")

    assert (code, created["spec"]["targetCPUUtilizationPercentage"]) == (201, 70)
    assert newer["spec"]["metrics"] == [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
        }
    ]


def test_a_claim_of_an_older_version_is_the_same_claim(client: Client) -> None:
    path = "namespaces/default/resourceclaims"
    request = {"name": "gpu", "deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}
    old = {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim", "metadata": {"name": "one"}}
    code, created = client.ask(
        "POST", f"/apis/resource.k8s.io/v1beta1/{path}", {**old, "spec": {"devices": {"requests": [request]}}}
    )
    _, newer = client.get(f"/apis/resource.k8s.io/v1/{path}/one")

    assert (code, created["spec"]["devices"]["requests"]) == (201, [request])
    exactly = {key: value for key, value in request.items() if key != "name"}
    assert newer["spec"]["devices"]["requests"] == [{"name": "gpu", "exactly": exactly}]


def test_a_template_of_a_node_stands_for_many(client: Client) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "rack-{i:02}",
            "labels": {"rack": "r{i//2}"},
            "annotations": {"mooring.dev/replicas": "4"},
        },
        "status": {"allocatable": {"cpu": "8"}},
    }
    code, _ = client.ask("POST", "/api/v1/nodes", node)
    _, listed = client.get("/api/v1/nodes?labelSelector=rack")
    wrong = {**node, "metadata": {"name": "x-{j}", "annotations": {"mooring.dev/replicas": "2"}}}
    refused, status = client.ask("POST", "/api/v1/nodes", wrong)

    found = [(each["metadata"]["name"], each["metadata"]["labels"]["rack"]) for each in listed["items"]]
    assert code == 201
    assert found == [("rack-00", "r0"), ("rack-01", "r0"), ("rack-02", "r1"), ("rack-03", "r1")]
    assert listed["items"][0]["status"]["capacity"]["cpu"] == "8"
    assert (refused, status["reason"]) == (400, "BadRequest")
