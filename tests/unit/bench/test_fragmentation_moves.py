"""GPUs given out with some pods moved: the bound holds, moves make room, and the command says how far it is."""

from pathlib import Path

import pytest

from mooring.bench.fragmentation_bound import NodeKind, PodKind, full_cards, upper_bound
from mooring.bench.fragmentation_moves import main, run
from mooring.bench.fragmentation_runs import Trace, filled, policy_assembly
from mooring.bench.make_room import RoomMaker
from mooring.bench.optimum import drawn, optimum
from mooring.drivers.sim.traces.alibaba_gpu_2023 import GPU_COUNT, GPU_MILLI
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.testing.builders import make_node, make_pod

pytest.importorskip("ortools")

NODE = NodeKind(cpu_milli=16_000, memory_mib=64_000, gpus=2, model="T4")


def kind(milli: int, gpus: int = 1, cpu: int = 1000) -> PodKind:
    return PodKind(cpu_milli=cpu, memory_mib=1000, gpus=gpus, gpu_milli=milli)


def asking(name: str, kind: PodKind) -> Pod:
    annotations = {GPU_MILLI: str(kind.gpu_milli), GPU_COUNT: str(kind.gpus)}
    return make_pod(name, cpu=f"{kind.cpu_milli}m", memory=f"{kind.memory_mib}Mi", annotations=annotations)


def test_a_card_is_filled_in_every_way_that_leaves_no_room_for_another_share() -> None:
    assert full_cards([600, 300]) == [(1, 1), (0, 3)]
    assert full_cards([800]) == [(1,)]


def test_the_bound_knows_that_shares_do_not_divide_and_that_pods_that_run_stay() -> None:
    eight_tenths, whole = kind(800), kind(1000)

    assert upper_bound([NODE], [eight_tenths] * 4) == pytest.approx(1600)
    assert upper_bound([NODE], [eight_tenths] * 2 + [whole] * 2) == pytest.approx(2000)
    assert upper_bound([NODE], [eight_tenths] * 2 + [whole] * 2, running=[eight_tenths]) == pytest.approx(1800)


@pytest.mark.parametrize("seed", range(6))
def test_no_optimum_that_is_proven_lies_above_the_bound(seed: int) -> None:
    small = drawn(seed, nodes=6, pods=30)
    nodes = [NodeKind(1000 * node.cpu, 10**6, node.gpus, "") for node in small.nodes]
    pods = [PodKind(1000 * pod.cpu, 0, pod.gpus, pod.milli if pod.gpus else 0) for pod in small.pods]

    assert upper_bound(nodes, pods) >= optimum(small, most_seconds=20).found - 1e-3


def test_a_pod_moves_to_room_that_is_of_no_use_to_those_that_wait() -> None:
    half, both = kind(500), kind(1000, gpus=2)
    kinds = {"x": half, "y": half, "wait": both}
    nodes = [make_node(name, cpu=16, memory="64000Mi", pods=100, resources={GPU_COUNT: 2}) for name in ("a", "b")]
    pods = [asking(name, asked) for name, asked in kinds.items()]
    # WorstFit puts a half on each node, so that two whole GPUs are on none.
    assembly = policy_assembly("WorstFit", [])
    scheduler, bound = filled(assembly, nodes, pods)
    by_key = {PodKey(f"default/{name}"): asked for name, asked in kinds.items()}
    maker = RoomMaker(scheduler.cluster, assembly.profiles, {"a": NODE, "b": NODE}, by_key)

    assert bound == {"default/x", "default/y"}
    assert maker.make_room(0) == 0
    assert (maker.make_room(1), maker.moves) == (2000, 1)
    assert not list(maker.broken())
    rows = {key: scheduler.cluster.pods.records[key].row for key in by_key}
    assert rows[PodKey("default/x")] == rows[PodKey("default/y")] != rows[PodKey("default/wait")]


@pytest.fixture
def small(tmp_path: Path) -> Trace:
    """Nodes and pods in the form of the trace."""
    nodes = ["sn,cpu_milli,memory_mib,gpu,model", *(f"n-{n},16000,64000,4,T4" for n in range(3))]
    sizes = [(1, 800), (1, 200), (1, 500), (1, 300), (1, 1000), (2, 1000)]
    pods = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli"]
    pods += [f"p-{n},1000,1000,{gpus},{milli}" for n, (gpus, milli) in enumerate(sizes)]
    (tmp_path / "openb_node_list_gpu_node.csv").write_text("\n".join(nodes))
    (tmp_path / "openb_pod_list_default.csv").write_text("\n".join(pods))
    return Trace(tmp_path)


def test_more_moves_give_out_no_less_and_never_more_than_the_bound(small: Trace) -> None:
    for seed in range(3):
        found = run(small, seed, (10.0, 50.0))

        assert found.placed <= found.moved[0] <= found.moved[1] <= found.bound + 1e-6
        assert found.moves[0] <= 0.1 * found.running and found.moves[1] <= 0.5 * found.running


def test_the_command_prints_a_line_a_seed_and_the_gap(small: Trace, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(small.folder), "--seeds", "1", "2", "--moved", "5", "--jobs", "1"]) == 0

    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["SEED", "PODS", "PLACED", "5", "%", "MOVED", "MOVES", "BOUND", "GAP"]
    assert [row.split()[0] for row in rows[:3]] == ["1", "2", "mean"]
    assert rows[-1].startswith("GAP is what is missing to it: ")


def test_without_the_trace_the_command_says_which_file_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(tmp_path), "--seeds", "1", "--jobs", "1"]) == 2

    told = capsys.readouterr().err.strip()
    assert "\n" not in told and "openb_node_list_gpu_node.csv" in told
