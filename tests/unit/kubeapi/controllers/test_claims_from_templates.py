from worlds import Object, World, template

from mooring.kubeapi.controllers.claims_of_pods import EphemeralVolumes, ResourceClaims
from mooring.kubeapi.controllers.garbage_collector import GarbageCollector
from mooring.kubeapi.controllers.volumes import Volumes, default_storage_class

CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
DEVICES: Object = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


def make_world() -> World:
    return World(ResourceClaims, EphemeralVolumes, Volumes, GarbageCollector)


def test_a_pod_gets_a_claim_of_its_template_that_goes_with_it() -> None:
    world = make_world()
    world.create(TEMPLATES, {"metadata": {"name": "gpu"}, "spec": {"spec": DEVICES}})
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    world.create("pods", {"metadata": {"name": "p"}, "spec": {**template()["spec"], "resourceClaims": claims}})
    world.run(1)

    (claim,) = world.api.list(CLAIMS)
    (status,) = world.get("pods", "p")["status"]["resourceClaimStatuses"]
    world.api.delete("pods", "default", "p")
    world.run(60)

    assert status == {"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}
    assert claim["spec"] == DEVICES
    assert world.api.list(CLAIMS) == []


def test_a_claim_that_nobody_uses_any_more_is_given_back() -> None:
    world = make_world()
    world.create("pods", {"metadata": {"name": "p"}, "spec": template("sleep", "10", restartPolicy="Never")["spec"]})
    uid = world.get("pods", "p")["metadata"]["uid"]
    metadata = {"name": "c", "finalizers": ["resource.kubernetes.io/delete-protection"]}
    claim = world.create(CLAIMS, {"metadata": metadata, "spec": DEVICES})
    claim["status"] = {
        "allocation": {"devices": {}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": uid}],
    }
    world.api.update(CLAIMS, claim, subresource="status")
    pod = world.get("pods", "p")
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c"}]
    world.api.update("pods", pod)

    world.run(5)
    during = world.get(CLAIMS, "c").get("status")
    world.run(10)

    after = world.get(CLAIMS, "c")
    assert during is not None and "allocation" in during
    assert not after.get("status")
    assert not after["metadata"].get("finalizers")


def test_an_ephemeral_volume_has_a_claim_of_its_pod() -> None:
    world = make_world()
    world.api.create("storageclasses.storage.k8s.io", default_storage_class())
    spec = {
        "storageClassName": "standard",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    world.create("pods", {"metadata": {"name": "p"}, "spec": {**template()["spec"], "volumes": [volume]}})

    world.run(5)

    assert world.get("persistentvolumeclaims", "p-scratch")["status"]["phase"] == "Bound"
    assert world.phases() == {"p": "Running"}


def test_a_claim_that_is_about_to_be_allocated_was_changed_under_the_scheduler() -> None:
    world = make_world()
    metadata = {"name": "c", "finalizers": ["resource.kubernetes.io/delete-protection"]}
    claim = world.create(CLAIMS, {"metadata": metadata, "spec": DEVICES})

    world.run(5)

    assert world.get(CLAIMS, "c") == claim


def test_a_volume_for_a_claim_that_it_does_not_name_whole_is_nobodys() -> None:
    world = make_world()
    source = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    world.create("persistentvolumes", {"metadata": {"name": "v"}, "spec": {**source, "claimRef": {"name": "c"}}}, "")
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    world.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec})

    world.run()

    assert world.get("persistentvolumes", "v", "")["status"]["phase"] == "Available"
    assert world.get("persistentvolumeclaims", "c")["status"]["phase"] == "Pending"
