"""The page of a simulation in a real browser: what is drawn, and that nothing else happens."""

from collections.abc import Callable
from typing import Any

import pytest

from mooring.report.simulation.metrics import metrics_of
from mooring.report.simulation.page.page import Told, simulation_page
from mooring.report.simulation.results import EVICTED, Run
from mooring.report.simulation.summary import make_summary
from mooring.report.simulation.texts import key_figures
from mooring.testing.run_builders import SimulatedJob, SimulatedNode, Stay, make_run

Open = Callable[..., Any]
SECTIONS = ("allocation", "backlog", "shares", "waiting", "cluster", "gantt")
NODES = (
    SimulatedNode("h", gpu_model="NVIDIA-H100-80GB-HBM3"),
    SimulatedNode("a", gpu_model="NVIDIA-A100-SXM4-80GB"),
    SimulatedNode("c", gpus=0.0, cpus=8.0),
)


def small(policy: str, *, seed: int = 0, two_at: float = 20.0, gpus: bool = True) -> Run:
    """`one` has a whole node for 50 s; `two` half of another later on; `three` never starts; `four` starts twice."""
    jobs = [
        SimulatedJob("one", "red", 0.0, [Stay(0, 0.0, 50.0)], gpus=8.0),
        SimulatedJob("two", "blue", 10.0, [Stay(1, two_at)], gpus=4.0),
        SimulatedJob("three", "red", 30.0, gpus=8.0),
        SimulatedJob("four", "blue", 40.0, [Stay(2, 60.0, 70.0, EVICTED), Stay(2, 80.0, 90.0)], gpus=0.0, priority=5),
    ]
    nodes = NODES if gpus else [SimulatedNode(node.name, gpus=0.0, cpus=8.0) for node in NODES]
    return make_run(policy, seed=seed, horizon=100.0, every=25.0, nodes=nodes, jobs=jobs, changes=[(45.0, 1, "Down")])


def page_of(*runs: Run, title: str = "small") -> str:
    figures = key_figures(make_summary(title, [metrics_of(run) for run in runs], []))
    return simulation_page(Told(title, "mooring simulate small.yaml --report out.html", figures), runs)


def drawn(opened: Any, section: str) -> list[list[dict[str, Any]]]:
    """The traces of a section's charts."""
    script = """name => [...document.querySelectorAll(`#${name} .plot`)].map(plot => plot.data.map(
        trace => ({name: trace.name, x: trace.x, y: trace.y, z: trace.z, base: trace.base, type: trace.type})))"""
    found: list[list[dict[str, Any]]] = opened.page.evaluate(script, section)
    return found


def test_the_page_opens_from_a_file_without_requests_or_complaints(open_page: Open) -> None:
    opened = open_page(page_of(small("strict"), small("lax", two_at=60.0)))

    assert opened.complaints == []
    assert [url.rpartition("/")[2] for url in opened.requests] == ["page.html"]
    assert opened.page.get_attribute("html", "data-drawn") == "true"
    assert opened.page.title() == "small"
    # Every section has its charts, with a trace for each policy.
    traces = {section: [len(chart) for chart in drawn(opened, section)] for section in SECTIONS}
    assert traces == {
        "allocation": [2, 2, 2, 2, 2],  # GPUs, two models, CPUs, memory
        "backlog": [2, 2, 2],
        "shares": [2, 2],  # a chart a policy, an area a queue
        "waiting": [2, 2, 6],  # curves, and three kinds of marks a policy
        "cluster": [2, 2],  # nodes that are up, and those that are down
        "gantt": [4],  # waits, two queues, losses
    }


