"""The result of `mooring schedule` for people: a line a workload, a line a pool, a line a reason to wait."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mooring.cli.schedule.device_map import print_device_maps
from mooring.cli.schedule.gpu_map import print_gpu_maps
from mooring.cli.tables import count, make_table, natural_width, pool_policy, print_admissions, print_table
from mooring.model.values.requests import CPU, MEMORY
from mooring.report.names import group_name
from mooring.report.placements import DEFERRED, DONE, INFEASIBLE, Ended, Evicted, Lost, Placement, Resized
from mooring.report.pools import NO_POOL, Pool, Usage
from mooring.report.schedule import Result
from mooring.report.waiting import Forbidden, NotOurs, Waiting

MOST_GROUPS = 40
"""Workloads that a table lists before it refers to --wide."""
MOST_NAMED = 8
"""Workloads named under one reason to wait."""
MOST_POOLS = 3
BAR_CELLS = 10


def print_result(console: Console, result: Result, *, wide: bool, with_time: bool = False) -> None:
    console.print(_summary(result), soft_wrap=True)
    if result.placements:
        console.print()
        if wide:
            _print_pods(console, result.placements)
        else:
            _print_workloads(console, result)
    if result.pools:
        console.print()
        print_table(console, _pool_table(console, result.pools))
    print_device_maps(console, result.devices, wide=wide)
    print_gpu_maps(console, result.gpus, wide=wide)
    print_admissions(console, result.admitted, result.suspended, result.notices)
    _print_evicted(console, result.evicted)
    _print_waiting(console, "LOST", [_as_reason(pod) for pod in result.lost], wide=wide)
    _print_waiting(console, "ENDED", [_as_ended(pod, with_time=with_time) for pod in result.ended], wide=wide)
    _print_waiting(console, "RESIZED", [_as_resized(pod) for pod in result.resized], wide=wide)
    _print_waiting(console, "WAITING", result.waiting, wide=wide)
    _print_forbidden(console, result.forbidden, wide=wide)
    _print_waiting(console, "GATED", result.gated, wide=wide)
    _print_waiting(console, "NOT OURS", [_as_waiting(pod) for pod in result.not_ours], wide=wide)


def _summary(result: Result) -> Text:
    found = result.summary
    if found.placed:
        text = Text(f"{count(found.placed, 'pod')} placed on {count(found.nodes_used, 'node')}", style="bold green")
    else:
        text = Text("no pods placed", style="bold")
    waits = f"{found.waiting:,} {'waits' if found.waiting == 1 else 'wait'}"
    text.append(", ", style="default not bold").append(waits, style="bold yellow" if found.waiting else "bold green")
    rest = [
        (found.forbidden, "forbidden"),
        (found.waiting_for_quota, "waits for quota" if found.waiting_for_quota == 1 else "wait for quota"),
        (found.gated - found.waiting_for_quota, "behind a gate"),
        (found.not_ours, "not ours"),
        (found.already_bound, "bound before"),
        (found.leaving, "being deleted"),
        (found.evicted, "evicted"),
        (found.lost, "lost"),
        (found.ended, "ended"),
        (found.admitted, "workloads admitted" if found.admitted > 1 else "workload admitted"),
        (found.suspended, "suspended"),
    ]
    for number, words in rest:
        if number:
            text.append(f", {number:,} {words}", style="default not bold")
    return text.append(f"; {count(found.nodes, 'node')} in all", style="dim not bold")


# What was placed.


@dataclass
class Group:
    pods: int = 0
    first: str = ""
    nodes: set[str] = field(default_factory=set)
    pools: set[str] = field(default_factory=set)
    priority: int = 0


def _print_workloads(console: Console, result: Result) -> None:
    groups: dict[tuple[str, str], Group] = {}
    for placement in result.placements:
        key = (placement.namespace, group_name(placement.pod, placement.owner))
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(first=placement.pod, priority=placement.priority)
        group.pods += 1
        group.nodes.add(placement.node)
        group.pools.add(placement.pool or NO_POOL)
    has_pools = any(pool.name != NO_POOL for pool in result.pools)
    table = make_table("NAMESPACE", "WORKLOAD", ">PRIORITY", "PLACED", *(("POOLS",) if has_pools else ()))
    ordered = sorted(groups.items(), key=lambda item: (-item[1].priority, item[0]))
    for (namespace, name), group in ordered[:MOST_GROUPS]:
        shown = f"Pod/{group.first}" if group.pods == 1 and name.startswith("Pod/") else name
        pools = (_pools_of(group),) if has_pools else ()
        table.add_row(namespace, shown, f"{group.priority}", _placed(group), *pools)
    print_table(console, table)
    if len(ordered) > MOST_GROUPS:
        more = len(ordered) - MOST_GROUPS
        console.print(f"... and {count(more, 'more workload')}; --wide or -o json lists every pod", style="dim")


def _placed(group: Group) -> str:
    if len(group.nodes) == 1 and group.pods == 1:
        return f"on {next(iter(group.nodes))}"
    return f"{count(group.pods, 'pod')} on {count(len(group.nodes), 'node')}"


def _pools_of(group: Group) -> str:
    names = sorted(group.pools)
    return ", ".join(names) if len(names) <= MOST_POOLS else f"{len(names)} pools"


def _print_pods(console: Console, placements: Sequence[Placement]) -> None:
    """Every pod, as plain lines: a hundred thousand of them must not take long."""
    namespace_width = max(9, *(len(placement.namespace) for placement in placements)) + 2
    pod_width = max(3, *(len(placement.pod) for placement in placements)) + 2
    console.print(f"{'NAMESPACE':{namespace_width}}{'POD':{pod_width}}NODE", style="bold", soft_wrap=True)
    console.file.write(
        "".join(
            f"{placement.namespace:{namespace_width}}{placement.pod:{pod_width}}{placement.node}\n"
            for placement in placements
        )
    )


# How full the pools are.


def _pool_table(console: Console, pools: Sequence[Pool]) -> Table:
    """A column a resource; where these are too many for the width, a line a resource."""
    resources = list(dict.fromkeys((CPU, MEMORY, *(name for pool in pools for name in pool.resources))))
    extended = [name for name in resources if name not in (CPU, MEMORY)]
    has_policies = any(pool.policy for pool in pools)
    about = ("POOL", *(("POLICY",) if has_policies else ()), ">NODES", ">PODS")
    table = make_table(*about, "CPU", "MEMORY", *extended)
    for pool in pools:
        table.add_row(*_about(pool, pools, has_policies), *(_cell(pool, name) for name in resources))
    if natural_width(console, table) <= console.width:
        return table
    table = make_table(*about, "RESOURCE", "REQUESTED")
    for pool in pools:
        first = _about(pool, pools, has_policies)
        for name in resources:
            if name in pool.resources:
                table.add_row(*first, name, _cell(pool, name))
                first = [""] * len(first)
    return table


def _about(pool: Pool, pools: Sequence[Pool], has_policies: bool) -> list[str]:
    """What is said of a pool before its resources."""
    policy = [pool_policy(pool.policy, pool.reserved_percent, moves_back=pool.moves_back)] if has_policies else []
    return [_pool_name(pool, pools), *policy, f"{pool.nodes:,}", f"{pool.pods:,}"]


def _pool_name(pool: Pool, pools: Sequence[Pool]) -> str:
    return "(all nodes)" if pool.name == NO_POOL and len(pools) == 1 else pool.name


def _cell(pool: Pool, resource: str) -> Text:
    usage = pool.resources.get(resource)
    return Text("") if usage is None else _share(usage, counted=resource not in (CPU, MEMORY))


def _share(usage: Usage, *, counted: bool = False) -> Text:
    full = min(BAR_CELLS, round(usage.percent * BAR_CELLS / 100))
    style = "red" if usage.percent > 95 else "yellow" if usage.percent > 80 else "green"
    text = Text("█" * full, style=style).append("░" * (BAR_CELLS - full), style="dim")
    words = f"{usage.requested:,.0f}/{usage.allocatable:,.0f}" if counted else f"{usage.percent:3.0f}%"
    return text.append(f" {words}", style="default")


# What has to go.


def _print_evicted(console: Console, evicted: Sequence[Evicted]) -> None:
    """Pods that ran, each with the pod for which it has to go."""
    if not evicted:
        return
    console.print()
    console.print("EVICTED", style="bold")
    table = make_table("NAMESPACE", "POD", ">PRIORITY", "FROM", "=FOR", ">PRIORITY")
    for pod in evicted:
        asker = (_asker(pod), f"{pod.preemptor_priority}") if pod.preemptor else (pod.reason, "")
        table.add_row(pod.namespace, pod.pod, f"{pod.priority}", pod.node, *asker)
    print_table(console, table)


def _asker(pod: Evicted) -> str:
    if not pod.preemptor_owner:
        return pod.preemptor
    return f"{pod.preemptor.partition('/')[0]} {pod.preemptor_owner}"


def _as_reason(lost: Lost) -> Waiting:
    then = ", back in the queue" if lost.comes_back else " for good: no controller makes another"
    how = f"driven off node {lost.node} by its taint {lost.taint}" if lost.taint else f"lost with node {lost.node}"
    return Waiting(lost.pod, lost.namespace, f"{how}{then}", (), 0, lost.owner)


def _as_ended(pod: Ended, *, with_time: bool) -> Waiting:
    what = "its duration is" if pod.phase == "Succeeded" else "its activeDeadlineSeconds are"
    when = f" at {pod.at}" if with_time else ""
    return Waiting(pod.pod, pod.namespace, f"{pod.phase}{when}: {what} over", (), 0, pod.owner)


def _as_resized(pod: Resized) -> Waiting:
    how = {
        DONE: f"resized on node {pod.node}",
        DEFERRED: f"resize deferred: node {pod.node} has no room for it now",
        INFEASIBLE: f"resize infeasible: node {pod.node} is too small for it, and the pod runs on with what it has",
    }
    return Waiting(pod.pod, pod.namespace, how[pod.outcome], (), 0, pod.owner)


# What waits.


def _as_waiting(pod: NotOurs) -> Waiting:
    name = pod.scheduler_name
    message = f'schedulerName is "{name}", which no profile here has; --as {name} takes them on'
    return Waiting(pod.pod, pod.namespace, message, (), 0, pod.owner)


def _print_waiting(console: Console, title: str, waiting: Sequence[Waiting], *, wide: bool) -> None:
    """Pods grouped by identical reason, the reason of most pods first; long reasons are not broken up."""
    if not waiting:
        return
    by_reason: dict[str, list[Waiting]] = {}
    for pod in waiting:
        by_reason.setdefault(pod.message, []).append(pod)
    console.print()
    console.print(title, style="bold")
    for message, pods in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        _print_reason(console, count(len(pods), "pod"), message)
        if wide:
            console.file.write("".join(f"    {pod.namespace}/{pod.pod}\n" for pod in pods))
        else:
            console.print(Text(f"    {_named(pods)}", style="dim"), soft_wrap=True)


def _print_reason(console: Console, who: str, message: str) -> None:
    line = Text(who, style="bold yellow").append(f": {message}", style="default not bold")
    console.print(line, soft_wrap=True)


def _print_forbidden(console: Console, forbidden: Sequence[Forbidden], *, wide: bool) -> None:
    """What is not created, by kind and identical reason, and how much of its workload that is."""
    if not forbidden:
        return
    by_reason: dict[tuple[str, str], list[Forbidden]] = {}
    for found in forbidden:
        by_reason.setdefault((found.kind, found.reason), []).append(found)
    console.print()
    console.print("FORBIDDEN", style="bold")
    for (kind, reason), alike in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        _print_reason(console, count(len(alike), "pod" if kind == "Pod" else kind), reason)
        if wide:
            console.file.write("".join(f"    {found.namespace}/{found.name}\n" for found in alike))
            continue
        totals = {(found.namespace, found.owner): found.workload_pods for found in alike if found.workload_pods}
        as_pods = [Waiting(found.name, found.namespace, reason, (), 0, found.owner) for found in alike]
        named = _named(as_pods, totals) if kind == "Pod" else _listed(alike)
        console.print(Text(f"    {named}", style="dim"), soft_wrap=True)


def _listed(found: Sequence[Forbidden]) -> str:
    words = [f"{one.namespace}/{one.name}" for one in found[:MOST_NAMED]]
    if len(found) > MOST_NAMED:
        words.append(f"and {len(found) - MOST_NAMED:,} more")
    return ", ".join(words)


def _named(pods: Iterable[Waiting], totals: Mapping[tuple[str, str], int] | None = None) -> str:
    """Workloads by name, each with how many of its pods are meant; with totals, of how many."""
    groups: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for pod in pods:
        key = (pod.namespace, group_name(pod.pod, pod.owner))
        groups[key] += 1
        first.setdefault(key, pod.pod)
    words = []
    for (namespace, name), number in list(groups.items())[:MOST_NAMED]:
        alone = number == 1 and name.startswith("Pod/")
        total = (totals or {}).get((namespace, name))
        shown = f"{number:,} of {total:,}" if total else f"{number:,}"
        words.append(f"{namespace}/{first[namespace, name]}" if alone else f"{namespace} {name} ({shown})")
    if len(groups) > MOST_NAMED:
        words.append(f"and {count(len(groups) - MOST_NAMED, 'more workload')}")
    return ", ".join(words)
