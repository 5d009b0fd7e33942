"""Nodes that are bought in a simulation: they come some time after they were asked for, and cost until they go."""

import random
from collections.abc import Callable

from msgspec.structs import replace

from mooring.drivers.sim.world import World
from mooring.model.api.karpenter import NodeClaim
from mooring.model.api.meta import Condition, timestamp_text
from mooring.model.api.nodes import Node
from mooring.model.capacity.claims import as_resources, cheapest_of, claim_requirements, labels_of
from mooring.model.capacity.instance_types import InstanceType, Offering
from mooring.model.capacity.labels import CAPACITY_TYPE, INITIALIZED, INSTANCE_TYPE, REGISTERED, ZONE
from mooring.model.capacity.provider import Catalogue
from mooring.model.decisions import Launch
from mooring.model.events import ObjectLost, ObjectSeen


class SimulatedProvider:
    """Launches what claims ask for, as the provider of the embedded control plane does."""

    def __init__(self, world: World, catalogue: Catalogue) -> None:
        self._world, self._catalogue = world, catalogue
        self._claims: dict[str, NodeClaim] = {}
        world.pods_changed = self._note_pods

    def launch(self, decision: Launch) -> str:
        """Ask for a node; why not, if that is refused."""
        claim = decision.offer.claim
        assert claim is not None
        provider, faults = self._catalogue.provider, self._catalogue.provider.faults
        best = cheapest_of(claim, self._catalogue.instance_types, self._is_left)
        if best is None or self._goes_wrong(decision.node, "fail", faults.fail):
            return "all requested instance types were unavailable during launch"
        kind, offering = best
        if self._goes_wrong(decision.node, "type", faults.wrong_type):
            kind = next((each for each in self._catalogue.instance_types if each is not kind), kind)
        moment = timestamp_text(self._world.now)
        labels = {
            **(claim.metadata.labels or {}),
            **labels_of(claim_requirements(claim), best[0], offering),
            INSTANCE_TYPE: kind.name,
        }
        metadata = replace(
            claim.metadata, name=decision.node, uid=decision.node, labels=labels, creation_timestamp=moment
        )
        status = replace(
            claim.status,
            provider_id=f"simulated://{decision.node}",
            capacity=as_resources(kind.capacity),
            allocatable=as_resources(kind.allocatable),
            conditions=[Condition(type="Launched", status="True", last_transition_time=moment)],
        )
        self._put(replace(claim, metadata=metadata, status=status))
        if not self._goes_wrong(decision.node, "register", faults.never_register):
            late = faults.late_seconds if self._goes_wrong(decision.node, "late", faults.late) else 0.0
            at = self._world.now + provider.launch_seconds + provider.register_seconds + late
            self._world.agenda.note(at, self._register, (decision.node, decision.offer.node))
        return ""

    def terminate(self, name: str) -> str:
        """Let a node go, or stop waiting for one."""
        claim = self._claims.pop(name, None)
        if claim is None:
            return self._world.terminate(name)
        self._world.tell(ObjectLost("NodeClaim", name))
        return self._world.terminate(name) if claim.status.node_name else ""

    def _register(self, what: tuple[str, Node]) -> None:
        name, offered = what
        claim = self._claims.get(name)
        if claim is None:
            return
        moment = timestamp_text(self._world.now)
        labels = {**(claim.metadata.labels or {}), REGISTERED: "true", INITIALIZED: "true"}
        metadata = replace(offered.metadata, name=name, labels={**labels, "kubernetes.io/hostname": name})
        node = replace(
            offered,
            metadata=metadata,
            spec=replace(offered.spec, provider_id=claim.status.provider_id),
            status=replace(
                offered.status,
                capacity=claim.status.capacity,
                allocatable=claim.status.allocatable,
                conditions=[Condition(type="Ready", status="True", last_transition_time=moment)],
            ),
        )
        done = [
            Condition(type=each, status="True", last_transition_time=moment)
            for each in ("Launched", "Registered", "Initialized", "Ready")
        ]
        self._put(replace(claim, status=replace(claim.status, node_name=name, conditions=done)))
        self._world.launch(node, ())

    def _note_pods(self, node: str) -> None:
        """Pods came to a node or went: consolidation leaves it alone for a while."""
        claim = self._claims.get(node)
        if claim is not None:
            moment = timestamp_text(self._world.now)
            if claim.status.last_pod_event_time != moment:
                self._put(replace(claim, status=replace(claim.status, last_pod_event_time=moment)))

    def _put(self, claim: NodeClaim) -> None:
        self._claims[claim.name] = claim
        self._world.tell(ObjectSeen(claim))

    def _is_left(self, kind: InstanceType, offering: Offering) -> bool:
        most = self._catalogue.quantities.get((kind.name, offering.zone, offering.capacity_type))
        wanted = {INSTANCE_TYPE: kind.name, ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
        claims = self._claims.values()
        return most is None or sum((one.metadata.labels or {}).items() >= wanted.items() for one in claims) < most

    def _goes_wrong(self, name: str, what: str, share: float) -> bool:
        seed = self._catalogue.provider.faults.seed
        return bool(share) and random.Random(f"{seed}/{what}/{name}").random() < share


def price_of(catalogue: Catalogue | None, otherwise: Callable[[Node], float]) -> Callable[[Node], float]:
    """What an hour of a node costs: as the scenario says or, where it says nothing, as the catalogue does."""
    if catalogue is None:
        return otherwise
    types = {each.name: each for each in catalogue.instance_types}

    def price(node: Node) -> float:
        labels = node.metadata.labels or {}
        kind = types.get(labels.get(INSTANCE_TYPE, ""))
        listed = None if kind is None else kind.price(labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, "on-demand"))
        return otherwise(node) or listed or 0.0

    return price
