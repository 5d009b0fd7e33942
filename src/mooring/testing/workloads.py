"""Workloads to measure with, as YAML files: a cluster in a few lines, and the pods that come to it.

    name: basic
    description: identical pods
    sizes: {nodes: 5000, pods: 10000}      # what is measured if nobody asks for other sizes
    long: false                            # it takes so long that it runs only when it is asked for
    decision: pod                          # what is counted and timed: pod, gang, preemption, admission, or binding
                                           # (through the API of the embedded control plane); or what is done in a
                                           # trial: rows on offer, as many as sizes.pods, or running pods amended;
                                           # or usage: samples of as many containers as sizes.pods, minute by minute;
                                           # or a loop of the autoscaler: scale-up, or scale-down (no pods come);
                                           # or rebalance: the plan of one run for the pods that run;
                                           # or consolidation: gangs for which pods that run move
                                           # or what Karpenter decides: provision, or consolidate (no pods come)
    nodes: [{a Node, with expressions over i}]
    objects: [{anything else: services, priority classes}]
    each: [{perPods: 50, template: {...}}] # one of these for every 50 pods (or perNodes), with expressions over i
    loads: [{a NodeMetric or NodeMetrics}] # what was measured on the nodes, the templates in turn
    running: {perNode: 10, pods: [...]}    # pods bound before the clock starts, on the nodes in turn
    pods:
      - weight: 1                          # how many of these in a round of all templates
        run: 1                             # how many of them stand together in the queue
        gang: 1                            # they are gangs of so many: the last one is made complete
        at: "{i}ms"                        # when each of them comes; all are there from the start if nothing is said
        template: {a Pod, with expressions over i}
    churn: {every: 100, deletePods: 5, relabelNodes: 1}
    seconds: 0.001                         # how much time passes from one cycle to the next
    config: {a configuration, or a list of several kinds}
    groups: [{a node group}]               # of the autoscaler, as src/mooring/config/node_groups.py reads them
    flags: ["--expander=least-nodes"]      # and its flags
    types: 400                             # of Karpenter: how many instance types there are to buy

`{i}`, `{i%3}` and the like may stand anywhere in a template; `i` counts the objects made from it. Instead of `perNode`,
running pods may be a `share` of those to place; then they name their nodes themselves. Where time passes, a pod that
says how long it runs (`mooring.dev/duration`) ends when that is over. What is evicted is gone before the next cycle.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from mooring.config.reading import load_documents
from mooring.config.scheduler import convert
from mooring.errors import ConfigError
from mooring.model.loading.replicas import ExpressionError, compile_pattern, fill, is_json_object
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration

AT_ONCE = "0s"
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
MoreThanNothing = Annotated[float, msgspec.Meta(gt=0)]


class PodTemplate(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    template: dict[str, Any]
    weight: AtLeastOne = 1
    run: AtLeastOne = 1
    gang: AtLeastOne = 1
    at: str = AT_ONCE


class Running(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pods: list[PodTemplate]
    share: float | None = None
    per_node: MoreThanNothing | None = None


class Churn(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    every: int
    """Decisions between two disturbances."""
    delete_pods: int = 0
    relabel_nodes: int = 0


class Sizes(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    nodes: AtLeastOne = 5_000
    pods: AtLeastOne = 10_000


class Each(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Objects of which larger workloads have more."""

    per_pods: AtLeastOne | None = None
    per_nodes: AtLeastOne | None = None
    template: dict[str, Any]


