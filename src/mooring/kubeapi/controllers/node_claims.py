"""NodeClaims and NodePools, as a provider of Karpenter brings them about: a claim becomes a machine, then a node.

What is sold, how long that takes and what goes wrong is in the catalogue. What goes wrong with a claim depends on its
name alone, so that the same names fare the same.
"""

import random
from typing import Any

import msgspec

from mooring.kubeapi.controllers.conditions import find_condition, is_true, set_condition
from mooring.kubeapi.controllers.context import Context
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.pods import PodView
from mooring.kubeapi.nodes.registration import free_addresses, register_node
from mooring.kubeapi.status import ApiError
from mooring.model.api.karpenter import NodeClaim
from mooring.model.api.meta import timestamp_seconds, timestamp_text
from mooring.model.capacity.claims import as_resources, cheapest_of, claim_requirements, labels_of
from mooring.model.capacity.instance_types import InstanceType, Offering
from mooring.model.capacity.labels import CAPACITY_TYPE, INITIALIZED, INSTANCE_TYPE, NODE_POOL, REGISTERED, SPOT, ZONE
from mooring.model.capacity.provider import Catalogue

CLAIMS, POOLS = "nodeclaims.karpenter.sh", "nodepools.karpenter.sh"
TERMINATION = "karpenter.sh/termination"
"""The finalizer of claims and nodes: a claim goes when its node has gone."""
SOURCE = "mooring-provider"
POD_EVENT_SECONDS = 5.0
"""How often it is written at most that pods came to a node or went."""
_RECLAIMED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}


