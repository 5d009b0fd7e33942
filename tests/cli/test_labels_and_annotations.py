"""Labels and annotations that the docs name are settings too: each changes what a command decides.

Every case is decided twice, as it is and with the key struck out. What the docs name and nothing here, no scenario and
no example has fails.
"""

import json
import re
from pathlib import Path

import pytest
from gang_key_cases import GANG_CASES, Case
from queue_and_gpu_key_cases import QUEUE_AND_GPU_CASES
from queue_manifests import Call

ROOT = Path(__file__).parents[2]
STRUCK = "example.com/struck-out"


@pytest.mark.parametrize("case", [*GANG_CASES, *QUEUE_AND_GPU_CASES], ids=lambda case: case.key)
def test_a_key_that_the_docs_name_changes_what_is_decided(mooring: Call, write: Call, case: Case) -> None:
    assert case.expected != case.struck_out
    assert decided(mooring, write, case, case.manifests, case.expected) == case.expected
    assert decided(mooring, write, case, case.manifests.replace(case.key, STRUCK), case.struck_out) == case.struck_out


def decided(mooring: Call, write: Call, case: Case, manifests: str, like: str) -> str:
    """Who is placed; also in which rack, or on which node, if the expectation says so."""
    options = ("--as", case.scheduler) if case.scheduler else ()
    configured = ("--config", write(case.config, "config.yaml")) if case.config else ()
    outcome = mooring("schedule", "-q", "-o", "json", "-f", write(manifests), *options, *configured)
    assert (outcome.code, outcome.err) == (0, "")
    placed = {found["pod"]: found["node"] for found in json.loads(outcome.out)["placements"]}
    racks = {f"n{number}": f"r{number // 2}" for number in range(4)}
    return " ".join(f"{name}:{racks.get(node, node)}" if ":" in like else name for name, node in sorted(placed.items()))


KEY = re.compile(r"\b((?:[a-z0-9-]+\.)+(?:io|dev|com|org|sh|scheduler)/[a-z][\w.-]*)")
PAGES = (
    "fair-shares",
    "gang-dialects",
    "gangs",
    "preemption",
    "queued-work",
    "shared-gpus",
    "tenant-policies",
    "tenants",
)
NO_SETTINGS = {
    "volcano.sh/gpu-memory",
    "hami.io/vgpu-devices-to-allocate",
    "nos.nebuly.com/spec-gpu-",
    "kueue.x-k8s.io/admission",
    "kueue.x-k8s.io/manager",
}
"""A resource, and what is written on objects as a decision."""
GROUPS = re.compile(r"/v[0-9]+((alpha|beta)[0-9]+)?$")


def keys_of(page: str) -> set[str]:
    """The labels and annotations in the prose and the tables of a page; not those in its examples."""
    text = re.sub(r"```.*?```", "", (ROOT / "docs" / f"{page}.md").read_text(), flags=re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", text)
    return {key for span in spans for key in KEY.findall(span) if not GROUPS.search(key)}


@pytest.mark.parametrize("page", PAGES)
def test_every_key_that_a_page_names_is_shown_through_a_command(page: str) -> None:
    folders = ("tests/cli", "tests/scenarios", "tests/sim", "examples")
    shown = "".join(
        file.read_text() for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".yaml")
    )

    assert [key for key in sorted(keys_of(page) - NO_SETTINGS) if key not in shown] == []
