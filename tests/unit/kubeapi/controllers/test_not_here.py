"""What has no effect on this control plane says so."""

from worlds import World

from mooring.kubeapi.controllers.not_here import AUTOSCALERS, REQUESTS, Autoscalers, CertificateRequests


def test_an_autoscaler_says_that_there_are_no_metrics() -> None:
    world = World(Autoscalers)
    world.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": {"maxReplicas": 3}})

    world.run(1)

    (condition,) = world.get(AUTOSCALERS, "web")["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("ScalingActive", "False")
    assert "no metrics" in condition["message"]


def test_an_approved_request_says_that_nothing_signs_it() -> None:
    world = World(CertificateRequests)
    world.api.create(REQUESTS, {"metadata": {"name": "jane"}, "spec": {"signerName": "example.com/x"}})
    world.run(1)
    assert "status" not in world.api.get(REQUESTS, None, "jane")
    found = world.api.get(REQUESTS, None, "jane")
    found["status"] = {"conditions": [{"type": "Approved", "status": "True"}]}
    world.api.update(REQUESTS, found, subresource="status")

    world.run(1)

    conditions = world.api.get(REQUESTS, None, "jane")["status"]["conditions"]
    assert [each["type"] for each in conditions] == ["Approved", "Failed"]
    assert "signs no certificates" in conditions[1]["message"]
