"""DisaggregatedSets: a LeaderWorkerSet for each role of each slice.

A changed role changes its LeaderWorkerSets, which roll out by themselves: there are no revisions side by side.
"""

from mooring.errors import ManifestError
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.controllers.slices import SLICE
from mooring.model.loading.disaggregated_set import SET, SET_GROUP, leader_worker_sets
from mooring.model.places import Place

RESOURCE = f"disaggregatedsets.{SET_GROUP}"
SETS = "leaderworkersets.leaderworkerset.x-k8s.io"


class DisaggregatedSets(Controller):
    """Makes the LeaderWorkerSets of DisaggregatedSets."""

    name = "disaggregatedset-controller"

    def start(self) -> None:
        self.follow(RESOURCE)
        self.sets = self.informers.of(SETS)
        self.follow_controlled(self.sets, SET)

    def sync(self, key: Key) -> None:
        found = self.api.find(RESOURCE, *key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return
        held = {each["metadata"]["name"]: each for each in self.sets.controlled_by(found["metadata"]["uid"])}
        try:
            wanted = {each["metadata"]["name"]: each for each in leader_worker_sets(found, Place(""))}
        except ManifestError as error:
            self.context.recorder.event(found, "Warning", "InvalidSpec", str(error), self.name)
            return
        for name in held.keys() - wanted.keys():
            self.api.delete(SETS, key[0], name, propagation="Background")
        for number, (name, document) in enumerate(wanted.items()):
            if number and number % SLICE == 0 and name not in held:
                self.enqueue(key)
                break
            self._keep(document, held.get(name), found)
        self._write_status(found, held)

    def _keep(self, wanted: Object, held: Object | None, owner: Object) -> None:
        namespace = owner["metadata"]["namespace"]
        if held is None:
            wanted["metadata"]["ownerReferences"] = [owner_reference(owner)]
            self.api.create(SETS, wanted, namespace)
            return
        fresh = self.api.find(SETS, namespace, held["metadata"]["name"])
        if fresh is not None:
            fresh["spec"] |= wanted["spec"]
            self.api.update(SETS, fresh)

    def _write_status(self, found: Object, held: dict[str, Object]) -> None:
        role = f"{SET_GROUP}/role"
        roles: dict[str, Object] = {}
        for each in held.values():
            name = (each["metadata"].get("labels") or {}).get(role, "")
            counts = roles.setdefault(name, {"name": name, "replicas": 0, "readyReplicas": 0})
            counts["replicas"] += (each.get("status") or {}).get("replicas") or 0
            counts["readyReplicas"] += (each.get("status") or {}).get("readyReplicas") or 0
        status = {**(found.get("status") or {}), "roles": [roles[name] for name in sorted(roles)]}
        if roles and status != (found.get("status") or {}):
            self.api.update(RESOURCE, {**found, "status": status}, subresource="status")
