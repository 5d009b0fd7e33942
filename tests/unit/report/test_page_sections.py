"""What the sections of a simulation's page hold, against values worked out by hand from a small world."""

from base64 import b64decode

import numpy as np
import pytest

from mooring.report.simulation.metrics import metrics_of
from mooring.report.simulation.page.backlog import backlog
from mooring.report.simulation.page.cluster import MOST_CELLS, ClusterMaps, cluster, node_fullness
from mooring.report.simulation.page.gantt import Bars, Gantt, gantt, merged
from mooring.report.simulation.page.over_time import MOST_POINTS, OverTime, allocation
from mooring.report.simulation.page.page import Told, simulation_page
from mooring.report.simulation.page.section import Queues, queues_by_weight, time_unit
from mooring.report.simulation.page.shares import Shares, shares
from mooring.report.simulation.page.waiting import Box, Curve, Waiting, waiting
from mooring.report.simulation.results import EVICTED, Run
from mooring.report.simulation.summary import make_summary
from mooring.report.simulation.texts import TextTable, key_figures
from mooring.testing.run_builders import SimulatedJob, SimulatedNode, Stay, make_run

MINUTES = time_unit(100.0)
NODES = (
    SimulatedNode("h", gpu_model="H100", price=36.0),
    SimulatedNode("a", gpu_model="A100"),
    SimulatedNode("c", gpus=0.0, cpus=8.0),
)


def small(policy: str = "strict", *, seed: int = 0, two_at: float = 20.0) -> Run:
    """`one` has all 8 H100 for 50 s; `two` 4 A100 from 20 s on; `three` never starts; `four` has 4 of 8 CPUs of `c`."""
    jobs = [
        SimulatedJob("one", "red", 0.0, [Stay(0, 0.0, 50.0)], gpus=8.0),
        SimulatedJob("two", "blue", 10.0, [Stay(1, two_at)], gpus=4.0),
        SimulatedJob("three", "red", 30.0, gpus=8.0),
        SimulatedJob("four", "blue", 40.0, [Stay(2, 60.0, 70.0, EVICTED), Stay(2, 80.0, 90.0)], gpus=0.0, priority=5),
    ]
    changes = [(45.0, 1, "Down"), (60.0, 1, "Up")]
    return make_run(policy, seed=seed, horizon=100.0, every=25.0, nodes=NODES, jobs=jobs, changes=changes)


def test_allocation_is_drawn_by_resource_and_gpu_model() -> None:
    section = allocation([small()], MINUTES)

    data = section.data
    assert isinstance(data, OverTime)
    assert data.x == [0.0, 0.416667, 0.833333, 1.25, 1.66667]  # minutes
    assert [panel.title for panel in data.panels] == ["GPUs", "A100 GPUs", "H100 GPUs", "CPUs", "Memory"]
    gpus, a100, h100, *_ = (panel.lines[0] for panel in data.panels)
    assert gpus.y == [50.0, 75.0, 25.0, 25.0, 25.0]
    assert (gpus.amount, gpus.capacity) == ([8.0, 12.0, 4.0, 4.0, 4.0], [16.0] * 5)
    assert a100.y == [0.0, 50.0, 50.0, 50.0, 50.0]
    assert h100.y == [100.0, 100.0, 0.0, 0.0, 0.0]
    # 8 for 50 s and 4 for 80 s, of 16 for 100 s.
    assert data.panels[0].label == "GPUs allocated over time. On average: strict 45.00%."
    assert section.tables[0].rows[0] == ("GPUs, allocated", "45.00%")


def test_several_seeds_are_a_mean_with_a_band() -> None:
    section = allocation([small(), small(seed=1, two_at=60.0), small("other")], MINUTES)

    data = section.data
    assert isinstance(data, OverTime)
    strict, other = data.panels[0].lines
    assert strict.y == [50.0, 62.5, 12.5, 25.0, 25.0]
    assert (strict.low, strict.high) == ([50.0, 50.0, 0.0, 25.0, 25.0], [50.0, 75.0, 25.0, 25.0, 25.0])
    assert (other.policy, other.low, other.high) == (1, [], [])
    assert section.notes == ("Lines are means of 2 seeds, bands reach from the least of them to the most.",)


