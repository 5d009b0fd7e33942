"""ClusterColocationProfile (config.koordinator.sh): what is filled in of pods at their creation so that they share
nodes with others.
"""

from typing import Any

import msgspec

from mooring.model.api.meta import KubeObject, Labels, LabelSelector, ObjectMeta

PROFILE_GROUP = "config.koordinator.sh"


class ColocationProfileSpec(KubeObject):
    namespace_selector: LabelSelector | None = None
    selector: LabelSelector | None = None
    probability: int | str | None = None
    """For how many of a hundred pods it counts, `30` or `30%`; all if not given."""
    labels: Labels | None = None
    annotations: dict[str, str] | None = None
    label_keys_mapping: dict[str, str] | None = None
    """By key of a label: the key that gets its value too."""
    annotation_keys_mapping: dict[str, str] | None = None
    label_suffixes: dict[str, str] | None = None
    scheduler_name: str = ""
    qos_class: str = ""
    priority_class_name: str = ""
    koordinator_priority: int | None = None
    patch: dict[str, Any] | None = None
    """A strategic merge patch of the pod."""


class ClusterColocationProfile(KubeObject):
    api_version: str = f"{PROFILE_GROUP}/v1alpha1"
    kind: str = "ClusterColocationProfile"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ColocationProfileSpec = msgspec.field(default_factory=ColocationProfileSpec)
