"""The node lifecycle controller: nodes that give no sign of life, and the taints that follow from what nodes say."""

from mooring.kubeapi.controllers.conditions import find_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.pods import PodView
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_text

GRACE_SECONDS = 50.0
"""How long a node may be silent."""
LEASES, LEASE_NAMESPACE = "leases.coordination.k8s.io", "kube-node-lease"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OURS = {NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()}
_SILENT = ("NodeStatusUnknown", "Kubelet stopped posting node status.")


class NodeLifecycle(Controller):
    """Watches over nodes."""

    name = "node-lifecycle-controller"

    def start(self) -> None:
        self._heard: dict[str, float] = {}
        self._nodes = self.informers.of("nodes")
        self._nodes.on_change(self._node_changed)
        self.informers.of(LEASES).on_change(self._lease_changed)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self._heard.pop(old["metadata"]["name"], None)
            return
        name = new["metadata"]["name"]
        if old is None or _heartbeat(old) != _heartbeat(new):
            self._heard[name] = self.now
        self.enqueue(("", name))

    def _lease_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None or new["metadata"]["namespace"] != LEASE_NAMESPACE:
            return
        if old is None or old["spec"].get("renewTime") != new["spec"].get("renewTime"):
            self._heard[new["metadata"]["name"]] = self.now

    def sync(self, key: Key) -> None:
        name = key[1]
        node = self.api.find("nodes", None, name)
        if node is None:
            return
        silent = self.now - self._heard.get(name, self.now)
        if silent >= GRACE_SECONDS:
            if self._mark_silent(node):
                node = self.api.get("nodes", None, name)
        else:
            self.enqueue(key, after=GRACE_SECONDS - silent + 0.1)
        ready = find_condition(node.get("status") or {}, "Ready")
        self._taint(node, ready["status"] if ready else "")
        if ready is not None and ready["status"] != "True":
            for pod in self.informers.pods_on(name):
                self._mark_not_ready(pod)

    def _mark_silent(self, node: Object) -> bool:
        """Nobody knows how a silent node is."""
        status = node.setdefault("status", {})
        conditions = status.setdefault("conditions", [])
        moment = timestamp_text(self.now)
        has_changed = False
        for type_ in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
            found = find_condition(status, type_)
            if found is None:
                reason, message = "NodeStatusNeverUpdated", "Kubelet never posted node status."
                found = {"type": type_, "lastHeartbeatTime": node["metadata"].get("creationTimestamp")}
                conditions.append(found)
            else:
                reason, message = _SILENT
            if found.get("status") != "Unknown":
                found.update(status="Unknown", reason=reason, message=message, lastTransitionTime=moment)
                has_changed = True
        if has_changed:
            self.api.update("nodes", node, subresource="status")
        return has_changed

    def _taint(self, node: Object, ready: str) -> None:
        spec = node.setdefault("spec", {})
        before = spec.get("taints") or []
        wanted = self._wanted_taints(node, ready)
        present = {(one["key"], one["effect"]) for one in before}
        kept = [one for one in before if one["key"] not in _OURS or (one["key"], one["effect"]) in wanted]
        moment = timestamp_text(self.now)
        for key, effect in wanted:
            if (key, effect) not in present:
                taint = {"key": key, "effect": effect}
                kept.append({**taint, "timeAdded": moment} if effect == "NoExecute" else taint)
        if kept != before:
            if kept:
                spec["taints"] = kept
            else:
                spec.pop("taints", None)
            self.api.update("nodes", node)

    @staticmethod
    def _wanted_taints(node: Object, ready: str) -> list[tuple[str, str]]:
        wanted = []
        if ready in ("False", "Unknown"):
            key = NOT_READY if ready == "False" else UNREACHABLE
            wanted += [(key, "NoSchedule"), (key, "NoExecute")]
        for condition in (node.get("status") or {}).get("conditions") or ():
            if condition.get("type") in _PRESSURES and condition.get("status") == "True":
                wanted.append((_PRESSURES[condition["type"]], "NoSchedule"))
        if (node.get("spec") or {}).get("unschedulable"):
            wanted.append((UNSCHEDULABLE, "NoSchedule"))
        return wanted

    def _mark_not_ready(self, pod: PodView) -> None:
        if not pod.is_ready:
            return
        found = self.api.find("pods", *pod.key)
        condition = find_condition((found or {}).get("status") or {}, "Ready")
        if found is None or condition is None or condition["status"] != "True":
            return
        condition.update(status="False", reason="NodeNotReady", lastTransitionTime=timestamp_text(self.now))
        try:
            self.api.update("pods", found, subresource="status")
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _heartbeat(node: Object) -> str:
    ready = find_condition(node.get("status") or {}, "Ready")
    return str(ready.get("lastHeartbeatTime")) if ready else ""
