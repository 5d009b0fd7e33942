"""The signs of life of simulated nodes: their leases, their status, and an allocatable that follows the capacity."""

import zlib
from datetime import UTC, datetime

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.nodes.registration import failure_of, is_simulated, node_conditions
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_seconds
from mooring.model.values.requests import is_extended

LEASES, LEASE_NAMESPACE = "leases.coordination.k8s.io", "kube-node-lease"
LEASE_SECONDS, RENEW_SECONDS, STATUS_SECONDS = 40, 10.0, 300.0
MOST_RENEWALS_A_SECOND = 200
"""With thousands of nodes they renew less often, but before the lease is over."""


class Heartbeats(Controller):
    """Renews what says that a node lives; a node that has failed says nothing."""

    name = "node-heartbeats"

    def start(self) -> None:
        self._nodes = self.informers.of("nodes")
        self._count = 0
        self._nodes.on_change(self._node_changed)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        self._count += (new is not None) - (old is not None)
        if new is not None and is_simulated(new):
            # Its own heartbeat is a change as well: that one says nothing new.
            if old is not None and failure_of(old) == failure_of(new) and self._is_in_order(new):
                return
            self.enqueue(("", new["metadata"]["name"]))

    def _is_in_order(self, node: Object) -> bool:
        status = node.get("status") or {}
        ready = next((one for one in status.get("conditions") or () if one.get("type") == "Ready"), None)
        return _extended(status, "capacity") == _extended(status, "allocatable") and (
            bool(failure_of(node)) or (ready is not None and ready["status"] == "True")
        )

    def sync(self, key: Key) -> None:
        node = self.api.find("nodes", None, key[1])
        if node is None or not is_simulated(node) or failure_of(node):
            return
        self._renew_lease(node)
        self._report(node)
        interval = min(LEASE_SECONDS * 0.6, max(RENEW_SECONDS, self._count / MOST_RENEWALS_A_SECOND))
        # Nodes that came together do not stay in step.
        self.enqueue(key, after=interval * (0.9 + 0.1 * (zlib.crc32(key[1].encode()) % 100) / 100))

    def _renew_lease(self, node: Object) -> None:
        metadata = node["metadata"]
        moment = datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        lease = self.api.find(LEASES, LEASE_NAMESPACE, metadata["name"])
        spec = {"holderIdentity": metadata["name"], "leaseDurationSeconds": LEASE_SECONDS, "renewTime": moment}
        owner = {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"]}
        if lease is None:
            made = {"metadata": {"name": metadata["name"], "ownerReferences": [owner]}, "spec": spec}
            try:
                self.api.create(LEASES, made, LEASE_NAMESPACE)
            except ApiError as error:
                if error.code not in (403, 404, 409):
                    raise
            return
        lease["spec"] = {**lease["spec"], **spec}
        lease["metadata"]["ownerReferences"] = [owner]
        self.api.update(LEASES, lease)

    def _report(self, node: Object) -> None:
        """Write the status where it says too little, or has said nothing new for long."""
        status = node.setdefault("status", {})
        conditions = status.get("conditions") or ()
        ready = next((one for one in conditions if one.get("type") == "Ready"), None)
        told = timestamp_seconds(ready.get("lastHeartbeatTime")) if ready else None
        if ready is None or ready["status"] != "True" or told is None or self.now - told >= STATUS_SECONDS:
            status["conditions"] = node_conditions(status, self.now)
        elif _extended(status, "capacity") == _extended(status, "allocatable"):
            return
        kept = {name: amount for name, amount in (status.get("allocatable") or {}).items() if not is_extended(name)}
        status["allocatable"] = kept | _extended(status, "capacity")
        self.api.update("nodes", node, subresource="status")


def _extended(status: Object, which: str) -> dict[str, str]:
    """What a device plugin would report; nothing of it is kept back for the system."""
    return {name: amount for name, amount in (status.get(which) or {}).items() if is_extended(name)}
