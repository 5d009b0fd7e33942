"""One run of the experiment of "Beware of Fragmentation" (USENIX ATC '23): a policy, and pods in the order of a seed.

Pods come one after the other until the GPUs that were asked for reach 130 % of those that there are; nobody leaves, and
who finds no place is not tried again. What counts is how much of the GPUs is given out by then.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec

from mooring.assembly import Assembly, assemble
from mooring.config.scheduler import parse_config
from mooring.drivers.sim.arrival import Arrival
from mooring.drivers.sim.traces.alibaba_gpu_2023 import NODE_COLUMNS, POD_COLUMNS, in_order, to_node
from mooring.drivers.sim.traces.tables import Row, open_text, read_table
from mooring.engine.cycle import Scheduler
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind
from mooring.model.devices.cards import WHOLE
from mooring.model.events import NodeSeen, PodSeen
from mooring.model.loading.manifests import build_manifests, collector_paused
from mooring.plugins.gpu_fragmentation import TYPICAL_SHARE, TypicalPod, typical_pods
from mooring.testing.builders import make_config, make_profile

LOAD = 1.3
"""GPUs asked for in the end, of those that there are."""
POLICIES = (
    "GpuLookahead",
    "GpuFragmentation",
    "BestFit",
    "GpuPacking",
    "GpuClustering",
    "DotProduct",
    "RandomFit",
    "FirstFit",
    "WorstFit",
)
TOLD_TYPICAL_PODS: Mapping[str, float] = {"GpuFragmentation": TYPICAL_SHARE, "GpuLookahead": 1.0}
"""The policies that are told which pods are typical, and how much of all pods these are."""
Curve = Mapping[int, float]
"""By how much has been asked for, in % of all GPUs: how much is given out, in %."""


@dataclass(frozen=True)
class Trace:
    """The files of one of the paper's traces; all have the same nodes."""

    folder: Path
    name: str = "default"

    def pods(self) -> dict[str, Row]:
        path = self.folder / f"openb_pod_list_{self.name}.csv"
        return {row.name("name"): row for row in read_table(path, POD_COLUMNS)}

    def nodes(self) -> dict[str, Row]:
        path = self.folder / "openb_node_list_gpu_node.csv"
        return {row.name("sn"): row for row in read_table(path, NODE_COLUMNS)}

    def order_file(self, seed: int, of: str) -> Path:
        """Where the order is that the paper's simulator makes of a seed, `of` pods or nodes."""
        return self.folder / "orders" / f"openb_pod_list_{self.name}_seed{seed}_{of}.txt.gz"


def run(trace: Trace, policy: str, seed: int) -> Curve:
    """What a policy comes to: published figures are means over what had been given out as each pod came."""
    pods, nodes = trace.pods(), trace.nodes()
    pod_names, node_names = orders(trace, seed, pods, nodes)
    cluster = build_manifests([to_node(nodes[name]) for name in node_names], source=trace.name).nodes
    made = build_manifests([as_manifest(arrival) for arrival in in_order(pods, pod_names)], source=trace.name).pods
    typical = typical_pods(map(typical_pod, pods.values()), TOLD_TYPICAL_PODS.get(policy, TYPICAL_SHARE))
    with collector_paused():  # who comes stays, and so does all that is known of it
        bound = place_all(policy_assembly(policy, typical), cluster, made)
    asked = [gpu_milli(pods[name]) for name in pod_names]
    given = [milli if pod.key in bound else 0 for pod, milli in zip(made, asked, strict=True)]
    return curve(asked, given, WHOLE * sum(row.count("gpu") for row in nodes.values()))


def place_all(assembly: Assembly, nodes: Iterable[Node], pods: Iterable[Pod]) -> set[str]:
    """Who finds a place, in the order in which they come; ties go to the first node.

    All come in one cycle, which is as good as one each: who is refused cannot be helped by those behind it.
    """
    return filled(assembly, nodes, pods)[1]


def filled(assembly: Assembly, nodes: Iterable[Node], pods: Iterable[Pod]) -> tuple[Scheduler, set[str]]:
    """The same, with the scheduler as it is then."""
    scheduler = assembly.new_scheduler(seed=None)
    scheduler.handle(*map(NodeSeen, nodes), *map(PodSeen, pods))
    decisions = scheduler.cycle(0.0)
    for fault in scheduler.take_faults():
        raise fault.error  # whose turn it was has not been refused a place
    return scheduler, {decision.pod for decision in decisions if isinstance(decision, Bind)}


def curve(asked: Sequence[int], given: Sequence[int], capacity: int) -> Curve:
    """As the paper's analysis has it: by whole % that had been asked for, the mean over the pods that came then."""
    found = defaultdict[int, list[float]](list)
    so_far = taken = 0
    for milli, got in zip(asked, given, strict=True):
        so_far += milli
        taken += got
        found[round(100 * so_far / capacity)].append(round(100 * taken / capacity, 2))
    return {load: mean(shares) for load, shares in found.items()}


def orders(trace: Trace, seed: int, pods: Mapping[str, Row], nodes: Mapping[str, Row]) -> tuple[list[str], list[str]]:
    """The pods and the nodes in the order of a seed: the paper's own where the files of it are there, else like it."""
    files = trace.order_file(seed, "pods"), trace.order_file(seed, "nodes")
    if all(file.exists() for file in files):
        return _lines(files[0]), _lines(files[1])
    return shuffled(pods, nodes, seed)


def shuffled(pods: Mapping[str, Row], nodes: Mapping[str, Row], seed: int) -> tuple[list[str], list[str]]:
    """All pods in any order, then pods drawn again until enough is asked for, or left out if it is too much."""
    generator = random.Random(seed)
    names, drawn, node_names = list(pods), list(pods), list(nodes)
    most = LOAD * WHOLE * sum(row.count("gpu") for row in nodes.values())
    asked = sum(gpu_milli(row) for row in pods.values())
    generator.shuffle(drawn)
    while asked > most:
        asked -= gpu_milli(pods[drawn.pop(generator.randrange(len(drawn)))])
    while asked < most:
        name = generator.choice(names)
        asked += gpu_milli(pods[name])
        drawn.append(name)
    generator.shuffle(node_names)
    return drawn, node_names


def gpu_milli(row: Row) -> int:
    return row.count("num_gpu") * row.count("gpu_milli")


def _lines(path: Path) -> list[str]:
    with open_text(path) as file:
        return file.read().split()


def policy_assembly(policy: str, typical: Iterable[TypicalPod]) -> Assembly:
    """A profile in which this policy alone chooses, among nodes that fit."""
    args = {policy: {"typicalPods": msgspec.to_builtins(list(typical))}} if policy in TOLD_TYPICAL_PODS else None
    profile = make_profile("NodeResourcesFit", "GpuSharing", policy, args=args)
    profile["plugins"]["score"] = {"disabled": [{"name": "NodeResourcesFit"}, {"name": "GpuSharing"}]}
    return assemble(parse_config(make_config(profile), policy))


def typical_pod(row: Row) -> TypicalPod:
    return TypicalPod(
        cpu_milli=row.count("cpu_milli"),
        gpu_milli=row.count("gpu_milli"),
        gpu_count=row.count("num_gpu"),
        gpu_models=tuple(row.text("gpu_spec").split("|")) if row.text("gpu_spec") else (),
    )


def as_manifest(arrival: Arrival) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": arrival.name, "annotations": dict(arrival.annotations)},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": {"requests": dict(arrival.requests)}}]},
    }
