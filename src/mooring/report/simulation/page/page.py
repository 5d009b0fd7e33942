"""The page as a whole: what was simulated, the key figures, then one section after the other."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template

import msgspec

from mooring.report.simulation.page.backlog import backlog
from mooring.report.simulation.page.cluster import cluster
from mooring.report.simulation.page.gantt import gantt
from mooring.report.simulation.page.over_time import allocation
from mooring.report.simulation.page.section import Section, by_policy, queues_by_weight, time_unit
from mooring.report.simulation.page.shares import shares
from mooring.report.simulation.page.waiting import waiting
from mooring.report.simulation.results import Run
from mooring.report.simulation.texts import TextTable, count_text, duration_text


@dataclass(frozen=True)
class Told:
    """What the page says besides the results."""

    title: str
    command: str
    """That gives this page again."""
    figures: TextTable
    """What policies are compared by."""


def simulation_page(told: Told, runs: Sequence[Run]) -> str:
    """One page of HTML without anything that would have to be fetched. Without runs it says that there are none."""
    sections = _sections(runs)
    scripts = (_library(), _file("drawing.js"), _file("sections.js")) if sections else ()
    return Template(_file("page.html")).substitute(
        # Nothing but these scripts runs, and nothing is fetched, whatever names of queues and jobs may say.
        policy=f"default-src 'none'; script-src {_hashes(scripts)}; style-src 'unsafe-inline'; img-src data: blob:",
        title=escape(told.title),
        style=_file("page.css"),
        facts=_facts(runs),
        command=escape(told.command),
        figures=_table(told.figures),
        sections="\n".join(map(_section, sections))
        or "<p class='empty'>No run has results: there is nothing to draw.</p>",
        policies=_json(list(by_policy(runs))),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _sections(runs: Sequence[Run]) -> list[Section]:
    if not runs:
        return []
    unit, queues = time_unit(max(run.horizon for run in runs)), queues_by_weight(runs)
    return [
        allocation(runs, unit),
        backlog(runs, unit),
        shares(runs, unit, queues),
        waiting(runs),
        cluster(runs, unit),
        gantt(runs, unit, queues),
    ]


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _library() -> str:
    """plotly.js as plotly ships it. Found without importing plotly: its Python side is not used."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("plotly is needed for the page of a simulation: pip install plotly")
    return (Path(spec.origin).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")


def _hashes(scripts: Sequence[str]) -> str:
    """The scripts that may run, by their contents."""
    digests = (b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def _json(value: object) -> str:
    """Data that stands in a script element and cannot end it."""
    return msgspec.json.encode(value).decode().replace("<", "\\u003c").replace("\u2028", "\\u2028")


def _facts(runs: Sequence[Run]) -> str:
    policies, seeds = by_policy(runs), list(dict.fromkeys(run.seed for run in runs))
    facts = {"Policies": ", ".join(policies) or "none", "Seeds": ", ".join(map(str, seeds)) or "none"}
    if runs:
        facts["Simulated time"] = duration_text(max(run.horizon for run in runs))
        facts["Nodes"] = _range([len(run.nodes) for run in runs])
        facts["GPUs"] = _range([float(run.nodes.gpus.sum()) for run in runs])
        facts["Jobs"] = _range([len(run.jobs) for run in runs])
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in facts.items())


def _range(numbers: Sequence[float]) -> str:
    """One number, or the least and the most."""
    least, most = count_text(min(numbers)), count_text(max(numbers))
    return least if least == most else f"{least} to {most}"


def _section(section: Section) -> str:
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in section.notes)
    tables = "".join(map(_table, section.tables))
    details = f"<details><summary>The same as tables</summary>{tables}</details>" if tables else ""
    return (
        f"<section id='{section.name}' aria-labelledby='{section.name}-title'>"
        f"<h2 id='{section.name}-title'>{escape(section.title)}</h2><p class='says'>{escape(section.says)}</p>"
        f"<div class='charts'></div>{notes}"
        f"{details}"
        f"<script type='application/json' class='data'>{_json(section.data)}</script></section>"
    )


def _table(table: TextTable) -> str:
    head = "".join(f"<th scope='col'>{escape(header)}</th>" for header in table.headers)
    rows = "".join(
        f"<tr><th scope='row'>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in table.rows
    )
    return (
        f"<div class='table' tabindex='0'><table><caption>{escape(table.caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
