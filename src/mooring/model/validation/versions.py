"""Which versions are read of each group's kinds."""

from typing import Any

from mooring.model.places import show
from mooring.model.validation.terms import Subject, one_of

VERSIONS: dict[str, tuple[str, ...]] = {
    "scheduling.k8s.io": ("v1alpha1", "v1alpha2", "v1alpha3", "v1beta1"),
    "scheduling.volcano.sh": ("v1beta1",),
    "batch.volcano.sh": ("v1alpha1",),
    "flow.volcano.sh": ("v1alpha1",),
    "topology.volcano.sh": ("v1alpha1",),
    "scheduling.x-k8s.io": ("v1alpha1",),
    "scheduling.sigs.k8s.io": ("v1alpha1",),
    "scheduling.run.ai": ("v2alpha2", "v2"),
    "leaderworkerset.x-k8s.io": ("v1",),
    "grove.io": ("v1alpha1",),
    "scheduler.grove.io": ("v1alpha1",),
    "jobset.x-k8s.io": ("v1alpha2",),
    "trainer.kubeflow.org": ("v1alpha1",),
    "kubeflow.org": ("v1", "v2beta1"),
    "ray.io": ("v1alpha1", "v1"),
    "sparkoperator.k8s.io": ("v1beta1", "v1beta2"),
}
"""By group. Of `scheduling.k8s.io` those of gangs, which are not in v1."""

_OWN: dict[str, tuple[str, ...]] = {
    "": ("v1",),
    "apps": ("v1", "v1beta2", "v1beta1"),
    "batch": ("v1", "v1beta1"),
    "policy": ("v1", "v1beta1"),
    "storage.k8s.io": ("v1", "v1beta1", "v1alpha1"),
    "resource.k8s.io": ("v1", "v1beta2", "v1beta1", "v1alpha3"),
    "topology.node.k8s.io": ("v1alpha2", "v1alpha1"),
    "resource.nvidia.com": ("v1beta1",),
    "kueue.x-k8s.io": ("v1beta2", "v1beta1", "v1alpha1"),
    "kai.scheduler": ("v1", "v1alpha1"),
    "karpenter.sh": ("v1", "v1beta1", "v1alpha5"),
}
"""Likewise for the groups of Kubernetes and Kueue. Old versions are read: what scheduling reads of them is the same."""
OWN_VERSIONS = frozenset({"", *(f"{group}/{each}".lstrip("/") for group, known in _OWN.items() for each in known)})


def check_own_version(subject: Subject, api_version: str) -> None:
    """Refuse a version that a group of Kubernetes or Kueue never had."""
    group = api_version.rpartition("/")[0]
    if group in _OWN and api_version not in OWN_VERSIONS:
        subject.refuse("apiVersion", expected=f"{group}/{_OWN[group][0]}".lstrip("/"), found=show(api_version))


def check_version(subject: Subject, found: Any) -> None:
    """Refuse an unknown version: the same fields may mean something else there. Who names none is taken at its kind."""
    group, _, version = found.api_version.rpartition("/")
    if found.api_version and version not in VERSIONS[group]:
        known = [f"{group}/{each}" for each in VERSIONS[group]]
        expected = known[0] if len(known) == 1 else one_of(known)
        subject.refuse("apiVersion", expected=expected, found=show(found.api_version))
