"""What is reserved for a pod is taken for everybody else, and given back whole if the pod does not get there."""

from mooring.assembly import assemble
from mooring.engine.plugin import Reserve
from mooring.engine.verdict import Rejection
from mooring.model.decisions import Bind, Wait
from mooring.model.loading.manifests import Manifests, build_manifests
from mooring.state.views import ClusterView, PodView

CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"},
}


def make_objects(*claims: str) -> Manifests:
    """One node, one volume, and a pod for each claim."""
    documents = [CLASS, VOLUME]
    documents.append(
        {"kind": "Node", "metadata": {"name": "node"}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}}
    )
    for claim in claims:
        documents.append(
            {
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": claim},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "local",
                    "resources": {"requests": {"storage": "5Gi"}},
                },
            }
        )
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        spec = {"containers": [{"name": "main", "image": "x"}], "volumes": volumes}
        documents.append({"kind": "Pod", "metadata": {"name": f"uses-{claim}"}, "spec": spec})
    return build_manifests(documents)


class Late(Reserve):
    """Refuses, after others have reserved."""

    def reserve(self, pod: PodView, cluster: ClusterView, row: int) -> Rejection:
        return Rejection(("too late",))


def test_a_volume_goes_to_the_first_claim_and_the_second_waits() -> None:
    scheduler = assemble().new_scheduler()
    scheduler.load(make_objects("first", "second"))

    decisions = scheduler.cycle(0.0)

    assert decisions == [
        Bind("default/uses-first", "node"),
        Wait(
            "default/uses-second",
            "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind. "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            ("VolumeBinding",),
        ),
    ]
    related = scheduler.cluster.related
    assert related.persistent_volume_claims["default/first"].spec.volume_name == "disk"
    reference = related.persistent_volumes["disk"].spec.claim_ref
    assert reference is not None
    assert reference.name == "first"


def test_what_was_reserved_is_given_back_when_another_plugin_refuses() -> None:
    scheduler = assemble(extra_plugins=[Late]).new_scheduler()
    objects = make_objects("first")
    scheduler.load(objects)

    decisions = scheduler.cycle(0.0)

    assert not any(isinstance(decision, Bind) for decision in decisions)
    related = scheduler.cluster.related
    assert related.persistent_volumes["disk"] == objects.persistent_volumes[0]
    assert related.persistent_volume_claims["default/first"] == objects.persistent_volume_claims[0]
