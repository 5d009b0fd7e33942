"""The reference of events and conditions, from the calls in the live driver that write them."""

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from md_tables import code, plain, table

import mooring.actions.admit
import mooring.drivers.live
from mooring.actions.admit.cycle import conditions
from mooring.actions.admit.preemption import targets
from mooring.drivers.live.pod_groups import status as pod_group_status
from mooring.drivers.live.workloads import queue_status
from mooring.model.decisions import PREEMPTED

INTRODUCTION = """# Reference: events and conditions

This page is generated from the calls in the live driver that write events and conditions. `…` stands for a text that
depends on the case. [Running on a cluster](../running-live.md#queues) says when those of Workloads are written.

"""
LIVE = Path(mooring.drivers.live.__file__).parent
ADMISSION = Path(mooring.actions.admit.__file__).parent
KINDS = {"pods": "Pod", "api": "Pod", "workloads": "Workload", "pod_groups": "PodGroup"}
ANY = "…"
WAITING_REASONS = tuple(
    value
    for name, value in vars(conditions).items()
    if name.isupper() and isinstance(value, str) and " " not in value and value[:1].isupper()
)
"""Why `QuotaReserved` is false."""
PREEMPTION_REASONS = (
    targets.IN_CLUSTER_QUEUE,
    targets.IN_COHORT_RECLAMATION,
    targets.IN_COHORT_FAIR_SHARING,
    targets.IN_COHORT_RECLAIM_WHILE_BORROWING,
)
IN_OTHER_MODULES = {
    "condition_writer.reason": WAITING_REASONS,
    "decision.reason": PREEMPTION_REASONS,
    "VOLCANO_CONDITIONS['False'][0]": ("Unschedulable",),
}
"""Values that are chosen elsewhere, by the expression that stands in the call."""


@dataclass(frozen=True, order=True)
class Event:
    """An event that is written."""

    kind: str
    reason: str
    type: str
    note: str


@dataclass(frozen=True, order=True)
class Condition:
    """A condition that is written."""

    kind: str
    type: str
    status: str
    reason: str
    message: str


def events() -> list[Event]:
    """Every event, each once."""
    found = set()
    for kind, module, function, call in _calls():
        arguments = call.args
        match _called(call), kind:
            case "record", "Pod":
                reason, note = arguments[1], arguments[3]
            case "record", _:
                reason, note = arguments[2], arguments[3]
            case (("_record" | "record_on_owners"), "Workload"):
                reason, note = arguments[1], arguments[2]
            case _:
                continue
        about = "owner of the Workload" if _called(call) == "record_on_owners" else kind
        is_warning = any(each.arg == "warning" for each in call.keywords)
        notes = _values(note, module, function, chosen_elsewhere=False)
        for value in _values(reason, module, function):
            if value == ANY:
                continue  # a method that passes an event on, not one that says which
            found |= {Event(about, value, "Warning" if is_warning else "Normal", text) for text in notes}
    return sorted(found)


def written_conditions() -> list[Condition]:
    """Every condition, each once."""
    found = set()
    for kind, module, function, node in _nodes():
        if isinstance(node, ast.Call) and _called(node) in ("condition", "_condition") and len(node.args) >= 4:
            offset = 2 if _called(node) == "_condition" else 0
            parts = node.args[offset : offset + 4]
        elif isinstance(node, ast.Call) and _called(node) == "Waiting":
            parts = [ast.Constant("PodScheduled"), ast.Constant("False"), node.args[0], node.args[1]]
        else:
            continue
        for type_, status, reason, message in _products([_values(part, module, function) for part in parts]):
            if type_ != ANY:
                found.add(Condition(kind, type_, status, reason, message))
    named = {(each.kind, each.type, each.status) for each in found if each.reason != ANY}
    found = {each for each in found if each.reason != ANY or (each.kind, each.type, each.status) not in named}
    return sorted(found | set(_of_queues()) | set(_of_pod_groups()))


def _of_queues() -> Iterator[Condition]:
    """The condition `Active` of queues, from the table of its reasons."""
    reasons = [*queue_status._REASONS.values(), "ClusterQueueDoesNotExist", "ClusterQueueIsInactive"]
    for reason in ("Ready", *reasons):
        status = "True" if reason == "Ready" else "False"
        yield Condition("ClusterQueue, LocalQueue", "Active", status, reason, ANY)


