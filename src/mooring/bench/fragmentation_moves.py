"""How much of the GPUs is given out if some of the pods that run may be moved, beside a proven upper bound.

    python -m mooring.bench.fragmentation_moves --data FOLDER

The experiment of "Beware of Fragmentation" (see `fragmentation_experiment`) to its end: GPUs are asked for by 130 %,
and our own policy has placed what it could. Then pods are moved for others that wait, at most so many per cent of those
that run: one or two leave a node for room elsewhere that no pod that waits can use. Each step is carried out on the
real state with the real plugins, or not counted.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from joblib import Parallel, delayed

from mooring.bench.fragmentation_bound import NodeKind, PodKind, upper_bound
from mooring.bench.fragmentation_experiment import OURS, SEEDS
from mooring.bench.fragmentation_runs import Trace, as_manifest, filled, orders, policy_assembly, typical_pod
from mooring.bench.make_room import RoomMaker
from mooring.drivers.sim.traces.alibaba_gpu_2023 import in_order, to_node
from mooring.drivers.sim.traces.tables import Row
from mooring.errors import InputError, InvariantBroken
from mooring.model.devices.cards import WHOLE
from mooring.model.loading.manifests import build_manifests, collector_paused
from mooring.plugins.gpu_fragmentation import typical_pods

PERCENTAGES = (1.0, 2.0, 5.0)
"""Of the pods that run, so many may be moved."""


class Outcome(NamedTuple):
    """What a seed comes to, in % of all GPUs."""

    placed: float
    """Without moves."""
    moved: tuple[float, ...]
    """With so many per cent of pods moved."""
    bound: float
    running: int
    moves: tuple[int, ...]


def run(trace: Trace, seed: int, percentages: Sequence[float]) -> Outcome:
    """Place, then move as much as is allowed, step by step."""
    pods, nodes = trace.pods(), trace.nodes()
    pod_names, node_names = orders(trace, seed, pods, nodes)
    cluster = build_manifests([to_node(nodes[name]) for name in node_names], source=trace.name).nodes
    arrivals = list(in_order(pods, pod_names))
    made = build_manifests([as_manifest(arrival) for arrival in arrivals], source=trace.name).pods
    kinds = [_pod_kind(pods[name]) for name in pod_names]
    capacity = WHOLE * sum(row.count("gpu") for row in nodes.values())
    typical = typical_pods(map(typical_pod, pods.values()), 1.0)
    assembly = policy_assembly(OURS, typical)
    with collector_paused():
        scheduler, bound = filled(assembly, cluster, made)
        given = sum(kind.asked for pod, kind in zip(made, kinds, strict=True) if pod.key in bound)
        node_kinds = {name: _node_kind(nodes[name]) for name in node_names}
        kind_of = {pod.key: kind for pod, kind in zip(made, kinds, strict=True)}
        maker = RoomMaker(scheduler.cluster, assembly.profiles, node_kinds, kind_of)
        shares, moves = [], []
        for percent in percentages:
            given += maker.make_room(int(len(bound) * percent / 100))
            shares.append(100 * given / capacity)
            moves.append(maker.moves)
    for name in maker.broken():
        raise InvariantBroken(f"node {name} has given out more than it has")
    before = 100 * sum(kind.asked for pod, kind in zip(made, kinds, strict=True) if pod.key in bound) / capacity
    kept = [kind for pod, kind in zip(made, kinds, strict=True) if pod.key in bound]
    most = upper_bound(node_kinds.values(), kinds, kept)
    return Outcome(before, tuple(shares), 100 * most / capacity, len(bound), tuple(moves))


def _node_kind(row: Row) -> NodeKind:
    return NodeKind(row.count("cpu_milli"), row.count("memory_mib"), row.count("gpu"), row.text("model"))


def _pod_kind(row: Row) -> PodKind:
    gpus = row.count("num_gpu")
    models = tuple(row.text("gpu_spec").split("|")) if row.text("gpu_spec") else ()
    milli = row.count("gpu_milli") if gpus else 0
    return PodKind(row.count("cpu_milli"), row.count("memory_mib"), gpus, milli, models)


def lines(found: Sequence[tuple[int, Outcome]], percentages: Sequence[float]) -> Iterator[str]:
    """A table for people: GPUs given out, in %, with so many pods moved, and how far that is from the bound."""
    moved = "".join(f"{f'{percent:g} % MOVED':>12}" for percent in percentages)
    yield f"{'SEED':<8}{'PODS':>8}{'PLACED':>10}{moved}{'MOVES':>8}{'BOUND':>10}{'GAP':>8}"
    for seed, one in found:
        yield _line(str(seed), one.running, one.placed, one.moved, one.moves[-1], one.bound)
    outcomes = [one for _, one in found]
    shares = [mean(column) for column in zip(*(one.moved for one in outcomes), strict=True)]
    running, moves = (
        round(mean(values)) for values in ((o.running for o in outcomes), (o.moves[-1] for o in outcomes))
    )
    bound = mean(one.bound for one in outcomes)
    yield _line("mean", running, mean(one.placed for one in outcomes), shares, moves, bound)
    yield ""
    yield f"GPUs given out, in %, at 130 % asked for, by {OURS} alone and with so many % of the pods that run moved;"
    yield "BOUND is proven: no placement in which the pods that run go on running gives out more."
    yield f"GAP is what is missing to it: {bound - shares[-1]:.2f} points."


def _line(name: str, running: int, placed: float, moved: Sequence[float], moves: int, bound: float) -> str:
    shares = "".join(f"{share:>12.2f}" for share in moved)
    return f"{name:<8}{running:>8,}{placed:>10.2f}{shares}{moves:>8,}{bound:>10.2f}{bound - moved[-1]:>8.2f}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="Alibaba's GPU trace of 2023")
    parser.add_argument("--trace", default="default", help="openb_pod_list_TRACE.csv")
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS, help="the paper's ten are 42 to 51")
    parser.add_argument("--moved", type=float, nargs="*", default=PERCENTAGES, help="of the pods that run, in %%")
    parser.add_argument("--jobs", type=int, default=-1, metavar="CORES", help="cores to run on (all)")
    given = parser.parse_args(argv)
    trace = Trace(given.data, given.trace)
    try:
        trace.nodes(), trace.pods()
        percentages = sorted(given.moved)
        runs = Parallel(n_jobs=given.jobs)(delayed(run)(trace, seed, percentages) for seed in given.seeds)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(lines(list(zip(given.seeds, runs, strict=True)), percentages)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
