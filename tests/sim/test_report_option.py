"""`mooring simulate --report`: one page with what the command prints, and how to get it again."""

from pathlib import Path

import pytest
import yaml
from scenario_parts import cluster, job

from mooring.cli.main import run

SCENARIO = {
    "apiVersion": "config.mooring.dev/v1alpha1",
    "kind": "Simulation",
    "name": "two <jobs>",
    "horizon": "200s",
    "sampleEvery": "50s",
    "cluster": cluster(),
    "work": [job("a"), job("b", at="10s", duration="50s")],
    "policies": [{"name": "plain"}, {"name": "other"}],
}


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("scenario.yaml").write_text(yaml.safe_dump(SCENARIO))
    return "scenario.yaml"


def test_the_page_has_the_figures_that_the_command_prints(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", scenario, "--policy", "plain", "--seed", "3", "--quiet", "--report", "out.html"]) == 0

    page = Path("out.html").read_text()
    _, _, *printed = capsys.readouterr().out.splitlines()
    for line in printed:
        name, figure = line.rsplit(maxsplit=1)
        assert f"<tr><th scope='row'>{name.strip()}</th><td>{figure}</td></tr>" in page
    assert "<h1>two &lt;jobs&gt;</h1>" in page
    assert "<code>mooring simulate scenario.yaml --policy plain --seed 3 --report out.html</code>" in page
    assert "<dt>Policies</dt><dd>plain</dd>" in page
    assert "<dt>Seeds</dt><dd>3</dd>" in page
    assert "<dt>Simulated time</dt><dd>3m20s</dd>" in page


def test_the_same_command_gives_the_same_page(scenario: str) -> None:
    pages = []
    for _ in range(2):
        assert run(["simulate", scenario, "--quiet", "--jobs", "1", "--report", "out.html"]) == 0
        pages.append(Path("out.html").read_bytes())

    assert pages[0] == pages[1]


@pytest.mark.parametrize("where", ["nowhere/out.html", "."])
def test_a_page_that_cannot_be_written_is_refused_before_anything_runs(
    scenario: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", scenario, "--report", where]) == 2

    expected = f"error: --report: expected a file in a folder that is there, found {where}\n"
    assert capsys.readouterr() == ("", expected)
