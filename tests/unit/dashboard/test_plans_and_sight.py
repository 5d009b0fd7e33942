"""Plans as rows, and how much of a cluster somebody may see."""

from pathlib import Path

import pytest

from mooring.dashboard.picture import Picture, take_picture
from mooring.dashboard.series import Allocation
from mooring.dashboard.sight import EVERYTHING, NOTHING, Sight, narrowed, visible_plans
from mooring.drivers.offline.reading import Inputs, read
from mooring.model.keys import PodKey
from mooring.observe.progress import Progress
from mooring.report.plans import TEXTS, PlannedPod, PlanRow, plan_rows
from mooring.report.pools import Pool, Usage
from mooring.state.plans import Held, Plan, Reason

CLUSTER = """
{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: runs, namespace: red}, spec: {nodeName: n, containers: [{name: c}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: runs, namespace: blue}, spec: {nodeName: n, containers: [{name: c}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: blue}
spec: {containers: [{name: c, resources: {requests: {cpu: 9}}}]}
"""


@pytest.fixture
def picture(tmp_path: Path) -> Picture:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    return take_picture(1, str(file), read(Inputs([str(file)]), Progress()))


def test_a_plan_is_shown_with_its_reason_gain_and_cost(picture: Picture) -> None:
    cluster = picture.moment.offline.scheduler.cluster
    plan = Plan(Reason.MOVE, (Held(PodKey("blue/waits"), cluster.nodes.row_of["n"]),), gain=3.0, cost=1.5)
    assert plan_rows(cluster) == []

    number = cluster.adopt(plan)

    (row,) = plan_rows(cluster)
    assert (row.number, row.reason, row.text) == (number, "move", TEXTS[Reason.MOVE])
    assert (row.gain, row.cost, row.subject) == (3.0, 1.5, "blue/waits")
    assert row.goes_to == [PlannedPod("blue/waits", "n")]
    assert set(TEXTS) == set(Reason)


def test_of_other_namespaces_neither_names_nor_counts_are_left(picture: Picture) -> None:
    seen = narrowed(picture, Sight(frozenset({"red"}), nodes=False, queues=False))

    assert (seen.result.summary.already_bound, seen.result.summary.waiting, seen.result.summary.nodes) == (1, 0, 0)
    assert (seen.result.waiting, seen.result.pools, seen.nodes.names) == ([], [], [])
    assert picture.result.summary.waiting == 1
    assert narrowed(picture, EVERYTHING) is picture
    assert NOTHING.is_blind and not Sight(frozenset({"red"}), nodes=False, queues=False).is_blind


def test_a_plan_is_visible_where_all_of_its_pods_are() -> None:
    def plan(number: int, *pods: str) -> PlanRow:
        goes_to = [PlannedPod(each, "n") for each in pods]
        return PlanRow(number, "move", "", "", 0.0, 0.0, [], goes_to, [], [], [], None)

    plans = [plan(1, "red/a"), plan(2, "red/a", "blue/b"), plan(3)]
    red = frozenset({"red"})
    assert [each.number for each in visible_plans(plans, Sight(red))] == [1, 3]
    assert visible_plans(plans, Sight(red, nodes=False)) == []
    assert visible_plans(plans, EVERYTHING) == plans


def test_the_series_keeps_its_first_and_last_point_however_many_come() -> None:
    allocation = Allocation(most=10)
    for moment in range(1000):
        usage = Usage(requested=float(moment), allocatable=1000.0, percent=0.0)
        allocation.note(float(moment), [Pool(name="p", nodes=1, pods=1, resources={"cpu": usage})])

    found = allocation.series()
    assert (found.times[0], found.times[-1]) == (0.0, 999.0)
    assert found.percents["cpu"] == [pytest.approx(moment / 10) for moment in found.times]
    assert 3 <= len(found.times) <= 11
    assert found.times == sorted(found.times)
