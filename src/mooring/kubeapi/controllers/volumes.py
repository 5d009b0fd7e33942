"""PersistentVolumes and claims: they find each other, and where nothing fits a host-path volume is provisioned."""

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import selector_of
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_text
from mooring.model.defaults import BIND_COMPLETED, DEFAULT_CLASS_ANNOTATIONS
from mooring.model.values.quantity import parse_quantity

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
PROVISIONER = "kubernetes.io/host-path"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_NO_CLASS = ""


class Volumes(Controller):
    """Binds claims and volumes. The key is a claim's, or ("", volume)."""

    name = "persistentvolume-binder-controller"

    def start(self) -> None:
        self._claims = self.informers.of(CLAIMS)
        self._volumes = self.informers.of(VOLUMES)
        self._classes = self.informers.of(CLASSES)
        self._claims.on_change(self._claim_changed)
        self._volumes.on_change(self._volume_changed)
        self._classes.on_change(lambda old, new: self._retry_claims())

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        found = new or old
        if found is None:
            return
        if new is not None:
            self.enqueue((new["metadata"]["namespace"], new["metadata"]["name"]))
        if volume := found["spec"].get("volumeName"):
            self.enqueue(("", volume))

    def _volume_changed(self, old: Object | None, new: Object | None) -> None:
        found = new or old
        if found is None:
            return
        self.enqueue(("", found["metadata"]["name"]))
        if reference := found["spec"].get("claimRef"):
            if all(key := _key_of(reference)):
                self.enqueue(key)
        elif new is not None:
            self._retry_claims()

    def _retry_claims(self) -> None:
        for claim in list(self._claims.list()):
            if (claim.get("status") or {}).get("phase") != "Bound":
                self.enqueue((claim["metadata"]["namespace"], claim["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        if key[0]:
            self._sync_claim(key)
        else:
            self._sync_volume(key[1])

    # Claims

    def _sync_claim(self, key: Key) -> None:
        claim = self.api.find(CLAIMS, *key)
        if claim is None:
            return
        name = claim["spec"].get("volumeName")
        if name:
            self._sync_named(claim, self._volumes.get("", name))
            return
        if "deletionTimestamp" in claim["metadata"]:
            return
        volume = self._match(claim)
        if volume is not None:
            self._bind(claim, volume)
        elif not self._waits_for_consumer(claim):
            self._provision(claim)
        self._set_phase(CLAIMS, self.api.find(CLAIMS, *key), "Pending", only_if_missing=True)

    def _sync_named(self, claim: Object, volume: Object | None) -> None:
        """A claim that names its volume: bound, lost, or about to be bound."""
        was_bound = BIND_COMPLETED in (claim["metadata"].get("annotations") or {})
        if volume is None:
            self._set_phase(CLAIMS, claim, "Lost" if was_bound else "Pending")
            return
        reference = volume["spec"].get("claimRef")
        if reference is None or _is_for(reference, claim):
            if not was_bound or (claim.get("status") or {}).get("phase") != "Bound":
                self._bind(claim, volume)
        elif was_bound:
            self._set_phase(CLAIMS, claim, "Lost")
        else:
            self._set_phase(CLAIMS, claim, "Pending", only_if_missing=True)

    def _class_of(self, claim: Object) -> Object | None:
        name = claim["spec"].get("storageClassName")
        return self._classes.get("", name) if name else None

    def _waits_for_consumer(self, claim: Object) -> bool:
        found = self._class_of(claim)
        if found is None or found.get("volumeBindingMode") != "WaitForFirstConsumer":
            return False
        return SELECTED_NODE not in (claim["metadata"].get("annotations") or {})

    def _match(self, claim: Object) -> Object | None:
        """The smallest volume that a claim can have; one that was made for it before all others."""
        fitting = []
        for volume in self._volumes.list():
            reference = volume["spec"].get("claimRef")
            if reference is not None:
                if _is_for(reference, claim):
                    return volume
                continue
            if "deletionTimestamp" not in volume["metadata"] and self._fits(claim, volume):
                fitting.append(volume)
        if not fitting or self._waits_for_consumer(claim):
            return None
        return min(
            fitting, key=lambda one: (parse_quantity(one["spec"]["capacity"]["storage"]), one["metadata"]["name"])
        )

    @staticmethod
    def _fits(claim: Object, volume: Object) -> bool:
        spec, offered = claim["spec"], volume["spec"]
        asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage", 0)
        selector = spec.get("selector")
        return (
            (volume.get("status") or {}).get("phase", "Available") in ("Available", "Pending")
            and (spec.get("storageClassName") or _NO_CLASS) == (offered.get("storageClassName") or _NO_CLASS)
            and (spec.get("volumeMode") or "Filesystem") == (offered.get("volumeMode") or "Filesystem")
            and (spec.get("volumeAttributesClassName") or "") == (offered.get("volumeAttributesClassName") or "")
            and set(spec.get("accessModes") or ()) <= set(offered.get("accessModes") or ())
            and parse_quantity(asked) <= parse_quantity(offered["capacity"]["storage"])
            and (selector is None or selector_of(selector).matches(volume["metadata"].get("labels") or {}))
        )

    def _bind(self, claim: Object, volume: Object) -> None:
        """Let claim and volume know each other: the volume first, so that no two claims get one."""
        fresh = self.api.get(VOLUMES, None, volume["metadata"]["name"])
        metadata = claim["metadata"]
        reference = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        }
        before = fresh["spec"].get("claimRef")
        if before is None or not before.get("uid"):
            fresh["spec"]["claimRef"] = {**(before or {}), **reference}
            if before is None:
                annotations = fresh["metadata"].setdefault("annotations", {})
                annotations[BOUND_BY_CONTROLLER] = "yes"
            fresh = self.api.update(VOLUMES, fresh)
        self._set_phase(VOLUMES, fresh, "Bound")
        mine = self.api.find(CLAIMS, metadata["namespace"], metadata["name"])
        if mine is None:
            return
        annotations = dict(mine["metadata"].get("annotations") or {})
        if not mine["spec"].get("volumeName"):
            annotations[BOUND_BY_CONTROLLER] = "yes"
        annotations[BIND_COMPLETED] = "yes"
        if mine["spec"].get("volumeName") != fresh["metadata"]["name"] or annotations != mine["metadata"].get(
            "annotations"
        ):
            mine["spec"]["volumeName"] = fresh["metadata"]["name"]
            mine["metadata"]["annotations"] = annotations
            mine = self.api.update(CLAIMS, mine)
        status = mine.setdefault("status", {})
        if status.get("phase") != "Bound":
            status |= {
                "phase": "Bound",
                "accessModes": fresh["spec"].get("accessModes"),
                "capacity": fresh["spec"].get("capacity"),
            }
            if attributes := fresh["spec"].get("volumeAttributesClassName"):
                status["currentVolumeAttributesClassName"] = attributes
            self.api.update(CLAIMS, mine, subresource="status")

    def _provision(self, claim: Object) -> None:
        found = self._class_of(claim)
        if found is None:
            return
        if found["provisioner"] != PROVISIONER:
            by_whom = f'external provisioner "{found["provisioner"]}" or manually'
            message = f"waiting for a volume to be created, either by {by_whom}"
            self._event(claim, "Normal", "ExternalProvisioning", message)
            return
        metadata = claim["metadata"]
        name = f"pvc-{metadata['uid']}"
        volume = {
            "metadata": {"name": name, "annotations": {_PROVISIONED_BY: PROVISIONER, BOUND_BY_CONTROLLER: "yes"}},
            "spec": {
                "accessModes": claim["spec"].get("accessModes"),
                "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
                "claimRef": {
                    "kind": "PersistentVolumeClaim",
                    "apiVersion": "v1",
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                },
                "hostPath": {"path": f"/tmp/hostpath_pv/{metadata['uid']}"},
                "persistentVolumeReclaimPolicy": found.get("reclaimPolicy") or "Delete",
                "storageClassName": found["metadata"]["name"],
                "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
            },
        }
        try:
            created = self.api.create(VOLUMES, volume)
        except ApiError as error:
            if error.code != 409:
                raise
            created = self.api.get(VOLUMES, None, name)
        self._event(
            claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name} using {PROVISIONER}"
        )
        self._bind(claim, created)

    # Volumes

    def _sync_volume(self, name: str) -> None:
        volume = self.api.find(VOLUMES, None, name)
        if volume is None:
            return
        reference = volume["spec"].get("claimRef")
        if reference is None:
            self._set_phase(VOLUMES, volume, "Available")
            return
        if not reference.get("uid"):
            self._set_phase(VOLUMES, volume, "Available")
            return
        claim = self._claims.get(*_key_of(reference))
        if claim is not None and claim["metadata"]["uid"] == reference["uid"]:
            if claim["spec"].get("volumeName") == name:
                self._set_phase(VOLUMES, volume, "Bound")
            return
        self._release(volume)

    def _release(self, volume: Object) -> None:
        """The claim is gone: the volume goes as well, or waits for somebody to look at it."""
        name = volume["metadata"]["name"]
        if (volume.get("status") or {}).get("phase") != "Released":
            self._set_phase(VOLUMES, volume, "Released")
            volume = self.api.get(VOLUMES, None, name)
        policy = volume["spec"].get("persistentVolumeReclaimPolicy", "Retain")
        if policy == "Delete" and "deletionTimestamp" not in volume["metadata"]:
            self.api.delete(VOLUMES, None, name, uid=volume["metadata"]["uid"])
        elif policy == "Recycle":
            del volume["spec"]["claimRef"]
            self.api.update(VOLUMES, volume)

    def _set_phase(self, resource: str, found: Object | None, phase: str, only_if_missing: bool = False) -> None:
        if found is None:
            return
        status = found.setdefault("status", {})
        if status.get("phase") == phase or (only_if_missing and status.get("phase")):
            return
        status["phase"] = phase
        if resource == VOLUMES:
            status["lastPhaseTransitionTime"] = timestamp_text(self.now)
        self.api.update(resource, found, subresource="status")

    def _event(self, about: Object, type_: str, reason: str, message: str) -> None:
        self.context.recorder.event(about, type_, reason, message, "persistentvolume-controller")


def _key_of(reference: Object) -> Key:
    """The claim that a volume is for; what is not said of it is empty."""
    return reference.get("namespace") or "", reference.get("name") or ""


def _is_for(reference: Object, claim: Object) -> bool:
    metadata = claim["metadata"]
    same = _key_of(reference) == (metadata["namespace"], metadata["name"])
    return same and reference.get("uid") in (None, "", metadata["uid"])


def default_storage_class() -> Object:
    """The class that claims get which name none."""
    return {
        "metadata": {"name": "standard", "annotations": {DEFAULT_CLASS_ANNOTATIONS[0]: "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }
