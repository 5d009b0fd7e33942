"""What `mooring simulate` shows in the end: policies side by side, every run, and those that failed."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct

from mooring.report.simulation.metrics import Comparison, Metrics, compare


@dataclass(frozen=True)
class Failed:
    """A run that did not come to its end."""

    policy: str
    seed: int
    message: str


class Summary(Struct, rename="camel"):
    scenario: str
    policies: list[Comparison]
    """One a policy: means over its seeds."""
    runs: list[Metrics]
    failed: list[Failed]


def make_summary(scenario: str, runs: list[Metrics], failed: Sequence[Failed]) -> Summary:
    return Summary(scenario, compare(runs), runs, list(failed))
