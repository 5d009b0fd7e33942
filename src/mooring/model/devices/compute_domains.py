"""ComputeDomain (resource.nvidia.com): pods on several nodes that reach each other's GPUs by NVLink.

Each of its pods claims a channel, from a template that NVIDIA's controller makes for the domain. Nodes that share
NVLink have the same clique as a label: the pods of a domain belong onto nodes of one clique.
"""

from typing import Any

import msgspec

from mooring.model.api.claims import ResourceClaimSpec, ResourceClaimTemplate, unify_requests
from mooring.model.api.meta import KubeObject, ObjectMeta

GROUP = "resource.nvidia.com"
CLIQUE = "nvidia.com/gpu.clique"
"""The label of nodes that says which others they share NVLink with."""
CHANNEL_CLASS, DRIVER = "compute-domain-default-channel.nvidia.com", "compute-domain.nvidia.com"
CHANNEL_CONFIG = "ComputeDomainChannelConfig"
ALLOCATION_MODES = ("Single", "All")


class ChannelTemplate(KubeObject):
    name: str = ""


class Channel(KubeObject):
    resource_claim_template: ChannelTemplate = msgspec.field(default_factory=ChannelTemplate)
    allocation_mode: str = "Single"


class ComputeDomainSpec(KubeObject):
    num_nodes: int = 0
    channel: Channel = msgspec.field(default_factory=Channel)


class ComputeDomain(KubeObject):
    api_version: str = f"{GROUP}/v1beta1"
    kind: str = "ComputeDomain"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ComputeDomainSpec = msgspec.field(default_factory=ComputeDomainSpec)


def channel_template(domain: ComputeDomain) -> ResourceClaimTemplate:
    """The template that NVIDIA's controller makes for the pods of a domain."""
    metadata, channel = domain.metadata, domain.spec.channel
    parameters = {
        "apiVersion": domain.api_version,
        "kind": CHANNEL_CONFIG,
        "domainID": metadata.uid or f"{metadata.namespace}/{metadata.name}",
        "allocationMode": channel.allocation_mode,
    }
    devices: dict[str, Any] = {
        "requests": [{"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}],
        "config": [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": parameters}}],
    }
    named = {"name": channel.resource_claim_template.name, "namespace": metadata.namespace}
    made = msgspec.convert({"metadata": named, "spec": {"spec": {"devices": devices}}}, ResourceClaimTemplate)
    unify_requests(made.spec.spec)
    return made


def domain_of(spec: ResourceClaimSpec) -> str:
    """The id of the domain of which a claim wants a channel; nothing if it wants none."""
    requests = spec.devices.requests or ()
    if any(each.exactly is not None and each.exactly.device_class_name == CHANNEL_CLASS for each in requests):
        for config in spec.devices.config or ():
            parameters = config.opaque.parameters if config.opaque is not None else None
            if isinstance(parameters, dict) and parameters.get("kind") == CHANNEL_CONFIG:
                return str(parameters.get("domainID", ""))
    return ""