def test_charts_show_the_values_of_the_run(open_page: Open) -> None:
    opened = open_page(page_of(small("strict"), small("lax", two_at=60.0)))

    gpus = drawn(opened, "allocation")[0]
    assert [(trace["name"], trace["y"]) for trace in gpus] == [
        ("strict", [50, 75, 25, 25, 25]),
        ("lax", [50, 50, 0, 25, 25]),
    ]
    assert [trace["y"] for trace in drawn(opened, "shares")[0]] == [[50, 50, 0, 0, 0], [0, 25, 25, 25, 25]]
    curve = drawn(opened, "waiting")[0][0]
    assert (curve["x"][:4], curve["y"]) == ([1, 1, 10, 20], [0, 25, 50, 75, 75])
    waits, red, blue, lost = drawn(opened, "gantt")[0]
    assert (waits["y"], blue["y"], red["y"], lost["y"]) == ([1, 2, 3, 3], [1, 3, 3], [0], [3])
    assert red["base"] == [0]


def test_the_slider_goes_through_the_states_of_the_cluster(open_page: Open) -> None:
    opened = open_page(page_of(small("strict")))
    cells = {}
    for moment in (0, 30, 80):
        opened.page.evaluate(
            """moment => {
                const slider = document.querySelector("#moment");
                slider.value = moment;
                slider.dispatchEvent(new Event("input"));
            }""",
            moment,
        )
        up, down = drawn(opened, "cluster")[0]
        cells[moment] = (_cells(up["z"]), _cells(down["z"]), opened.page.inner_text("#cluster output"))

    # The A100, the H100, then the node without GPUs.
    assert cells == {
        0: ([0, 100, 0], [], "0.0 minutes"),
        30: ([50, 100, 0], [], "0.4 minutes"),
        80: ([0, 50], [1], "1.1 minutes"),
    }


def _cells(rows: list[list[float | None]]) -> list[float]:
    return [cell for row in rows for cell in row if cell is not None]


def test_play_moves_the_slider_by_itself_until_it_is_paused(open_page: Open) -> None:
    opened = open_page(page_of(small("strict")))
    before = opened.page.input_value("#moment")

    opened.page.click("#cluster button")
    opened.page.wait_for_function("before => document.querySelector('#moment').value !== before", arg=before)
    opened.page.click("#cluster button")

    assert opened.page.inner_text("#cluster button") == "Play"


def test_choosing_another_resource_or_policy_changes_the_charts(open_page: Open) -> None:
    opened = open_page(page_of(small("strict"), small("lax", two_at=60.0)))

    opened.page.click("#shares label:has-text('CPUs')")
    opened.page.click("#gantt label:has-text('lax')")
    opened.page.click("#waiting label:has-text('priority')")

    assert drawn(opened, "shares")[0][0]["y"] == [2.941, 2.941, 0, 0, 0]
    assert drawn(opened, "gantt")[0][2]["base"][0] == pytest.approx(1.0)  # `two` began at 60 s
    assert opened.page.get_attribute("#gantt .plot", "aria-label").startswith("lax: ")
    assert "5" in opened.page.inner_text("#waiting figure:last-of-type")


def test_several_seeds_have_bands_behind_their_lines(open_page: Open) -> None:
    runs = [small(f"policy {number}", seed=seed) for number in range(6) for seed in (1, 2)]

    opened = open_page(page_of(*runs))

    assert [len(chart) for chart in drawn(opened, "allocation")] == [18] * 5
    assert len(drawn(opened, "shares")) == len(drawn(opened, "cluster")) == 6
    assert opened.complaints == []


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param([small("alone")], id="one policy"),
        pytest.param([small("cpu", gpus=False), small("too", gpus=False)], id="no GPUs"),
        pytest.param([make_run("idle", nodes=NODES)], id="no jobs"),
        pytest.param([make_run("nothing")], id="neither nodes nor jobs"),
        pytest.param([], id="no runs"),
    ],
)
def test_whatever_is_missing_the_rest_is_drawn(open_page: Open, runs: list[Run]) -> None:
    opened = open_page(page_of(*runs))

    assert opened.complaints == []
    assert opened.page.is_visible("text=Key figures")
    for panel in opened.page.query_selector_all(".plot"):
        assert panel.query_selector(".main-svg") is not None


