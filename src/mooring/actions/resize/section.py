"""What the action that resizes says of autoscalers whose recommendation is not applied, or not all of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from mooring.engine.action import Section


@dataclass(frozen=True)
class SizingSection(Section):
    """By autoscaler (namespace/name), why pods are not changed, as of the last run."""

    notes: Mapping[str, tuple[str, ...]]
