"""Small random clusters that say a little of everything that scheduling reads, from a source of choices.

The source is a function: given n, it chooses a number below n. A seeded NumPy generator is one (`seeded`); so is
anything that can draw a whole number, such as a hypothesis strategy. 0 is always the plainest choice.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from msgspec.structs import replace

from mooring.model.api.nodes import Node, Taint
from mooring.model.api.pods import Affinity, ContainerPort, Pod, Toleration, TopologySpreadConstraint
from mooring.model.decisions import Bind, Decision, Evict
from mooring.model.events import (
    Event,
    NodeLost,
    NodeSeen,
    ObjectLost,
    ObjectSeen,
    PodLost,
    PodSeen,
    Related,
)
from mooring.state.cluster import Cluster
from mooring.testing.builders import (
    HOSTNAME,
    RACK,
    ZONE,
    make_affinity,
    make_cluster,
    make_namespace,
    make_node,
    make_owner,
    make_pod,
    make_pod_term,
    make_replica_set,
    make_selector,
    make_service,
    make_spread,
    make_taint,
    make_toleration,
)

Choose = Callable[[int], int]
T = TypeVar("T")

APPS = ("web", "db", "train")
NAMESPACES = ("default", "team-a", "team-b")
KEYS = (ZONE, RACK, HOSTNAME)
IMAGES = ("registry.example.com/small:1", "registry.example.com/large:1", "bare")
MEBIBYTE = 1 << 20


def seeded(seed: int) -> Choose:
    """Choices from a NumPy generator: the same seed, the same choices."""
    generator = np.random.default_rng(seed)
    return lambda below: int(generator.integers(below))


def one_of(choose: Choose, options: Sequence[T]) -> T:
    return options[choose(len(options))]


def one_in(choose: Choose, count: int) -> bool:
    """True once in `count` times."""
    return choose(count) == count - 1


def random_node(choose: Choose, name: str) -> Node:
    """A node: small, so that a few pods fill it; now and then cordoned, tainted, or outside every zone."""
    labels = dict(one_of(choose, ({}, {"disk": "ssd"}, {"disk": "hdd"}, {"disk": "ssd", "tier": "5"}, {"tier": "x"})))
    if one_in(choose, 12):
        labels[HOSTNAME] = "shared"
    large = one_in(choose, 2)
    return make_node(
        name,
        cpu=one_of(choose, ("4", "2", "1500m", "8")),
        memory=one_of(choose, ("8Gi", "4Gi", "3000Mi", "16Gi")),
        gpu=one_of(choose, (0, 0, 2, 4)),
        pods=one_of(choose, (20, 6, 3, 110)),
        zone=one_of(choose, ("zone-0", "zone-1", "zone-2", "")),
        rack=one_of(choose, ("rack-0", "rack-1", "rack-2", "rack-3", "")),
        labels=labels,
        annotations=one_of(choose, (None, None, {"example.com/addresses": "3"})),
        taints=random_taints(choose),
        unschedulable=one_in(choose, 10),
        images={IMAGES[1]: 900 * MEBIBYTE} if large else {IMAGES[0]: 40 * MEBIBYTE, "bare:latest": 500 * MEBIBYTE},
        resources=one_of(choose, (None, None, {"ephemeral-storage": "10Gi"})),
    )


TAINTS = (
    make_taint("dedicated", "gpu"),
    make_taint("spot", "true", effect="PreferNoSchedule"),
    make_taint("old", effect="PreferNoSchedule"),
    make_taint("broken", effect="NoExecute"),
)


def random_taints(choose: Choose) -> list[Taint]:
    if not one_in(choose, 3):
        return []
    return [taint for taint in TAINTS if one_in(choose, 3)]


@dataclass(frozen=True)
class Template:
    """What a random pod says, so that many pods can say the same."""

    given: dict[str, Any]
    """Arguments of make_pod."""

    def pod(self, name: str, **more: Any) -> Pod:
        return make_pod(name, **(self.given | more))

    def pods(self, count: int) -> list[Pod]:
        """So many, none of them bound."""
        return [self.pod(f"waiting-{index}") for index in range(count)]


def random_template(choose: Choose) -> Template:
    """What a pod says: something about resources, and a little of everything else."""
    given: dict[str, Any] = {
        "cpu": one_of(choose, ("500m", None, "250m", "1", "0")),
        "memory": one_of(choose, ("512Mi", None, "1Gi", "100Mi")),
        "labels": {"app": one_of(choose, APPS)},
        "namespace": one_of(choose, NAMESPACES) if one_in(choose, 3) else NAMESPACES[0],
        "image": one_of(choose, IMAGES),
    }
    if one_in(choose, 4):
        given["gpu"] = 1 + choose(2)
    if one_in(choose, 6):
        given["labels"]["tier"] = one_of(choose, ("front", "back"))
    if one_in(choose, 8):
        given["resources"] = {"ephemeral-storage": "3Gi"}
    if one_in(choose, 4):
        given["tolerations"] = random_tolerations(choose)
    if one_in(choose, 5):
        given["node_selector"] = one_of(choose, ({"disk": "ssd"}, {ZONE: "zone-1"}))
    if one_in(choose, 3):
        given["spread"] = [random_spread(choose) for _ in range(1 + choose(2))]
    if one_in(choose, 2):
        given["affinity"] = random_affinity(choose)
    if one_in(choose, 8):
        address = one_of(choose, ("", "10.0.0.1"))
        given["host_ports"] = [ContainerPort(host_port=80 + choose(2), host_ip=address)]
    if one_in(choose, 4):
        given["priority"] = choose(3) * 10
    if one_in(choose, 6):
        given["owner"] = make_owner("set-0")
    return Template(given)


def random_tolerations(choose: Choose) -> list[Toleration]:
    options = (
        make_toleration("dedicated", "gpu", effect="NoSchedule"),
        make_toleration("spot"),
        make_toleration("node.kubernetes.io/unschedulable", effect="NoSchedule"),
        make_toleration(),
    )
    return [one_of(choose, options) for _ in range(1 + choose(2))]


def random_spread(choose: Choose) -> TopologySpreadConstraint:
    given: dict[str, Any] = {"labels": {"app": one_of(choose, APPS)}}
    if one_in(choose, 6):
        given["labels"] = {}
    if one_in(choose, 6):
        given["match_label_keys"] = ["tier"]
    if one_in(choose, 4):
        given["node_taints_policy"] = "Honor"
    if one_in(choose, 6):
        given["node_affinity_policy"] = "Ignore"
    soft = one_in(choose, 2)
    if not soft and one_in(choose, 4):
        given["min_domains"] = 1 + choose(4)
    return make_spread(one_of(choose, KEYS), max_skew=1 + choose(3), soft=soft, **given)


def random_affinity(choose: Choose) -> Affinity:
    kind = choose(6)
    terms = [random_pod_term(choose) for _ in range(1 + one_in(choose, 3))]
    weighted = [(1 + choose(50), term) for term in terms]
    match kind:
        case 0:
            return make_affinity(nodes=random_node_affinity(choose))
        case 1:
            return make_affinity(away=terms)
        case 2:
            return make_affinity(near=terms)
        case 3:
            return make_affinity(rather_near=weighted)
        case 4:
            return make_affinity(rather_away=weighted)
        case _:
            return make_affinity(
                nodes=random_node_affinity(choose) if one_in(choose, 2) else None,
                away=[random_pod_term(choose)],
                rather_near=weighted,
            )


def random_pod_term(choose: Choose) -> Any:
    given: dict[str, Any] = {"labels": {"app": one_of(choose, APPS)}}
    if one_in(choose, 5):
        given["label_selector"] = make_selector(expressions=[{"key": "tier", "operator": "Exists"}])
    namespaces = choose(6)
    if namespaces == 3:
        given["namespaces"] = ["team-a"]
    elif namespaces == 4:
        given["namespace_selector"] = make_selector({"team": "a"})
    elif namespaces == 5:
        given["namespace_selector"] = make_selector()
    return make_pod_term(one_of(choose, KEYS), **given)


def random_node_affinity(choose: Choose) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if one_in(choose, 2):
        terms = [{"matchExpressions": [random_requirement(choose)]} for _ in range(1 + choose(2))]
        if one_in(choose, 6):
            terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"node-{choose(4)}"]}]}]
        made["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if not made or one_in(choose, 2):
        preferred = [
            {"weight": 1 + choose(20), "preference": {"matchExpressions": [random_requirement(choose)]}}
            for _ in range(1 + choose(2))
        ]
        made["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return made


def random_requirement(choose: Choose) -> dict[str, Any]:
    return dict(
        one_of(
            choose,
            (
                {"key": "disk", "operator": "In", "values": ["ssd"]},
                {"key": ZONE, "operator": "In", "values": ["zone-0", "zone-2"]},
                {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
                {"key": "tier", "operator": "Exists"},
                {"key": RACK, "operator": "DoesNotExist"},
                {"key": "tier", "operator": "Gt", "values": ["3"]},
            ),
        )
    )


def random_related(choose: Choose) -> list[Related]:
    """Namespaces with and without a team, and perhaps a service and a replica set."""
    found: list[Related] = [make_namespace("default"), make_namespace("team-a", labels={"team": "a"})]
    found.append(make_namespace("team-b", labels={"team": one_of(choose, ("b", "a"))}))
    if one_in(choose, 3):
        found.append(make_service("service-0", selector={"app": one_of(choose, APPS)}))
    if one_in(choose, 4):
        found.append(make_replica_set("set-0", labels={"app": one_of(choose, APPS)}))
    return found


@dataclass
class World:
    """What a cluster's API server would hold, and what may happen to it next."""

    choose: Choose
    templates: list[Template]
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    """By namespace/name; those that decisions bound are bound here once `bind` was told."""
    related: list[Related] = field(default_factory=list)
    created: int = 0

    def bind(self, key: str, node: str) -> None:
        """Let a pod be bound, as its scheduler decided."""
        self.pods[key] = with_node(self.pods[key], node)

    def carry_out(self, decisions: Iterable[Decision]) -> list[Event]:
        """Do what a scheduler decided; return what it will see of that: the pods it evicted are gone."""
        gone: list[Event] = []
        for decision in decisions:
            if isinstance(decision, Bind):
                self.bind(decision.pod, decision.node)
            elif isinstance(decision, Evict) and self.pods.pop(decision.pod, None) is not None:
                gone.append(PodLost(decision.pod))
        return gone

    def events(self, count: int) -> list[Event]:
        """What happens next: pods come, and sometimes anything else."""
        return [event for _ in range(count) for event in self._happens()]

    def _happens(self) -> list[Event]:
        choose = self.choose
        kind = choose(20)
        if kind < 8 or not self.pods:
            return self.new_pods(one_of(choose, self.templates), 1 + choose(3))
        if kind < 10:
            return self.new_pods(one_of(choose, self.templates), 4 + choose(8))
        if kind < 14:
            return self._pod_event(kind)
        if kind < 17:
            return self._node_event()
        return self._related_event()

    def new_pods(self, template: Template, count: int, **given: Any) -> list[Event]:
        events: list[Event] = []
        for _ in range(count):
            pod = template.pod(f"pod-{self.created}", **given)
            self.created += 1
            self.pods[pod.key] = pod
            events.append(PodSeen(pod))
        return events

    def _pod_event(self, kind: int) -> list[Event]:
        choose = self.choose
        if kind == 13 and self.nodes:
            name = one_of(choose, [*self.nodes, "elsewhere"])
            return self.new_pods(one_of(choose, self.templates), 1, node=name)
        key = one_of(choose, list(self.pods))
        pod = self.pods[key]
        match choose(8):
            case 0 | 1 | 2:
                del self.pods[key]
                return [PodLost(key)]
            case 3:
                changed = replaced(pod, deletion_timestamp="2026-01-01T00:00:00Z")
            case 4:
                changed = replaced(pod, labels={**(pod.metadata.labels or {}), "app": one_of(choose, APPS)})
            case 5:
                del self.pods[key]
                return [PodSeen(with_phase(pod, one_of(choose, ("Succeeded", "Failed"))))]
            case 6:
                # As the API server tells it: bound, or still waiting, and otherwise as it was.
                changed = replaced(pod, annotations={"seen": "again"})
            case _:
                changed = with_priority(pod, 10 * choose(4))
        self.pods[key] = changed
        return [PodSeen(changed)]

    def _node_event(self) -> list[Event]:
        choose = self.choose
        name = f"node-{choose(len(self.nodes) + 2)}"
        if name in self.nodes and one_in(choose, 3):
            del self.nodes[name]
            return [NodeLost(name)]
        self.nodes[name] = self.make_node(name)
        return [NodeSeen(self.nodes[name])]

    def make_node(self, name: str) -> Node:
        return random_node(self.choose, name)

    def _related_event(self) -> list[Event]:
        choose = self.choose
        match choose(5):
            case 0:
                return [ObjectSeen(make_namespace("team-b", labels=one_of(choose, ({"team": "a"}, {}, {"team": "b"}))))]
            case 1:
                return [ObjectSeen(make_service("service-0", selector={"app": one_of(choose, APPS)}))]
            case 2:
                return [ObjectLost("Service", "default/service-0")]
            case 3:
                return [ObjectSeen(make_replica_set("set-0", labels={"app": one_of(choose, APPS)}))]
            case _:
                return [ObjectLost("Namespace", one_of(choose, ("team-b", "team-a")))]


