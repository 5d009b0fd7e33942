"""Claims that pods bring along: for ephemeral volumes, and ResourceClaims made of their templates."""

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.controllers.pods import PodView
from mooring.kubeapi.status import ApiError

CLAIMS = "resourceclaims.resource.k8s.io"
PROTECTION = "resource.kubernetes.io/delete-protection"
"""The finalizer of claims that devices are allocated for."""
TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
LONGEST_PREFIX = 52


class EphemeralVolumes(Controller):
    """Makes the claims of ephemeral volumes. The key is a pod's."""

    name = "ephemeral-volume-controller"

    def start(self) -> None:
        self.informers.pods.on_change(self._pod_changed)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        if old is None and new is not None and any("ephemeral" in volume for volume in new.spec.volumes):
            self.enqueue(new.key)

    def sync(self, key: Key) -> None:
        pod = self.api.find("pods", *key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        for volume in pod["spec"].get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            name = f"{key[1]}-{volume['name']}"
            if template is None or self.api.find("persistentvolumeclaims", key[0], name) is not None:
                continue
            given = template.get("metadata") or {}
            metadata: Object = {field: dict(given[field]) for field in ("labels", "annotations") if given.get(field)}
            metadata |= {"name": name, "ownerReferences": [owner_reference(pod)]}
            self.api.create("persistentvolumeclaims", {"metadata": metadata, "spec": template["spec"]}, key[0])


class ResourceClaims(Controller):
    """Makes ResourceClaims of templates, and takes back what is no longer used. The key is a pod's, or a claim's with a
    mark in front of its name."""

    name = "resource-claim-controller"
    _claim_mark = "claim:"

    def start(self) -> None:
        self._claims = self.informers.of(CLAIMS)
        self.informers.pods.on_change(self._pod_changed)
        self.informers.of(TEMPLATES).on_change(lambda old, new: self._template_changed(new))
        self._claims.on_change(lambda old, new: self._claim_changed(new))

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        found = new or old
        if found is None or not found.spec.resource_claims:
            return
        if new is not None:
            self.enqueue(new.key)
        if new is None or new.is_terminal:
            for status in found.status.resource_claim_statuses:
                if status.get("resourceClaimName"):
                    self._enqueue_claim(found.metadata.namespace, status["resourceClaimName"])
            for claim in found.spec.resource_claims:
                if claim.get("resourceClaimName"):
                    self._enqueue_claim(found.metadata.namespace, claim["resourceClaimName"])

    def _template_changed(self, new: Object | None) -> None:
        if new is not None:
            for pod in list(self.informers.pods.list(new["metadata"]["namespace"])):
                if pod.spec.resource_claims:
                    self.enqueue(pod.key)

    def _claim_changed(self, new: Object | None) -> None:
        if new is not None and ((new.get("status") or {}).get("reservedFor") or "deletionTimestamp" in new["metadata"]):
            self._enqueue_claim(new["metadata"]["namespace"], new["metadata"]["name"])

    def _enqueue_claim(self, namespace: str, name: str) -> None:
        self.enqueue((namespace, f"{self._claim_mark}{name}"))

    def sync(self, key: Key) -> None:
        if key[1].startswith(self._claim_mark):
            self._sync_claim(key[0], key[1].removeprefix(self._claim_mark))
        else:
            self._sync_pod(key)

    def _sync_pod(self, key: Key) -> None:
        pod = self.api.find("pods", *key)
        if (
            pod is None
            or "deletionTimestamp" in pod["metadata"]
            or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        ):
            return
        status = pod.setdefault("status", {})
        statuses = {one["name"]: one for one in status.get("resourceClaimStatuses") or ()}
        before = dict(statuses)
        for claim in pod["spec"].get("resourceClaims") or ():
            template = claim.get("resourceClaimTemplateName")
            if template is None or claim["name"] in statuses:
                continue
            name = self._create(pod, claim["name"], template)
            if name is not None:
                statuses[claim["name"]] = {"name": claim["name"], "resourceClaimName": name}
        if statuses != before:
            status["resourceClaimStatuses"] = list(statuses.values())
            self.api.update("pods", pod, subresource="status")

    def _create(self, pod: Object, claim_name: str, template_name: str) -> str | None:
        """Make a claim of a template, unless one is there from before."""
        metadata = pod["metadata"]
        for found in self._claims.controlled_by(metadata["uid"]):
            if (found["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME) == claim_name:
                return str(found["metadata"]["name"])
        template = self.api.find(TEMPLATES, metadata["namespace"], template_name)
        if template is None:
            self.context.recorder.event(
                pod,
                "Warning",
                "FailedResourceClaimCreation",
                f'PodResourceClaim {claim_name}: resourceclaimtemplate.resource.k8s.io "{template_name}" not found',
                self.name,
            )
            return None
        given = template["spec"].get("metadata") or {}
        half = LONGEST_PREFIX // 2
        pod_part, claim_part = metadata["name"], claim_name
        if len(pod_part) + len(claim_part) + 1 > LONGEST_PREFIX:
            pod_part, claim_part = pod_part[:half], claim_part[:half]
        made = {
            "metadata": {
                "generateName": f"{pod_part}-{claim_part}-",
                "labels": dict(given.get("labels") or {}),
                "annotations": {**(given.get("annotations") or {}), POD_CLAIM_NAME: claim_name},
                "ownerReferences": [owner_reference(pod)],
            },
            "spec": template["spec"]["spec"],
        }
        return str(self.api.create(CLAIMS, made, metadata["namespace"])["metadata"]["name"])

    def _sync_claim(self, namespace: str, name: str) -> None:
        """Drop reservations of pods that are gone or have ended; without any, what was allocated is given back."""
        claim = self.api.find(CLAIMS, namespace, name)
        if claim is None:
            return
        status = claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        kept = [one for one in reserved if self._is_used_by(namespace, one)]
        if kept != reserved:
            status["reservedFor"] = kept
            claim["status"] = status
            claim = self.api.update(CLAIMS, claim, subresource="status")
        # A scheduler protects a claim before it allocates: that nothing is allocated yet is no reason to let go of it.
        if not kept and (reserved or "deletionTimestamp" in claim["metadata"]):
            claim = self._deallocate(claim)
        owners = [
            one
            for one in claim["metadata"].get("ownerReferences") or ()
            if one.get("controller") and one["kind"] == "Pod"
        ]
        if owners and not kept:
            pod = self.informers.pods.get(namespace, owners[0]["name"])
            if pod is None or pod.metadata.uid != owners[0]["uid"] or pod.is_terminal:
                try:
                    self.api.delete(CLAIMS, namespace, name, uid=claim["metadata"]["uid"])
                except ApiError as error:
                    if error.code not in (404, 409):
                        raise

    def _deallocate(self, claim: Object) -> Object:
        """Give back what nobody uses, and let the claim be deleted."""
        status = claim.get("status") or {}
        if status.get("allocation") or "reservedFor" in status:
            for field in ("allocation", "devices", "reservedFor"):
                status.pop(field, None)
            claim["status"] = status
            claim = self.api.update(CLAIMS, claim, subresource="status")
        finalizers = claim["metadata"].get("finalizers") or []
        if PROTECTION in finalizers:
            claim["metadata"]["finalizers"] = [each for each in finalizers if each != PROTECTION]
            claim = self.api.update(CLAIMS, claim)
        return claim

    def _is_used_by(self, namespace: str, consumer: Object) -> bool:
        if consumer.get("resource") != "pods":
            return True
        pod = self.informers.pods.get(namespace, consumer["name"])
        return pod is not None and pod.metadata.uid == consumer["uid"] and not pod.is_terminal
