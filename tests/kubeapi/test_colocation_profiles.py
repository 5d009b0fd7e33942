"""ClusterColocationProfiles over HTTP, as kubectl sends them: checked when they come, and applied to new pods."""

from typing import Any

import pytest
from running import Client

PROFILES = "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles"
PODS = "/api/v1/namespaces/default/pods"


def pod(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"labels": 5}, "spec.labels"),
        ({"qosClass": "best"}, "spec.qosClass"),
        ({"probability": "often"}, "spec.probability"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}, "spec.selector.matchExpressions"),
    ],
)
def test_a_bad_profile_is_refused(client: Client, spec: Any, field: str) -> None:
    code, status = client.ask("POST", PROFILES, {"metadata": {"name": "bad"}, "spec": spec})

    assert code in (400, 422)
    assert field in status["message"]


def test_a_profile_counts_for_pods_that_come_after_it(client: Client) -> None:
    client.ask("POST", PODS, pod("before"))
    spec = {
        "selector": {"matchLabels": {"app": "after"}},
        "qosClass": "BE",
        "labels": {"koordinator.sh/priority-class": "koord-batch"},
    }
    assert client.ask("POST", PROFILES, {"metadata": {"name": "batch"}, "spec": spec})[0] == 201

    _, after = client.ask("POST", PODS, pod("after"))
    _, before = client.ask("GET", f"{PODS}/before")

    assert after["metadata"]["labels"]["koordinator.sh/qosClass"] == "BE"
    assert after["spec"]["containers"][0]["resources"] == {
        "requests": {"kubernetes.io/batch-cpu": "500"},
        "limits": {"kubernetes.io/batch-cpu": "1k"},
    }
    assert before["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m"}
