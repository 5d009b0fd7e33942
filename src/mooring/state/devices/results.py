"""What is written into a claim's status: devices by name, configuration, and where they can be used."""

from collections.abc import Iterable, Sequence
from uuid import NAMESPACE_URL, uuid5

from mooring.model.api.claims import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaimSpec,
)
from mooring.model.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, QuantityText
from mooring.model.devices.device import Device, Inventory
from mooring.model.values.quantity import quantity_text
from mooring.state.devices.draft import Allocated
from mooring.state.related import RelatedObjects


def allocation_result(
    key: str,
    spec: ResourceClaimSpec,
    found: Sequence[Allocated],
    inventory: Inventory,
    pool_names: Sequence[str],
    node: str,
    related: RelatedObjects,
) -> AllocationResult:
    """The allocation of a claim on a node."""
    results = [_result(key, index, each, inventory, pool_names) for index, each in enumerate(found)]
    chosen = {each.alternative.name: each.alternative.class_name for each in found}
    config = _configuration(spec, chosen, related)
    selector = _node_selector([inventory.devices[each.position] for each in found], node)
    return AllocationResult(
        devices=DeviceAllocationResult(results=results, config=config or None), node_selector=selector
    )


def _result(
    key: str, index: int, found: Allocated, inventory: Inventory, pool_names: Sequence[str]
) -> DeviceRequestAllocationResult:
    device, alternative = inventory.devices[found.position], found.alternative
    pool = pool_names[inventory.pool_of[found.position]]
    amounts: dict[str, QuantityText] = {name: quantity_text(nanos) for name, nanos in found.amounts or ()}
    share = f"{key}/{index}/{device.driver}/{pool}/{device.name}"
    # Which share it is has to be different from all others of the device, and the same whenever it is worked out anew.
    return DeviceRequestAllocationResult(
        request=alternative.name,
        driver=device.driver,
        pool=pool,
        device=device.name,
        admin_access=True if alternative.admin_access else None,
        tolerations=list(alternative.tolerations) or None,
        binding_conditions=list(device.binding_conditions) or None,
        binding_failure_conditions=list(device.binding_failure_conditions) or None,
        share_id=None if found.amounts is None else str(uuid5(NAMESPACE_URL, share)),
        consumed_capacity=amounts or None,
    )


def _configuration(
    spec: ResourceClaimSpec, chosen: dict[str, str], related: RelatedObjects
) -> list[DeviceAllocationConfiguration]:
    """The configuration of classes, once a class, then the claim's own as far as it concerns what was chosen."""
    requests = spec.devices.requests or []
    names = [_chosen_name(request.name, chosen) for request in requests]
    found: list[DeviceAllocationConfiguration] = []
    by_class: dict[str, list[DeviceAllocationConfiguration]] = {}
    for name in filter(None, names):
        device_class = related.device_classes.get(chosen[name])
        if device_class is None:
            continue
        known = by_class.get(chosen[name])
        if known is None:
            known = by_class[chosen[name]] = [
                DeviceAllocationConfiguration(source="FromClass", requests=[], opaque=each.opaque)
                for each in device_class.spec.config or ()
            ]
            found += known
        for each in known:
            each.requests = [*(each.requests or ()), name]
    for own in spec.devices.config or ():
        wanted = set(own.requests or ())
        if not wanted or any(
            request.name in wanted or name in wanted for request, name in zip(requests, names, strict=True)
        ):
            found.append(DeviceAllocationConfiguration(source="FromClaim", requests=own.requests, opaque=own.opaque))
    for each in found:
        asked = set(each.requests or ())
        if asked and all(r.name in asked or name in asked for r, name in zip(requests, names, strict=True)):
            each.requests = None
    return found


def _chosen_name(request: str, chosen: Iterable[str]) -> str:
    return next((name for name in chosen if name == request or name.startswith(f"{request}/")), "")


def _node_selector(devices: Iterable[Device], node: str) -> NodeSelector | None:
    """Where devices can be used: on the node alone if one of them is tied to it, else where all their selectors say."""
    fields, expressions = list[NodeSelectorRequirement](), list[NodeSelectorRequirement]()
    for device in devices:
        if device.is_tied:
            here = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[here])])
        for term in (device.node_selector.node_selector_terms if device.node_selector else ())[:1]:
            fields += [each for each in term.match_fields or () if each not in fields]
            expressions += [each for each in term.match_expressions or () if each not in expressions]
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=fields or None, match_expressions=expressions or None)
    return NodeSelector(node_selector_terms=[term])
