"""A planned node as an offer: the node that is expected, and the claim that asks a provider for it."""

from collections.abc import Mapping

from mooring.actions.capacity.karpenter.planned import NewNode
from mooring.model.api.karpenter import NodeClaim, NodeClaimSpec, NodePool, NodeRequirement, ResourceRequests
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Node, NodeSpec, NodeStatus
from mooring.model.capacity.claims import as_resources, labels_of
from mooring.model.capacity.instance_types import Amounts, InstanceType, Offering
from mooring.model.capacity.labels import CAPACITY_TYPE, INITIALIZED, INSTANCE_TYPE, NODE_POOL, REGISTERED, ZONE
from mooring.model.capacity.requirements import Requirement, Requirements, from_labels
from mooring.model.node_offer import NodeOffer


def best_of(node: NewNode) -> tuple[InstanceType, Offering]:
    """What a planned node is expected to be: the cheapest of all that would do."""
    name, offering = min(node.offerings(), key=lambda each: (each[1].price, each[0], each[1].zone))
    columns = node.template.columns
    return columns.types[columns.names.index(name)], offering


def offer_of(node: NewNode) -> NodeOffer:
    """A planned node as something that can be launched."""
    kind, offering = best_of(node)
    pool, template = node.template.pool, node.template.pool.spec.template
    labels = {**labels_of(node.launch_requirements(), kind, offering), **(template.metadata.labels or {})}
    labels[NODE_POOL] = pool.name
    expected = Node(
        metadata=ObjectMeta(name=pool.name, labels=labels, annotations=template.metadata.annotations),
        spec=NodeSpec(taints=list(template.spec.taints) if template.spec.taints else None),
        status=NodeStatus(capacity=as_resources(kind.capacity), allocatable=as_resources(kind.allocatable)),
    )
    return NodeOffer(expected, claim=_claim(node))


def offer_of_type(pool: NodePool, kind: InstanceType, offering: Offering, labels: Mapping[str, str]) -> NodeOffer:
    """A node of exactly this type, offering and domain, from a pool."""
    template = pool.spec.template
    exact = {**labels, INSTANCE_TYPE: kind.name, ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
    own = {**exact, **(template.metadata.labels or {}), NODE_POOL: pool.name}
    kept = {key: text for key, text in own.items() if key not in (REGISTERED, INITIALIZED)}
    expected = Node(
        metadata=ObjectMeta(name=pool.name, labels=kept, annotations=template.metadata.annotations),
        spec=NodeSpec(taints=list(template.spec.taints) if template.spec.taints else None),
        status=NodeStatus(capacity=as_resources(kind.capacity), allocatable=as_resources(kind.allocatable)),
    )
    wanted = from_labels({key: text for key, text in kept.items() if key != NODE_POOL})
    return NodeOffer(expected, claim=_claim_for(pool, wanted, {}))


def _claim(node: NewNode) -> NodeClaim:
    """What a provider is asked for: any of the types that the pods fit on, as Karpenter asks."""
    wanted = node.launch_requirements().without(NODE_POOL, REGISTERED, INITIALIZED)
    wanted = wanted.replaced(INSTANCE_TYPE, Requirement(frozenset(node.instance_types)))
    return _claim_for(node.template.pool, wanted, node.requests)


def _claim_for(pool: NodePool, wanted: Requirements, requests: Amounts) -> NodeClaim:
    template = pool.spec.template
    labels = {**(template.metadata.labels or {}), NODE_POOL: pool.name}
    return NodeClaim(
        metadata=ObjectMeta(labels=labels, annotations=template.metadata.annotations),
        spec=NodeClaimSpec(
            requirements=_spelled(wanted),
            resources=ResourceRequests(requests=as_resources(requests)),
            taints=template.spec.taints,
            startup_taints=template.spec.startup_taints,
            node_class_ref=template.spec.node_class_ref,
            expire_after=template.spec.expire_after,
            termination_grace_period=template.spec.termination_grace_period,
        ),
    )


def _spelled(requirements: Requirements) -> list[NodeRequirement]:
    """Requirements as the API spells them."""
    found = []
    for key, each in sorted(requirements.items()):
        if each.excludes and not each.values and (each.at_least is not None or each.at_most is not None):
            if each.at_least is not None:
                found.append(NodeRequirement(key=key, operator="Gt", values=[str(each.at_least - 1)]))
            if each.at_most is not None:
                found.append(NodeRequirement(key=key, operator="Lt", values=[str(each.at_most + 1)]))
            continue
        values = sorted(each.values) or None
        found.append(NodeRequirement(key=key, operator=each.operator, values=values, min_values=each.min_values))
    return found
