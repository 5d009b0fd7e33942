"""Run a workload through the engine and measure it: from the queue to the decision, nothing else."""

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

from mooring.assembly import Assembly, assemble
from mooring.config.settings import Settings, parse_settings
from mooring.drivers.load.reading import to_reports
from mooring.engine.cycle import Scheduler
from mooring.errors import InvariantBroken
from mooring.model.events import NodeLoadSeen
from mooring.model.loading.manifests import Manifests, build_manifests
from mooring.model.queued.workloads import queued_workloads
from mooring.plugins.resources_compiled import load_if_worthwhile
from mooring.state.loading import imply_namespaces
from mooring.testing.bench_world import Arrival, World
from mooring.testing.measure_api import measure_api
from mooring.testing.measure_autoscaler import measure_autoscaler
from mooring.testing.measure_capacity import measure_capacity
from mooring.testing.measure_rebalance import measure_rebalance
from mooring.testing.measure_trials import measure_trials
from mooring.testing.measure_usage import measure_usage
from mooring.testing.tally import Measurement, Tally
from mooring.testing.verify import verify
from mooring.testing.verify_evictions import wrong_victims
from mooring.testing.verify_gangs import broken_gangs
from mooring.testing.verify_tenants import QuotaWatch
from mooring.testing.workloads import Coming, Workload, make_loads, make_nodes, make_objects, make_pods, make_running

SLICE = 5_000
"""Pods between two steps of the progress bar."""
MOST_CYCLES = 1_000_000
"""A workload that takes more does not come to an end."""

Report = Callable[[str, int, int], None]
"""(phase, done, of how many)"""


def measure(
    workload: Workload,
    nodes: int | None = None,
    pods: int | None = None,
    report: Report = lambda phase, done, total: None,
) -> Measurement:
    """Build the cluster, decide against the clock, check every decision and the final state.

    Sizes that are not given are the workload's own. Gangs are always complete, so there may be a few pods more.
    """
    nodes, pods = nodes or workload.sizes.nodes, pods or workload.sizes.pods
    if workload.decision == "binding":
        return measure_api(workload, nodes, pods, report)
    if workload.decision == "usage":
        return measure_usage(workload, nodes, pods)
    assembly = assemble(_settings(workload), source=workload.name)
    report("building", 0, 0)
    if workload.decision in ("scale-up", "scale-down"):
        coming = list(make_pods(workload.pods, pods)) if workload.decision == "scale-up" else []
        manifests = _manifests(workload, nodes, coming)
        gc.collect()
        return measure_autoscaler(workload, assembly, manifests, nodes)
    if workload.decision in ("provision", "consolidate"):
        coming = list(make_pods(workload.pods, pods)) if workload.decision == "provision" else []
        manifests = _manifests(workload, nodes, coming)
        gc.collect()
        return measure_capacity(workload, manifests, nodes)
    tally = Tally(workload)
    scheduler = assembly.new_scheduler(clock=time.perf_counter, on_batch=tally.note_batch)
    is_trial = workload.decision in ("offer", "amend")
    is_plan = workload.decision == "rebalance"
    coming = [] if is_trial or is_plan else list(make_pods(workload.pods, pods))
    arrivals = _load(workload, scheduler, nodes, coming)
    gc.collect()
    gc.freeze()
    if is_trial:
        return measure_trials(workload, scheduler.cluster, nodes, pods)
    if is_plan:
        return measure_rebalance(workload, scheduler, nodes)
    problems = _run(workload, scheduler, World(workload, scheduler, arrivals), tally, len(coming), report)
    gc.unfreeze()
    report("verifying", 0, 0)
    faults = [f"in the turn of {fault.turn}: {fault.message}" for fault in scheduler.take_faults()]
    _raise_first(workload, [*faults, *problems, *_verify_all(scheduler, assembly)])
    return tally.measurement(nodes, len(coming))