def test_many_samples_are_drawn_as_means_and_the_page_says_so() -> None:
    run = make_run(
        horizon=2000.0, every=1.0, nodes=NODES, jobs=[SimulatedJob("j", stays=[Stay(0, 1.0, 3.0)], gpus=8.0)]
    )

    section = allocation([run], MINUTES)

    data = section.data
    assert isinstance(data, OverTime)
    assert len(data.x) <= MOST_POINTS
    assert data.panels[0].lines[0].y[:3] == [25.0, 0.0, 0.0]  # of 0 s to 3 s, half the cluster in two seconds of four
    assert section.notes == ("Each point is the mean of 4 samples: there are 2,001 of them.",)


def test_the_only_gpu_model_is_not_drawn_twice() -> None:
    section = allocation([make_run(nodes=NODES[:1])], MINUTES)

    assert isinstance(section.data, OverTime)
    assert [panel.title for panel in section.data.panels] == ["GPUs", "CPUs", "Memory"]


def test_the_backlog_is_jobs_that_wait_and_run_and_the_nodes_that_they_are_on() -> None:
    section = backlog([small()], MINUTES)

    assert isinstance(section.data, OverTime)
    assert {panel.title: panel.lines[0].y for panel in section.data.panels} == {
        "Jobs waiting": [0.0, 0.0, 2.0, 2.0, 1.0],
        "Jobs running": [1.0, 2.0, 1.0, 1.0, 1.0],
        "Nodes in use": [1.0, 2.0, 1.0, 1.0, 1.0],
    }
    assert section.tables[0].rows[0] == ("Jobs waiting", "1, at most 2")


def test_shares_of_queues_are_of_what_the_cluster_has() -> None:
    run = small()
    section = shares([run], MINUTES, queues_by_weight([run]))

    data = section.data
    assert isinstance(data, Shares)
    assert (data.queues, data.resources) == (["blue", "red"], ["GPUs", "CPUs", "memory"])
    gpus, cpus, _ = data.panels[0].shares
    assert gpus == [[0.0, 25.0, 25.0, 25.0, 25.0], [50.0, 50.0, 0.0, 0.0, 0.0]]
    assert cpus[0] == [0.0, 2.941, 2.941, 2.941, 2.941]  # 4 of 136
    assert section.tables[0] == TextTable(
        "Mean share of GPUs by queue", ("Queue", "strict"), (("blue", "20.00%"), ("red", "20.00%"))
    )


def test_queues_beyond_the_colours_are_drawn_as_one() -> None:
    jobs = [SimulatedJob(f"{n}", f"q{n:02}", 0.0, [Stay(0, 0.0)], gpus=0.5, cpus=12.0 - n) for n in range(12)]
    run = make_run(nodes=NODES[:1], jobs=jobs)

    queues = queues_by_weight([run])
    section = shares([run], MINUTES, queues)

    assert queues == Queues(tuple(f"q{n:02}" for n in range(8)), ("q08", "q09", "q10", "q11"))
    assert isinstance(section.data, Shares)
    assert section.data.queues[-1] == "4 other queues"
    assert [len(of_resource) for of_resource in section.data.panels[0].shares] == [9, 9, 9]
    assert section.data.panels[0].shares[0][-1] == [25.0] * 11  # 4 halves of 8 GPUs
    assert len(section.tables[0].rows) == 12
    assert section.notes == ("The 4 queues with the smallest shares are drawn as one, and told apart in the table.",)


