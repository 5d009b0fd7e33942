"""The experiment of "Beware of Fragmentation" (USENIX ATC '23): policies side by side, with what the paper found.

    python -m mooring.bench.fragmentation_experiment --data FOLDER

The folder has Alibaba's GPU trace of 2023 (`openb_node_list_gpu_node.csv`, `openb_pod_list_default.csv`), and in
`orders/` the orders that the paper's simulator makes of its seeds. Without them, and for its other traces, pods are
shuffled likewise.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track

from mooring.bench.fragmentation_runs import POLICIES, Curve, Trace, run
from mooring.errors import InputError

LOADS = (100, 110, 120, 130)
OURS, THEIRS = "GpuLookahead", "GpuFragmentation"
"""The policy of our own, and the best of the paper."""
SEEDS = tuple(range(42, 52))
"""Those of the paper."""


def _at_the_end(*shares: float) -> dict[str, tuple[float, ...]]:
    names = ("GpuFragmentation", "BestFit", "GpuPacking", "GpuClustering", "DotProduct", "RandomFit")
    return {name: (share,) for name, share in zip(names, shares, strict=True)}


PUBLISHED: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "default": {
        "GpuFragmentation": (95.23, 95.30, 95.35, 95.39),
        "BestFit": (92.86, 92.93, 93.00, 93.08),
        "GpuPacking": (91.78, 91.85, 91.92, 92.00),
        "GpuClustering": (91.65, 91.73, 91.80, 91.88),
        "DotProduct": (90.62, 90.70, 90.76, 90.85),
        "RandomFit": (86.30, 86.88, 87.28, 87.47),
    },
    "cpu050": _at_the_end(95.21, 93.79, 93.72, 93.79, 93.27, 91.24),
    "cpu100": _at_the_end(95.35, 93.44, 92.72, 92.64, 91.96, 89.11),
    "cpu200": _at_the_end(95.04, 92.40, 90.22, 89.92, 87.70, 83.77),
    "cpu250": _at_the_end(93.41, 91.45, 88.28, 87.99, 83.80, 80.41),
    "gpushare40": _at_the_end(94.15, 91.69, 90.03, 90.02, 89.56, 86.00),
    "gpushare60": _at_the_end(91.40, 89.36, 87.45, 87.20, 87.12, 83.65),
    "gpushare80": _at_the_end(89.30, 87.01, 85.00, 84.85, 84.49, 81.22),
    "gpushare100": _at_the_end(86.90, 85.01, 82.57, 82.65, 82.42, 79.44),
    "gpuspec10": _at_the_end(94.95, 93.30, 92.46, 92.18, 90.39, 87.43),
    "gpuspec20": _at_the_end(94.84, 93.30, 92.94, 92.24, 89.97, 87.24),
    "gpuspec25": _at_the_end(94.74, 93.23, 92.98, 92.08, 89.63, 86.94),
    "gpuspec33": _at_the_end(94.55, 93.09, 93.22, 92.12, 89.14, 86.46),
    "multigpu20": _at_the_end(95.65, 93.93, 93.71, 93.56, 92.06, 88.69),
    "multigpu30": _at_the_end(96.46, 94.72, 94.87, 94.72, 93.28, 89.27),
    "multigpu40": _at_the_end(96.99, 95.24, 95.74, 95.50, 94.19, 90.09),
    "multigpu50": _at_the_end(97.18, 95.74, 96.18, 95.81, 94.85, 90.28),
}
"""By trace and policy: the means of ten seeds at LOADS, or at the last of them alone. Chance is not the same chance."""


def run_all(
    trace: Trace, policies: Sequence[str], seeds: Sequence[int], cores: int, console: Console
) -> dict[str, list[Curve]]:
    """Every policy with every seed, on so many cores."""
    pairs = [(policy, seed) for policy in policies for seed in seeds]
    runs = Parallel(n_jobs=cores, return_as="generator")(delayed(run)(trace, policy, seed) for policy, seed in pairs)
    found: dict[str, list[Curve]] = {policy: [] for policy in policies}
    shown = track(runs, "running", total=len(pairs), console=console, transient=True, disable=not console.is_terminal)
    for (policy, _), curve in zip(pairs, shown, strict=True):
        found[policy].append(curve)
    return found


def lines(trace: str, found: Mapping[str, Sequence[Curve]]) -> Iterator[str]:
    """A table for people: GPUs given out, in %, by how much was asked for; means, and how far apart the seeds are."""
    yield f"{'POLICY':<18}" + "".join(f"{load:>8} %" for load in LOADS) + f"{'+/-':>7}{'PUBLISHED':>36}{'AT 130 %':>10}"
    for policy, curves in sorted(found.items(), key=lambda item: -_mean(item[1], LOADS[-1])):
        spread = stdev(_at(curve, LOADS[-1]) for curve in curves) if len(curves) > 1 else 0.0
        published = PUBLISHED.get(trace, {}).get(policy, ())
        ours = "".join(f"{_mean(curves, load):>10.2f}" for load in LOADS)
        theirs = "".join(f"{value:>9.2f}" for value in published)
        difference = f"{_mean(curves, LOADS[-1]) - published[-1]:>+10.2f}" if published else ""
        yield f"{policy:<18}{ours}{spread:>7.2f}{theirs:>36}{difference}".rstrip()
    yield ""
    yield f"GPUs given out, in %, once so much had been asked for; means of {len(next(iter(found.values())))} seeds"
    if OURS not in found:
        return
    mean_of_ours, best = _mean(found[OURS], LOADS[-1]), PUBLISHED.get(trace, {}).get(THEIRS, ())
    at_the_end = f"{THEIRS} at {LOADS[-1]} %"
    if best:
        yield f"{OURS} is {mean_of_ours - best[-1]:+.2f} points from {at_the_end} as published, {best[-1]}"
    if THEIRS in found:
        yield f"{OURS} is {mean_of_ours - _mean(found[THEIRS], LOADS[-1]):+.2f} points from {at_the_end}"


def _mean(curves: Sequence[Curve], load: int) -> float:
    return mean(_at(curve, load) for curve in curves)


def _at(curve: Curve, load: int) -> float:
    """What was given out when so much had been asked for, or when that was last not yet so."""
    return curve[max((reached for reached in curve if reached <= load), default=min(curve))]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="Alibaba's GPU trace of 2023")
    parser.add_argument("--trace", default="default", help="openb_pod_list_TRACE.csv")
    parser.add_argument("--policy", nargs="*", default=POLICIES, help="plugins that score (all)")
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS, help="the paper's ten are 42 to 51")
    parser.add_argument("--jobs", type=int, default=-1, metavar="CORES", help="cores to run on (all)")
    given = parser.parse_args(argv)
    try:
        found = run_all(Trace(given.data, given.trace), given.policy, given.seeds, given.jobs, Console(stderr=True))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(lines(given.trace, found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
