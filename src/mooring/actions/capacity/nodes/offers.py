"""A planned node as an offer: the node that is expected, and the claim that asks a provider for it."""

from mooring.actions.capacity.karpenter.planned import NewNode
from mooring.model.api.karpenter import NodeClaim, NodeClaimSpec, NodeRequirement, ResourceRequests
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Node, NodeSpec, NodeStatus
from mooring.model.capacity.claims import as_resources, labels_of
from mooring.model.capacity.instance_types import InstanceType, Offering
from mooring.model.capacity.labels import INITIALIZED, INSTANCE_TYPE, NODE_POOL, REGISTERED
from mooring.model.capacity.requirements import Requirement, Requirements
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


def _claim(node: NewNode) -> NodeClaim:
    """What a provider is asked for: any of the types that the pods fit on, as Karpenter asks."""
    pool = node.template.pool
    template = pool.spec.template
    wanted = node.launch_requirements().without(NODE_POOL, REGISTERED, INITIALIZED)
    wanted = wanted.replaced(INSTANCE_TYPE, Requirement(frozenset(node.instance_types)))
    labels = {**(template.metadata.labels or {}), NODE_POOL: pool.name}
    return NodeClaim(
        metadata=ObjectMeta(labels=labels, annotations=template.metadata.annotations),
        spec=NodeClaimSpec(
            requirements=_spelled(wanted),
            resources=ResourceRequests(requests=as_resources(node.requests)),
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
