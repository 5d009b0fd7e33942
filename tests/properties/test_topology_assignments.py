"""What holds for topology-aware admission whatever the nodes, queues and workloads: drawn worlds, drawn completions."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.quota.structure import Structure
from mooring.actions.admit.quota.topology_needs import held_use
from mooring.actions.admit.quota.workload_info import AdmittedWorkload, PodSetRequest
from mooring.actions.admit.topology.survey import TopologySurvey
from mooring.actions.admit.topology.usage import DomainKey, DomainUsage
from mooring.model.api.kueue import (
    ANY,
    LOWER_PRIORITY,
    NEVER,
    PodSet,
    ResourceFlavor,
    ResourceFlavorSpec,
    Topology,
    TopologyLevel,
    TopologyRequest,
    TopologySpec,
    Workload,
)
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Node
from mooring.model.decisions import PodSetFlavors
from mooring.model.events import NodeSeen, ObjectSeen, PodSeen
from mooring.state.cluster import Cluster
from mooring.state.undo import UndoLog
from mooring.testing.builders import make_node, make_pod
from mooring.testing.queueing_builders import (
    make_group,
    make_local_queue,
    make_pod_set,
    make_queue,
    make_quota,
    make_workload,
)

BLOCK, RACK, HOST = LEVELS = ("block", "rack", "kubernetes.io/hostname")
MOST_CYCLES = 6


@dataclass
class World:
    """Nodes, what runs on them already, queues and workloads, and who finishes after each cycle."""

    nodes: list[Node]
    busy: dict[str, int]
    """By node, what a pod uses there that was assigned nothing."""
    workloads: list[Workload]
    flavors: tuple[str, ...]
    reclaim: str
    balanced: bool
    finishing: list[int]

    def admission(self) -> Admission:
        group = make_group(**{name: make_quota(30) for name in self.flavors})
        queues = [
            make_queue(name, group, cohort="all", within_queue=LOWER_PRIORITY, reclaim=self.reclaim)
            for name in ("one", "two")
        ]
        flavors = [
            ResourceFlavor(metadata=ObjectMeta(name=name), spec=ResourceFlavorSpec(topology_name="dc"))
            for name in self.flavors
        ]
        admission = Admission(
            Structure(queues, (), flavors, log=UndoLog()),
            local_queues=[make_local_queue("one"), make_local_queue("two")],
            balances_placement=self.balanced,
        )
        cluster = Cluster()
        levels = [TopologyLevel(node_label=level) for level in LEVELS]
        cluster.observe(ObjectSeen(Topology(metadata=ObjectMeta(name="dc"), spec=TopologySpec(levels=levels))))
        cluster.observe(*(NodeSeen(node) for node in self.nodes))
        for name, cpu in self.busy.items():
            cluster.observe(PodSeen(make_pod(f"busy-{name}", resources={"cpu": cpu}, node=name)))
        TopologySurvey(cluster, admission.structure.flavors, admission.topology, lambda _: False).look()
        for workload in self.workloads:
            admission.add(workload)
        return admission

    def play(self, admission: Admission) -> Iterator[None]:
        for number in range(MOST_CYCLES):
            report = admission.run_cycle(1_000_000.0 + number)
            yield
            admission.finish_evictions([found.workload for found in report.preempted])
            holding = sorted(found.pending.key for found in admission.ledger.admitted_workloads())
            if holding and number < len(self.finishing):
                admission.finish([holding[self.finishing[number] % len(holding)]])


@st.composite
def requests(draw: st.DrawFn) -> TopologyRequest | None:
    level = draw(st.sampled_from(LEVELS))
    kind = draw(st.sampled_from(("required", "preferred", "unconstrained", "slices", "none")))
    if kind == "none":
        return None
    found = TopologyRequest()
    if kind == "unconstrained":
        found.unconstrained = True
    elif kind != "slices":
        setattr(found, kind, level)
    if kind == "slices" or draw(st.booleans()):
        finer = LEVELS[LEVELS.index(level) if kind in ("required", "preferred") else 0 :]
        found.pod_set_slice_required_topology = draw(st.sampled_from(finer))
        found.pod_set_slice_size = draw(st.integers(1, 3))
    return found


@st.composite
def pod_sets(draw: st.DrawFn) -> list[PodSet]:
    count = draw(st.integers(1, 9))
    request = draw(requests())
    workers = make_pod_set("workers", count=count, requests={"cpu": draw(st.integers(1, 3))})
    workers.topology_request = request
    if request is None or not (request.required or request.preferred) or draw(st.booleans()):
        return [workers]
    request.pod_set_slice_required_topology = request.pod_set_slice_size = None
    request.pod_set_group_name = "group"
    leader = make_pod_set("leader", requests={"cpu": draw(st.integers(1, 2))})
    leader.topology_request = request
    return [leader, workers] if draw(st.booleans()) else [workers, leader]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes = [
        make_node(
            f"n{index}",
            labels={BLOCK: draw(st.sampled_from("xy")), RACK: draw(st.sampled_from("abc")), HOST: f"n{index}"},
            cpu=draw(st.integers(0, 6)),
            pods=draw(st.integers(1, 6)),
        )
        for index in range(draw(st.integers(1, 8)))
    ]
    names = [node.name for node in nodes]
    busy = draw(st.dictionaries(st.sampled_from(names), st.integers(1, 3), max_size=3))
    workloads = [
        make_workload(
            f"w{index}",
            *draw(pod_sets()),
            queue=draw(st.sampled_from(("one", "two"))),
            priority=draw(st.integers(0, 2)),
            second=index,
        )
        for index in range(draw(st.integers(1, 6)))
    ]
    return World(
        nodes=nodes,
        busy=busy,
        workloads=workloads,
        flavors=draw(st.sampled_from((("tas",), ("tas", "again")))),
        reclaim=draw(st.sampled_from((NEVER, ANY))),
        balanced=draw(st.booleans()),
        finishing=draw(st.lists(st.integers(0, 5), max_size=MOST_CYCLES)),
    )


def assigned_sets(admission: Admission) -> Iterator[tuple[PodSetRequest, PodSetFlavors]]:
    for admitted in admission.ledger.admitted_workloads():
        requested = {found.name: found for found in admitted.pending.pod_sets}
        for given_set in admitted.pod_sets:
            yield requested[given_set.name], given_set


@given(worlds())
def test_no_domain_is_given_more_pods_than_it_has_room_for(world: World) -> None:
    admission = world.admission()

    for _ in world.play(admission):
        used: Counter[tuple[str, str]] = Counter()
        for request, given_set in assigned_sets(admission):
            assert given_set.topology is not None
            for domain in given_set.topology.domains:
                used[domain.values[0], "cpu"] += request.per_pod["cpu"] * domain.count
                used[domain.values[0], "pods"] += domain.count
        for node in world.nodes:
            allocatable = node.status.allocatable or {}
            busy = world.busy.get(node.name, 0)
            assert used[node.name, "cpu"] <= max(0, int(allocatable["cpu"]) - busy) * 1000
            assert used[node.name, "pods"] <= max(0, int(allocatable["pods"]) - bool(busy))


@given(worlds())
def test_every_pod_of_whole_slices_is_assigned_where_its_request_allows(world: World) -> None:
    admission = world.admission()
    labels = {node.name: node.metadata.labels or {} for node in world.nodes}

    def domains(given_set: PodSetFlavors, level: str) -> Counter[tuple[str, ...]]:
        """By domain of a level, how many pods."""
        assert given_set.topology is not None
        found: Counter[tuple[str, ...]] = Counter()
        for domain in given_set.topology.domains:
            path = LEVELS[: LEVELS.index(level) + 1]
            found[tuple(labels[domain.values[0]][key] for key in path)] += domain.count
        return found

    for _ in world.play(admission):
        for request, given_set in assigned_sets(admission):
            topology, size = request.topology, request.topology.slice_size
            assert sum(domains(given_set, HOST).values()) == given_set.count // size * size
            if topology.required:
                assert len(domains(given_set, topology.required)) <= 1
            for layer in topology.layers:
                assert all(count % layer.size == 0 for count in domains(given_set, layer.level).values())


@given(worlds())
def test_what_is_tried_and_undone_leaves_nothing_behind(world: World) -> None:
    admission = world.admission()

    for _ in world.play(admission):
        assert admission.topology.usage.totals() == counted_anew(admission)
    admission.finish([found.pending.key for found in list(admission.ledger.admitted_workloads())])
    assert admission.topology.usage.totals() == {}


def counted_anew(admission: Admission) -> dict[tuple[DomainKey, str], int]:
    usage = DomainUsage(UndoLog())
    held: list[AdmittedWorkload] = list(admission.ledger.admitted_workloads())
    for found in held:
        flavors = admission.structure.topology_flavors
        usage.add(held_use(usage, flavors, found.pending.pod_sets, found.claims))
    return usage.totals()
