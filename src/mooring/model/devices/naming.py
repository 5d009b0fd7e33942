"""Which claims a pod has: those that it names, and those that were made for it from a template."""

from collections.abc import Iterator
from dataclasses import dataclass

from mooring.model.api.claims import ResourceClaim
from mooring.model.api.pods import Pod


@dataclass(frozen=True, slots=True)
class ClaimName:
    """A claim of a pod."""

    name: str
    """As the pod calls it."""
    key: str = ""
    """namespace/name"""
    is_generated: bool = False
    template: str = ""
    """namespace/name of the template that it is still to be made from."""


@dataclass(frozen=True, slots=True)
class AskedClaim:
    """One claim of a pod, as far as all pods of its shape share it."""

    spec: int = -1
    """What is asked for, by number, of a claim that was made for the pod alone and has no devices of its own yet."""
    key: str = ""
    """Else the claim itself: namespace/name."""
    missing: str = ""
    """Why it cannot be used, in kube-scheduler's words."""
    resources: tuple[str, ...] = ()
    """Of the claim for extended resources: which of them a class serves; on nodes that offer none themselves."""
    is_alone: bool = False
    """A pod that is placed changes more for the next one than its own row: some devices can be reached from several."""


def claim_names(pod: Pod) -> Iterator[ClaimName]:
    """The claims of a pod; those that its template does without are left out."""
    namespace = pod.metadata.namespace
    for claim in pod.spec.resource_claims or ():
        if claim.resource_claim_name is not None:
            yield ClaimName(claim.name, f"{namespace}/{claim.resource_claim_name}")
            continue
        statuses = [each for each in pod.status.resource_claim_statuses or () if each.name == claim.name]
        if not statuses:
            # Kubernetes draws a suffix by lot; here the same manifests give the same names.
            key = f"{namespace}/{pod.metadata.name}-{claim.name}"
            yield ClaimName(claim.name, key, True, f"{namespace}/{claim.resource_claim_template_name}")
        elif statuses[0].resource_claim_name is not None:
            yield ClaimName(claim.name, f"{namespace}/{statuses[0].resource_claim_name}", is_generated=True)


def is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was made for this pod, not for an earlier one of the same name."""
    owners = [owner for owner in claim.metadata.owner_references or () if owner.controller]
    return bool(owners) and owners[0].uid == pod.metadata.uid
