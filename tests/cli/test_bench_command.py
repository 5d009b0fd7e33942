"""`mooring bench`: every workload runs, is verified, and says what it measured."""

import json
from pathlib import Path

import msgspec
import pytest

from mooring.cli.main import run
from mooring.errors import InvariantBroken
from mooring.plugin import Mask, NodeRows, Shape
from mooring.plugins.node_unschedulable import NodeUnschedulable
from mooring.testing.measure import measure
from mooring.testing.tally import Measurement
from mooring.testing.workloads import bench_folder, load_workload

PODS = (
    "basic",
    "churn",
    "claims",
    "claims-selectors",
    "default-spread",
    "distinct",
    "distinct-preferred-anti-affinity",
    "distinct-required-anti-affinity",
    "extended-resources",
    "hard-spread",
    "load-aware",
    "load-unaware",
    "mix",
    "numa",
    "node-affinity",
    "preferred-affinity",
    "preferred-anti-affinity",
    "required-affinity",
    "required-anti-affinity",
    "shared-gpus",
    "soft-spread",
    "unschedulable",
)
OTHERS = (
    "amend",
    "autoscaler-down",
    "autoscaler-up",
    "budgets",
    "consolidate",
    "deep-cohorts",
    "ever-new",
    "fair-reclaim",
    "gang",
    "gang-preemption",
    "gang-rack",
    "gang-slices",
    "gang-waiting",
    "kai-consolidation",
    "kubeapi",
    "offers",
    "one-cohort",
    "preemption",
    "rebalance",
    "provision-1000",
    "provision-5000",
    "provision-large",
    "tenants",
    "tenants-preemption",
    "volcano-queues",
    "usage",
)
BASE_FIELDS = {
    "workload",
    "nodes",
    "pods",
    "pods_per_second",
    "p50_us",
    "p99_us",
    "peak_rss_mib",
    "placed",
    "waiting",
}


def measure_small(name: str, nodes: int, pods: int) -> Measurement:
    return measure(load_workload(bench_folder() / f"{name}.yaml"), nodes=nodes, pods=pods)


def test_the_workloads_are_the_ones_people_compare() -> None:
    assert sorted(path.stem for path in bench_folder().glob("*.yaml")) == sorted(PODS + OTHERS)


def test_a_plan_of_rebalancing_is_timed_with_its_moves(capsys: pytest.CaptureFixture[str]) -> None:
    found = measure_small("rebalance", nodes=1000, pods=1)

    assert (found.nodes, found.pods, found.moves) == (1000, 10_000, 250)
    assert isinstance(found.plan_seconds, float) and found.plan_seconds > 0

    assert run(["bench", "--workload", "rebalance", "--nodes", "20", "-q"]) == 0
    assert "rebalance: the first plan took" in capsys.readouterr().out


def test_gangs_of_kais_queue_get_room_by_as_few_moves_as_there_have_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    found = measure_small("kai-consolidation", nodes=60, pods=40)

    assert (found.gangs, found.gangs_placed, found.placed, found.waiting) == (4, 4, 40, 0)
    assert found.moves == 40, "each pod of a gang needs one GPU more than any node has free"

    assert run(["bench", "--workload", "kai-consolidation", "--nodes", "30", "--pods", "20", "-q"]) == 0
    assert "2 gangs have their places after 20 moves, decided in" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "nodes", "count"), [("offers", 20, 300), ("amend", 20, 40)])
def test_trials_are_timed_and_leave_nothing_behind(name: str, nodes: int, count: int) -> None:
    found = measure_small(name, nodes=nodes, pods=count)

    assert (found.workload, found.nodes, found.pods, found.placed) == (name, nodes, count, 0)
    assert isinstance(found.trials_per_second, float)
    assert found.trials_per_second > 0


def test_usage_is_timed_by_passes_over_all_containers() -> None:
    found = measure_small("usage", nodes=1, pods=500)

    assert (found.workload, found.pods, found.placed) == ("usage", 500, 0)
    assert isinstance(found.passes_per_second, float) and isinstance(found.update_cpu_seconds, float)
    assert found.passes_per_second > 0 and 0 < found.update_cpu_seconds < 5