def random_world(choose: Choose, *, nodes: int, templates: int) -> World:
    """A world with so many nodes, no pods yet, and so many templates for those to come."""
    world = World(choose, [random_template(choose) for _ in range(templates)])
    world.nodes = {f"node-{index}": random_node(choose, f"node-{index}") for index in range(nodes)}
    world.related = random_related(choose)
    return world


def random_cluster(choose: Choose, *, nodes: int = 8, pods: int = 16, templates: int = 6, **given: Any) -> Cluster:
    """A cluster with some bound pods and some that wait, whatever any filter would have said to them."""
    world = random_world(choose, nodes=nodes, templates=templates)
    names = [*world.nodes]
    made = []
    for index in range(pods):
        name = one_of(choose, names) if names and not one_in(choose, 4) else ""
        terminating = one_in(choose, 12)
        made.append(one_of(choose, world.templates).pod(f"pod-{index}", node=name, terminating=terminating))
    return make_cluster(nodes=world.nodes.values(), pods=made, related=world.related, **given)


def replaced(pod: Pod, **metadata: Any) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, **metadata))


def with_node(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node), status=replace(pod.status, phase="Running"))


def with_phase(pod: Pod, phase: str) -> Pod:
    return replace(pod, status=replace(pod.status, phase=phase))


def with_priority(pod: Pod, priority: int) -> Pod:
    return replace(pod, spec=replace(pod.spec, priority=priority))
