"""A claim that a scheduler allocated and reserved for a pod before it died."""

from kube import Kube, node, pod

ROOT = "/apis/resource.k8s.io/v1"


def test_a_claim_that_a_dead_scheduler_left_does_not_pin_its_pod_to_a_full_node(cluster: Kube) -> None:
    for plural in ("resourceslices", "deviceclasses", "namespaces/default/resourceclaims"):
        for found in cluster.objects(f"{ROOT}/{plural}"):
            path = f"{ROOT}/{plural}/{found['metadata']['name']}"
            cluster.call("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
            cluster.call("DELETE", path)
    cluster.create(*(node(name, cpu=4) for name in ("n0", "n1")))
    selector = {"cel": {"expression": "device.driver == 'gpu.test'"}}
    cluster.call("POST", f"{ROOT}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}})
    for name in ("n0", "n1"):
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.test", "nodeName": name, "pool": pool, "devices": [{"name": "g0"}, {"name": "g1"}]}
        cluster.call("POST", f"{ROOT}/resourceslices", {"metadata": {"name": f"{name}-gpu"}, "spec": spec})
    claims = f"{ROOT}/namespaces/default/resourceclaims"
    request = {"name": "g", "exactly": {"deviceClassName": "gpu", "count": 1}}
    metadata = {"name": "left", "finalizers": ["resource.kubernetes.io/delete-protection"]}
    cluster.call("POST", claims, {"metadata": metadata, "spec": {"devices": {"requests": [request]}}})
    made = pod("waits", "1", resourceClaims=[{"name": "g", "resourceClaimName": "left"}])
    uid = cluster.call("POST", "/api/v1/namespaces/default/pods", made)["metadata"]["uid"]
    claim = cluster.call("GET", f"{claims}/left")
    field = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
    claim["status"] = {
        "allocation": {
            "devices": {"results": [{"request": "g", "driver": "gpu.test", "pool": "n0", "device": "g0"}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        },
        "reservedFor": [{"resource": "pods", "name": "waits", "uid": uid}],
    }
    cluster.call("PUT", f"{claims}/left/status", claim)
    cluster.create(pod("filler", "4", nodeName="n0"))
    cluster.run()
    assert cluster.wait_until_bound(["waits"]) == {"waits": "n1"}
    results = cluster.call("GET", f"{claims}/left")["status"]["allocation"]["devices"]["results"]
    assert [found["pool"] for found in results] == ["n1"]