def test_waiting_times_are_of_all_jobs_also_those_that_never_started() -> None:
    section = waiting([small()])

    data = section.data
    assert isinstance(data, Waiting)
    started, finished = data.distributions
    # `one` waited 0 s, `two` 10 s, `four` 20 s, `three` for the 70 s that were left and will for longer.
    assert started.curves == [Curve(0, [1.0, 10.0, 20.0], [25.0, 50.0, 75.0])]
    assert finished.curves == [Curve(0, [50.0, 50.0], [25.0, 50.0])]
    assert section.tables[0].rows == (
        ("mean", "≥ 25.0s (1 open)"),
        ("p50", "10.0s"),
        ("p95", "≥ 1m10s"),
        ("p99", "≥ 1m10s"),
        ("longest", "≥ 1m10s"),
        ("open", "1 of 4"),
    )


def test_waiting_times_are_told_apart_by_queue_size_and_priority() -> None:
    data = waiting([small()]).data

    assert isinstance(data, Waiting)
    by_queue, by_size, by_priority = data.groups
    assert by_queue.names == ["blue", "red"]
    assert by_queue.boxes == [[Box(2, 2, [10.0, 10.0, 10.0, 20.0, 20.0]), Box(2, 1, [1.0, 1.0, 1.0, 70.0, 70.0])]]
    assert by_size.names == ["0", "2-8"]
    assert by_priority.names == ["5", "0"]


def test_a_curve_of_many_jobs_has_few_steps_and_ends_where_they_end() -> None:
    jobs = [SimulatedJob(f"{n}", stays=[Stay(0, float(n))]) for n in range(10_000)]

    data = waiting([make_run(nodes=NODES, jobs=jobs, horizon=10_000.0, every=1000.0)]).data

    assert isinstance(data, Waiting)
    curve = data.distributions[0].curves[0]
    assert len(curve.seconds) == 250
    assert (curve.seconds[-1], curve.percent[-1]) == (9999.0, 100.0)


def test_nodes_are_as_full_as_their_gpus_or_their_cpus_if_they_have_none() -> None:
    full = node_fullness(small(), np.array([0.0, 25.0, 50.0, 65.0, 85.0, 100.0]))

    h, a, c = full.T
    assert h.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert a.tolist()[:2] + a.tolist()[3:] == [0.0, 0.5, 0.5, 0.5, 0.5]
    assert np.isnan(a[2])  # it was down
    assert c.tolist() == [0.0, 0.0, 0.0, 0.5, 0.5, 0.0]


def test_the_map_has_a_cell_for_each_node_by_model() -> None:
    data = cluster([small()], MINUTES).data

    assert isinstance(data, ClusterMaps)
    found = data.maps[0]
    assert [(block.title, block.cells) for block in found.blocks] == [("A100", 1), ("H100", 1), ("no GPUs", 1)]
    assert found.names == ["a", "h", "c"]
    cells = np.frombuffer(b64decode(found.cells), np.uint8).reshape(len(data.x), 3)
    assert len(cells) == 120
    assert cells[0].tolist() == [0, 200, 0]
    assert cells[30].tolist() == [100, 200, 0]  # 25.2 s
    assert cells[60].tolist() == [255, 0, 0]  # 50.4 s: `a` is down
    assert cells[80].tolist() == [100, 0, 100]  # 67.2 s


def test_very_many_nodes_share_cells_and_the_page_says_so() -> None:
    nodes = [SimulatedNode(f"n{number}", gpus=1.0) for number in range(2 * MOST_CELLS + 1)]
    jobs = [SimulatedJob("j", stays=[Stay(0, 0.0)], gpus=1.0)]

    section = cluster([make_run(nodes=nodes, jobs=jobs)], MINUTES)

    assert isinstance(section.data, ClusterMaps)
    found = section.data.maps[0]
    assert found.blocks[0].cells == len(found.names) == 6667
    assert found.names[0] == "n0 and 2 more"
    assert b64decode(found.cells)[0] == 67  # a third, in half percents
    assert section.notes[-1] == "Each cell is the mean of up to 3 nodes of one model that are up."