@pytest.mark.parametrize(("name", "pods"), [("provision-1000", 50), ("provision-5000", 50), ("provision-large", 300)])
def test_what_karpenter_buys_is_timed(name: str, pods: int) -> None:
    found = measure_small(name, nodes=5, pods=pods)

    assert (found.workload, found.pods, found.placed, found.waiting) == (name, pods, pods, 0)
    assert isinstance(found.nodes_added, int) and found.nodes_added > 0


def test_what_karpenter_gives_back_is_timed() -> None:
    found = measure_small("consolidate", nodes=20, pods=1)

    assert isinstance(found.nodes_unneeded, int) and found.nodes_unneeded > 0


def test_a_loop_of_the_autoscaler_that_grows_groups_is_timed() -> None:
    found = measure_small("autoscaler-up", nodes=10, pods=500)

    assert (found.pods, found.placed, found.waiting) == (500, 500, 0)
    assert isinstance(found.nodes_added, int) and found.nodes_added > 5
    assert isinstance(found.loop_cpu_seconds, float) and found.loop_cpu_seconds > 0


def test_a_loop_of_the_autoscaler_that_shrinks_groups_is_timed() -> None:
    found = measure_small("autoscaler-down", nodes=20, pods=1)

    assert (found.pods, found.placed, found.waiting) == (200, 0, 0)
    assert isinstance(found.nodes_unneeded, int) and 5 < found.nodes_unneeded < 20
    assert isinstance(found.loops_per_second, float) and found.loops_per_second > 0


def test_pods_of_volcanos_queues_come_one_a_cycle_and_are_timed_by_it() -> None:
    found = measure_small("volcano-queues", nodes=40, pods=1000)

    assert (found.placed, found.waiting) == (1000, 0)
    assert found.p50_us > 0


@pytest.mark.parametrize("name", PODS)
def test_a_workload_runs_and_its_final_state_is_verified(name: str) -> None:
    result = measure_small(name, nodes=60, pods=240)

    assert (result.workload, result.nodes, result.pods) == (name, 60, 240)
    assert result.placed + result.waiting == 240
    assert result.placed > 0
    assert result.pods_per_second > 0
    assert 0 < result.p50_us <= result.p99_us
    assert set(msgspec.to_builtins(result)) == BASE_FIELDS | {"largest_batch"}


@pytest.mark.parametrize(
    ("name", "gangs_placed"),
    [
        pytest.param("gang", 2, id="anywhere, in 640 places"),
        pytest.param("gang-rack", 2, id="in two racks of 256 places and one of 128"),
        pytest.param("gang-slices", 1, id="in 60 nodes of eight places, the others having seven"),
    ],
)
def test_gangs_are_decided_on_as_one_and_the_last_one_is_made_complete(name: str, gangs_placed: int) -> None:
    result = measure_small(name, nodes=80, pods=600)

    assert (result.pods, result.placed, result.waiting) == (768, 256 * gangs_placed, 768 - 256 * gangs_placed)
    assert (result.gangs, result.gangs_placed) == (3, gangs_placed)
    assert isinstance(result.gangs_per_second, float)
    assert 0 < result.gangs_per_second < result.pods_per_second
    assert 0 < result.p50_us <= result.p99_us


def test_gangs_that_do_not_fit_wait_without_holding_anything() -> None:
    result = measure_small("gang-waiting", nodes=200, pods=512)

    assert (result.gangs, result.gangs_placed, result.placed) == (2, 0, 0)
    assert result.waiting == 512


def test_every_pod_that_comes_to_a_full_cluster_evicts_others() -> None:
    result = measure_small("preemption", nodes=40, pods=12)

    assert (result.placed, result.waiting, result.preemptions) == (12, 0, 12)
    assert isinstance(result.evictions, int)
    assert result.evictions >= 12
    assert 0 < result.p50_us <= result.p99_us


