"""Results in words: durations, shares and counts, and the table of key figures that policies are compared by."""

from dataclasses import dataclass

from mooring.report.simulation.metrics import SHOWN, Comparison
from mooring.report.simulation.summary import Summary

SECONDS = ("queueing mean", "queueing p95", "completion mean", "completion p95")
PERCENT = ("cpu allocation", "gpu allocation")
WHOLE = ("finished", "waiting", "preemptions", "evictions", "nodes needed")
NOTHING = "-"


@dataclass(frozen=True)
class TextTable:
    """Rows of text under headers. The first column says what a row is about."""

    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def key_figures(summary: Summary) -> TextTable:
    """A row a metric that is not 0 everywhere, a column a policy: means over its seeds, and how far these differ."""
    compared = summary.policies
    seeds = compared[0].seeds if compared else 0
    rows = (
        (name, *(_figure(name, found) for found in compared))
        for name in SHOWN
        if any(found.values[name] for found in compared)
    )
    caption = f"{summary.scenario}: {seeds} seed{'s' if seeds > 1 else ''} for each policy"
    return TextTable(caption, ("metric", *(found.policy for found in compared)), tuple(rows))


def _figure(name: str, found: Comparison) -> str:
    value, deviation = found.values[name], found.deviations[name]
    text = metric_text(name, value)
    if deviation:
        text += f" ± {metric_text(name, deviation)}"
    return at_least(text, found.censored.get(name, 0.0))


def at_least(text: str, censored: float) -> str:
    """A figure of some jobs, of which so many were not over by the end: it is the least possible.

    >>> at_least("2h03m", 0), at_least("2h03m", 37), at_least("2h03m", 1.5)
    ('2h03m', '≥ 2h03m (37 open)', '≥ 2h03m (1.5 open)')
    """
    return f"≥ {text} ({count_text(censored)} open)" if censored else text


def metric_text(name: str, value: float) -> str:
    """A metric's value as people read it."""
    if name in SECONDS:
        return duration_text(value)
    if name in PERCENT:
        return f"{value:.2%}"
    if name in WHOLE and value == int(value):
        return f"{int(value):,}"
    return f"{value:,.2f}"


def duration_text(seconds: float) -> str:
    """As short as it can be read; `-` for nan.

    >>> duration_text(5.25), duration_text(125), duration_text(7260), duration_text(200000), duration_text(float("nan"))
    ('5.2s', '2m05s', '2h01m', '2d07h', '-')
    """
    if seconds != seconds:
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def percent_text(share: float) -> str:
    """
    >>> percent_text(0.8349), percent_text(float("nan"))
    ('83.49%', '-')
    """
    return NOTHING if share != share else f"{share:.2%}"


def count_text(number: float) -> str:
    """
    >>> count_text(12345), count_text(12.345), count_text(float("nan"))
    ('12,345', '12.3', '-')
    """
    if number != number:
        return NOTHING
    return f"{number:,.0f}" if number == round(number) or abs(number) >= 1000 else f"{number:,.1f}"
