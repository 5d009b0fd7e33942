"""The dashboard's pages in a real browser: they say what the commands say, and do nothing that they should not."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from serving import ROOT, dashboard

from mooring.cli.main import run

TEAMS = "examples/tenants/two-teams/1-cluster.yaml"
PLATFORM = "examples/ai-platform"


class Pages:
    """Opened pages, and what they complained about on the console."""

    def __init__(self, page: Page, link: str) -> None:
        self.page, self.link = page, link
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda request: self.foreign.append(request.url) if not self._is_ours(request.url) else None)

    def _is_ours(self, url: str) -> bool:
        return url.startswith((self.link, "data:"))

    def open(self, path: str) -> Page:
        self.page.goto(self.link + path)
        return self.page

    def rows(self, table: int = 0) -> list[list[str]]:
        script = """at => [...document.querySelectorAll('table')[at].querySelectorAll('tbody tr')].map(
            row => [...row.children].map(cell => cell.textContent.trim()))"""
        found: list[list[str]] = self.page.evaluate(script, table)
        return found


@pytest.fixture(scope="module")
def platform() -> Iterator[str]:
    with dashboard("-f", PLATFORM) as link:
        yield link


@pytest.fixture(scope="module")
def teams() -> Iterator[str]:
    with dashboard("-f", TEAMS) as link:
        yield link


@pytest.fixture
def open_pages(browser: Browser) -> Iterator[Callable[..., Pages]]:
    contexts = []

    def make(link: str, **preferences: Any) -> Pages:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **preferences})
        context.set_default_timeout(120_000)
        contexts.append(context)
        return Pages(context.new_page(), link)

    yield make
    for context in contexts:
        context.close()


def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    monkeypatch.chdir(ROOT)
    capsys.readouterr()
    assert run([*arguments, "-q", "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_overview_says_what_schedule_says(
    platform: str,
    open_pages: Callable[..., Pages],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = printed(capsys, monkeypatch, "schedule", "-f", PLATFORM)
    pages = open_pages(platform)
    page = pages.open("/")

    shown = {name: page.inner_text(f"#count-{name}") for name in ("nodes", "placed", "waiting", "gated", "evicted")}
    assert shown == {name: f"{told['summary'][name]:,}" for name in shown}
    assert {(row[0], row[3]) for row in pages.rows()} == {
        (pool["name"], resource) for pool in told["pools"] for resource in pool["resources"]
    }
    assert {row[4] for row in pages.rows(1)} == {each["message"] for each in (*told["waiting"], *told["gated"])}
    assert pages.complaints == pages.foreign == []


def test_a_pod_that_waits_is_explained_as_by_the_command(
    platform: str,
    open_pages: Callable[..., Pages],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = printed(capsys, monkeypatch, "explain", "vision/notebook-ada", "-f", PLATFORM)
    pages = open_pages(platform)
    pages.open("/")
    pages.page.click("text=Pod/notebook-ada")

    text = pages.page.inner_text("main")
    assert told["message"] in text
    assert all(remedy["change"] in text for remedy in told["remedies"])
    refusals = [[each["plugin"], each["reason"], str(each["nodes"]), str(each["alone"])] for each in told["refusals"]]
    assert pages.rows() == refusals
    assert len(pages.rows(1)) == told["nodesInAll"]
    assert pages.complaints == []


def test_queues_say_what_the_command_says(
    teams: str, open_pages: Callable[..., Pages], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = printed(capsys, monkeypatch, "queues", "-f", TEAMS)
    pages = open_pages(teams)
    pages.open("/queues")

    shown = {(row[0], row[5], row[6]): row[7:] for row in pages.rows()}
    for queue in told["queues"]:
        for quota in queue["quotas"]:
            amounts = [f"{quota[name]:g}" for name in ("nominal", "used", "borrowed", "available")]
            assert shown[queue["name"], quota["flavor"], quota["resource"]] == amounts
    assert pages.complaints == []


def test_the_map_draws_every_node_and_leads_to_it(platform: str, open_pages: Callable[..., Pages]) -> None:
    pages = open_pages(platform)
    page = pages.open("/nodes")

    page.wait_for_selector("#node-map[data-drawn='370']")
    page.select_option("select[name=resource]", "nvidia.com/gpu")
    page.mouse.move(*_first_square(page))
    assert "a100-000: ready" in page.inner_text("#map-node")
    page.mouse.click(*_first_square(page))
    page.wait_for_url("**/nodes/a100-000")
    assert page.inner_text("h1") == "Node a100-000"
    assert pages.complaints == []


def _first_square(page: Page) -> tuple[float, float]:
    box = page.locator("#node-map canvas").bounding_box()
    assert box is not None
    return box["x"] + 5, box["y"] + 27  # below the title of the first group


def test_what_if_says_what_manifests_would_bring_about_and_changes_nothing(
    teams: str, open_pages: Callable[..., Pages]
) -> None:
    pod = (
        "{apiVersion: v1, kind: Pod, metadata: {name: tried}, spec: {containers: [{name: c, image: x, resources: "
        "{requests: {cpu: 1}}}]}}"
    )
    pages = open_pages(teams)
    page = pages.open("/what-if")
    page.fill("textarea", pod)
    page.click("text=Try it")

    assert page.inner_text("#if-placed") == "1"
    assert pages.rows()[0][0] == "default/tried"
    pages.open("/pods?search=tried")
    assert "No pod is so" in page.inner_text("main")
    pages.open("/what-if")
    page.fill("textarea", "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: 5}}")
    page.click("text=Try it")
    assert "what-if" in page.inner_text("[role=alert]")
    assert "spec.containers" in page.inner_text("[role=alert]")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(platform: str, teams: str, open_pages: Callable[..., Pages], scheme: str) -> None:
    for link, paths in (
        (platform, ("/", "/nodes", "/nodes/a100-000", "/pods", "/pods/vision/notebook-ada", "/what-if", "/nodes/none")),
        (teams, ("/queues",)),
    ):
        pages = open_pages(link, color_scheme=scheme)
        for path in paths:
            pages.open(path)
            found = Axe().run(pages.page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
            assert found.violations_count == 0, f"{path}: {found.generate_report()}"


def test_a_phone_needs_no_sideways_scrolling(platform: str, open_pages: Callable[..., Pages]) -> None:
    pages = open_pages(platform, viewport={"width": 390, "height": 800})
    for path in ("/", "/nodes", "/pods", "/pods/vision/notebook-ada", "/what-if"):
        page = pages.open(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_markup_in_names_is_shown_as_text(teams: str, open_pages: Callable[..., Pages]) -> None:
    pages = open_pages(teams)
    for path in ("/pods?search=<script>alert(1)</script>", "/nodes?search=<img src=x onerror=alert(1)>"):
        page = pages.open(path)
        assert page.locator("main script, main img").count() == 0
        assert "alert(1)" in page.input_value("input[name=search]")
    page = pages.open("/pods/default/<img src=x onerror=alert(1)>")
    assert "<img src=x onerror=alert(1)>" in page.inner_text("main")
    page = pages.open("/what-if")
    page.fill("textarea", "</textarea><script>alert(1)</script>")
    page.click("text=Try it")
    assert page.locator("main script").count() == 0
    assert [each for each in pages.complaints if "404" not in each and "422" not in each] == []