def test_a_gang_that_comes_to_a_full_cluster_evicts_others() -> None:
    result = measure_small("gang-preemption", nodes=64, pods=128)

    assert (result.placed, result.waiting, result.preemptions) == (128, 0, 2)
    # 64 GPUs, of which each victim had four.
    assert isinstance(result.evictions, int)
    assert result.evictions >= 32


def test_where_pods_come_and_go_it_says_what_stays_in_memory() -> None:
    result = measure_small("ever-new", nodes=10, pods=300)

    assert (result.placed, result.waiting) == (300, 0)
    early, late = result.rss_at_first_tenth_mib, result.rss_at_end_mib
    assert isinstance(early, int) and isinstance(late, int)
    assert early > 0 and 0 < late <= result.peak_rss_mib


def test_deep_cohorts_take_turns_and_queues_take_back_what_is_theirs() -> None:
    deep = measure_small("deep-cohorts", nodes=10, pods=100)
    assert (deep.placed, deep.admissions, deep.suspensions) == (100, 100, 0)

    reclaim = measure_small("fair-reclaim", nodes=10, pods=120)
    assert (reclaim.admissions, reclaim.suspensions) == (120, 30)

    one = measure_small("one-cohort", nodes=10, pods=80)
    assert (one.placed, one.admissions, one.suspensions) == (80, 104, 24)


def test_workloads_finish_until_all_are_admitted() -> None:
    result = measure_small("tenants", nodes=20, pods=500)

    assert (result.placed, result.waiting) == (500, 0)
    assert isinstance(result.admissions, int)
    assert isinstance(result.suspensions, int)
    assert isinstance(result.cycles, int)
    assert result.admissions == 500 + result.suspensions
    assert result.cycles > 10  # 170 CPU for 20, so they take turns


def test_queues_that_come_late_take_back_what_is_theirs() -> None:
    result = measure_small("tenants-preemption", nodes=20, pods=500)

    assert (result.placed, result.waiting) == (500, 0)
    assert isinstance(result.suspensions, int)
    assert result.suspensions > 0
    assert result.admissions == 500 + result.suspensions


def test_pods_that_cannot_fit_wait_and_the_others_do_not() -> None:
    result = measure_small("unschedulable", nodes=60, pods=300)

    assert (result.placed, result.waiting) == (200, 100)


def test_json_is_a_list_of_objects_with_the_figures(capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["bench", "--workload", "basic", "--nodes", "20", "--pods", "50", "-o", "json"])

    (result,) = json.loads(capfd.readouterr().out)
    assert code == 0
    figures = {"workload", "nodes", "pods", "pods_per_second", "p50_us", "p99_us", "peak_rss_mib"}
    assert figures <= set(result)
    assert (result["workload"], result["nodes"], result["pods"]) == ("basic", 20, 50)


def test_the_table_shows_kube_scheduler_beside_ours(capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["bench", "-w", "basic", "--nodes", "20", "--pods", "50"])

    lines = capfd.readouterr().out.splitlines()
    assert code == 0
    assert lines[0].split()[:4] == ["WORKLOAD", "NODES", "PODS", "PODS/S"]
    assert lines[1].split()[-2:] == ["789/s", "108/s"]


REPOSITORY = Path(__file__).parents[2]


def test_a_checkout_is_compared_with_another_by_the_cpu_seconds_of_both(capfd: pytest.CaptureFixture[str]) -> None:
    sizes = ["--nodes", "20", "--pods", "50"]
    code = run(["bench", "-w", "basic", *sizes, "--against", str(REPOSITORY), "--runs", "2", "-o", "json"])

    (result,) = json.loads(capfd.readouterr().out)
    theirs, ours = result.pop("their_cpu_seconds"), result.pop("our_cpu_seconds")
    times, by_median = result.pop("times"), result.pop("times_by_median")
    assert code == 0
    assert result == {"workload": "basic", "nodes": 20, "pods": 50, "same_counts": True}
    assert len(theirs) == len(ours) == 2
    assert times == round(min(theirs) / min(ours), 3)
    assert by_median == round(sum(theirs) / sum(ours), 3)


