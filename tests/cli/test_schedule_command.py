"""`mooring schedule`: tables for people, data for programs, the same decisions in both."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mooring.cli.output import yaml_lines

Call = Callable[..., Any]

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: "gpu-{i}", annotations: {mooring.dev/replicas: "2"}, labels: {agentpool: gpu, tier: gold}}
spec: {taints: [{key: nvidia.com/gpu, effect: NoSchedule}]}
status: {allocatable: {cpu: 8, memory: 32Gi, nvidia.com/gpu: 4, pods: 20}}
---
apiVersion: v1
kind: Node
metadata: {name: "cpu-{i}", annotations: {mooring.dev/replicas: "2"}, labels: {agentpool: cpu, tier: iron}}
status: {allocatable: {cpu: 4, memory: 16Gi, pods: 20}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  tolerations: [{operator: Exists}]
  containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: 1}, requests: {cpu: 2, memory: 8Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: held}
spec:
  schedulingGates: [{name: example.com/hold}]
  containers: [{name: main, image: x}]
---
apiVersion: v1
kind: Pod
metadata: {name: foreign}
spec:
  schedulerName: volcano
  containers: [{name: main, image: x}]
---
apiVersion: v1
kind: Pod
metadata: {name: old}
spec:
  nodeName: gpu-0
  containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
"""

TABLE = """\
9 pods placed on 3 nodes, 2 wait, 1 behind a gate, 1 not ours, 1 bound before; 4 nodes in all

NAMESPACE  WORKLOAD        PRIORITY  PLACED             POOLS
default    Pod/train              0  on gpu-1           gpu
shop       Deployment/web         0  8 pods on 2 nodes  cpu

POOL  NODES  PODS  CPU              MEMORY           nvidia.com/gpu
cpu       2     8  ██████████ 100%  ░░░░░░░░░░   0%
gpu       2     2  ██░░░░░░░░  19%  █░░░░░░░░░  12%  █░░░░░░░░░ 1/8

WAITING
2 pods: 0/4 nodes are available: 2 Insufficient cpu, 2 node(s) had untolerated taint(s).
    shop Deployment/web (2)

GATED
1 pod: waiting for scheduling gates: [example.com/hold]
    default/held

NOT OURS
1 pod: schedulerName is "volcano", which no profile here has; --as volcano takes them on
    default/foreign
"""


@pytest.fixture
def cluster(write: Call) -> Path:
    path: Path = write(CLUSTER)
    return path


def test_the_table_has_a_line_a_workload_a_line_a_pool_and_a_line_a_reason(mooring: Call, cluster: Path) -> None:
    outcome = mooring("schedule", "-f", cluster)

    assert outcome == (0, TABLE, "not read, of no concern to scheduling: 1 ConfigMap\n")


def test_quiet_leaves_out_the_remarks(mooring: Call, cluster: Path) -> None:
    assert mooring("schedule", "-q", "-f", cluster) == (0, TABLE, "")


def test_the_wide_table_lists_every_pod(mooring: Call, cluster: Path) -> None:
    lines = mooring("schedule", "--wide", "-f", cluster).out.splitlines()

    assert [line.split() for line in lines[2:4]] == [["NAMESPACE", "POD", "NODE"], ["default", "train", "gpu-1"]]
    assert sum(line.startswith("shop       web-") for line in lines) == 8
    assert "    shop/web-8d6f8cd9c-954d8" in lines


def test_json_has_everything(mooring: Call, cluster: Path) -> None:
    result = json.loads(mooring("schedule", "-f", cluster, "-o", "json").out)

    pods = ["placements", "waiting", "forbidden", "gated", "notOurs", "evicted", "lost"]
    rest = ["ended", "resized", "admitted", "suspended", "notices", "pools", "devices", "ignored", "gpus", "partitions"]
    assert list(result) == ["apiVersion", "kind", "summary", *pods, *rest]
    assert result["summary"] == {
        "nodes": 4,
        "placed": 9,
        "nodesUsed": 3,
        "waiting": 2,
        "forbidden": 0,
        "gated": 1,
        "waitingForQuota": 0,
        "notOurs": 1,
        "alreadyBound": 1,
        "leaving": 0,
        "over": 0,
        "evicted": 0,
        "lost": 0,
        "ended": 0,
        "admitted": 0,
        "suspended": 0,
    }
    assert result["placements"][0] == {
        "pod": "train",
        "namespace": "default",
        "node": "gpu-1",
        "priority": 0,
        "pool": "gpu",
    }
    assert result["waiting"][-1] == {
        "pod": "web-8d6f8cd9c-954d8",
        "namespace": "shop",
        "message": "0/4 nodes are available: 2 Insufficient cpu, 2 node(s) had untolerated taint(s).",
        "plugins": ["NodeResourcesFit", "TaintToleration"],
        "priority": 0,
        "owner": "Deployment/web",
    }
    assert result["pools"][1] == {
        "name": "gpu",
        "nodes": 2,
        "pods": 2,
        "resources": {
            "cpu": {"requested": 3, "allocatable": 16, "percent": 18.8},
            "memory": {"requested": 8 << 30, "allocatable": 64 << 30, "percent": 12.5},
            "nvidia.com/gpu": {"requested": 1, "allocatable": 8, "percent": 12.5},
        },
    }
    assert result["ignored"] == {"ConfigMap": 1}