def test_names_that_look_like_markup_are_shown_and_do_nothing(open_page: Open) -> None:
    evil = "<script>window.hit=1</script>"
    image = "<img src=x onerror='window.hit=1'>"
    jobs = [SimulatedJob(image, evil, stays=[Stay(0, 0.0)]), SimulatedJob("b", image, stays=[Stay(0, 0.0)])]
    run = make_run(evil, nodes=[SimulatedNode(image, gpu_model=evil)], jobs=jobs)

    opened = open_page(page_of(run, title=evil))

    assert opened.page.evaluate("window.hit") is None
    assert (opened.complaints, len(opened.requests)) == ([], 1)
    assert evil in opened.page.inner_text("#shares .legend")
    assert opened.page.inner_text("h1") == evil
    assert evil.replace("<", "&lt;").replace(">", "&gt;") in drawn(opened, "allocation")[0][0]["name"]


def test_light_and_dark_follow_the_readers_preference_at_once(open_page: Open) -> None:
    opened = open_page(page_of(small("strict")), color_scheme="light")
    look = """() => [getComputedStyle(document.body).backgroundColor,
                     document.querySelector("#allocation .plot").layout.font.color]"""
    light = opened.page.evaluate(look)

    opened.page.emulate_media(color_scheme="dark")
    opened.page.wait_for_function(
        "old => document.querySelector('#allocation .plot').layout.font.color !== old", arg=light[1]
    )

    assert (light, opened.page.evaluate(look)) == (
        ["rgb(246, 247, 249)", "#1c2430"],
        ["rgb(18, 22, 28)", "#e6eaf0"],
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut_off_and_no_labels_touch_on_a_screen_or_a_phone(open_page: Open, width: int) -> None:
    long = "a policy with a name that is rather long for a name"
    opened = open_page(page_of(small(long), small("lax")), viewport={"width": width, "height": 800})

    assert opened.page.evaluate("document.documentElement.scrollWidth") == width
    outside = opened.page.evaluate(
        """() => [...document.querySelectorAll(".plot")].flatMap(plot => {
            const frame = plot.getBoundingClientRect();
            return [...plot.querySelectorAll(".main-svg text")].filter(text => {
                const box = text.getBoundingClientRect();
                return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1 ||
                    box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
            }).map(text => text.textContent);
        })"""
    )
    assert outside == []
    overlapping = opened.page.evaluate(
        """() => [...document.querySelectorAll(".plot .xaxislayer-above, .plot .yaxislayer-above")].flatMap(axis => {
            const boxes = [...axis.querySelectorAll("text")].map(text => text.getBoundingClientRect());
            const touch = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
                && a.top < b.bottom - 1 && b.top < a.bottom - 1;
            return boxes.some((a, at) => boxes.slice(at + 1).some(b => touch(a, b))) ? [axis.textContent] : [];
        })"""
    )
    assert overlapping == []


def test_every_chart_is_told_in_words_and_in_tables(open_page: Open) -> None:
    opened = open_page(page_of(small("strict"), small("lax", two_at=60.0)))

    labels = [plot.get_attribute("aria-label") for plot in opened.page.query_selector_all("[role=img]")]
    assert len(labels) == 16 and all(labels)
    assert labels[0] == "GPUs allocated over time. On average: strict 45.00%, lax 35.00%."
    for section in SECTIONS:
        assert opened.page.query_selector(f"#{section} details table") is not None


def test_without_javascript_there_are_the_tables(open_page: Open) -> None:
    opened = open_page(page_of(small("strict")), java_script_enabled=False)

    assert opened.page.inner_text("#figures th[scope=row] >> nth=0") == "finished"
    opened.page.click("#allocation summary")
    assert opened.page.is_visible("#allocation td:has-text('45.00%')")
