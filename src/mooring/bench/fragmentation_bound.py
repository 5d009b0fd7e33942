"""A proven upper bound on the GPUs that can be given out, whoever places and however many pods are moved.

It is the optimum of a linear program that every placement satisfies, if the pods that run go on running: pods of a kind
come to nodes of a kind, in any fraction, as long as these have CPU, memory and GPUs for them, and each card is filled
in one of the ways in which shares fit into it. What does not divide makes it tighter: of pods that want more than half
of the CPUs of a node it takes one, of those that want more than a third two, and so on, and so it is with the cards of
a node (dual feasible functions of bin packing).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

from mooring.model.devices.cards import WHOLE

STEPS = (1, 2, 3, 4, 5, 7, 9)
"""The functions that are used: of things above a half, a third, and so on."""


class NodeKind(NamedTuple):
    """Nodes that are alike."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


class PodKind(NamedTuple):
    """Pods that ask for the same."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    """Of each GPU."""
    models: tuple[str, ...] = ()
    """The only models that will do; none: all will."""

    @property
    def asked(self) -> int:
        """Thousandths of GPUs in all."""
        return self.gpus * self.gpu_milli

    def may_use(self, node: NodeKind) -> bool:
        return (
            self.gpus <= node.gpus
            and self.cpu_milli <= node.cpu_milli
            and self.memory_mib <= node.memory_mib
            and (not self.models or node.model in self.models)
        )


def upper_bound(nodes: Iterable[NodeKind], pods: Iterable[PodKind], running: Iterable[PodKind] = ()) -> float:
    """The thousandths of GPUs that can be given out at the most, while the pods of `running` go on running."""
    from ortools.linear_solver import pywraplp  # type: ignore[import-untyped]

    solver = pywraplp.Solver.CreateSolver("GLOP")
    node_kinds, kept = Counter(nodes), Counter(running)
    # Pods without GPUs that wait take nothing from an optimum that leaves them out.
    pod_kinds = {kind: count for kind, count in Counter(pods).items() if kind.gpus or kept[kind]}
    taken: dict[tuple[PodKind, NodeKind], Any] = {}
    for pod, count in pod_kinds.items():
        taken |= {(pod, node): solver.NumVar(0, count, "") for node in node_kinds if pod.may_use(node)}
        everywhere = sum(taken[pod, node] for node in node_kinds if (pod, node) in taken)
        solver.Add(everywhere <= count)
        if kept[pod]:
            solver.Add(everywhere >= kept[pod])
    for node, count in node_kinds.items():
        here = [(pod, taken[pod, node]) for pod in pod_kinds if (pod, node) in taken]
        for amounts, whole in _limits(node, [pod for pod, _ in here]):
            weighted = [float(amount) * variable for amount, (_, variable) in zip(amounts, here, strict=True) if amount]
            if weighted:
                solver.Add(sum(weighted) <= float(whole * count))
    _fill_cards(solver, node_kinds, taken)
    solver.Maximize(sum(pod.asked * variable for (pod, _), variable in taken.items()))
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        raise ArithmeticError("the linear program of the bound was not solved")
    return float(solver.Objective().Value())


def _fill_cards(solver: Any, nodes: Mapping[NodeKind, int], taken: Mapping[tuple[PodKind, NodeKind], Any]) -> None:
    """Let each card be filled in one of the ways in which sizes fit into a card."""
    sizes = sorted({pod.gpu_milli for pod, _ in taken if pod.gpus}, reverse=True)
    ways = [(way, solver.NumVar(0, solver.infinity(), "")) for way in full_cards(sizes)]
    solver.Add(sum(cards for _, cards in ways) <= sum(node.gpus * count for node, count in nodes.items()))
    for index, size in enumerate(sizes):
        wanted = sum(pod.gpus * variable for (pod, _), variable in taken.items() if pod.gpus and pod.gpu_milli == size)
        solver.Add(wanted <= sum(way[index] * cards for way, cards in ways if way[index]))


def full_cards(sizes: Sequence[int], room: int = WHOLE) -> list[tuple[int, ...]]:
    """The ways to fill a card so that nothing more fits: how often it has each size, the largest size first."""
    if not sizes:
        return []
    if len(sizes) == 1:
        return [(room // sizes[0],)]
    return [
        (times, *rest)
        for times in range(room // sizes[0], -1, -1)
        for rest in full_cards(sizes[1:], room - times * sizes[0])
        if _is_full(sizes[0], room - times * sizes[0], sizes[1:], rest)
    ]


def _is_full(size: int, left: int, others: Sequence[int], times: Sequence[int]) -> bool:
    return left - sum(other * count for other, count in zip(others, times, strict=True)) < size


def _limits(node: NodeKind, pods: Sequence[PodKind]) -> Iterable[tuple[list[Fraction], Fraction]]:
    """What pods take of a node, and how much of that one node has, for everything that is limited."""
    yield [Fraction(pod.memory_mib) for pod in pods], Fraction(node.memory_mib)
    for step in (0, *STEPS):
        if node.cpu_milli:
            yield [_share(Fraction(pod.cpu_milli, node.cpu_milli), step) for pod in pods], Fraction(1)
        if node.gpus:
            per_card = [pod.gpus * _share(Fraction(pod.gpu_milli, WHOLE), step) for pod in pods]
            yield per_card, Fraction(node.gpus)
            whole = [pod.gpus if pod.gpu_milli == WHOLE else 0 for pod in pods]
            yield [_share(Fraction(gpus, node.gpus), step) for gpus in whole], Fraction(1)


def _share(part: Fraction, step: int) -> Fraction:
    """A dual feasible function: parts that fit together in one have values of at most one together."""
    scaled = (step + 1) * part
    return part if step == 0 or scaled.denominator == 1 else Fraction(floor(scaled), step)
