"""Every setting that can be written down changes an outcome in a test through the product's own commands.

The settings are found in the types that configuration is read into, and in the tables of the docs. Each is shown by a
test that is named here, or is said by the docs to change nothing: a new setting without either fails.
"""

import ast
import re
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from mooring.config.batching import BatchingArgs
from mooring.config.kai_shard import ShardSpec
from mooring.config.load_sources import LoadSources
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.config.queueing import QueueingConfig
from mooring.config.rebalance_policy import RebalancePolicy
from mooring.config.scheduler import PluginSet, SchedulerConfig
from mooring.config.tenant_policy import TenantPolicy
from mooring.config.volcano_scheduler import VolcanoScheduler
from mooring.model.api.yunikorn_queues import Partition
from mooring.plugins import DEFAULT_PLUGINS, OPTIONAL_PLUGINS, PLANNED_PLUGINS

ROOT = Path(__file__).parents[2]
DOCUMENTS: dict[str, Any] = {
    "KubeSchedulerConfiguration": SchedulerConfig,
    "Kueue": QueueingConfig,
    "TenantPolicy": TenantPolicy,
    "Volcano": VolcanoScheduler,
    "KAI": ShardSpec,
    "YuniKorn": Partition,
    "Batching": BatchingArgs,
    "PreemptionCost": PreemptionCostArgs,
    "RebalancePolicy": RebalancePolicy,
    "LoadSources": LoadSources,
    **{plugin.__name__: plugin.args_type for plugin in [*(found for found, _ in DEFAULT_PLUGINS), *OPTIONAL_PLUGINS]},
    **PLANNED_PLUGINS,
}
READ_HERE = ("mooring.config.", "mooring.plugins", "mooring.model.api.yunikorn_queues")
"""Types of configuration; those of Kubernetes inside of it are one setting each."""
IDENTITY = {"apiVersion", "kind"}

LISTED: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "settings.yaml").read_text())
CHANGES_NOTHING: list[str] = LISTED.pop("changes-nothing")
"""What the docs say is read and without effect."""
SHOWN_BY: dict[str, list[str]] = {
    f"{file}::{test}": ways for file, tests in LISTED.items() for test, ways in tests.items()
}


def settings_of(kind: Any, above: str) -> Iterator[str]:
    """The way to every setting of a type."""
    for field in msgspec.structs.fields(kind):
        way = f"{above}.{field.encode_name}"
        inner = [
            found for found in _structs(field.type) if found is not PluginSet and found.__module__.startswith(READ_HERE)
        ]
        if field.encode_name in IDENTITY:
            continue
        if not inner:
            yield way
        for found in inner:
            if found is not kind:
                yield from settings_of(found, way)


def _structs(kind: Any) -> Iterator[Any]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for argument in typing.get_args(kind):
        yield from _structs(argument)


@cache
def settings() -> frozenset[str]:
    return frozenset(way for name, kind in DOCUMENTS.items() for way in settings_of(kind, name))


def test_every_setting_is_shown_or_said_to_change_nothing() -> None:
    shown = {way for ways in SHOWN_BY.values() for way in ways}
    silent = set(CHANGES_NOTHING)

    assert sorted(settings() - shown - silent) == []
    assert sorted((shown | silent) - settings()) == []
    assert sorted(shown & silent) == []


@pytest.mark.parametrize("name", SHOWN_BY)
def test_the_test_is_there_uses_a_command_and_names_its_settings(name: str) -> None:
    module, _, function = name.partition("::")
    (file,) = (ROOT / "tests").glob(f"*/{module}.py")
    text = file.read_text()

    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    (found,) = [node for node in functions if node.name == function]
    fixtures = {argument.arg for argument in found.args.args}
    assert fixtures & {"mooring", "told", "story", "steps", "bench", "capsys", "cluster"}, "no command is run"
    leaves = {way.rpartition(".")[2] for way in SHOWN_BY[name]}
    assert [leaf for leaf in sorted(leaves) if not re.search(rf"\b{leaf}\b", text)] == []


SAID = re.compile(r"left\s+alone|not\s+used|Not\s+used|without\s+effect|is\s+allowed\s+is\s+1|changes\s+nothing")


@cache
def paragraphs() -> list[str]:
    pages = [page.read_text() for page in sorted((ROOT / "docs").glob("*.md"))]
    return [part for page in pages for part in re.split(r"\n\s*\n", page)]


@pytest.mark.parametrize("way", CHANGES_NOTHING)
def test_what_changes_nothing_is_said_in_the_docs(way: str) -> None:
    parts = way.split(".")

    def is_named(paragraph: str) -> bool:
        return any(re.search(rf"`[^`]*\b{part}\b", paragraph) for part in parts[-2:])

    assert [part for part in paragraphs() if is_named(part) and SAID.search(part)], f"{way} is not in the docs"


TABLE = re.compile(r"^\| field \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
PAGES = ("configuration.md", "tenants.md", "tenant-policies.md", "fair-shares.md", "gangs.md")


@pytest.mark.parametrize("page", PAGES)
def test_the_docs_name_no_setting_that_is_not_there(page: str) -> None:
    tables = TABLE.findall((ROOT / "docs" / page).read_text())
    named = [
        name for table in tables for row in table.splitlines() for name in re.findall(r"`([^`]+)`", row.split("|")[1])
    ]
    known = {tail for way in settings() for tail in _tails(way)}

    assert named
    unknown = [name for name in named if name.strip(".").replace("[]", "") not in known]
    assert [name for name in unknown if not name.startswith("featureGates.")] == []


def _tails(way: str) -> Iterator[str]:
    """The setting by its name alone, or with any that it is part of; and those that it is part of."""
    parts = way.split(".")
    yield from (".".join(parts[first:last]) for last in range(2, len(parts) + 1) for first in range(1, last))
