from worlds import World

from mooring.kubeapi.controllers.claims_of_pods import CLAIMS, PROTECTION, ResourceClaims


def test_a_claim_whose_pods_are_gone_gives_its_devices_back_and_can_be_deleted() -> None:
    world = World(ResourceClaims)
    reserved = [{"resource": "pods", "name": "gone", "uid": "1"}]
    claim = {"metadata": {"name": "c", "finalizers": [PROTECTION]}, "spec": {}}
    world.create(CLAIMS, {**claim, "status": {"allocation": {"devices": {}}, "reservedFor": reserved}})
    world.api.delete(CLAIMS, "default", "c")

    world.run()

    assert world.api.list(CLAIMS) == []


def test_a_claim_that_a_pod_uses_stays_protected() -> None:
    world = World(ResourceClaims)
    pod = world.create("pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    reserved = [{"resource": "pods", "name": "p", "uid": pod["metadata"]["uid"]}]
    claim = {"metadata": {"name": "c", "finalizers": [PROTECTION]}, "spec": {}}
    world.create(CLAIMS, {**claim, "status": {"allocation": {"devices": {}}, "reservedFor": reserved}})
    world.api.delete(CLAIMS, "default", "c")

    world.run()

    assert [each["status"]["reservedFor"] for each in world.api.list(CLAIMS)] == [reserved]


def test_a_claim_that_is_protected_before_it_is_allocated_stays_so() -> None:
    world = World(ResourceClaims)
    world.create(CLAIMS, {"metadata": {"name": "c", "finalizers": [PROTECTION]}, "spec": {}})

    world.run()

    assert [each["metadata"]["finalizers"] for each in world.api.list(CLAIMS)] == [[PROTECTION]]
