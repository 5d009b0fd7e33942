"""Which versions are read of the kinds that others than Kubernetes itself define."""

from typing import Any

from mooring.model.loading.places import show
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
    "kubeflow.org": ("v1", "v2beta1"),
    "ray.io": ("v1alpha1", "v1"),
    "sparkoperator.k8s.io": ("v1beta1", "v1beta2"),
}
"""By group. Of `scheduling.k8s.io` those of gangs, which are not in v1."""


def check_version(subject: Subject, found: Any) -> None:
    """Refuse an unknown version: the same fields may mean something else there. Who names none is taken at its kind."""
    group, _, version = found.api_version.rpartition("/")
    if found.api_version and version not in VERSIONS[group]:
        known = [f"{group}/{each}" for each in VERSIONS[group]]
        expected = known[0] if len(known) == 1 else one_of(known)
        subject.refuse("apiVersion", expected=expected, found=show(found.api_version))