def _settings(workload: Workload) -> Settings:
    if workload.config is None:
        return Settings()
    documents: list[Any] = workload.config if isinstance(workload.config, list) else [workload.config]
    return parse_settings(documents, f"{workload.name}: config")


def _load(workload: Workload, scheduler: Scheduler, nodes: int, coming: Sequence[Coming]) -> list[Arrival]:
    """Let the scheduler see everything that is there from the start; the rest comes later."""
    manifests = _manifests(workload, nodes, coming)
    arrivals = _hold_back(
        manifests, {_key(found.document): found.seconds for found in coming if found.seconds is not None}
    )
    scheduler.load(manifests)
    scheduler.handle(*map(NodeLoadSeen, to_reports(make_loads(workload, nodes), f"{workload.name}: loads")))
    load_if_worthwhile(scheduler.cluster)
    return arrivals


def _manifests(workload: Workload, nodes: int, coming: Sequence[Coming]) -> Manifests:
    """Everything that a workload is made of."""
    node_documents = list(make_nodes(workload, nodes))
    names = [document["metadata"]["name"] for document in node_documents]
    running = make_running(workload.running, names, len(coming)) if workload.running else ()
    documents = [*node_documents, *make_objects(workload, len(node_documents), len(coming)), *running]
    documents += [found.document for found in coming]
    manifests = build_manifests(documents, source=workload.name)
    imply_namespaces(manifests)
    return manifests


def _hold_back(manifests: Manifests, late: dict[str, float]) -> list[Arrival]:
    """Take the pods that come later out of the manifests, with the workload that they are."""
    if not late:
        return []
    by_time = {seconds: Arrival(seconds) for seconds in late.values()}
    for workload in queued_workloads(manifests):
        times = [late[key] for keys in workload.pods.values() for key in keys if key in late]
        if times:
            by_time[max(times)].workloads.append(workload)
    for pod in manifests.pods:
        if pod.key in late:
            by_time[late[pod.key]].pods.append(pod)
    manifests.pods = [pod for pod in manifests.pods if pod.key not in late]
    return list(by_time.values())


def _key(document: dict[str, Any]) -> str:
    metadata = document["metadata"]
    return f"{metadata.get('namespace', 'default')}/{metadata['name']}"


def _run(workload: Workload, scheduler: Scheduler, world: World, tally: Tally, pods: int, report: Report) -> list[str]:
    """Cycle until every pod has had its decision and nothing more happens; what is wrong with the decisions."""
    problems: list[str] = []
    quotas = QuotaWatch(scheduler.cluster)
    size = workload.churn.every if workload.churn else SLICE
    for _ in range(MOST_CYCLES):
        report("placing", tally.progress, pods)
        came = world.advance()
        started, began = time.perf_counter(), time.process_time()
        decisions = scheduler.cycle(now=world.now, at_most=size)
        seconds = time.perf_counter() - started
        tally.cpu_seconds += time.process_time() - began
        tally.note_cycle(scheduler.cluster, decisions, came, seconds)
        tally.note_memory(pods)
        problems += wrong_victims(scheduler.cluster, decisions)
        problems += quotas.note(decisions)
        # What happens in between is part of the workload: the answers it costs are missed by the next decisions.
        world.carry_out(decisions)
        has_untried = len(scheduler.queue) and len(tally.decided) < pods
        if len(tally.placed) == pods or not (has_untried or world.has_more):
            return problems
    raise InvariantBroken(f"workload {workload.name}: no end after {MOST_CYCLES:,} cycles")


def _verify_all(scheduler: Scheduler, assembly: Assembly) -> list[str]:
    return [*verify(scheduler.cluster, assembly.profiles), *broken_gangs(scheduler.cluster)]


def _raise_first(workload: Workload, problems: Sequence[str]) -> None:
    if problems:
        raise InvariantBroken(f"workload {workload.name}: {problems[0]} (and {len(problems) - 1} more)")
