"""What of a pod's requests counts against quota: some resources are left out, some are turned into others."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mooring.config.queueing import TransformedResource
from mooring.model.values.quantity import to_units
from mooring.model.values.requests import Amounts


@dataclass(frozen=True, slots=True)
class ResourceRules:
    """Kueue's `resources` settings."""

    excluded_prefixes: tuple[str, ...] = ()
    transformations: Mapping[str, TransformedResource] = field(default_factory=dict)
    """By input resource."""
    ignores_undeclared: bool = False
    """Whether a resource that the queue has no quota for is let through, rather than keeping the workload out."""

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
