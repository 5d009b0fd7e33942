"""PodTopologyLabels: a pod gets the zone and the region of its node as labels, when it gets the node."""

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, Request

TOPOLOGY_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


class PodTopologyLabels:
    def __init__(self, api: Api) -> None:
        self._api = api

    def mutate(self, request: Request) -> None:
        if request.operation != CREATE or request.resource.key != "pods" or request.subresource not in ("", "binding"):
            return
        obj = request.object
        node = obj["target"]["name"] if request.subresource else obj["spec"].get("nodeName")
        found = self._api.store.get("nodes", "", node) if node else None
        given = {key: found.labels[key] for key in TOPOLOGY_LABELS if key in found.labels} if found else {}
        if given:
            about = obj.setdefault("metadata", {})
            about["labels"] = {**(about.get("labels") or {}), **given}
