"""Random worlds of gangs: what may happen to them, and what a world that carries out decisions looks like after."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec.structs import replace as replace_fields

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict
from mooring.model.events import Event, Failed, GangLost, GangSeen, NodeLost, NodeSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Gang, Role, gang_key
from mooring.model.gangs.membership import VOLCANO_KIND
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.builders import HOSTNAME, ZONE, make_affinity, make_node, make_pod, make_pod_term, make_taint
from mooring.testing.random_clusters import Choose, one_in, one_of, with_node, with_phase

BLOCK, RACK = "example.com/block", "example.com/rack"
LEVELS = (BLOCK, RACK)
LEADER, WORKER = "leader", "worker"
DURATION = "mooring.dev/duration"

WISHES = (
    None,
    None,
    TopologyRequest(required=RACK),
    TopologyRequest(required=BLOCK, preferred=RACK),
    TopologyRequest(preferred=RACK),
    TopologyRequest(required=BLOCK, slice_size=2, slice_level=RACK),
    TopologyRequest(slice_size=2, slice_level=HOSTNAME),
)


@dataclass(frozen=True)
class Kind:
    """A gang as it is submitted: what it asks for, and its members."""

    gang: Gang
    members: tuple[Pod, ...]


def random_node(choose: Choose, name: str) -> Node:
    """A node with some GPUs, somewhere; now and then tainted, or outside the topology."""
    block = f"block-{choose(2)}"
    labels = {} if one_in(choose, 10) else {BLOCK: block, RACK: f"{block}-rack-{choose(2)}"}
    return make_node(
        name,
        gpu=1 + choose(8),
        cpu=one_of(choose, (8, 2)),
        pods=one_of(choose, (110, 3)),
        zone=f"zone-{choose(2)}",
        labels=labels,
        taints=[make_taint("dedicated", "gpu")] if one_in(choose, 8) else [],
    )


def random_kind(choose: Choose, name: str, *, most: int = 6) -> Kind:
    """A gang of equal members, or of a leader and workers; some insist on being near each other, or apart."""
    count = 1 + choose(most)
    has_roles = one_in(choose, 3)
    minimum = count - choose(1 + count // 2)
    workers: dict[str, Any] = {"gpu": 1 + choose(3), "affinity": _affinity(choose, name)}
    members: list[Pod] = []
    roles: tuple[Role, ...] = ()
    if has_roles:
        leader = {"cpu": 1} if one_in(choose, 2) else {"gpu": 1 + choose(4)}
        members = [_member(name, 0, LEADER, leader)]
        roles = (Role(LEADER, 1), Role(WORKER, max(0, minimum - 1)))
    members += [_member(name, len(members) + i, WORKER if has_roles else "", workers) for i in range(count)]
    gang = Gang(
        gang_key(VOLCANO_KIND, "default", name),
        f"default/{name}",
        minimum + has_roles,
        roles,
        priority=one_of(choose, (None, None, 5)),
        timeout_seconds=one_of(choose, (None, 10.0)),
        topology_request=one_of(choose, WISHES),
    )
    return Kind(gang, tuple(members))


def _affinity(choose: Choose, name: str) -> Any:
    terms = [make_pod_term(one_of(choose, (ZONE, HOSTNAME)), labels={"gang": name})]
    if one_in(choose, 4):
        return make_affinity(near=terms)
    return make_affinity(away=terms) if one_in(choose, 5) else None


def _member(gang: str, number: int, role: str, given: dict[str, Any]) -> Pod:
    annotations = {"scheduling.volcano.sh/group-name": gang}
    if role:
        annotations["volcano.sh/task-spec"] = role
    return make_pod(f"{gang}-{number}", labels={"gang": gang}, annotations=annotations, **given)


@dataclass
class GangWorld:
    """What the API server holds, and what may happen to it next."""

    choose: Choose
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    """By key; those that decisions bound are bound here."""
    gangs: dict[str, Gang] = field(default_factory=dict)
    """By key, those that are declared now."""
    kinds: dict[str, Kind] = field(default_factory=dict)
    unconfirmed: list[str] = field(default_factory=list)
    """Pods that were bound, and of which the scheduler has not heard that yet."""
    done: dict[str, Pod] = field(default_factory=dict)
    """Pods that have succeeded, until others of their names come."""
    leaving: list[str] = field(default_factory=list)
    """Pods that were evicted and take their time to go."""
    created: int = 0

    def members(self, gang: str) -> list[Pod]:
        """The members of a gang that exist, by rank."""
        return [self.pods[pod.key] for pod in self.kinds[gang].members if pod.key in self.pods]

    def bound(self, gang: str) -> list[Pod]:
        """Those that are on a node which exists, and stay there."""
        staying = (pod for pod in self.members(gang) if pod.key not in self.leaving)
        return [pod for pod in staying if pod.spec.node_name in self.nodes]

    def finished(self, gang: str) -> list[Pod]:
        """The members that have succeeded."""
        return [pod for pod in self.kinds[gang].members if pod.key in self.done]

    def carry_out(self, decisions: Iterable[Decision]) -> list[Event]:
        """Do what was decided; return what the scheduler sees of it at once: whoever was evicted is gone, or going."""
        gone: list[Event] = []
        for decision in decisions:
            if isinstance(decision, Bind):
                self.pods[decision.pod] = with_node(self.pods[decision.pod], decision.node)
                self.unconfirmed.append(decision.pod)
            elif isinstance(decision, Evict):
                gone += self._terminate(decision.pod) if one_in(self.choose, 3) else self._lose(decision.pod)
        return gone

    def _lose(self, *keys: str) -> list[Event]:
        """Pods are gone; whoever comes back by the same name is another pod."""
        gone = [key for key in keys if self.pods.pop(key, None) is not None]
        self.unconfirmed = [key for key in self.unconfirmed if key not in gone]
        self.leaving = [key for key in self.leaving if key not in gone]
        return [PodLost(key) for key in gone]

    def _terminate(self, key: str) -> list[Event]:
        if key not in self.pods:
            return []
        pod = self.pods[key]
        self.pods[key] = replace_fields(
            pod, metadata=replace_fields(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        )
        self.unconfirmed = [other for other in self.unconfirmed if other != key]
        self.leaving.append(key)
        return [PodSeen(self.pods[key])]

    def events(self, count: int) -> list[Event]:
        gone = [key for key in self.leaving if one_in(self.choose, 2)]
        return [*self._lose(*gone), *(event for _ in range(count) for event in self._happens())]

    def _happens(self) -> list[Event]:
        choose = self.choose
        kind = choose(20)
        if kind < 6 or not self.pods:
            return self.new_gang()
        if kind < 8:
            return self._new_pods(1 + choose(3))
        if kind < 11:
            return self._confirm(1 + choose(6))
        if kind < 12:
            return self._lose_pod()
        if kind < 13:
            return self._finish()
        if kind < 15:
            return self._node_event()
        if kind < 17:
            return self._gang_event()
        return self._fail_to_bind() if kind < 19 else self._see_again()

    def new_gang(self) -> list[Event]:
        """A gang and its members come, in some order, perhaps not all of them; or those that were missing do."""
        choose = self.choose
        if self.kinds and one_in(choose, 3):
            return self._missing_members()
        name = f"gang-{len(self.kinds)}"
        kind = random_kind(choose, name)
        self.kinds[kind.gang.key] = kind
        coming = kind.members[: len(kind.members) - (choose(2) if one_in(choose, 4) else 0)]
        self.pods.update((pod.key, pod) for pod in coming)
        events: list[Event] = [PodSeen(pod) for pod in coming]
        if one_in(choose, 8):
            return events  # nobody declares it yet
        self.gangs[kind.gang.key] = kind.gang
        return [*events, GangSeen(kind.gang)] if one_in(choose, 2) else [GangSeen(kind.gang), *events]

    def _missing_members(self) -> list[Event]:
        kind = one_of(self.choose, list(self.kinds.values()))
        missing = [pod for pod in kind.members if pod.key not in self.pods]
        if one_in(self.choose, 2):
            missing = [pod for pod in missing if pod.key not in self.done]
        self._come(missing)
        return [PodSeen(pod) for pod in missing]

    def _new_pods(self, count: int) -> list[Event]:
        choose = self.choose
        made: list[Pod] = []
        for _ in range(count):
            self.created += 1
            annotations = {DURATION: one_of(choose, ("30s", "1h"))} if one_in(choose, 2) else None
            priority = one_of(choose, (None, None, 3, 9))
            made.append(
                make_pod(f"plain-{self.created}", gpu=1 + choose(2), priority=priority, annotations=annotations)
            )
        self.pods.update((pod.key, pod) for pod in made)
        return [PodSeen(pod) for pod in made]

    def _confirm(self, count: int) -> list[Event]:
        told, self.unconfirmed = self.unconfirmed[:count], self.unconfirmed[count:]
        return [PodSeen(self.pods[key]) for key in told if key in self.pods]

    def _finish(self) -> list[Event]:
        """A pod that runs, as the scheduler knows, has done its workload; its object may stay or go."""
        busy = {*self.leaving, *self.unconfirmed}
        running = [key for key, pod in self.pods.items() if pod.spec.node_name in self.nodes and key not in busy]
        if not running:
            return []
        key = one_of(self.choose, running)
        self.done[key] = self.pods.pop(key)
        events: list[Event] = [PodSeen(with_phase(self.done[key], "Succeeded"))]
        return [*events, PodLost(key)] if one_in(self.choose, 2) else events

    def _come(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self.pods[pod.key] = pod
            self.done.pop(pod.key, None)

    def _lose_pod(self) -> list[Event]:
        return self._lose(one_of(self.choose, list(self.pods)))

    def _node_event(self) -> list[Event]:
        """A node comes or goes; with it go its pods, at once or when somebody notices."""
        choose = self.choose
        name = f"node-{choose(6)}"
        if name not in self.nodes:
            self.nodes[name] = random_node(choose, name)
            return [NodeSeen(self.nodes[name])]
        del self.nodes[name]
        return [NodeLost(name), *self._lose(*(key for key, pod in self.pods.items() if pod.spec.node_name == name))]

    def _gang_event(self) -> list[Event]:
        """A gang is withdrawn, declared, or asks for another number of members."""
        choose = self.choose
        kind = one_of(choose, list(self.kinds.values()))
        key = kind.gang.key
        if key in self.gangs and one_in(choose, 3):
            del self.gangs[key]
            return [GangLost(key)]
        if key in self.gangs and not kind.gang.roles:
            self.gangs[key] = replace(self.gangs[key], minimum=1 + choose(len(kind.members)))
        else:
            self.gangs[key] = kind.gang
        return [GangSeen(self.gangs[key])]

    def _fail_to_bind(self) -> list[Event]:
        if not self.unconfirmed:
            return []
        key = self.unconfirmed.pop(self.choose(len(self.unconfirmed)))
        if key not in self.pods:
            return []
        self.pods[key] = with_node(self.pods[key], "")
        return [Failed(Bind(key, ""))]

    def _see_again(self) -> list[Event]:
        """A pod or a gang is told again as it is."""
        key = one_of(self.choose, list(self.pods))
        again: list[Event] = [] if key in self.unconfirmed else [PodSeen(self.pods[key])]
        return again + [GangSeen(gang) for gang in list(self.gangs.values())[:1]]


def random_gang_world(choose: Choose, *, nodes: int) -> GangWorld:
    return GangWorld(choose, {f"node-{i}": random_node(choose, f"node-{i}") for i in range(nodes)})
