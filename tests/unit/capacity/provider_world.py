"""A world in virtual time: replicated pods, a provider that answers NodeClaims well or badly, and a scheduler on it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace as with_fields

from mooring.actions.capacity.karpenter.shapes import requests_of
from mooring.assembly import assemble
from mooring.config.settings import parse_settings
from mooring.engine.cycle import Scheduler
from mooring.model.api.karpenter import NodeClaim, NodeClaimStatus, NodePool, unify_pool
from mooring.model.api.meta import Condition, ObjectMeta, OwnerReference, timestamp_text
from mooring.model.api.nodes import Node, NodeSpec, NodeStatus
from mooring.model.api.pods import Pod
from mooring.model.capacity.claims import as_resources, cheapest_of, claim_requirements, labels_of
from mooring.model.capacity.labels import INITIALIZED, NODE_POOL, REGISTERED
from mooring.model.decisions import Bind, Decision, Evict, Launch, Terminate
from mooring.model.events import Failed, GangSeen, NodeLost, NodeSeen, ObjectLost, ObjectSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Gang
from mooring.model.values.requests import CPU
from mooring.testing.builders import make_pod

START = 1_800_000_000.0


def catalogue(*types: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "mooring.dev/v1alpha1",
        "kind": "InstanceTypeCatalogue",
        "instanceTypes": list(types) or [instance(f"c-{size}", size) for size in (2, 4, 8, 16)],
        **more,
    }


def instance(name: str, cpus: int, price: float | None = None, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "capacity": {"cpu": cpus, "memory": f"{cpus * 4}Gi", "pods": 110},
        "offerings": [{"zone": "zone-a", "price": cpus * 0.05 if price is None else price}],
        **more,
    }


def node_pool(name: str = "general", **spec: Any) -> NodePool:
    made = msgspec.convert(
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}, NodePool
    )
    unify_pool(made)
    return made


@dataclass
class Faults:
    """What the provider does wrong, asked once a launch."""

    refuse: Callable[[], bool] = lambda: False
    short: Callable[[], bool] = lambda: False
    sold_out: Callable[[str], bool] = lambda claim: False
    wrong: Callable[[], bool] = lambda: False
    never: Callable[[], bool] = lambda: False
    delay: Callable[[], float] = lambda: 30.0


@dataclass
class World:
    """Everything outside of the scheduler."""

    documents: list[dict[str, Any]]
    pools: list[NodePool]
    faults: Faults = field(default_factory=Faults)
    now: float = START

    def __post_init__(self) -> None:
        self.settings = parse_settings(
            [{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}, *self.documents],
            "settings",
        )
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.claims: dict[str, NodeClaim] = {}
        self.due: list[tuple[float, Callable[[], None]]] = []
        self.wanted: dict[str, tuple[int, dict[str, Any]]] = {}
        self.made = 0
        self.launched: list[str] = []
        self.terminated: list[str] = []
        self.evicted: list[str] = []
        self.log: list[tuple[float, Decision]] = []
        self.refuses_evictions = False
        self.gangs: list[Gang] = []
        self.scheduler = self._new_scheduler()

    # The scheduler, and its end.

    def _new_scheduler(self) -> Scheduler:
        return assemble(self.settings).new_scheduler()

    def restart(self) -> None:
        """The scheduler is killed, and another one reads what is there."""
        self.scheduler = self._new_scheduler()
        self.scheduler.handle(*(ObjectSeen(pool) for pool in self.pools))
        self.scheduler.handle(*(ObjectSeen(claim) for claim in self.claims.values()))
        self.scheduler.handle(*(NodeSeen(node) for node in self.nodes.values()))
        self.scheduler.handle(*(GangSeen(gang) for gang in self.gangs))
        self.scheduler.handle(*(PodSeen(pod) for pod in self.pods.values()))

    def begin(self) -> None:
        self.scheduler.handle(*(ObjectSeen(pool) for pool in self.pools))

    def add_gang(self, gang: Gang) -> None:
        self.gangs.append(gang)
        self.scheduler.handle(GangSeen(gang))

    # Work.

    def scale(self, name: str, count: int, **pod: Any) -> None:
        """Let a workload have so many pods."""
        self.wanted[name] = (count, pod)
        self._replicate()

    def _replicate(self) -> None:
        for name, (count, given) in self.wanted.items():
            own = [key for key, pod in self.pods.items() if (pod.metadata.labels or {}).get("app") == name]
            for _ in range(count - len(own)):
                self.made += 1
                made = make_pod(f"{name}-{self.made}", labels={"app": name}, **given)
                owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=name, uid=name, controller=True)
                metadata = with_fields(
                    made.metadata,
                    uid=f"uid-{self.made}",
                    owner_references=[owner],
                    creation_timestamp=timestamp_text(self.now),
                )
                made = with_fields(made, metadata=metadata)
                self.pods[made.key] = made
                self.scheduler.handle(PodSeen(made))
            for key in own[count:]:
                self._lose_pod(key)

    def _lose_pod(self, key: str) -> None:
        if self.pods.pop(key, None) is not None:
            self.scheduler.handle(PodLost(key))

    # Time.

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        self.due.append((self.now + seconds, what))

    def run(self, seconds: float, step: float = 5.0) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self.now <= end:
            for item in sorted((item for item in self.due if item[0] <= self.now), key=lambda item: item[0]):
                self.due.remove(item)
                item[1]()
            self._replicate()
            for _ in range(6):
                decisions = self.scheduler.cycle(self.now)
                faults = self.scheduler.take_faults()
                assert not faults, faults[0].error
                for decision in decisions:
                    self.log.append((self.now, decision))
                    self._carry_out(decision)
                self._replicate()
            self.now += step

    # Decisions.

    def _carry_out(self, decision: Decision) -> None:
        match decision:
            case Bind(pod, node):
                known = self.pods.get(pod)
                assert node in self.nodes, f"{pod} was bound to {node}, which does not exist"
                if known is not None:
                    self.pods[pod] = bound = with_fields(known, spec=with_fields(known.spec, node_name=node))
                    self._touch(node)
                    self.scheduler.handle(PodSeen(bound))
            case Evict(pod):
                if self.refuses_evictions:
                    self.scheduler.handle(Failed(decision, "a disruption budget"))
                    return
                self.evicted.append(pod)
                node = self.pods[pod].spec.node_name
                self._lose_pod(pod)
                self._touch(node)
            case Launch(node, offer):
                assert offer.claim is not None
                if self.faults.refuse():
                    self.scheduler.handle(Failed(decision, "the provider refuses"))
                    return
                assert node not in self.claims, f"{node} was asked for twice"
                self.launched.append(node)
                metadata = with_fields(
                    offer.claim.metadata, name=node, uid=node, creation_timestamp=timestamp_text(self.now)
                )
                self._put_claim(with_fields(offer.claim, metadata=metadata))
                self._begin_launch(node)
            case Terminate(node):
                self._terminate(node)

    def _put_claim(self, claim: NodeClaim) -> None:
        self.claims[claim.name] = claim
        self.scheduler.handle(ObjectSeen(claim))

    def _touch(self, node: str) -> None:
        claim = self.claims.get(node)
        if claim is not None:
            status = with_fields(claim.status, last_pod_event_time=timestamp_text(self.now))
            self._put_claim(with_fields(claim, status=status))

    def _begin_launch(self, name: str) -> None:
        if self.faults.short() or self.faults.sold_out(name):
            self.after(5.0, lambda: self._give_up(name))
        elif not self.faults.never():
            wrong = self.faults.wrong()
            self.after(self.faults.delay(), lambda: self._register(name, wrong))

    def _give_up(self, name: str) -> None:
        if self.claims.pop(name, None) is not None:
            self.scheduler.handle(ObjectLost("NodeClaim", name))

    def _register(self, name: str, wrong: bool) -> None:
        claim = self.claims.get(name)
        if claim is None:
            return
        types = self.settings.catalogue.instance_types if self.settings.catalogue else ()
        best = cheapest_of(claim, types)
        assert best is not None
        kind, offering = best
        if wrong:
            kind = min(types, key=lambda each: each.capacity[CPU])
        labels = {**(claim.metadata.labels or {}), **labels_of(claim_requirements(claim), kind, offering)}
        labels |= {REGISTERED: "true", INITIALIZED: "true", "kubernetes.io/hostname": name}
        node = Node(
            metadata=ObjectMeta(name=name, labels=labels, uid=f"node-{name}"),
            spec=NodeSpec(provider_id=f"world://{name}", taints=claim.spec.taints),
            status=NodeStatus(
                capacity=as_resources(kind.capacity),
                allocatable=as_resources(kind.allocatable),
                conditions=[Condition(type="Ready", status="True")],
            ),
        )
        moment = timestamp_text(self.now)
        status = NodeClaimStatus(
            node_name=name,
            provider_id=f"world://{name}",
            capacity=as_resources(kind.capacity),
            allocatable=as_resources(kind.allocatable),
            conditions=[
                Condition(type=each, status="True", last_transition_time=moment)
                for each in ("Launched", "Registered", "Initialized", "Ready")
            ],
        )
        self._put_claim(with_fields(claim, metadata=with_fields(claim.metadata, labels=labels), status=status))
        self.nodes[name] = node
        self.scheduler.handle(NodeSeen(node))

    def _terminate(self, name: str) -> None:
        assert not any(pod.spec.node_name == name for pod in self.pods.values()), f"{name} has pods"
        self.terminated.append(name)
        self.claims.pop(name, None)
        if self.nodes.pop(name, None) is not None:
            self.scheduler.handle(NodeLost(name))
        self.scheduler.handle(ObjectLost("NodeClaim", name))

    def reclaim(self, name: str) -> None:
        """The provider takes a node back with all that is on it."""
        for key in [key for key, pod in self.pods.items() if pod.spec.node_name == name]:
            self._lose_pod(key)
        self.claims.pop(name, None)
        self.nodes.pop(name, None)
        self.scheduler.handle(NodeLost(name), ObjectLost("NodeClaim", name))

    # What is so now.

    @property
    def waiting(self) -> list[str]:
        return [key for key, pod in self.pods.items() if not pod.spec.node_name]

    def cpus(self) -> int:
        """CPUs that are paid for, in thousandths."""
        types = {each.name: each for each in self.settings.catalogue.instance_types} if self.settings.catalogue else {}
        names = [(node.metadata.labels or {})["node.kubernetes.io/instance-type"] for node in self.nodes.values()]
        return sum(types[name].capacity[CPU] for name in names)

    def check(self) -> None:
        """Pods are where there is room, and claims belong to somebody."""
        for name, node in self.nodes.items():
            used = sum(requests_of(pod)[CPU] for pod in self.pods.values() if pod.spec.node_name == name)
            assert used <= int(str((node.status.allocatable or {})["cpu"]).removesuffix("m")), f"{name} is overfull"
            assert (node.metadata.labels or {}).get(NODE_POOL)


def chance(random_: random.Random, share: float) -> Callable[[], bool]:
    return lambda: random_.random() < share
