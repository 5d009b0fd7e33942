"""The PersistentVolumeClaims of a StatefulSet's pods: made of its templates, and owned as its retention policy says."""

from typing import Any

from mooring.kubeapi.api import Api
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.status import ApiError

Object = dict[str, Any]
RESOURCE = "persistentvolumeclaims"


class SetClaims:
    """The claims of one StatefulSet."""

    def __init__(self, api: Api, owner: Object) -> None:
        self._api, self._owner = api, owner
        self._namespace = owner["metadata"]["namespace"]
        policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        self._when_scaled = policy.get("whenScaled", "Retain")
        self._when_deleted = policy.get("whenDeleted", "Retain")

    @property
    def templates(self) -> list[Object]:
        return self._owner["spec"].get("volumeClaimTemplates") or []

    def names(self, pod_name: str) -> dict[str, str]:
        """The claims of a pod by the names of their volumes."""
        return {one["metadata"]["name"]: f"{one['metadata']['name']}-{pod_name}" for one in self.templates}

    def are_stale(self, pod_name: str) -> bool:
        """Whether a claim belongs to an earlier pod of the name: the new one has to wait until it is gone."""
        for name in self.names(pod_name).values():
            claim = self._api.find(RESOURCE, self._namespace, name)
            for one in (claim or {}).get("metadata", {}).get("ownerReferences") or ():
                if (
                    one["kind"] == "Pod"
                    and one["name"] == pod_name
                    and self._api.find("pods", self._namespace, pod_name) is None
                ):
                    return True
        return False

    def create(self, pod_name: str) -> None:
        """Make the claims of a pod that are not there."""
        for template in self.templates:
            name = f"{template['metadata']['name']}-{pod_name}"
            if self._api.find(RESOURCE, self._namespace, name) is not None:
                continue
            given = template.get("metadata") or {}
            selector = (self._owner["spec"].get("selector") or {}).get("matchLabels") or {}
            metadata: Object = {"name": name, "labels": {**(given.get("labels") or {}), **selector}}
            if given.get("annotations"):
                metadata["annotations"] = dict(given["annotations"])
            references = self._wanted(None, is_scaled_down=False)
            if references:
                metadata["ownerReferences"] = references
            self._api.create(RESOURCE, {"metadata": metadata, "spec": dict(template["spec"])}, self._namespace)

    def _wanted(self, pod: Object | None, is_scaled_down: bool) -> list[Object]:
        if self._when_scaled == "Delete" and is_scaled_down and pod is not None:
            return [owner_reference(pod)]
        if self._when_deleted == "Delete" and not (self._when_scaled == "Delete" and is_scaled_down):
            return [owner_reference(self._owner)]
        return []

    def follow_policy(self, pod_name: str, is_scaled_down: bool) -> None:
        """Let the claims of a pod belong to whoever takes them along, if anybody does."""
        pod = self._api.find("pods", self._namespace, pod_name)
        for name in self.names(pod_name).values():
            claim = self._api.find(RESOURCE, self._namespace, name)
            if claim is None:
                continue
            before = claim["metadata"].get("ownerReferences") or []
            after = self._owners(before, pod, pod_name, is_scaled_down)
            if after != before:
                claim["metadata"]["ownerReferences"] = after
                try:
                    self._api.update(RESOURCE, claim)
                except ApiError as error:
                    if error.code not in (404, 409):
                        raise

    def _owners(self, before: list[Object], pod: Object | None, pod_name: str, is_scaled_down: bool) -> list[Object]:
        set_name, uid = self._owner["metadata"]["name"], self._owner["metadata"]["uid"]
        mine = [one for one in before if (one["kind"], one["name"]) in (("StatefulSet", set_name), ("Pod", pod_name))]
        others = [one for one in before if one not in mine]
        known = {uid, pod["metadata"]["uid"] if pod is not None else ""}
        if any(one["uid"] not in known for one in mine):
            return before
        retains = self._when_scaled == self._when_deleted == "Retain"
        if not retains and any(one.get("controller") for one in others):
            return others
        return others + self._wanted(pod, is_scaled_down)