class NodeClaims(Controller):
    """Launches what claims ask for, and takes it back when they go."""

    name = "nodeclaim-lifecycle"

    def __init__(self, context: Context, catalogue: Catalogue) -> None:
        super().__init__(context)
        self._catalogue = catalogue
        self._provider = catalogue.provider
        self._types = catalogue.instance_types

    def start(self) -> None:
        self._claims = self.follow(CLAIMS)
        self._nodes = self.informers.of("nodes")
        self._nodes.on_change(self._node_changed)
        self.informers.pods.on_change(self._pod_changed)
        self._pods_changed: dict[str, float] = {}

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self._wake_claim(old["metadata"]["name"])

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        """Pods came to a node, went or ended: consolidation leaves it alone for a while."""
        before, after = _place_of(old), _place_of(new)
        if before != after:
            for node in (before, after):
                if node and self._wake_claim(node):
                    self._pods_changed[node] = self.now

    def _wake_claim(self, name: str) -> bool:
        """Look at the claim of a node: nodes of this provider have the names of their claims."""
        if self._claims.get("", name) is None:
            return False
        self.enqueue(("", name))
        return True

    def sync(self, key: Key) -> None:
        found = self.api.find(CLAIMS, None, key[1])
        if found is None:
            self._pods_changed.pop(key[1], None)
            return
        if found["metadata"].get("deletionTimestamp"):
            self._finish(found)
        elif not is_true(found, "Launched"):
            self._launch(found)
        elif not is_true(found, "Registered"):
            self._register(found)
        elif self.api.find("nodes", None, key[1]) is None:
            self._give_up(found, "NodeGone", "its node was deleted")
        else:
            self._note_pods(found)
            self._reclaim(found)

    # Coming.

    def _launch(self, found: Object) -> None:
        claim = _typed(found)
        if self._wait(found, _seconds(found["metadata"].get("creationTimestamp")), self._provider.launch_seconds):
            return
        best = cheapest_of(claim, self._types, self._is_left)
        if best is None or self._goes_wrong(claim.name, "fail", self._provider.faults.fail):
            why = "all requested instance types were unavailable during launch"
            self._give_up(found, "InsufficientCapacityError", why)
            return
        kind, offering = best
        if self._goes_wrong(claim.name, "type", self._provider.faults.wrong_type):
            kind = next((each for each in self._types if each is not kind), kind)
        metadata = found["metadata"]
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            **labels_of(claim_requirements(claim), best[0], offering),
            INSTANCE_TYPE: kind.name,
        }
        if TERMINATION not in metadata.setdefault("finalizers", []):
            metadata["finalizers"].append(TERMINATION)
        found = self.api.update(CLAIMS, found)
        status = found.setdefault("status", {})
        status["providerID"] = f"mooring://{offering.zone}/{claim.name}"
        status["capacity"] = as_resources(kind.capacity)
        status["allocatable"] = as_resources(kind.allocatable)
        set_condition(status, "Launched", "True", self.now, reason="Launched", message="")
        for type_ in ("Registered", "Initialized", "Ready"):
            set_condition(status, type_, "Unknown", self.now, reason="AwaitingReconciliation", message="")
        self.api.update(CLAIMS, found, subresource="status")

    def _is_left(self, kind: InstanceType, offering: Offering) -> bool:
        """Tell whether there is another one of an offering that there are only so many of."""
        most = self._catalogue.quantities.get((kind.name, offering.zone, offering.capacity_type))
        if most is None:
            return True
        wanted = {INSTANCE_TYPE: kind.name, ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
        sold = sum((each["metadata"].get("labels") or {}).items() >= wanted.items() for each in self._claims.list())
        return bool(sold < most)

    def _register(self, found: Object) -> None:
        name, faults = found["metadata"]["name"], self._provider.faults
        launched = _seconds((find_condition(found["status"], "Launched") or {}).get("lastTransitionTime"))
        if self._goes_wrong(name, "register", faults.never_register):
            if not self._wait(found, launched, self._provider.registration_timeout_seconds):
                self._give_up(found, "RegistrationTimeout", "its node has not appeared in time")
            return
        late = faults.late_seconds if self._goes_wrong(name, "late", faults.late) else 0.0
        if self._wait(found, launched, self._provider.register_seconds + late):
            return
        register_node(self.api, self._node_of(found), free_addresses(self.api))
        status = found["status"]
        status["nodeName"] = name
        for type_ in ("Registered", "Initialized", "Ready"):
            set_condition(status, type_, "True", self.now, reason=type_, message="")
        self.api.update(CLAIMS, found, subresource="status")

    def _node_of(self, found: Object) -> Object:
        """The node of a claim. Startup taints are not there any more: what would take them away is not simulated."""
        metadata, spec, status = found["metadata"], found["spec"], found["status"]
        labels = {**(metadata.get("labels") or {}), REGISTERED: "true", INITIALIZED: "true"}
        node_spec: Object = {"providerID": status["providerID"]}
        if spec.get("taints"):
            node_spec["taints"] = spec["taints"]
        owner = {
            "apiVersion": found["apiVersion"],
            "kind": "NodeClaim",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "blockOwnerDeletion": True,
        }
        return {
            "metadata": {
                "name": metadata["name"],
                "labels": labels,
                "annotations": dict(metadata.get("annotations") or {}),
                "ownerReferences": [owner],
            },
            "spec": node_spec,
            "status": {"capacity": status["capacity"], "allocatable": status["allocatable"]},
        }

    # Going.

    def _give_up(self, found: Object, reason: str, message: str) -> None:
        """Delete a claim that comes to nothing, and say why."""
        self.context.recorder.event(found, "Warning", reason, message, SOURCE)
        try:
            self.api.delete(CLAIMS, None, found["metadata"]["name"], uid=found["metadata"]["uid"])
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    def _finish(self, found: Object) -> None:
        """Take the node of a claim that goes away, then let the claim go."""
        metadata = found["metadata"]
        node = self.api.find("nodes", None, metadata["name"])
        if node is not None and node["spec"].get("providerID") == (found.get("status") or {}).get("providerID"):
            self.api.delete("nodes", None, metadata["name"])
        if TERMINATION in (metadata.get("finalizers") or ()):
            metadata["finalizers"].remove(TERMINATION)
            self.api.update(CLAIMS, found)

    def _reclaim(self, found: Object) -> None:
        """Take spot nodes back when their time is over; before that, let no more pods come."""
        lifetime = self._provider.spot_lifetime_seconds
        if lifetime is None or (found["metadata"].get("labels") or {}).get(CAPACITY_TYPE) != SPOT:
            return
        registered = _seconds((find_condition(found["status"], "Registered") or {}).get("lastTransitionTime"))
        if self._wait(found, registered, max(0.0, lifetime - self._provider.spot_notice_seconds)):
            return
        node = self.api.get("nodes", None, found["metadata"]["name"])
        taints = node["spec"].get("taints") or []
        if _RECLAIMED not in taints:
            node["spec"]["taints"] = [*taints, _RECLAIMED]
            self.api.update("nodes", node)
            self.context.recorder.event(found, "Warning", "SpotInterrupted", "the node will be taken back", SOURCE)
        if not self._wait(found, registered, lifetime):
            self._give_up(found, "SpotReclaimed", "the provider took the node back")

    # Small things.

    def _note_pods(self, found: Object) -> None:
        """Write when pods last came or went."""
        name = found["metadata"]["name"]
        changed = self._pods_changed.get(name)
        if changed is None:
            return
        written = timestamp_seconds(found["status"].get("lastPodEventTime"))
        if written is not None and changed - written < POD_EVENT_SECONDS:
            self.enqueue(("", name), after=POD_EVENT_SECONDS)
            if self.now - written < POD_EVENT_SECONDS:
                return
        del self._pods_changed[name]
        found["status"]["lastPodEventTime"] = timestamp_text(changed)
        self.api.update(CLAIMS, found, subresource="status")

    def _wait(self, found: Object, since: float, seconds: float) -> bool:
        """Tell whether it is too early, and come back then."""
        left = since + seconds - self.now
        if left > 0:
            self.enqueue(("", found["metadata"]["name"]), after=left)
        return left > 0

    def _goes_wrong(self, name: str, what: str, share: float) -> bool:
        return bool(share) and random.Random(f"{self._provider.faults.seed}/{what}/{name}").random() < share


class NodePools(Controller):
    """Keeps the status of NodePools: how many nodes they have, and that they are ready."""

    name = "nodepool-status"

    def start(self) -> None:
        self._claims = self.informers.of(CLAIMS)
        self._claims.on_change(self._claim_changed)
        self.follow(POOLS)

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        names = {_pool_of(each) for each in (old, new) if each is not None}
        if old is None or new is None or is_true(old, "Registered") != is_true(new, "Registered"):
            for name in names:
                self.enqueue(("", name))

    def sync(self, key: Key) -> None:
        found = self.api.find(POOLS, None, key[1])
        if found is None:
            return
        status = found.setdefault("status", {})
        before = msgspec.json.encode(status)
        status["nodes"] = sum(_pool_of(each) == key[1] for each in self._claims.list() if is_true(each, "Registered"))
        for type_ in ("ValidationSucceeded", "NodeClassReady", "Ready"):
            set_condition(status, type_, "True", self.now, reason=type_, message="")
        if msgspec.json.encode(status) != before:
            self.api.update(POOLS, found, subresource="status")


def _typed(found: Object) -> NodeClaim:
    typed: NodeClaim = msgspec.convert(found, NodeClaim)
    return typed


def _pool_of(found: Object) -> str:
    return str((found["metadata"].get("labels") or {}).get(NODE_POOL, ""))


def _place_of(pod: PodView | None) -> str:
    """The node that a pod counts on."""
    return pod.spec.node_name if pod is not None and not pod.is_terminal else ""


def _seconds(text: Any) -> float:
    return timestamp_seconds(text) or 0.0
