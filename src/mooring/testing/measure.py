"""Run a workload through the engine and measure it: from the queue to the decision, nothing else."""

import gc
import resource
import sys
import time
from collections.abc import Callable, Iterator

import msgspec

from mooring.assembly import assemble
from mooring.config.scheduler import parse_config
from mooring.engine.cycle import Scheduler
from mooring.errors import InvariantBroken
from mooring.model.decisions import Bind, Evict, Wait
from mooring.model.events import Event, NodeSeen, PodLost
from mooring.model.manifests import build_manifests
from mooring.model.nodes import Node
from mooring.state.loading import imply_namespaces
from mooring.testing.verify import verify
from mooring.testing.workloads import Workload, make_nodes, make_pods

SLICE = 5_000
"""Pods between two steps of the progress bar."""


class Measurement(msgspec.Struct, kw_only=True):
    workload: str
    nodes: int
    pods: int
    pods_per_second: float
    p50_us: float
    """Half of the decisions took at most so long; a batch's time is shared by its pods."""
    p99_us: float
    peak_rss_mib: int
    placed: int
    waiting: int


Report = Callable[[str, int, int], None]
"""(phase, done, of how many)"""


def measure(workload: Workload, nodes: int, pods: int, report: Report = lambda phase, done, total: None) -> Measurement:
    """Build the cluster, place the pods against the clock, check the result."""
    assembly = assemble(parse_config(workload.config, workload.name) if workload.config else None)
    report("building", 0, 0)
    durations: list[tuple[int, float]] = []
    scheduler = assembly.new_scheduler(
        clock=time.perf_counter, on_batch=lambda count, seconds: durations.append((count, seconds))
    )
    _load(workload, scheduler, nodes, pods)
    gc.collect()
    gc.freeze()
    placed, seconds = _run(workload, scheduler, pods, report)
    gc.unfreeze()
    report("verifying", 0, 0)
    problems = verify(scheduler.cluster, assembly.profiles)
    if problems:
        raise InvariantBroken(f"workload {workload.name}: {problems[0]} (and {len(problems) - 1} more)")
    return Measurement(
        workload=workload.name,
        nodes=nodes,
        pods=pods,
        pods_per_second=round(pods / seconds, 1),
        p50_us=round(_percentile(durations, 0.50), 1),
        p99_us=round(_percentile(durations, 0.99), 1),
        peak_rss_mib=_peak_rss_mib(),
        placed=placed,
        waiting=pods - placed,
    )


def _load(workload: Workload, scheduler: Scheduler, nodes: int, pods: int) -> None:
    running = workload.running
    before = make_pods(running.pods, int(pods * running.share)) if running else ()
    documents = [*make_nodes(workload, nodes), *workload.objects, *before, *make_pods(workload.pods, pods)]
    manifests = build_manifests(documents, source=workload.name)
    imply_namespaces(manifests)
    scheduler.load(manifests)


def _run(workload: Workload, scheduler: Scheduler, pods: int, report: Report) -> tuple[int, float]:
    """(pods placed, seconds of deciding), until every pod has had its decision."""
    placed, seconds = 0, 0.0
    decided = set[str]()
    disturb = _disturbances(workload, scheduler)
    size = workload.churn.every if workload.churn else SLICE
    bound: list[str] = []
    while len(scheduler.queue) and len(decided) < pods:
        report("placing", len(decided), pods)
        started = time.perf_counter()
        decisions = scheduler.cycle(now=0.0, at_most=size)
        seconds += time.perf_counter() - started
        decided.update(decision.pod for decision in decisions if isinstance(decision, Bind | Wait | Evict))
        bound += [decision.pod for decision in decisions if isinstance(decision, Bind)]
        placed += sum(isinstance(decision, Bind) for decision in decisions)
        # What happens in between is part of the work: the answers it costs are missed by the next decisions.
        scheduler.handle(*disturb(bound))
    return placed, seconds


def _disturbances(workload: Workload, scheduler: Scheduler) -> Callable[[list[str]], Iterator[Event]]:
    """What happens between two slices: pods end, nodes get other labels; always the same ones."""
    turns = iter(range(sys.maxsize))

    def disturb(bound: list[str]) -> Iterator[Event]:
        churn = workload.churn
        if churn is None:
            return
        turn = next(turns)
        for i in range(min(churn.delete_pods, len(bound))):
            yield PodLost(bound.pop((turn * 7919 + i * 104729) % len(bound)))
        rows = scheduler.cluster.nodes.live_rows()
        for i in range(churn.relabel_nodes):
            node = scheduler.cluster.nodes.node(int(rows[(turn * 31 + i) % len(rows)]))
            yield NodeSeen(_relabelled(node, turn))

    return disturb


def _relabelled(node: Node, turn: int) -> Node:
    labels = {**(node.metadata.labels or {}), "bench.mooring.dev/turn": str(turn)}
    metadata = msgspec.structs.replace(node.metadata, labels=labels)
    return msgspec.structs.replace(node, metadata=metadata)


def _percentile(durations: list[tuple[int, float]], share: float) -> float:
    """Microseconds a pod, over all pods."""
    each = sorted((seconds / count, count) for count, seconds in durations if count)
    wanted = share * sum(count for _, count in each)
    reached = 0
    for per_pod, count in each:
        reached += count
        if reached >= wanted:
            return per_pod * 1e6
    return 0.0


def _peak_rss_mib() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak // (1024 * 1024 if sys.platform == "darwin" else 1024))
