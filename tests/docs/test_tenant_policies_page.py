"""The page on tenant policies and its example can be used as they are."""

import re
from pathlib import Path

import pytest
import yaml

from mooring.actions.admit.cycle.policies.past_shares import PAST_WEIGHT
from mooring.actions.admit.quota.windows import QuotaSchedule
from mooring.cli.main import run
from mooring.config.settings import load_settings, parse_settings
from mooring.model.api.kueue import ClusterQueue
from mooring.model.loading.manifests import load_manifests

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tenant-policies.md").read_text()
EXAMPLE = ROOT / "examples" / "tenants" / "policies.yaml"
TEAMS = ROOT / "examples" / "tenants" / "two-teams"
CODE = re.compile(r"^```yaml\n(?P<code>(?:.*\n)*?)```$", re.MULTILINE)


def test_the_document_on_the_page_is_that_of_the_example_but_for_one_window() -> None:
    (shown,) = CODE.findall(PAGE)

    on_page = parse_settings(list(yaml.safe_load_all(shown)), "page").tenants
    example = load_settings(EXAMPLE).tenants

    assert on_page.quota_windows == example.quota_windows[:1]
    on_page.quota_windows = example.quota_windows
    assert on_page == example


def test_the_page_has_the_formula_that_counts() -> None:
    assert f"{1 - PAST_WEIGHT:.1f} * present share + {PAST_WEIGHT:.1f} * past share" in PAGE


def test_the_example_sets_every_policy_and_speaks_of_queues_that_are_there() -> None:
    settings = load_settings(EXAMPLE)
    policy = settings.tenants

    assert settings.queueing.fair_sharing
    assert policy.minimum_runtime_before_reclaim_seconds > 0 < policy.usage_half_life_seconds
    queues = load_manifests([str(TEAMS / "1-cluster.yaml")]).of(ClusterQueue)
    assert list(QuotaSchedule(policy.quota_windows).unknown(queues)) == []


def test_the_command_of_the_example_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (command,) = re.findall(r"^#   mooring (.*)$", EXAMPLE.read_text(), re.MULTILINE)

    assert run(command.split()) == 0

    assert "3 workloads admitted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("field", "right", "wrong", "expected"),
    [
        ("queue", "production", "producton", "a ClusterQueue that there is (did you mean production?)"),
        ("flavor", "h100", "a100", "a flavor of ClusterQueue production (did you mean h100?)"),
        ("resource", "nvidia.com/gpu", "cpu", "a resource of flavor h100 in ClusterQueue production"),
        ("evict", "IfWanted", "Never", "one of IfWanted, Always"),
    ],
)
def test_a_window_for_what_is_not_there_is_refused(
    field: str, right: str, wrong: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policies.yaml"
    file.write_text(EXAMPLE.read_text().replace(f"{field}: {right}", f"{field}: {wrong}", 1))

    assert run(["schedule", "-q", "-f", str(TEAMS / "1-cluster.yaml"), "--config", str(file)]) == 2

    said = f'quotaWindows[0].{field}: expected {expected}, found "{wrong}"'
    assert said in " ".join(capsys.readouterr().err.split())


def test_what_a_window_takes_in_the_morning_is_said_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Time begins at midnight; in Berlin it is 1 o'clock on a Thursday."""
    file = tmp_path / "policies.yaml"
    file.write_text(EXAMPLE.read_text().replace("evict: IfWanted", "evict: Always"))
    steps = ["--then", f"10m:{TEAMS / '2-research-borrows.yaml'}", "--then", f"9h:{TEAMS / '1-cluster.yaml'}"]

    assert run(["schedule", "-q", "-f", str(TEAMS / "1-cluster.yaml"), *steps, "--config", str(file)]) == 0

    night, morning = capsys.readouterr().out.split("STEP 3")
    assert "SUSPENDED" not in night
    assert "research Job/finetune: QuotaWindow: Suspended because there is less quota" in morning
