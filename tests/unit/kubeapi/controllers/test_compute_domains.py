from worlds import World

from mooring.kubeapi.controllers.claims_of_pods import TEMPLATES, ResourceClaims
from mooring.kubeapi.controllers.compute_domains import RESOURCE, ComputeDomains


def test_a_compute_domain_brings_the_template_of_its_channels() -> None:
    world = World(ComputeDomains, ResourceClaims)
    channel = {"resourceClaimTemplate": {"name": "channels"}}
    domain = world.create(RESOURCE, {"metadata": {"name": "training"}, "spec": {"numNodes": 2, "channel": channel}})
    claim = {"name": "channel", "resourceClaimTemplateName": "channels"}
    containers = [{"name": "c", "image": "i"}]
    world.create("pods", {"metadata": {"name": "p"}, "spec": {"containers": containers, "resourceClaims": [claim]}})

    world.run()

    (template,) = world.api.list(TEMPLATES)
    (config,) = template["spec"]["spec"]["devices"]["config"]
    assert template["metadata"]["ownerReferences"][0]["name"] == "training"
    assert config["opaque"]["parameters"]["domainID"] == domain["metadata"]["uid"]
    assert len(world.api.list("resourceclaims.resource.k8s.io")) == 1
