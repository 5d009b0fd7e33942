"""Patches of all kinds, and who owns which fields: pure functions from objects to objects."""

from mooring.kubeapi.patch.json_patch import json_patch, merge_patch
from mooring.kubeapi.patch.managed_fields import apply_configuration, track
from mooring.kubeapi.patch.managers import ConflictError
from mooring.kubeapi.patch.patches import TypedPatches
from mooring.model.values.strategic_merge import PatchError, strategic_merge

__all__ = [
    "ConflictError",
    "PatchError",
    "TypedPatches",
    "apply_configuration",
    "json_patch",
    "merge_patch",
    "strategic_merge",
    "track",
]
