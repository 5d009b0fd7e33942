"""How near to the best possible the policies for GPUs come, on clusters that are small enough to know what that is.

    python -m mooring.bench.optimum

Pods of mixed sizes come one after the other to twenty nodes, and ask for more GPUs than there are. What a policy gives
out is compared with the most that anybody could, who knew all pods beforehand: proven by OR-tools' CP-SAT, which is not
needed to run Mooring (`pip install mooring[dev]`).
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean
from typing import NamedTuple

from rich.console import Console
from rich.progress import track

from mooring.bench.fragmentation_runs import POLICIES, place_all, policy_assembly
from mooring.drivers.sim.traces.alibaba_gpu_2023 import GPU_COUNT, GPU_MILLI
from mooring.model.devices.cards import WHOLE
from mooring.plugins.gpu_fragmentation import TypicalPod
from mooring.testing.builders import make_node, make_pod

SEEDS = range(5)
NODES, PODS = 20, 100
MOST_SECONDS = 120.0
"""For one proof; what is not proven by then is given as a bound."""


class NodeKind(NamedTuple):
    cpu: int
    gpus: int
    weight: int


class PodKind(NamedTuple):
    cpu: int
    """Cores."""
    milli: int
    """Of each GPU."""
    gpus: int
    weight: int

    @property
    def gpu_milli(self) -> int:
        return self.milli * self.gpus


NODE_KINDS = (NodeKind(96, 8, 3), NodeKind(48, 4, 3), NodeKind(16, 2, 3), NodeKind(64, 2, 2), NodeKind(8, 1, 1))
POD_KINDS = (
    PodKind(12, 0, 0, 8),
    PodKind(32, 0, 0, 4),
    PodKind(4, 200, 1, 8),
    PodKind(4, 300, 1, 8),
    PodKind(8, 500, 1, 14),
    PodKind(12, 700, 1, 6),
    PodKind(4, 800, 1, 14),
    PodKind(11, 1000, 1, 24),
    PodKind(4, 1000, 1, 6),
    PodKind(16, 1000, 2, 4),
    PodKind(48, 1000, 4, 2),
    PodKind(88, 1000, 8, 2),
)
"""About what GPU clusters are made of and asked for."""


@dataclass(frozen=True)
class Small:
    """A small cluster, and the pods that come to it, in their order."""

    nodes: tuple[NodeKind, ...]
    pods: tuple[PodKind, ...]

    @property
    def gpu_milli(self) -> int:
        return WHOLE * sum(node.gpus for node in self.nodes)


class Proven(NamedTuple):
    """The most that can be given out, in thousandths of GPUs."""

    found: int
    bound: int
    """As much as is found, if that is proven to be the most."""


def drawn(seed: int, nodes: int = NODES, pods: int = PODS) -> Small:
    generator = random.Random(seed)
    node_kinds = generator.choices(NODE_KINDS, [kind.weight for kind in NODE_KINDS], k=nodes)
    pod_kinds = generator.choices(POD_KINDS, [kind.weight for kind in POD_KINDS], k=pods)
    return Small(tuple(node_kinds), tuple(pod_kinds))


def given_out(small: Small, policy: str) -> int:
    """Thousandths of GPUs that the pods get under a policy, through the engine."""
    typical = [_typical(kind) for kind, count in Counter(small.pods).items() for _ in range(count)]
    nodes = [
        make_node(f"node-{index}", cpu=kind.cpu, pods=1000, resources={GPU_COUNT: kind.gpus})
        for index, kind in enumerate(small.nodes)
    ]
    pods = [
        make_pod(f"pod-{index}", cpu=kind.cpu, annotations=_annotations(kind)) for index, kind in enumerate(small.pods)
    ]
    bound = place_all(policy_assembly(policy, typical), nodes, pods)
    return sum(kind.gpu_milli for pod, kind in zip(pods, small.pods, strict=True) if pod.key in bound)


def _annotations(kind: PodKind) -> dict[str, str]:
    return {GPU_MILLI: str(kind.milli), GPU_COUNT: str(kind.gpus)} if kind.gpus else {}


def _typical(kind: PodKind) -> TypicalPod:
    return TypicalPod(cpu_milli=1000 * kind.cpu, gpu_milli=kind.milli, gpu_count=kind.gpus)


def optimum(small: Small, most_seconds: float = MOST_SECONDS) -> Proven:
    """The most GPUs that can be given out, all pods being known: how many of each kind come to each node and card.

    Pods without GPUs need not be placed, for they take nothing from an optimum that leaves them out.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    kinds = Counter(kind for kind in small.pods if kind.gpus)
    whole = [kind for kind in kinds if kind.milli == WHOLE]
    shares = [kind for kind in kinds if kind.milli < WHOLE]
    placed: dict[PodKind, list[cp_model.IntVar]] = {kind: [] for kind in kinds}
    for number, node in enumerate(small.nodes):
        here = {
            kind: model.new_int_var(0, min(kinds[kind], node.gpus * WHOLE // kind.gpu_milli), f"{kind} on {number}")
            for kind in kinds
        }
        for kind, count in here.items():
            placed[kind].append(count)
        model.add(sum(kind.cpu * count for kind, count in here.items()) <= node.cpu)
        taken = [model.new_bool_var(f"card {card} of {number} is taken whole") for card in range(node.gpus)]
        on_card = [
            {kind: model.new_int_var(0, min(kinds[kind], WHOLE // kind.milli), "") for kind in shares} for _ in taken
        ]
        model.add(sum(taken) == sum(kind.gpus * here[kind] for kind in whole))
        for kind in shares:
            model.add(sum(card[kind] for card in on_card) == here[kind])
        filled = [sum(kind.milli * count for kind, count in card.items()) for card in on_card]
        for is_taken, amount in zip(taken, filled, strict=True):
            model.add(amount <= WHOLE * (1 - is_taken))
        # The cards of a node are alike: the first are taken whole, and of the others the fullest come first.
        for before, after in pairwise(taken):
            model.add(before >= after)
        for card in range(node.gpus - 1):
            model.add(filled[card] + WHOLE * taken[card] >= filled[card + 1])
    for kind, counts in placed.items():
        model.add(sum(counts) <= kinds[kind])
    model.maximize(sum(kind.gpu_milli * sum(counts) for kind, counts in placed.items()))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = most_seconds
    solver.solve(model)
    return Proven(round(solver.objective_value), round(solver.best_objective_bound))


def lines(policies: Sequence[str], found: Sequence[tuple[Small, Proven, Mapping[str, int]]]) -> Iterator[str]:
    """A table for people: GPUs given out, in % of those that there are, and how far that is from the most."""
    seeds = range(len(found))
    yield f"{'POLICY':<18}" + "".join(f"{f'CLUSTER {seed}':>12}" for seed in seeds) + f"{'MEAN':>9}{'GAP':>8}"
    best = [100 * proven.found / small.gpu_milli for small, proven, _ in found]
    yield _line("the best possible", best, best)
    for policy in policies:
        yield _line(policy, [100 * by_policy[policy] / small.gpu_milli for small, _, by_policy in found], best)
    yield ""
    unproven = [str(at) for at, (_, proven, _) in enumerate(found) if proven.bound > proven.found]
    yield "GPUs given out, in %; the best possible is proven" + (f", but for {', '.join(unproven)}" if unproven else "")


def _line(name: str, shares: Sequence[float], best: Sequence[float]) -> str:
    figures = "".join(f"{share:>12.2f}" for share in shares)
    return f"{name:<18}{figures}{mean(shares):>9.2f}{mean(best) - mean(shares):>8.2f}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--clusters", type=int, default=len(SEEDS), help="how many are drawn")
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS, help="for one proof, at the most")
    given = parser.parse_args(argv)
    console = Console(stderr=True)
    found: list[tuple[Small, Proven, Mapping[str, int]]] = []
    seeds = range(given.clusters)
    for seed in track(seeds, "proving", console=console, transient=True, disable=not console.is_terminal):
        small = drawn(seed, given.nodes, given.pods)
        by_policy = {policy: given_out(small, policy) for policy in POLICIES}
        found.append((small, optimum(small, given.seconds), by_policy))
    print("\n".join(lines(POLICIES, found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
