"""Volumes and claims in use are not taken away: a finalizer holds them until nobody needs them."""

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.pods import PodView

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
CLAIM_FINALIZER, VOLUME_FINALIZER = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"


class VolumeProtection(Controller):
    """Puts the finalizers on, and takes them off when nobody needs the volume. The key is a claim's or ("", volume)."""

    name = "persistentvolumeclaim-protection-controller"

    def start(self) -> None:
        self.informers.of(CLAIMS).on_change(lambda old, new: self._changed(new))
        self.informers.of(VOLUMES).on_change(lambda old, new: self._changed(new))
        self.informers.pods.on_change(self._pod_changed)

    def _changed(self, new: Object | None) -> None:
        if new is not None:
            self.enqueue((new["metadata"].get("namespace", ""), new["metadata"]["name"]))

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        """A pod that has gone, or ended, may have been the last that needed a claim."""
        if old is None or (new is not None and not new.is_terminal):
            return
        for name in claims_of(old):
            self.enqueue((old.metadata.namespace, name))

    def sync(self, key: Key) -> None:
        resource, finalizer = (CLAIMS, CLAIM_FINALIZER) if key[0] else (VOLUMES, VOLUME_FINALIZER)
        found = self.api.find(resource, key[0] or None, key[1])
        if found is None:
            return
        finalizers = list(found["metadata"].get("finalizers") or ())
        if "deletionTimestamp" not in found["metadata"]:
            if finalizer not in finalizers:
                found["metadata"]["finalizers"] = [*finalizers, finalizer]
                self.api.update(resource, found)
        elif finalizer in finalizers and not self._is_needed(key, found):
            finalizers.remove(finalizer)
            found["metadata"]["finalizers"] = finalizers
            self.api.update(resource, found)

    def _is_needed(self, key: Key, found: Object) -> bool:
        if not key[0]:
            return (found.get("status") or {}).get("phase") == "Bound"
        pods = self.informers.pods.list(key[0])
        return any(key[1] in claims_of(pod) for pod in pods if pod.spec.node_name and not pod.is_terminal)


def claims_of(pod: PodView) -> list[str]:
    """The claims that a pod uses, those of its own ephemeral volumes included."""
    found = []
    for volume in pod.spec.volumes:
        if claim := volume.get("persistentVolumeClaim"):
            found.append(claim["claimName"])
        elif "ephemeral" in volume:
            found.append(f"{pod.metadata.name}-{volume['name']}")
    return found