def test_yaml_says_the_same_as_json(mooring: Call, cluster: Path) -> None:
    as_yaml = mooring("schedule", "-f", cluster, "-o", "yaml").out
    as_json = mooring("schedule", "-f", cluster, "-o", "json").out

    assert yaml.safe_load(as_yaml) == json.loads(as_json)


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_the_same_input_gives_the_same_output(mooring: Call, cluster: Path, output: str) -> None:
    assert mooring("schedule", "-f", cluster, "-o", output) == mooring("schedule", "-f", cluster, "-o", output)


def test_the_seed_decides_between_equal_nodes(mooring: Call, write: Call) -> None:
    node = '{name: "n-{i}", annotations: {mooring.dev/replicas: "50"}}'
    cluster = write(
        f"kind: Node\napiVersion: v1\nmetadata: {node}\nstatus: {{allocatable: {{cpu: 4, pods: 9}}}}\n---\n"
        "kind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x}]}\n"
    )

    chosen = [
        json.loads(mooring("schedule", "-f", cluster, "-o", "json", "--seed", seed).out)["placements"][0]["node"]
        for seed in ("1", "1", "2", "3", "4")
    ]

    assert chosen[0] == chosen[1]
    assert len(set(chosen)) > 1


def test_a_pool_is_what_the_given_label_says(mooring: Call, cluster: Path) -> None:
    result = json.loads(mooring("schedule", "-f", cluster, "-o", "json", "--pool-label", "tier").out)

    assert [(pool["name"], pool["nodes"]) for pool in result["pools"]] == [("gold", 2), ("iron", 2)]


def test_waiting_is_an_answer_unless_one_asks_for_a_failure(mooring: Call, cluster: Path) -> None:
    assert mooring("schedule", "-f", cluster).code == 0
    assert mooring("schedule", "-f", cluster, "--fail-on-waiting") == (
        1,
        TABLE,
        "not read, of no concern to scheduling: 1 ConfigMap\n",
    )


def test_manifests_come_from_standard_input_too(mooring: Call, cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CLUSTER.encode())))

    assert mooring("schedule", "-q", "-f", "-").out == TABLE


def test_manifests_come_from_several_files_as_a_shell_lists_them(mooring: Call, write: Call) -> None:
    first, *rest = CLUSTER.split("---")
    files = [write(first, "first.yaml"), write("---".join(rest), "rest.yaml")]

    assert mooring("schedule", "-q", "-f", *files).out == TABLE
    assert mooring("schedule", "-q", "-f", files[0], "-f", files[1]).out == TABLE


def test_without_pods_and_without_nodes_it_says_so(mooring: Call, write: Call) -> None:
    node = write(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 1, pods: 1}}\n", "n.yaml"
    )
    pod = write("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x}]}\n", "p.yaml")

    assert mooring("schedule", "-f", node).out.startswith("no pods placed, 0 wait; 1 node in all\n")
    assert "1 pod: no nodes available to schedule pods\n" in mooring("schedule", "-f", pod).out


def test_help_has_an_example(mooring: Call) -> None:
    for command in ("schedule", "explain", "queues", "bench"):
        outcome = mooring(command, "--help")
        assert outcome.code == 0
        assert f"Example:\n    mooring {command} " in outcome.out


def test_the_bare_command_prints_help_and_the_version_is_one_line(mooring: Call) -> None:
    assert mooring().out.startswith("Usage: mooring ")
    assert mooring("--version").out.startswith("mooring ")


texts = st.text(st.characters(exclude_categories=["C"]), max_size=12) | st.sampled_from(
    ["yes", "null", "1e3", "a/b", "web-0", "- x", "0x1F", "", "a: b", "2026-01-01"]
)
values = st.recursive(
    texts | st.integers() | st.booleans() | st.none() | st.floats(-1e6, 1e6, width=32),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(texts, values, min_size=1, max_size=4))
def test_yaml_reads_back_as_what_was_written(value: Any) -> None:
    assert yaml.safe_load("".join(yaml_lines(value))) == value


MANY_RESOURCES = """
apiVersion: v1
kind: Node
metadata: {name: "n-{i}", labels: {karpenter.sh/nodepool: h100-training}, annotations: {mooring.dev/replicas: "2"}}
status:
  allocatable: {cpu: 32, memory: 256Gi, pods: 110, nvidia.com/gpu: 8, rdma/hca_shared_devices_a: 8, example.com/fpga: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {}}]}}
  containers: [{name: w, image: x, resources: {limits: {rdma/hca_shared_devices_a: 9, nvidia.com/gpu: 9}}}]
"""


def test_pools_with_many_resources_have_a_line_a_resource(mooring: Call, write: Call) -> None:
    out = mooring("schedule", "-q", "-f", write(MANY_RESOURCES)).out

    assert max(map(len, out.partition("WAITING")[0].splitlines())) <= 100
    assert [line.split()[-2:] for line in out.splitlines() if "░" in line] == [
        ["░░░░░░░░░░", "0%"],
        ["░░░░░░░░░░", "0%"],
        ["░░░░░░░░░░", "0/4"],
        ["░░░░░░░░░░", "0/16"],
        ["░░░░░░░░░░", "0/16"],
    ]


def test_a_reason_is_never_broken_over_lines(mooring: Call, write: Call) -> None:
    name = "a-node-with-quite-a-long-name-as-clouds-give-them-in-some-zone-of-some-region"

    out = mooring("explain", "p", "-q", "-f", write(MANY_RESOURCES.replace('"n-{i}"', f'"{name}-{{i}}"'))).out

    assert f"{name}-0  NodeResourcesFit  Insufficient rdma/hca_shared_devices_a, Insufficient nvidia.com/gpu" in out
