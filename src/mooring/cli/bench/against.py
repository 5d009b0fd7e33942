"""`mooring bench --against`: this Mooring beside another checkout of it, by the CPU seconds that cycles take.

Both run the same workload file in turn, each time in a fresh interpreter, so that a busy machine is as busy for one as
for the other. What counts is CPU time, and of several runs the least: it is the one that others disturbed least.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import mooring

_BY_CPU_TIME = "import time; time.perf_counter = time.process_time; from mooring.cli.main import main; main()"
"""Any checkout measures with `perf_counter`, also one from before there was a comparison: give it another clock."""
_COUNTS = ("placed", "waiting", "gangs_placed", "preemptions", "evictions", "admissions", "suspensions")


def sources(checkout: Path) -> Path:
    """Where the package of a checkout is."""
    from mooring.errors import ConfigError

    found = checkout / "src"
    if not (found / "mooring").is_dir():
        expected = "a checkout of Mooring (a folder with src/mooring)"
        raise ConfigError("--against", "", expected=expected, found=f'"{checkout}"')
    return found.resolve()


def compare(path: Path, theirs: Path, runs: int, sizes: list[str]) -> dict[str, Any]:
    """Measure one workload with both, in turn; `sizes` are further options."""
    ours = Path(mooring.__file__).resolve().parent.parent
    their_results, our_results = [], []
    for _ in range(runs):
        their_results.append(_measure(path, theirs, sizes))
        our_results.append(_measure(path, ours, sizes))
    before, now = _cpu_seconds(their_results), _cpu_seconds(our_results)
    last, other = our_results[-1], their_results[-1]
    return {
        "workload": last["workload"],
        "nodes": last["nodes"],
        "pods": last["pods"],
        "their_cpu_seconds": before,
        "our_cpu_seconds": now,
        "times": round(min(before) / min(now), 3),
        "times_by_median": round(median(before) / median(now), 3),
        "same_counts": all(last.get(name) == other.get(name) for name in _COUNTS),
    }


def _cpu_seconds(results: list[dict[str, Any]]) -> list[float]:
    return [round(result["pods"] / result["pods_per_second"], 4) for result in results]


def _measure(path: Path, place: Path, sizes: list[str]) -> dict[str, Any]:
    from mooring.errors import MooringError

    options = ["bench", "--workload", str(path), "-o", "json", "-q", "--alone", *sizes]
    done = subprocess.run(
        [sys.executable, "-c", _BY_CPU_TIME, *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(place)},
    )
    if done.returncode:
        said = done.stderr.strip().removeprefix("error: ").splitlines()
        raise MooringError(f"{path.stem} with {place}: {said[-1] if said else f'ended with {done.returncode}'}")
    found: dict[str, Any] = json.loads(done.stdout)[0]
    return found
