"""Every example makes its point: who lands where, who waits, and why."""

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mooring.cli.main import run

EXAMPLES = Path(__file__).parents[2] / "examples"
Json = dict[str, Any]


@pytest.fixture
def schedule(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(arguments: str) -> Json:
        words = [word.replace("examples", str(EXAMPLES)) for word in shlex.split(arguments)]
        code = run(["schedule", *words, "-o", "json"])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        result: Json = json.loads(out)
        return result

    return call


def places(result: Json) -> dict[str, str]:
    return {placement["pod"]: placement["node"] for placement in result["placements"]}


def messages(result: Json) -> dict[str, str]:
    return {pod["pod"]: pod["message"] for pod in result["waiting"]}


def test_gpu_pools_keep_out_who_does_not_tolerate_their_taint(schedule: Any) -> None:
    result = schedule("-f examples/gpu-pools")

    node_of = places(result)
    assert node_of["trainer"].startswith("a100-")
    assert node_of["server"].startswith("t4-")
    assert {node for pod, node in node_of.items() if pod.startswith("web-")} == {"cpu-0", "cpu-1"}
    assert messages(result) == {
        "forgetful": "0/7 nodes are available: 2 Insufficient nvidia.com/gpu, 5 node(s) had untolerated taint(s)."
    }


def test_higher_priorities_go_first_wherever_they_stand_in_the_file(schedule: Any) -> None:
    result = schedule("-f examples/priorities")

    assert [pod.partition("-")[0] for pod in places(result)] == ["serve", "serve", "train", "backfill"]
    assert messages(result) == dict.fromkeys(
        ["backfill-pkwtb", "backfill-zg5nt"], "0/1 nodes are available: 1 Insufficient cpu."
    )


def test_work_goes_to_its_data(schedule: Any) -> None:
    result = schedule("-f examples/data-locality")

    node_of = places(result)
    assert node_of["cache-0"].startswith("west-")
    trainers = {node for pod, node in node_of.items() if pod.startswith("train-")}
    assert trainers == {"west-0", "west-2"}, "the two nodes of the zone that have disk-0"
    assert list(messages(result)) == ["stray"]
    assert "node(s) didn't match pod affinity rules" in messages(result)["stray"]


def test_a_strict_spread_stops_where_the_smallest_zone_stops_and_a_wish_does_not(schedule: Any) -> None:
    result = schedule("-f examples/zone-spread")

    node_of = places(result)
    zones_of_web = Counter(node[0] for pod, node in node_of.items() if pod.startswith("web"))
    assert zones_of_web == {"a": 3, "b": 3, "c": 2}
    assert sum(pod.startswith("logs") for pod in node_of) == 9
    assert list(messages(result).values()) == [
        "0/5 nodes are available: 1 Insufficient cpu, 4 node(s) didn't match pod topology spread constraints."
    ]


def test_the_default_profile_spreads_what_bin_packing_puts_on_one_node(schedule: Any) -> None:
    spread = places(schedule("-f examples/bin-packing/cluster.yaml"))
    assert set(Counter(spread.values()).values()) == {2}


@pytest.mark.parametrize("config", ["scheduler.yaml", "scheduler-v1beta1.yaml"])
def test_bin_packing_fills_a_node_before_the_next_in_either_spelling(schedule: Any, config: str) -> None:
    packed = places(schedule(f"-f examples/bin-packing/cluster.yaml --config examples/bin-packing/{config}"))

    assert len(packed) == 8
    assert len(set(packed.values())) == 1


def test_thresholds_on_taints_sort_pods_by_what_they_put_up_with(schedule: Any) -> None:
    result = schedule("-f examples/sla-tolerations")

    node_of = places(result)
    assert node_of["payments"].startswith("reserved-")
    assert node_of["reports"].startswith("spot-")
    assert node_of["scraper"].startswith("spot-")
    assert messages(result) == dict.fromkeys(
        ["naive", "strict"], "0/4 nodes are available: 4 node(s) had untolerated taint(s)."
    )


def test_a_host_port_is_taken_once_a_node(schedule: Any) -> None:
    result = schedule("-f examples/host-ports")

    node_of = places(result)
    assert sorted(node for pod, node in node_of.items() if pod.startswith("proxy-")) == ["edge-0", "edge-1"]
    assert {"admin", "debug"} <= node_of.keys()
    assert list(messages(result).values()) == [
        "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
    ]


def test_a_local_volume_serves_one_claim_and_decides_the_node(schedule: Any) -> None:
    result = schedule("-f examples/volumes")

    node_of = places(result)
    assert {node_of["shard-0"], node_of["shard-1"]} == {"node-0", "node-1"}
    assert node_of["restore"] == "node-2"
    assert messages(result) == {
        "shard-2": "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind."
    }


def test_a_plugin_of_ten_lines_changes_a_placement(schedule: Any) -> None:
    without = schedule("-f examples/plugins/cluster.yaml")
    with_plugin = schedule("-f examples/plugins/cluster.yaml --plugin examples/plugins/cheapest_node.py")

    assert places(without) == {"report": "large"}
    assert places(with_plugin) == {"report": "cheap"}


def test_each_pod_is_placed_by_the_profile_that_it_names(schedule: Any) -> None:
    result = schedule("-f examples/profiles/cluster.yaml --config examples/profiles/scheduler.yaml")

    node_of = places(result)
    assert len({node_of[f"serve-{i}"] for i in range(4)}) == 4
    assert len({node_of[f"tune-{i}"] for i in range(4)}) == 1
    assert result["notOurs"] == [{"pod": "legacy", "namespace": "default", "schedulerName": "volcano"}]


# The demonstration.


@pytest.fixture
def platform(schedule: Any) -> Json:
    result: Json = schedule("-f examples/ai-platform")
    return result


def test_the_platform_is_filled_and_what_waits_has_different_reasons(platform: Json) -> None:
    waiting = Counter(pod.get("owner") or pod["pod"] for pod in platform["waiting"])

    assert waiting == {
        "Job/rollouts": 36,
        "Job/pretrain-long-context": 15,
        "StatefulSet/index": 2,
        "Job/join-everything": 1,
        "notebook-ada": 1,
        "notebook-lin": 1,
    }
    reasons = {(pod.get("owner") or pod["pod"]): pod["message"] for pod in platform["waiting"]}
    assert "48 Insufficient cpu" in reasons["Job/rollouts"]
    assert "96 Insufficient nvidia.com/gpu" in reasons["Job/pretrain-long-context"]
    assert "12 node(s) didn't match pod anti-affinity rules" in reasons["StatefulSet/index"]
    assert "90 Insufficient memory" in reasons["Job/join-everything"]
    assert "280 node(s) had untolerated taint(s)" in reasons["notebook-ada"]
    assert "310 node(s) didn't match Pod's node affinity/selector" in reasons["notebook-lin"]
    assert len({*reasons.values()}) == 6


def test_the_platform_gates_and_leaves_alone_what_is_not_for_it(platform: Json) -> None:
    assert Counter(pod["owner"] for pod in platform["gated"]) == {"Job/policy-search": 16}
    assert Counter(pod["owner"] for pod in platform["notOurs"]) == {"Job/legacy-mpi": 4}


def test_the_platform_spreads_what_serves_users_over_the_zones(platform: Json) -> None:
    chat = Counter(int(p["node"][-3:]) // 32 for p in platform["placements"] if p.get("owner") == "Deployment/chat-70b")
    gateway = Counter(int(p["node"][-3:]) % 3 for p in platform["placements"] if p.get("owner") == "Deployment/gateway")

    assert chat == {0: 5, 1: 5, 2: 5}
    assert gateway == {0: 4, 1: 4, 2: 4}


def test_the_platform_runs_agents_on_every_node(platform: Json) -> None:
    agents = [p["node"] for p in platform["placements"] if p.get("owner") == "DaemonSet/node-agent"]

    assert len(agents) == len(set(agents)) == platform["summary"]["nodes"] == 370


def test_no_pool_of_the_platform_is_given_away_twice(platform: Json) -> None:
    for pool in platform["pools"]:
        for usage in pool["resources"].values():
            assert usage["requested"] <= usage["allocatable"]
    assert [pool["name"] for pool in platform["pools"]] == ["a100", "data", "general", "h100", "l40s", "spot"]


@pytest.mark.parametrize("folder", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_every_example_says_on_top_what_it_shows(folder: str) -> None:
    for file in (EXAMPLES / folder).glob("*.yaml"):
        assert file.read_text().startswith("# "), f"{file.name} begins without a comment"