def test_the_comparison_is_a_line_a_workload(capfd: pytest.CaptureFixture[str]) -> None:
    sizes = ["--nodes", "20", "--pods", "50"]
    code = run(["bench", "-w", "basic", *sizes, "--against", str(REPOSITORY), "--runs", "1"])

    header, row, _, *said = capfd.readouterr().out.splitlines()
    assert code == 0
    assert header.split()[:8] == ["WORKLOAD", "NODES", "PODS", "THEIRS", "s", "OURS", "s", "TIMES"]
    assert row.split()[:3] == ["basic", "20", "50"]
    assert row.endswith("as many")
    assert said[0].startswith("CPU seconds in cycles, the least of 1 runs each in turn")


def test_what_is_no_checkout_is_bad_input(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["bench", "-w", "basic", "--against", str(tmp_path)])

    captured = capfd.readouterr()
    assert (code, captured.out) == (2, "")
    expected = "a checkout of Mooring (a folder with src/mooring)"
    assert captured.err == f'error: --against: expected {expected}, found "{tmp_path}"\n'


def test_a_checkout_that_cannot_measure_a_workload_is_a_failure(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "src" / "mooring"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise RuntimeError('too old')")

    code = run(["bench", "-w", "basic", "--against", str(tmp_path)])

    captured = capfd.readouterr()
    assert (code, captured.out) == (1, "")
    assert captured.err == f"error: basic with {broken.parent}: RuntimeError: too old\n"


def test_an_unknown_workload_is_bad_input(capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["bench", "--workload", "basix"])

    captured = capfd.readouterr()
    assert (code, captured.out) == (2, "")
    assert captured.err == 'error: --workload: expected a workload (did you mean basic?), found "basix"\n'


def test_the_table_shows_decisions_of_other_kinds_apart(capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["bench", "-w", "basic", "-w", "gang", "--nodes", "32", "--pods", "256"])

    lines = capfd.readouterr().out.splitlines()
    header = next(line for line in lines if "DECISIONS" in line)
    row = lines[lines.index(header) + 1].split()
    assert code == 0
    assert header.split() == [
        "WORKLOAD",
        "NODES",
        "PODS",
        "PODS/S",
        "P50",
        "µs",
        "P99",
        "µs",
        "MiB",
        "DECISIONS",
        "WAITING",
    ]
    assert row[:3] == ["gang", "32", "256"]
    assert row[-2:] == ["gangs/s", "0"]
    assert not any("gang" in line for line in lines[: lines.index(header)])


def test_json_has_the_extra_figures_of_a_gang(capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["bench", "-w", "gang", "--nodes", "32", "--pods", "256", "-o", "json"])

    (result,) = json.loads(capfd.readouterr().out)
    assert code == 0
    assert set(result) == BASE_FIELDS | {"gangs", "gangs_placed", "gangs_per_second"}


def test_the_list_names_every_workload_in_a_line_and_measures_none(capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["bench", "--list"])

    lines = capfd.readouterr().out.splitlines()
    rows = lines[1 : lines.index("")]
    assert code == 0
    assert lines[0].split() == ["WORKLOAD", "NODES", "PODS", "WHAT", "IT", "IS"]
    assert sorted(row.split()[0].rstrip("*") for row in rows) == sorted(PODS + OTHERS)
    long = {"ever-new*", "gang-waiting*", "kubeapi*", "tenants*", "tenants-preemption*"}
    assert {row.split()[0] for row in rows if "*" in row} == long


def test_the_list_as_data_says_which_sizes_are_measured(capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["bench", "--list", "-w", "gang", "-o", "json"])

    assert code == 0
    assert json.loads(capfd.readouterr().out) == [
        {
            "workload": "gang",
            "nodes": 10_000,
            "pods": 51_200,
            "long": False,
            "description": "gangs of 256 pods, one GPU each, anywhere",
        }
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param("sizes: {nodes: 0}", "sizes.nodes: expected int >= 1, found otherwise", id="no nodes"),
        pytest.param(
            "decision: guess",
            "decision: expected",
            id="a decision that nobody takes",
        ),
        pytest.param(
            "running: {share: 0.5, perNode: 2, pods: []}",
            "running: expected either share or perNode, found both",
            id="running pods counted twice",
        ),
        pytest.param(
            "running: {pods: []}",
            "running: expected either share or perNode, found neither",
            id="running pods not counted",
        ),
        pytest.param(
            "pods: [{at: soon, template: {}}]\nseconds: 1",
            'pods[0].at: expected a duration such as 90s, 10m or 1h30m, found "soon"',
            id="no duration",
        ),
        pytest.param(
            "pods: [{at: 5s, template: {}}]",
            'pods[0].at: expected none where no time passes (seconds), found "5s"',
            id="a time where none passes",
        ),
        pytest.param(
            "pods: [{gang: 8, run: 12, template: {}}]",
            "pods[0].gang: expected what divides weight times run (12), so that gangs stand together, found 8",
            id="gangs torn apart",
        ),
        pytest.param("seccons: 1", "seccons: expected a known key (did you mean seconds?)", id="a slip of the hand"),
    ],
)
def test_a_bad_workload_is_refused_in_one_line(
    change: str, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    pods = "" if change.startswith("pods") else "pods: []\n"
    path.write_text(f"name: mine\ndescription: mine\nnodes: []\n{pods}{change}\n")

    code = run(["bench", "--workload", str(path)])

    captured = capfd.readouterr()
    assert (code, captured.out) == (2, "")
    assert captured.err.startswith(f"error: {path}: {message}")
    assert captured.err.count("\n") == 1


TORN = """
name: torn
description: a gang of which half runs from the start
nodes:
  - apiVersion: v1
    kind: Node
    metadata: {name: "node-{i}"}
    status: {allocatable: {cpu: "4", memory: 8Gi, pods: "9"}}
running:
  perNode: 1
  pods:
    - template:
        apiVersion: v1
        kind: Pod
        metadata: {name: "half-{i}", annotations: {mooring.dev/gang-name: half, mooring.dev/gang-minimum: "8"}}
        spec: {containers: [{name: work, image: "work:v1"}]}
pods:
  - template:
      apiVersion: v1
      kind: Pod
      metadata: {name: "pod-{i}"}
      spec: {containers: [{name: work, image: "work:v1"}]}
"""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param({}, "gang default/half: 4 of at least 8 members run (and 0 more)", id="half a gang"),
        pytest.param(
            {'"8"': '"4"', 'image: "work:v1"}]}\npods': 'image: "work:v1", resources: {requests: {cpu: 5}}}]}\npods'},
            "node-0: 5000 of cpu taken, 4000 allocatable (and 3 more)",
            id="more than a node has",
        ),
    ],
)
def test_what_is_wrong_in_the_end_is_a_failure(
    change: dict[str, str], problem: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = TORN
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "torn.yaml"
    path.write_text(text)

    code = run(["bench", "--workload", str(path), "--nodes", "4", "--pods", "2"])

    captured = capfd.readouterr()
    assert (code, captured.out) == (1, "")
    assert captured.err == f"error: workload torn: {problem}\n"


API_FIELDS = {"binds_per_second", "binds_per_cpu_second", "client_binds_per_cpu_second", "list_seconds"}


def test_the_embedded_control_plane_is_measured_through_its_api() -> None:
    found = msgspec.to_builtins(measure_small("kubeapi", nodes=5, pods=40))

    assert (found["placed"], found["waiting"]) == (40, 0)
    assert set(found) == BASE_FIELDS | API_FIELDS
    assert found["binds_per_second"] > 0


@pytest.mark.faults
def test_what_raises_in_a_cycle_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(self: NodeUnschedulable, pod: Shape, nodes: NodeRows, prepared: object) -> Mask:
        raise LookupError("not there")

    monkeypatch.setattr(NodeUnschedulable, "filter", stumble)

    with pytest.raises(InvariantBroken, match=r"workload basic: in the turn of .* NodeUnschedulable: .* not there"):
        measure_small("basic", nodes=2, pods=3)
