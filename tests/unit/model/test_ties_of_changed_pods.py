"""What a changed pod is tied to is read off it anew only where it says something else; it must come to the same."""

from itertools import product

from msgspec.structs import replace

from mooring.model.api.meta import OwnerReference
from mooring.model.api.pods import Pod, PodStatus
from mooring.model.loading.links import Links
from mooring.model.loading.ties import ties_of
from mooring.model.objects.picture import identity_of
from mooring.testing.builders import make_pod

JOB = OwnerReference(kind="Job", name="job", uid="1", controller=True)


def variants() -> list[Pod]:
    """One pod at different times: bound, moved, running, with other labels, owners or classes."""
    found: list[Pod] = []
    for node, labels, owned, class_, phase in product(
        ("", "a", "b"), ({}, {"kueue.x-k8s.io/queue-name": "team"}), (False, True), ("", "high"), ("Pending", "Running")
    ):
        pod = make_pod("pod", labels=labels)
        pod = replace(
            pod, spec=replace(pod.spec, node_name=node, priority_class_name=class_), status=PodStatus(phase=phase)
        )
        pod.metadata.owner_references = [JOB] if owned else None
        found.append(pod)
    return found


def test_ties_are_those_of_the_pod_whatever_it_was_before() -> None:
    pods = variants()
    reused = 0
    for former, pod in product(pods, pods):
        links, anew = Links(expands=False), Links(expands=False)
        links.put(former)
        before = links.ties(identity_of(former))
        links.put(pod, former)
        anew.put(pod)
        assert links.ties(identity_of(pod)) == ties_of(pod, expands=False)
        for index in ("named", "dependents", "groups", "readers"):
            assert getattr(links, index) == getattr(anew, index), index
        reused += links.ties(identity_of(pod)) is before
    assert reused == len(pods) * 2, "only those with another status"
