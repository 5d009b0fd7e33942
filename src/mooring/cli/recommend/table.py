"""Recommendations as tables: a heading an autoscaler, a row a container and resource, then a row a pod."""

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from mooring.cli.tables import count, make_table, print_table
from mooring.report.recommendations import AutoscalerAdvice, ContainerAdvice, ContainerChange, Recommendations

MOST_PODS = 20
"""Pods of an autoscaler that the table lists before it refers to json."""
MEBIBYTE = 1 << 20


def print_recommendations(console: Console, result: Recommendations) -> None:
    if not result.autoscalers and not result.gpus:
        console.print("there is no VerticalPodAutoscaler (autoscaling.k8s.io/v1)")
    for number, found in enumerate(result.autoscalers):
        if number:
            console.print()
        _print_autoscaler(console, found)
    if result.gpus:
        if result.autoscalers:
            console.print()
        _print_gpus(console, result)


def _print_gpus(console: Console, result: Recommendations) -> None:
    saved = sum(found.saving for found in result.gpus)
    heading = f"{count(len(result.gpus), 'GPU')} of pods measured, of which {saved:.1f} could be given to others"
    console.print(Text(heading, style="bold"), soft_wrap=True)
    console.print()
    table = make_table("POD", "GPU", "CHANGE", "NEEDS", ">SAVES", "WHY")
    for found in result.gpus:
        table.add_row(found.pod, found.gpu, found.change, found.resource, f"{found.saving:.0%}", found.why)
    print_table(console, table)


def _print_autoscaler(console: Console, found: AutoscalerAdvice) -> None:
    heading = f"{found.namespace}/{found.name} for {found.target}"
    line = Text(heading, style="bold").append(f", update mode {found.update_mode}", style="not bold")
    span = f", {found.measured_from} to {found.measured_to}" if found.samples else ""
    line.append(f": {count(len(found.pods), 'pod')}, {count(found.samples, 'sample')}{span}", style="not bold")
    console.print(line, soft_wrap=True)
    if found.problem:
        console.print(Text(found.problem, style="bold yellow"), soft_wrap=True)
    if found.containers:
        console.print()
        _print_containers(console, found)
    if found.pods:
        console.print()
        _print_pods(console, found)


def _print_containers(console: Console, found: AutoscalerAdvice) -> None:
    headers = ("CONTAINER", "RESOURCE", ">REQUEST", ">LOWER", ">TARGET", ">UPPER", ">UNCAPPED", "WHY")
    table = make_table(*headers)
    for container in found.containers:
        if not container.target:
            table.add_row(container.container, *("-",) * 6, container.why)
        for position, resource in enumerate(container.target):
            first = position == 0
            name, why = (container.container, container.why) if first else ("", "")
            table.add_row(name, resource, *_cells(container, resource), why)
    print_table(console, table)


def _cells(container: ContainerAdvice, resource: str) -> tuple[str, ...]:
    columns = (
        container.requests,
        container.lower_bound,
        container.target,
        container.upper_bound,
        container.uncapped_target,
    )
    return tuple(_shown(resource, amounts) for amounts in columns)


def _print_pods(console: Console, found: AutoscalerAdvice) -> None:
    table = make_table("POD", "NODE", "CHANGE", "WHY")
    for pod in found.pods[:MOST_PODS]:
        changes = "; ".join(filter(None, map(_changes, pod.containers)))
        table.add_row(pod.pod, pod.node or "-", pod.change, f"{pod.reason}; {changes}" if changes else pod.reason)
    print_table(console, table)
    if len(found.pods) > MOST_PODS:
        more = count(len(found.pods) - MOST_PODS, "more pod")
        console.print(f"... and {more}; -o json lists them all", style="dim")


def _changes(container: ContainerChange) -> str:
    """`app: cpu 1000m to 379m, limit of cpu 2000m to 758m`"""
    words = []
    pairs = (("", container.requests, container.new_requests), ("limit of ", container.limits, container.new_limits))
    for what, before, after in pairs:
        for resource in after:
            old, new = _shown(resource, before), _shown(resource, after)
            if old != new:
                words.append(f"{what}{resource} {old} to {new}")
    return f"{container.container}: {', '.join(words)}" if words else ""


def _shown(resource: str, amounts: Mapping[str, float]) -> str:
    """`250m` of CPU; memory in mebibytes, as bytes are what a histogram happens to end at."""
    amount = amounts.get(resource)
    if amount is None:
        return "-"
    return f"{round(amount * 1000)}m" if resource == "cpu" else f"{amount / MEBIBYTE:.0f}Mi"
