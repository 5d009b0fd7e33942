"""The documentation site: generated pages cover everything, the front page answers, and commands on pages exist."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
import typer

from mooring.cli.main import app
from mooring.config.scheduler import ConfigObject
from mooring.observe.metrics import Metrics
from mooring.plugins import DEFAULT_PLUGINS, OPTIONAL_PLUGINS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOOLS = ROOT / "tools" / "docs_site"
QUESTION = re.compile(r"^\| (?P<question>[^|]+\?) \| (?P<answer>.+) \|$", re.MULTILINE)
LINK = re.compile(r"\]\((?P<path>[\w./-]+\.md)(?:#(?P<anchor>[\w-]+))?\)")
SUBJECTS = (
    *("install", "try", "manifests", "quota", "gang", "GPUs", "pending", "run it on a cluster", "go back", "upgrade"),
    *("metrics", "secure", "large", "plugin", "simulate"),
)
"""What a new user asks about, in the order of the front page."""
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def tool() -> Any:
    """Loads a module of the tool that builds the site."""

    def load(name: str) -> ModuleType:
        sys.path.insert(0, str(TOOLS))
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(str(TOOLS))

    return load


def test_every_command_and_option_is_in_the_reference(tool: Any) -> None:
    page = tool("command_reference").page()

    sections = dict(re.findall(r"^## mooring (\w+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert list(sections) == list(COMMANDS)
    for name, command in COMMANDS.items():
        shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        options = {text for parameter in shown for text in parameter.opts if text.startswith("-")}
        assert {option for option in options if option not in sections[name]} == set()


def test_every_metric_is_in_the_reference_with_its_labels(tool: Any) -> None:
    page = tool("metric_reference").page()

    for family in Metrics().registry.collect():
        if family.name.startswith("process_"):
            continue
        suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
        assert f"| `{family.name}{suffix}` | {family.type} |" in page
    assert "| `mooring_cycle_duration_seconds` | histogram | `step` |" in page


def subclasses(type_: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    return [found for each in type_.__subclasses__() for found in (each, *subclasses(each))]


def test_every_setting_is_in_the_reference(tool: Any) -> None:
    page = tool("setting_reference").page()

    own = [each for each in subclasses(ConfigObject) if each.__module__.startswith("mooring.config.")]
    arguments = [plugin.args_type for plugin in (*(found for found, _ in DEFAULT_PLUGINS), *OPTIONAL_PLUGINS)]
    assert len(own) > 40
    for type_ in {*own, *arguments}:
        fields = msgspec.structs.fields(type_)
        heading = f"### {type_.__name__.lstrip('_')} {{ #{type_.__module__.rpartition('.')[2].replace('_', '-')}-"
        start = page.find(heading)
        assert start >= 0 or not fields, type_
        section = page[start : page.find("\n### ", start + 1)]
        assert [field.encode_name for field in fields if f"| `{field.encode_name}` |" not in section] == []


def test_settings_show_type_default_and_docstring(tool: Any) -> None:
    page = tool("setting_reference").page()

    assert "| `quietSeconds` | number | `3600.0` | For how long a pod stays where it was moved to. |" in page
    assert "| `leaderElection` | [LeaderElection](#scheduler-leaderelection) | `none` |" in page


def test_events_and_conditions_are_found_in_the_code(tool: Any) -> None:
    reference = tool("event_reference")

    events = {(each.kind, each.reason, each.type) for each in reference.events()}
    conditions = {(each.type, each.reason) for each in reference.written_conditions()}
    assert {
        ("Pod", "Scheduled", "Normal"),
        ("Pod", "FailedScheduling", "Warning"),
        ("Pod", "Preempted", "Normal"),
        ("Workload", "EvictedDueToPreempted", "Normal"),
        ("owner of the Workload", "CreatedWorkload", "Normal"),
    } <= events
    assert {
        ("PodScheduled", "Unschedulable"),
        ("QuotaReserved", "WaitingForQuota"),
        ("PodGroupInitiallyScheduled", "Scheduled"),
        ("Active", "FlavorNotFound"),
    } <= conditions


def test_the_front_page_answers_each_question_with_pages_that_exist() -> None:
    questions = list(QUESTION.finditer((DOCS / "index.md").read_text()))

    assert len(questions) == len(SUBJECTS) == 15
    for found, subject in zip(questions, SUBJECTS, strict=True):
        assert subject in found["question"]
        links = list(LINK.finditer(found["answer"]))
        assert links
        for link in links:
            assert (DOCS / link["path"]).exists()
            if link["anchor"]:
                assert link["anchor"] in anchors_of(DOCS / link["path"])


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and the site make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


COMMAND = re.compile(r"(?:^|`|\$ |\| |    )mooring (?P<name>[a-z]+)(?P<rest>(?: [^`\n|&>#;]*)?)", re.MULTILINE)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_commands_on_a_page_have_the_options_that_they_are_shown_with(page: Path) -> None:
    wrong = []
    for shown in COMMAND.finditer(page.read_text()):
        if shown["name"] not in COMMANDS:
            continue
        command = COMMANDS[shown["name"]]
        inner = getattr(command, "commands", {})  # of a group, such as `mooring shadow report`
        parameters = [*command.params, *(each for part in inner.values() for each in part.params)]
        known = {text for each in parameters for text in (*each.opts, *each.secondary_opts)} | {"--help"}
        wrong += [option for option in re.findall(r"(?<= )--[a-z][\w-]*", shown["rest"]) if option not in known]

    assert wrong == []


def test_a_link_to_a_file_outside_of_docs_leads_to_a_page_of_the_site(tool: Any) -> None:
    outside = tool("outside")
    text = (
        "[a](../SECURITY.md#reporting) [b](../examples/gangs) [c](gangs.md)\n```\n[d](../LICENSE)\n```\n[e](../gone.md)"
    )

    assert outside.relinked(text, DOCS / "page.md", "page.md") == (
        "[a](project/SECURITY.md#reporting) [b](files/examples/gangs.md) [c](gangs.md)\n"
        "```\n[d](../LICENSE)\n```\n[e](../gone.md)"
    )
    assert outside.page_of(ROOT / "deploy" / "replace-kueue.sh").startswith("# deploy/replace-kueue.sh\n\n````bash\n#!")
