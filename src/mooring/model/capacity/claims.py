"""What becomes of a NodeClaim: the instance type that it is launched as, and the labels that its node has."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from mooring.model.api.karpenter import NodeClaim
from mooring.model.api.meta import Resources
from mooring.model.capacity.instance_types import Amounts, InstanceType, Offering
from mooring.model.capacity.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, WELL_KNOWN, ZONE
from mooring.model.capacity.requirements import Requirements, from_labels, from_selector
from mooring.model.values.requests import CPU


def as_promised(claim: NodeClaim, types: Sequence[InstanceType]) -> NodeClaim | None:
    """A claim that is not launched yet, as it will be: the cheapest that it allows."""
    best = cheapest_of(claim, types)
    if best is None:
        return None
    kind, offering = best
    status = replace(
        claim.status,
        provider_id=f"promised://{claim.name}",
        capacity=as_resources(kind.capacity),
        allocatable=as_resources(kind.allocatable),
    )
    labels = {**(claim.metadata.labels or {}), **labels_of(claim_requirements(claim), kind, offering)}
    return replace(claim, metadata=replace(claim.metadata, labels=labels), status=status)


def claim_requirements(claim: NodeClaim) -> Requirements:
    return from_selector(claim.spec.requirements).merged(from_labels(claim.metadata.labels))


def cheapest_of(
    claim: NodeClaim,
    types: Sequence[InstanceType],
    is_left: Callable[[InstanceType, Offering], bool] = lambda kind, offering: True,
) -> tuple[InstanceType, Offering] | None:
    """The cheapest that a claim can be launched as; None if there is nothing."""
    wanted = claim_requirements(claim)
    found = [
        (offering.price, kind.name, offering.zone, kind, offering)
        for kind in types
        if wanted.overlaps(kind.requirements)
        for offering in kind.offerings
        if offering.available and wanted.accepts(offering.requirements, WELL_KNOWN) and is_left(kind, offering)
    ]
    if not found:
        return None
    _, _, _, kind, offering = min(found, key=lambda each: each[:3])
    return kind, offering


def labels_of(wanted: Requirements, kind: InstanceType, offering: Offering) -> dict[str, str]:
    """The labels of a node of a kind: what it always has, and where it may have several, the first that is wanted."""
    labels: dict[str, str] = {}
    for key, requirement in wanted.merged(kind.requirements).items():
        values = sorted(requirement.values)
        if not requirement.excludes and values:
            labels[key] = values[0]
    labels.pop(HOSTNAME, None)
    own = {INSTANCE_TYPE: kind.name, ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
    return {**labels, **own}


def as_resources(amounts: Amounts) -> Resources:
    """Amounts as the quantities of a status."""
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in amounts.items()}
