"""Workloads to measure with, as YAML files: a cluster in a few lines, and the pods that come to it.

    name: basic
    description: identical pods
    nodes: [{a Node, with expressions over i}]
    objects: [{anything else: services, priority classes}]
    running: {share: 0.1, pods: [...]}     # pods bound before the clock starts, as a share of those to place
    pods:
      - weight: 1                          # how many of these in a round of all templates
        run: 1                             # how many of them stand together in the queue
        template: {a Pod, with expressions over i}
    churn: {every: 100, deletePods: 5, relabelNodes: 1}

`{i}`, `{i%3}` and the like may stand anywhere in a template; `i` counts the objects made from it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mooring.config.scheduler import convert
from mooring.errors import ConfigError
from mooring.model.replicas import ExpressionError, compile_pattern, fill


class PodTemplate(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    template: dict[str, Any]
    weight: int = 1
    run: int = 1


class Running(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    share: float
    pods: list[PodTemplate]


class Churn(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    every: int
    """Decisions between two disturbances."""
    delete_pods: int = 0
    relabel_nodes: int = 0


class Workload(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    description: str
    nodes: list[dict[str, Any]]
    pods: list[PodTemplate]
    objects: list[dict[str, Any]] = []
    running: Running | None = None
    churn: Churn | None = None
    config: dict[str, Any] | None = None
    """A KubeSchedulerConfiguration, if not the default one."""


def bench_folder() -> Path:
    """Where the workloads are: `bench` at the root of a checkout, or beside the installed package."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1] / "bench"
    return checkout if checkout.is_dir() else package / "bench"


def load_workload(path: Path) -> Workload:
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(str(path), "", expected="a workload file", found=str(error.strerror)) from error
    except yaml.YAMLError as error:
        raise ConfigError(str(path), "", expected="YAML", found=" ".join(str(error).split())) from error
    return convert(document, Workload, str(path))


def make_nodes(workload: Workload, count: int) -> Iterator[dict[str, Any]]:
    """So many nodes, the templates in turn."""
    makers = [maker(template) for template in workload.nodes]
    for i in range(count):
        yield makers[i % len(makers)](i)


def make_pods(templates: list[PodTemplate], count: int) -> Iterator[dict[str, Any]]:
    """So many pods: rounds of all templates by weight, each in runs."""
    makers = [maker(template.template) for template in templates]
    made = [0] * len(templates)
    total = 0
    while total < count:
        for index, template in enumerate(templates):
            for _ in range(template.weight * template.run):
                if total == count:
                    return
                yield makers[index](made[index])
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
    if isinstance(template, str) and "{" in template:
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
    return isinstance(value, str) and "{" in value