def _of_pod_groups() -> Iterator[Condition]:
    """The conditions of PodGroups, from the tables of the module that writes them."""
    for status, reason in (pod_group_status.SCHEDULED, pod_group_status.UNSCHEDULABLE):
        yield Condition("PodGroup (scheduling.k8s.io)", pod_group_status.CONDITION, status, reason, ANY)
    for type_, reason in pod_group_status.VOLCANO_CONDITIONS.values():
        yield Condition("PodGroup (scheduling.volcano.sh)", type_, "True", reason, ANY)


def page() -> str:
    """Return the page."""
    event_rows = [(each.kind, code(each.reason), each.type, plain(each.note)) for each in events()]
    condition_rows = [
        (each.kind, code(each.type), each.status, code(each.reason), plain(each.message))
        for each in written_conditions()
    ]
    return (
        f"{INTRODUCTION}## Events\n\n{table(('object', 'reason', 'type', 'note'), event_rows)}\n"
        f"## Conditions\n\n{table(('object', 'type', 'status', 'reason', 'message'), condition_rows)}"
    )


@cache
def _eviction_reasons() -> list[str]:
    """The reasons for which admission takes quota back, from the places where it does."""
    found = {PREEMPTED}
    for _, module, function, node in _nodes_of(ADMISSION, "mooring.actions.admit"):
        if isinstance(node, ast.Call) and _called(node) == "Eviction":
            found |= set(_values(node.args[0], module, function))
    return sorted(found - {ANY})


def _nodes() -> Iterator[tuple[str, ModuleType, ast.AST, ast.AST]]:
    """Every expression of the live driver that is about a kind."""
    for folder, module, function, node in _nodes_of(LIVE, "mooring.drivers.live"):
        if folder in KINDS:
            yield KINDS[folder], module, function, node


def _nodes_of(room: Path, package: str) -> Iterator[tuple[str, ModuleType, ast.AST, ast.AST]]:
    """Every expression of a package, with its folder, its module and its function."""
    for path in sorted(room.rglob("*.py")):
        parts = path.relative_to(room).with_suffix("").parts
        module = importlib.import_module(".".join((package, *parts)).removesuffix(".__init__"))
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    yield parts[0], module, function, node


def _calls() -> Iterator[tuple[str, ModuleType, ast.AST, ast.Call]]:
    for kind, module, function, node in _nodes():
        if isinstance(node, ast.Call):
            yield kind, module, function, node


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _key(node: ast.expr | None) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _values(node: ast.expr, module: ModuleType, function: ast.AST, *, chosen_elsewhere: bool = True) -> list[str]:
    """The texts that an expression can have; `…` for what is known only when it is written."""
    if isinstance(node, ast.IfExp):
        return _values(node.body, module, function) + _values(node.orelse, module, function)
    if isinstance(node, ast.JoinedStr):
        return ["".join(each) for each in _products([_part(part, module, function) for part in node.values])]
    if chosen_elsewhere and ast.unparse(node) == "decision.evicted_reason":
        return _eviction_reasons()
    if chosen_elsewhere and ast.unparse(node) in IN_OTHER_MODULES:
        return list(IN_OTHER_MODULES[ast.unparse(node)])
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.Name):
        if isinstance(text := getattr(module, node.id, None), str):
            return [text]
        before = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Assign)
            and each.lineno < node.lineno
            and any(ast.unparse(target) == node.id for target in each.targets)
        ]
        nearest = max(before, key=lambda each: each.lineno, default=None)
        return [ANY] if nearest is None else _values(nearest.value, module, function)
    return [ANY]


def _part(part: ast.expr, module: ModuleType, function: ast.AST) -> list[str]:
    """The texts of a part of an f-string."""
    if isinstance(part, ast.FormattedValue) and ast.unparse(part.value) == "decision.evicted_reason":
        return _eviction_reasons()
    if isinstance(part, ast.FormattedValue) and ast.unparse(part.value) == "DEACTIVATED":
        return _values(part.value, module, function)
    return [_key(part) if isinstance(part, ast.Constant) else ANY]


def _products(parts: list[list[str]]) -> Iterator[list[str]]:
    if not parts:
        yield []
        return
    for first in parts[0]:
        for rest in _products(parts[1:]):
            yield [first, *rest]
