"""Checks of what pods ask of GPUs, and of what nodes say of theirs."""

from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.devices.card_dialects import check_card_request
from mooring.model.devices.dialects import device_plugin, hami
from mooring.model.devices.dialects.reading import BadShare
from mooring.model.devices.mig import KNOWN_PROFILES, geometry_of, profile_of
from mooring.model.places import show
from mooring.model.validation.terms import Subject


def check_card_shares(subject: Subject, path: str, metadata: ObjectMeta, spec: PodSpec) -> None:
    """Check what a pod asks of cards, by annotations or as resources; `path` is empty, or leads to a template."""
    try:
        check_card_request(Pod(metadata=metadata, spec=spec))
    except BadShare as bad:
        field = f"metadata.annotations[{bad.key}]"
        if bad.key not in (metadata.annotations or {}):
            field = f"spec.{_resource_field(spec, bad.key)}"
        subject.refuse(f"{path}{field}", expected=bad.expected, found=bad.found)
    for index, container in enumerate(spec.containers):
        for name in (container.resources.limits or ()) if container.resources is not None else ():
            profile = profile_of(name).removesuffix(".me")
            if profile and profile not in KNOWN_PROFILES:
                expected = "the MIG profile of a GPU, such as 1g.10gb or 3g.40gb"
                subject.refuse(
                    f"{path}spec.containers[{index}].resources.limits.{name}", expected=expected, found=profile
                )


def _resource_field(spec: PodSpec, name: str) -> str:
    for index, container in enumerate(spec.containers):
        resources = container.resources
        if resources is not None and (name in (resources.limits or {}) or name in (resources.requests or {})):
            return f"containers[{index}].resources.limits.{name}"
    return "containers"


def check_node_cards(subject: Subject, node: Node) -> None:
    """Check a node's register of cards, and that its MIG instances are such as its GPUs can be cut into."""
    text = (node.metadata.annotations or {}).get(hami.REGISTER)
    if text:
        try:
            hami.registered(text)
        except ValueError as error:
            expected = "a list of cards as HAMi's device plugin registers them"
            subject.refuse(f"metadata.annotations[{hami.REGISTER}]", expected=expected, found=str(error))
    model = (node.metadata.labels or {}).get(device_plugin.PRODUCT, "")
    geometry = geometry_of(model) if model else None
    if geometry is None:
        return
    for where, resources in (("allocatable", node.status.allocatable), ("capacity", node.status.capacity)):
        for name in resources or ():
            profile = profile_of(name).removesuffix(".me")
            if profile and profile not in geometry.by_name:
                expected = f"a MIG profile of {model} ({', '.join(geometry.by_name)})"
                subject.refuse(f"status.{where}.{name}", expected=expected, found=show(profile))
