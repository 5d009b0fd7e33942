"""The dashboard of `mooring up` while its scheduler works: pages follow, and know what was."""

import base64
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from ssl import create_default_context
from typing import Any

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

DEMO = Path(__file__).parents[2] / "examples" / "demo"
PATIENCE = 120.0
Json = dict[str, Any]


class Api:
    """The cluster's API, as its administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self.server, self.token = cluster["server"], config["users"][1]["user"]["token"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = create_default_context(cadata=authority)

    def ask(self, path: str, body: Json | None = None, method: str | None = None) -> Json:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        with urllib.request.urlopen(request, context=self._tls, timeout=60) as answer:
            found: Json = json.load(answer)
        return found

    def apply(self, document: Json) -> Json:
        version = document["apiVersion"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        kinds = self.ask(base)["resources"]
        kind = next(each for each in kinds if each["kind"] == document["kind"] and "/" not in each["name"])
        namespace = document["metadata"].get("namespace", "default")
        return self.ask(
            f"{base}/namespaces/{namespace}/{kind['name']}" if kind["namespaced"] else f"{base}/{kind['name']}",
            document,
        )

    def pods_by_node(self) -> Counter[str]:
        """How many pods that have not ended each node has."""
        pods = self.ask("/api/v1/pods")["items"]
        there = [pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]
        return Counter(pod["spec"]["nodeName"] for pod in there if pod["spec"].get("nodeName"))


class Up:
    def __init__(self, link: str, kubeconfig: Path) -> None:
        self.link, self.kubeconfig, self.api = link, kubeconfig, Api(kubeconfig)

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.link + path, timeout=60) as answer:
            text: str = answer.read().decode()
        return text

    def shown(self, query: str = "") -> Counter[str]:
        """How many pods each node has on the map."""
        nodes = json.loads(self.get(f"/data/nodes.json{query}"))
        return Counter({name: count for name, count in zip(nodes["names"], nodes["pods"], strict=True) if count})


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    kubeconfig = tmp_path_factory.mktemp("up") / "kubeconfig"
    options = ["--in-memory", "--port", "0", "--nodes", "3", "--kubeconfig", str(kubeconfig)]
    options += ["--dashboard-address", "127.0.0.1:0"]
    process = subprocess.Popen([sys.executable, "-m", "mooring", "up", *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        found = next(found for line in lines if (found := re.search(r"The dashboard: (http://\S+)/", line)))
        yield Up(found[1], kubeconfig)
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE * 1000)
    complaints: list[str] = []
    found = context.new_page()
    found.on("console", lambda message: complaints.append(message.text))
    found.on("pageerror", lambda error: complaints.append(str(error)))
    yield found
    context.close()
    assert complaints == []


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def settled(up: Up) -> Counter[str]:
    """Wait until the map shows what the API says, twice in a row; give that."""
    found: list[Counter[str]] = []

    def is_settled() -> bool:
        before = up.api.pods_by_node()
        found[:] = [up.shown()]
        return before == found[0] == up.api.pods_by_node()

    wait_until(is_settled, "the map does not show what the API says")
    return found[0]


def pod(name: str, namespace: str = "default", cpu: str = "1") -> Json:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container]},
    }


def test_a_run_of_the_demo_is_shown_again_as_it_was(up: Up) -> None:
    was: list[tuple[float, Counter[str]]] = [(time.time(), settled(up))]
    for name in ("1-two-teams.yaml", "2-research-borrows.yaml", "3-a-gang-waits.yaml", "4-production-reclaims.yaml"):
        for document in yaml.safe_load_all((DEMO / name).read_text()):
            up.api.apply(document)
        if "borrows" in name or "reclaims" in name:  # queues alone place nothing, and a gang that waits neither
            wait_until(lambda: up.api.pods_by_node() != was[-1][1], f"nothing happened by {name}")
        counts = settled(up)
        was.append((time.time(), counts))

    assert len({frozenset(counts.items()) for _, counts in was}) > 2
    for at, counts in was:
        assert up.shown(f"?at={at}") == counts
    # What changed between two of them leads from the one to the other.
    (start, old), (end, new) = was[1], was[2]
    page = up.get(f"/time?at={end}&since={start}")
    table = page[page.index('id="changed-pods"') :]
    rows = re.findall(
        r'<tr><th scope="row">([^<]+)</th><td>([^<]+)</td><td>([^<]+)</td></tr>', table[: table.index("</table>")]
    )
    nodes = set(old) | set(new)
    moved = Counter(after for _, _, after in rows if after in nodes)
    moved.subtract(before for _, before, _ in rows if before in nodes)
    assert {node: new[node] - old[node] for node in nodes} == {node: moved[node] for node in nodes}
    assert "Bound" in page[page.index('id="decisions"') :]


def test_an_open_page_shows_a_bind_by_itself(up: Up, page: Page) -> None:
    page.goto(f"{up.link}/pods")
    up.api.apply(pod("seen"))
    page.wait_for_function(
        """() => [...document.querySelectorAll('tbody tr')].some(
            row => row.textContent.includes('default/seen') && row.textContent.includes('running'))"""
    )
    page.goto(f"{up.link}/nodes")
    page.wait_for_selector("#node-map[data-drawn]")
    number = page.get_attribute("#node-map", "data-number")
    up.api.apply(pod("seen-too"))
    page.wait_for_function("old => document.querySelector('#node-map').dataset.number !== old", arg=number)


def test_the_overview_has_a_chart_that_grows(up: Up, page: Page) -> None:
    page.goto(up.link)
    page.wait_for_selector("#allocation[data-points] canvas")
    points = int(page.get_attribute("#allocation", "data-points") or 0)
    up.api.apply(pod("grows"))
    page.wait_for_function("old => Number(document.querySelector('#allocation').dataset.points) > old", arg=points)


def test_the_slider_goes_from_change_to_change_by_the_keyboard(up: Up, page: Page) -> None:
    up.api.apply(pod("slides"))
    settled(up)
    page.goto(f"{up.link}/time")
    page.wait_for_selector("#node-map[data-drawn]")
    last = page.inner_text("#then-bound")
    at = page.inner_text("#moment-at")
    page.focus("input[name=stop]")
    page.keyboard.press("Home")
    page.wait_for_function("old => document.querySelector('#then-bound').textContent !== old", arg=last)
    assert page.input_value("input[name=stop]") == "0"
    assert "stop=0" in page.url
    assert page.evaluate("document.activeElement.name") == "stop"
    page.keyboard.press("End")
    page.wait_for_function("old => document.querySelector('#then-bound').textContent === old", arg=last)
    assert page.inner_text("#moment-at") == at


def test_tables_sort_and_filter_and_keep_it_when_the_page_follows(up: Up, page: Page) -> None:
    for number in range(14):
        up.api.apply(pod(f"row-{number}", cpu="10m"))
    settled(up)
    page.goto(f"{up.link}/pods?search=row-")
    names = """() => [...document.querySelectorAll('tbody tr')].filter(row => !row.hidden).map(
        row => row.cells[0].textContent.trim())"""
    count = "count => [...document.querySelectorAll('tbody tr')].filter(row => !row.hidden).length === count"
    page.wait_for_function(count, arg=14)
    page.click("th button:has-text('Pod')")
    page.click("th button:has-text('Pod')")
    assert page.evaluate(names) == [f"default/row-{number}" for number in range(13, -1, -1)]
    assert page.get_attribute("thead th", "aria-sort") == "descending"
    page.fill(".filter input", "row-1")
    assert page.evaluate(names) == [f"default/row-{number}" for number in (13, 12, 11, 10, 1)]

    up.api.apply(pod("row-100"))

    page.wait_for_function(count, arg=6)
    assert page.evaluate(names)[0] == "default/row-100"
    assert page.input_value(".filter input") == "row-1"


def test_the_map_can_be_walked_by_the_keyboard(up: Up, page: Page) -> None:
    page.goto(f"{up.link}/nodes")
    page.wait_for_selector("#node-map[data-drawn]")
    page.focus("#node-map canvas")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    said = page.inner_text("#map-node")
    name = said.partition(":")[0]
    assert name in json.loads(up.get("/data/nodes.json"))["names"]
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#map-node") not in ("", said)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/nodes/{name}")


def test_what_if_decides_on_the_cluster_as_it_is(up: Up, page: Page) -> None:
    page.goto(f"{up.link}/what-if")
    page.fill("textarea", json.dumps(pod("tried")))
    page.click("text=Try it")
    assert page.inner_text("#if-placed") == "1"
    assert "tried" not in up.get("/pods?search=tried").partition("<tbody>")[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_over_a_cluster_are_accessible(up: Up, browser: Browser, scheme: Any) -> None:
    up.api.apply(pod(f"axe-{scheme}"))
    settled(up)
    context = browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 800})
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    for path in ("/", "/nodes", "/queues", "/pods", "/time", "/plans", "/what-if"):
        page.goto(up.link + path)
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    context.close()
