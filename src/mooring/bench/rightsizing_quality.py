"""How good recommendations are, on usage of our own making whose truth is known.

    python -m mooring.bench.rightsizing_quality [--containers 200] [--days 7] [--seed 0]

Containers start with what their users ask for. With right-sizing, they are resized in place by the rules of the
Vertical Pod Autoscaler, looked at once an hour. A container that uses more memory than it has is killed, once for each
minute in which it does, and what it would have needed is learnt from. Slack is what is held and not used, as a share of
what is held, over all minutes after the first day. Autopilot (Rzadca and others, EuroSys 2020) published 23 % with its
recommendations against 46 % of jobs that were sized by hand. Their jobs are others: the figures stand beside ours.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mooring.bench.usage_traces import MINUTES_A_DAY, Containers, Floats, Minute, make_containers, minutes, shares_of
from mooring.model.rightsizing.updating import UpdateSettings
from mooring.state.usage.containers import ContainerUsage
from mooring.state.usage.estimates import EstimateSettings, estimate

PUBLISHED = {"Autopilot": 0.23, "sized by hand": 0.46}
LOOK_MINUTES = 60
LARGEST_NODE = (64_000, 512 << 30)
"""In millicores and bytes: no recommendation is larger."""


@dataclass
class Held:
    """What containers hold, and what came of it."""

    cores: Floats
    memory: Floats
    held: Floats = field(init=False)
    """Summed over minutes, as are those used: a row for CPU, one for memory."""
    used: Floats = field(init=False)
    kills: Floats = field(init=False)
    changes: Floats = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.cores)
        self.held, self.used = np.zeros((2, count)), np.zeros((2, count))
        self.kills, self.changes = np.zeros(count), np.zeros(count)

    def play(self, minute: Minute) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Let a minute pass; return who is killed for want of memory."""
        killed = minute.memory > self.memory
        if minute.number >= MINUTES_A_DAY:
            self.kills += killed
            self.held += (self.cores, self.memory)
            self.used += (np.minimum(minute.cores, self.cores), np.minimum(minute.memory, self.memory))
        return killed

    def figures(self, kinds: Sequence[str], days: int) -> dict[str, dict[str, float]]:
        """By figure: for all containers, and for those of each kind."""
        slack = 1.0 - self.used / self.held
        each = {
            "cpu_slack": slack[0],
            "memory_slack": slack[1],
            "kills_a_day": self.kills / days,
            "changes_a_day": self.changes / days,
        }
        return {name: shares_of(values, kinds) for name, values in each.items()}


def compare(
    containers: Containers, days: int, generator: np.random.Generator
) -> dict[str, dict[str, dict[str, float]]]:
    """Play the same usage for containers that keep what was asked for, and for those that are right-sized."""
    count = len(containers.kinds)
    by_hand = Held(containers.asked_cores.copy(), containers.asked_memory.copy())
    sized = Held(containers.asked_cores.copy(), containers.asked_memory.copy())
    usage, rows = ContainerUsage(), np.arange(count, dtype=np.intp)
    for _ in range(count):
        usage.add_container(usage.add_aggregate())
    changed_at = np.zeros(count)
    for minute in minutes(containers, days, generator):
        by_hand.play(minute)
        killed = sized.play(minute)
        times = np.full(count, minute.number * 60.0)
        usage.see_cpu(rows, times, np.minimum(minute.cores, sized.cores))
        usage.see_memory(rows, times, np.minimum(minute.memory, sized.memory).astype(np.int64))
        for row in np.flatnonzero(killed).tolist():
            usage.see_out_of_memory(row, minute.number * 60.0, int(sized.memory[row]))
        if minute.number % LOOK_MINUTES == 0 or killed.any():
            is_looked_at = killed if minute.number % LOOK_MINUTES else np.ones(count, np.bool_)
            _resize(sized, usage, is_looked_at, killed, changed_at, minute.number)
    counted = max(1, days - 1)
    return {
        "sized by hand": by_hand.figures(containers.kinds, counted),
        "right-sized": sized.figures(containers.kinds, counted),
    }


def _resize(
    sized: Held,
    usage: ContainerUsage,
    is_looked_at: np.ndarray[tuple[int], np.dtype[np.bool_]],
    killed: np.ndarray[tuple[int], np.dtype[np.bool_]],
    changed_at: Floats,
    minute: int,
) -> None:
    """Resize containers outside of their bounds, killed just now, or far from their target for long."""
    settings, rows = UpdateSettings(), np.arange(len(changed_at), dtype=np.intp)
    found = estimate(usage, rows, np.ones(len(rows), np.int64), EstimateSettings())
    most = dict(zip(("cpu", "memory"), LARGEST_NODE, strict=True))
    has = {"cpu": sized.cores * 1000.0, "memory": sized.memory}
    target = {name: np.minimum(found.target[name], most[name]).astype(np.float64) for name in most}
    outside = np.zeros(len(rows), np.bool_)
    change = np.zeros(len(rows))
    for name in most:
        outside |= (has[name] < found.lower_bound[name]) | (has[name] > found.upper_bound[name])
        change += np.abs(has[name] - target[name]) / has[name]
    is_old = (minute - changed_at) * 60.0 >= settings.lifetime_seconds
    due = is_looked_at & (outside | (killed & (change > 0)) | (is_old & (change >= settings.min_change)))
    sized.cores = np.where(due, target["cpu"] / 1000.0, sized.cores)
    sized.memory = np.where(due, target["memory"], sized.memory)
    changed_at[due] = minute
    if minute >= MINUTES_A_DAY:
        sized.changes += due


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="How good recommendations are, on usage whose truth is known.")
    parser.add_argument("--containers", type=int, default=200)
    parser.add_argument("--days", type=int, default=7, help="at least 2: the first does not count")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    given = parser.parse_args(arguments)
    if given.containers < 5 or given.days < 2:
        parser.error("expected at least 5 containers and 2 days")
    generator = np.random.default_rng(given.seed)
    found = compare(make_containers(given.containers, generator), given.days, generator)
    if given.output == "json":
        print(json.dumps({"published_slack": PUBLISHED, **found}, indent=2))
        return
    print(f"{given.containers} containers, {given.days} days, the first of which does not count; seed {given.seed}\n")
    print(f"{'':14}{'KIND':10}{'CPU SLACK':>10}{'MEMORY SLACK':>14}{'KILLS A DAY':>13}{'CHANGES A DAY':>15}")
    for policy, figures in found.items():
        for kind in figures["cpu_slack"]:
            cells = [figures[name][kind] for name in ("cpu_slack", "memory_slack", "kills_a_day", "changes_a_day")]
            print(f"{policy:14}{kind:10}{cells[0]:>10.1%}{cells[1]:>14.1%}{cells[2]:>13.3f}{cells[3]:>15.2f}")
    published = ", ".join(f"{name} {share:.0%}" for name, share in PUBLISHED.items())
    print(f"\nPublished for Autopilot's jobs, as slack: {published}. Kills and changes are those of a container.")


if __name__ == "__main__":
    main()
