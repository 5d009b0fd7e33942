"""ComputeDomains: the template by which their pods claim a channel, as NVIDIA's controller makes it."""

import msgspec

from mooring.kubeapi.controllers.claims_of_pods import TEMPLATES
from mooring.kubeapi.controllers.controller import Controller, Key
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.model.devices.compute_domains import ComputeDomain, channel_template

RESOURCE = "computedomains.resource.nvidia.com"


class ComputeDomains(Controller):
    """Makes the ResourceClaimTemplate that each ComputeDomain names."""

    name = "compute-domain-controller"

    def start(self) -> None:
        self.follow(RESOURCE)

    def sync(self, key: Key) -> None:
        domain = self.api.find(RESOURCE, *key)
        if domain is None or "deletionTimestamp" in domain["metadata"]:
            return
        made = msgspec.to_builtins(channel_template(msgspec.convert(domain, ComputeDomain)))
        name = made["metadata"].get("name")
        if not name or self.api.find(TEMPLATES, key[0], name) is not None:
            return
        metadata = {"name": name, "ownerReferences": [owner_reference(domain)]}
        self.api.create(TEMPLATES, {"metadata": metadata, "spec": made["spec"]}, key[0])
