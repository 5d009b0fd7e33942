"""What of a pod's requests counts against quota: some resources are left out, some are turned into others."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mooring.config.queueing import TransformedResource
from mooring.model.api.claims import ResourceClaimTemplate
from mooring.model.api.pods import PodSpec
from mooring.model.values.quantity import NANO, to_units
from mooring.model.values.requests import Amounts


@dataclass(frozen=True, slots=True)
class ResourceRules:
    """Kueue's `resources` settings."""

    excluded_prefixes: tuple[str, ...] = ()
    transformations: Mapping[str, TransformedResource] = field(default_factory=dict)
    """By input resource."""
    ignores_undeclared: bool = False
    """Whether a resource that the queue has no quota for is let through, rather than keeping the workload out."""

    device_classes: Mapping[str, str] = field(default_factory=dict)
    """By device class, the resource that its devices count as (deviceClassMappings)."""
    claim_templates: Mapping[str, ResourceClaimTemplate] = field(default_factory=dict)
    """namespace/name"""

    def devices(self, namespace: str, spec: PodSpec) -> Amounts:
        """What the claims of one pod count as, in nano-units: so many devices of classes that are mapped.

        Of alternatives the largest counts; all devices of a node are not a number, and count nothing.
        """
        counted: Amounts = {}
        for claim in spec.resource_claims or () if self.device_classes else ():
            template = self.claim_templates.get(f"{namespace}/{claim.resource_claim_template_name}")
            for request in (template.spec.spec.devices.requests or ()) if template is not None else ():
                asked = [request.exactly] if request.exactly is not None else list(request.first_available or ())
                most: Amounts = {}
                for each in asked:
                    resource = self.device_classes.get(each.device_class_name)
                    if resource is not None:
                        most[resource] = max(most.get(resource, 0), each.count * NANO)
                for resource, amount in most.items():
                    counted[resource] = counted.get(resource, 0) + amount
        return counted

    def apply(self, amounts: Amounts) -> Amounts:
        """One pod's requests, in nano-units, as far as and in the form in which they count."""
        if self.excluded_prefixes:
            amounts = {name: value for name, value in amounts.items() if not name.startswith(self.excluded_prefixes)}
        if self.transformations.keys().isdisjoint(amounts):
            return amounts
        kept: Amounts = {}
        made: Amounts = {}
        for name, amount in amounts.items():
            found = self.transformations.get(name)
            if found is None or found.keeps_input:
                kept[name] = amount
            if found is None:
                continue
            units = to_units(amount)
            if found.multiply_by in amounts:
                units *= to_units(amounts[found.multiply_by])
            for output, factor in found.outputs.items():
                made[output] = made.get(output, 0) + units * factor
        for name, amount in made.items():
            kept[name] = kept.get(name, 0) + max(0, amount)
        return kept