def test_jobs_are_bars_with_their_waits_and_losses() -> None:
    run = small()
    data = gantt([run], MINUTES, queues_by_weight([run])).data

    assert isinstance(data, Gantt)
    assert (data.jobs, data.queues, data.queue_of) == (["one", "two", "three", "four"], ["blue", "red"], [1, 0, 1, 0])
    timeline = data.timelines[0]
    assert timeline.ran == Bars([0, 1, 3, 3], [0.0, 0.333333, 1.0, 1.33333], [0.833333, 1.66667, 1.16667, 1.5])
    assert timeline.waited == Bars([1, 2, 3, 3], [0.166667, 0.5, 0.666667, 1.16667], [0.333333, 1.66667, 1.0, 1.33333])
    assert (timeline.lost_row, timeline.lost_x) == ([3], [1.16667])
    assert timeline.told[2] == "1 pod, 8 GPUs, Waiting, never started"
    assert timeline.told[3] == "1 pod, 0 GPUs, Finished, waited 20.0s, 1 eviction"


def test_of_many_jobs_some_are_drawn_evenly_and_the_same_under_each_policy() -> None:
    def run(policy: str) -> Run:
        return make_run(policy, nodes=NODES, jobs=[SimulatedJob(f"{n}", submitted=n / 10) for n in range(1000)])

    section = gantt([run("a"), run("b")], MINUTES, Queues(()))

    assert isinstance(section.data, Gantt)
    assert len(section.data.jobs) == 150
    assert (section.data.jobs[0], section.data.jobs[-1]) == ("0", "999")
    assert [len(each.waited.row) for each in section.data.timelines] == [150, 150]
    assert section.notes == ("150 of 1,000 jobs, taken evenly in the order of their arrival: about one in 7.",)


def test_pieces_of_time_are_joined_where_they_touch() -> None:
    assert merged([(3, 4), (0, 1), (1, 2), (3.5, 3.6)]) == [(0, 2), (3, 4)]


@pytest.mark.parametrize(
    ("horizon", "name"), [(3 * 3600, "minutes"), (3 * 3600 + 1, "hours"), (4 * 86400, "hours"), (30 * 86400, "days")]
)
def test_times_are_in_units_that_suit_the_horizon(horizon: float, name: str) -> None:
    assert time_unit(horizon).name == name


def told(runs: list[Run], title: str = "small") -> Told:
    return Told(title, "mooring simulate small.yaml", key_figures(make_summary(title, [*map(metrics_of, runs)], [])))


def test_names_cannot_become_markup() -> None:
    evil = "</script><script>alert(1)</script>"
    run = make_run(evil, nodes=[SimulatedNode(evil)], jobs=[SimulatedJob(evil, evil, stays=[Stay(0, 0.0)])])

    page = simulation_page(told([run], evil), [run])

    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "</script><script>alert" not in page


def test_without_runs_the_page_says_so_and_has_no_scripts() -> None:
    page = simulation_page(told([]), [])

    assert "No run has results: there is nothing to draw." in page
    assert "<script>" not in page


def test_runs_in_which_nothing_was_there_say_so_in_each_section() -> None:
    page = simulation_page(told([make_run()]), [make_run()])

    for note in (
        "There were no nodes.",
        "Nothing ran, and nothing waited.",
        "No queue had anything.",
        "There were no jobs.",
    ):
        assert f"<p class='note'>{note}</p>" in page


def test_the_page_grows_with_policies_but_not_with_jobs() -> None:
    def size(jobs: int) -> int:
        many = [SimulatedJob(f"job-{n:06}", f"q{n % 40}", n / jobs, [Stay(n % 3, n / jobs)]) for n in range(jobs)]
        run = make_run(nodes=NODES, jobs=many, every=1.0)
        return len(simulation_page(told([run]), [run]))

    assert size(5000) < 1.05 * size(500)