class Workload(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    description: str
    nodes: list[dict[str, Any]]
    pods: list[PodTemplate]
    sizes: Sizes = Sizes()
    long: bool = False
    decision: Literal[
        "pod",
        "gang",
        "preemption",
        "admission",
        "binding",
        "offer",
        "amend",
        "usage",
        "scale-up",
        "scale-down",
        "rebalance",
        "consolidation",
        "provision",
        "consolidate",
    ] = "pod"
    objects: list[dict[str, Any]] = []
    each: list[Each] = []
    loads: list[dict[str, Any]] = []
    running: Running | None = None
    churn: Churn | None = None
    seconds: MoreThanNothing | None = None
    config: dict[str, Any] | list[dict[str, Any]] | None = None
    """A KubeSchedulerConfiguration or Kueue's Configuration, or both, if not the default ones."""
    groups: list[dict[str, Any]] = []
    flags: list[str] = []
    """Node groups and flags of the autoscaler."""
    types: AtLeastOne = 400
    """How many instance types there are to buy."""


class Coming(NamedTuple):
    """A pod, and when it comes; None if it is there from the start."""

    document: dict[str, Any]
    seconds: float | None


def bench_folder() -> Path:
    """Where the workloads are: `bench` at the root of a checkout, or beside the installed package."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1] / "bench"
    return checkout if checkout.is_dir() else package / "bench"


def load_workload(path: Path) -> Workload:
    documents = load_documents(path)
    workload = convert(documents[0] if documents else None, Workload, str(path))
    _check(workload, str(path))
    return workload


def _check(workload: Workload, source: str) -> None:
    """Refuse what has the right types and makes no sense."""
    running = workload.running
    if running is not None and (running.share is None) == (running.per_node is None):
        found = "neither" if running.share is None else "both"
        raise ConfigError(source, "running", expected="either share or perNode", found=found)
    for index, each in enumerate(workload.each):
        if (each.per_pods is None) == (each.per_nodes is None):
            found = "neither" if each.per_pods is None else "both"
            raise ConfigError(source, f"each[{index}]", expected="either perPods or perNodes", found=found)
    for index, given in enumerate(workload.pods):
        field = f"pods[{index}].at"
        seconds = parse_duration(maker(given.at)(0))
        if seconds is None:
            raise ConfigError(source, field, expected=EXPECTED_DURATION, found=f'"{given.at}"')
        if given.at != AT_ONCE and workload.seconds is None:
            expected = "none where no time passes (seconds)"
            raise ConfigError(source, field, expected=expected, found=f'"{given.at}"')
        together = given.weight * given.run
        if together % given.gang:
            expected = f"what divides weight times run ({together}), so that gangs stand together"
            raise ConfigError(source, f"pods[{index}].gang", expected=expected, found=str(given.gang))


def make_nodes(workload: Workload, count: int) -> Iterator[dict[str, Any]]:
    """So many nodes, the templates in turn."""
    makers = [maker(template) for template in workload.nodes]
    for i in range(count):
        yield makers[i % len(makers)](i)


def make_loads(workload: Workload, count: int) -> Iterator[dict[str, Any]]:
    """What was measured on so many nodes, the templates in turn."""
    makers = [maker(template) for template in workload.loads]
    return (makers[i % len(makers)](i) for i in range(count if makers else 0))


def make_objects(workload: Workload, nodes: int, pods: int) -> Iterator[dict[str, Any]]:
    """Everything that is neither a node nor a pod."""
    yield from workload.objects
    for found in workload.each:
        make = maker(found.template)
        count = -(-nodes // found.per_nodes) if found.per_nodes else -(-pods // (found.per_pods or 1))
        yield from (make(i) for i in range(count))


def make_running(running: Running, nodes: Sequence[str], pods: int) -> Iterator[dict[str, Any]]:
    """The pods that run before anything is placed; with so many a node, spread evenly over these nodes, in order."""
    if running.per_node is None:
        count = int(pods * (running.share or 0))
        yield from (found.document for found in make_pods(running.pods, count, at_most=True))
        return
    count = int(len(nodes) * running.per_node)
    for number, (document, _) in enumerate(make_pods(running.pods, count, at_most=True)):
        yield {**document, "spec": {"nodeName": nodes[number * len(nodes) // count], **document["spec"]}}


def make_pods(templates: list[PodTemplate], count: int, *, at_most: bool = False) -> Iterator[Coming]:
    """So many pods, in rounds of all templates by weight, each in runs.

    Where the last gang would not be complete, there are as many more as make it so; or fewer, without it (`at_most`).
    """
    makers = [maker(template.template) for template in templates]
    times = [None if template.at == AT_ONCE else maker(template.at) for template in templates]
    made = [0] * len(templates)
    total = 0
    while total < count:
        for index, template in enumerate(templates):
            for _ in range(template.weight * template.run):
                begins = made[index] % template.gang == 0
                if begins and total + (template.gang if at_most else 1) > count:
                    return
                time = times[index]
                yield Coming(makers[index](made[index]), parse_duration(time(made[index])) if time else None)
                made[index] += 1
                total += 1


def maker(template: Any) -> Callable[[int], Any]:
    """Compile a template: a function from i to the object."""
    if isinstance(template, dict):
        parts = {key: maker(value) for key, value in template.items()}
        if not any(_varies(value) for value in template.values()):
            return lambda i: template
        return lambda i: {key: part(i) for key, part in parts.items()}
    if isinstance(template, list):
        if not _varies(template):
            return lambda i: template
        items = [maker(value) for value in template]
        return lambda i: [item(i) for item in items]
    if _is_pattern(template):
        try:
            pattern = compile_pattern(template)
        except ExpressionError as error:
            raise ConfigError("workload", template, expected="an expression over i", found=str(error)) from error
        return lambda i: fill(pattern, i)
    return lambda i: template


def _varies(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_varies(part) for part in value.values())
    if isinstance(value, list):
        return any(_varies(part) for part in value)
    return _is_pattern(value)


def _is_pattern(value: Any) -> bool:
    """A text with expressions in braces; JSON in an annotation has braces of its own."""
    return isinstance(value, str) and "{" in value and not is_json_object(value)
