"""Topology-aware scheduling through the product: quota comes with a place, and the pods go to that place."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from mooring.assembly import assemble
from mooring.cli.main import run
from mooring.engine.cycle import Scheduler
from mooring.model.api.pods import PodStatus
from mooring.model.decisions import Admit, Bind, Evict, Suspend, TopologyAssignment, TopologyDomain, Wait
from mooring.model.events import NodeSeen, PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import Manifests, build_manifests

EXAMPLE = sorted((Path(__file__).parents[2] / "examples" / "tenants" / "topology").glob("*.yaml"))
RACK, HOST, GPU = "example.com/rack", "kubernetes.io/hostname", "nvidia.com/gpu"
TOO_WIDE = 'couldn\'t assign flavors to pod set main: topology "dc" allows to fit only 8 out of 10 pod(s)'

QUEUES = f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {{name: dc}}
spec: {{levels: [{{nodeLabel: {RACK}}}, {{nodeLabel: {HOST}}}]}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {{name: gpus}}
spec: {{topologyName: dc}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: team}}
spec:
  namespaceSelector: {{}}
  preemption: {{withinClusterQueue: LowerPriority}}
  resourceGroups:
    - coveredResources: [{GPU}]
      flavors: [{{name: gpus, resources: [{{name: {GPU}, nominalQuota: 64}}]}}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: jobs, namespace: default}}
spec: {{clusterQueue: team}}
"""


def node(name: str, rack: str, gpus: int = 4) -> str:
    return f"""
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{{RACK}: {rack}, {HOST}: {name}}}}}
status: {{allocatable: {{cpu: "64", memory: 64Gi, pods: "110", {GPU}: "{gpus}"}}}}
"""


TWO_RACKS = [node("a0", "a"), node("a1", "a"), node("b0", "b"), node("b1", "b")]


def job(name: str, pods: int, request: str, *, priority: str = "", mode: str = "Indexed") -> str:
    labels = f", kueue.x-k8s.io/priority-class: {priority}" if priority else ""
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, labels: {{kueue.x-k8s.io/queue-name: jobs{labels}}}}}
spec:
  parallelism: {pods}
  completions: {pods}
  completionMode: {mode}
  suspend: true
  template:
    metadata: {{annotations: {{{request}}}}}
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: i, resources: {{limits: {{{GPU}: "1"}}}}}}]
"""


def pod(name: str, on: str, gpus: int) -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeName: {on}
  containers: [{{name: main, image: i, resources: {{limits: {{{GPU}: "{gpus}"}}}}}}]
"""


REQUIRED = f"kueue.x-k8s.io/podset-required-topology: {RACK}"
PREFERRED = f"kueue.x-k8s.io/podset-preferred-topology: {RACK}"
UNCONSTRAINED = 'kueue.x-k8s.io/podset-unconstrained-topology: "true"'


def start(*documents: str) -> Scheduler:
    scheduler = assemble().new_scheduler()
    scheduler.load(manifests(*documents), 0.0)
    return scheduler


def manifests(*documents: str) -> Manifests:
    return build_manifests(yaml.safe_load_all("---\n".join([QUEUES, *documents])))


def of_kind(decisions: list[Any], kind: type) -> list[Any]:
    return [found for found in decisions if isinstance(found, kind)]


def nodes(decisions: list[Any]) -> dict[str, str]:
    """pod -> node"""
    return {found.pod.removeprefix("default/"): found.node for found in of_kind(decisions, Bind)}


def messages(decisions: list[Any]) -> set[str]:
    return {found.message for found in of_kind(decisions, Wait)}


def hosts(**counts: int) -> TopologyAssignment:
    return TopologyAssignment((HOST,), tuple(TopologyDomain((name,), count) for name, count in counts.items()))


def assigned(decisions: list[Any]) -> dict[str, TopologyAssignment]:
    """By job, what its one pod set was assigned."""
    return {found.workload.split("-")[1]: found.podsets[0].topology for found in of_kind(decisions, Admit)}


# The example.


def tell(capsys: pytest.CaptureFixture[str], command: str) -> list[Any]:
    first, then = EXAMPLE
    assert run([command, "-q", "-f", str(first), "--then", str(then), "-o", "json"]) == 0
    return [step["result"] for step in json.loads(capsys.readouterr().out)["steps"]]


def test_a_job_wider_than_a_rack_gets_no_quota_and_the_next_one_starts(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tell(capsys, "schedule")

    assert [found["owner"] for found in first["admitted"]] == ["Job/narrow"]
    assert first["admitted"][0]["topology"] == [
        {"name": "main", "levels": [HOST], "domains": [{"values": ["a0"], "count": 4}, {"values": ["a1"], "count": 3}]}
    ]
    assert {found["node"] for found in first["placements"]} == {"a0", "a1"}
    assert {found["message"] for found in first["gated"]} == {TOO_WIDE}
    assert [found["owner"] for found in second["admitted"]] == ["Job/second"]
    assert {found["node"] for found in second["placements"]} == {"b0", "b1"}


def test_queues_and_explain_say_what_the_topology_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["queues", "-q", "-f", str(EXAMPLE[0])]) == 0
    shown = capsys.readouterr().out
    assert run(["schedule", "-q", "-f", str(EXAMPLE[0]), "-o", "json"]) == 0
    waiting = json.loads(capsys.readouterr().out)["gated"][0]["pod"]
    assert run(["explain", "-q", waiting, "-f", str(EXAMPLE[0])]) == 0
    explained = capsys.readouterr().out

    assert f"TopologyPlacementFailed: {TOO_WIDE}" in shown
    assert "nothing can be given back: its pods have no place in the topology even with all others gone" in shown
    assert TOO_WIDE in explained


# Where pods go.


def test_pods_go_by_rank_to_the_domains_that_they_were_assigned() -> None:
    decisions = start(*TWO_RACKS, job("train", 6, REQUIRED)).cycle(1.0)

    assert assigned(decisions) == {"train": hosts(a0=4, a1=2)}
    by_rank = {name.rpartition("-")[0]: found for name, found in nodes(decisions).items()}
    assert by_rank == {f"train-{rank}": "a0" if rank < 4 else "a1" for rank in range(6)}


def test_pods_without_ranks_fill_the_domains_in_turn() -> None:
    decisions = start(*TWO_RACKS, job("train", 6, REQUIRED, mode="NonIndexed")).cycle(1.0)

    assert sorted(nodes(decisions).values()) == ["a0"] * 4 + ["a1"] * 2


def test_slices_keep_together() -> None:
    slices = f'kueue.x-k8s.io/podset-slice-required-topology: {HOST}, kueue.x-k8s.io/podset-slice-size: "3"'
    decisions = start(*TWO_RACKS, job("train", 6, f"{slices}, {PREFERRED}")).cycle(1.0)

    assert assigned(decisions) == {"train": hosts(a0=3, a1=3)}
    assert sorted(nodes(decisions).values()) == ["a0"] * 3 + ["a1"] * 3


def test_a_job_that_asks_for_nothing_takes_the_domain_with_least_room() -> None:
    decisions = start(*TWO_RACKS, pod("other", "b0", 2), job("small", 2, "x: y")).cycle(1.0)

    assert assigned(decisions) == {"small": hosts(b0=2)}
    assert set(nodes(decisions).values()) == {"b0"}


def test_a_replaced_pod_goes_where_the_lost_one_was() -> None:
    documents = [*TWO_RACKS, job("train", 6, UNCONSTRAINED, mode="NonIndexed")]
    scheduler = start(*documents)
    first = nodes(scheduler.cycle(1.0))
    lost = next(name for name, found in first.items() if found == "a1")
    again = {found.key: found for found in manifests(*documents).pods}[PodKey(f"default/{lost}")]
    again.metadata.uid = "another"

    scheduler.handle(PodLost(again.key), PodSeen(again))

    assert nodes(scheduler.cycle(2.0)) == {lost: "a1"}


# What counts.


def test_pods_that_were_assigned_nothing_count_where_they_are() -> None:
    cluster = [*TWO_RACKS, pod("one", "a0", 1), pod("two", "b1", 1)]
    scheduler = start(*cluster, job("train", 8, REQUIRED))

    assert messages(scheduler.cycle(1.0)) == {TOO_WIDE.replace("8 out of 10", "7 out of 8")}

    scheduler.handle(PodLost("default/two"))

    assert set(nodes(scheduler.cycle(2.0)).values()) == {"b0", "b1"}


def test_a_new_node_brings_in_who_waited_for_it() -> None:
    scheduler = start(*TWO_RACKS, job("wide", 10, REQUIRED))
    assert messages(scheduler.cycle(1.0)) == {TOO_WIDE}

    (new,) = build_manifests(yaml.safe_load_all(node("b2", "b"))).nodes
    scheduler.handle(NodeSeen(new))

    assert assigned(scheduler.cycle(2.0)) == {"wide": hosts(b0=4, b1=4, b2=2)}


def test_a_node_that_is_not_ready_has_no_room() -> None:
    unready = node("a0", "a").replace("status: {", 'status: {conditions: [{type: Ready, status: "False"}], ')
    decisions = start(unready, *TWO_RACKS[1:], job("train", 6, REQUIRED)).cycle(1.0)

    assert set(nodes(decisions).values()) == {"b0", "b1"}


def test_two_jobs_of_one_cycle_do_not_share_a_place() -> None:
    decisions = start(*TWO_RACKS, job("one", 8, REQUIRED), job("two", 8, REQUIRED)).cycle(1.0)

    assert assigned(decisions) == {"one": hosts(a0=4, a1=4), "two": hosts(b0=4, b1=4)}
    assert len(nodes(decisions)) == 16


def test_a_finished_job_frees_its_domains() -> None:
    scheduler = start(*TWO_RACKS, job("one", 8, REQUIRED), job("two", 8, REQUIRED), job("three", 8, REQUIRED))
    waits = messages(scheduler.cycle(1.0))
    for record in list(scheduler.cluster.pods.records.values()):
        if record.key.startswith("default/one-"):
            scheduler.handle(PodSeen(replace(record.pod, status=PodStatus(phase="Succeeded"))))

    assert waits == {
        "couldn't assign flavors to pod set main: topology \"dc\" doesn't allow to fit any of 8 pod(s). "
        f'Total nodes: 4; excluded: resource "{GPU}": 4'
    }
    assert assigned(scheduler.cycle(2.0)) == {"three": hosts(a0=4, a1=4)}


# Preemption.

CLASSES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 100
"""


def test_who_is_in_the_way_in_the_topology_is_preempted_though_there_is_quota() -> None:
    scheduler = start(CLASSES, *TWO_RACKS, job("one", 3, REQUIRED), job("two", 6, REQUIRED))
    first = assigned(scheduler.cycle(1.0))
    scheduler.load(manifests(CLASSES, job("big", 8, REQUIRED, priority="urgent")), 2.0)

    decisions = scheduler.cycle(2.0)
    for found in of_kind(decisions, Evict):
        scheduler.handle(PodLost(found.pod))
    freed = scheduler.cycle(3.0)

    assert first == {"one": hosts(a0=3), "two": hosts(b0=4, b1=2)}
    assert [found.workload.split("-")[1] for found in of_kind(decisions, Suspend)] == ["two"]
    assert assigned(freed) == {"big": hosts(b0=4, b1=4)}
    assert sorted(nodes(freed).values()) == ["b0"] * 4 + ["b1"] * 4


# Settings.


def test_balanced_placement_spreads_pods_evenly_where_it_is_switched_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, gate = tmp_path / "cluster.yaml", tmp_path / "kueue.yaml"
    racks = [node("a0", "a"), node("a1", "a"), node("a2", "a")]
    cluster.write_text("---\n".join([QUEUES, *racks, job("train", 6, PREFERRED)]))
    gate.write_text(
        "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, featureGates: {TASBalancedPlacement: true}}"
    )

    def pods_by_node(*options: str) -> Counter[str]:
        assert run(["schedule", "-q", "-f", str(cluster), *options, "-o", "json"]) == 0
        return Counter(found["node"] for found in json.loads(capsys.readouterr().out)["placements"])

    assert pods_by_node() == {"a0": 4, "a1": 2}
    assert pods_by_node("--config", str(gate)) == {"a0": 3, "a1": 3}


# What is given.


@pytest.mark.parametrize(
    "assignment",
    [
        "{levels: [%s], domains: [{values: [a0], count: 4}, {values: [a1], count: 3}]}",
        '{levels: [%s], slices: [{domainCount: 2, valuesPerLevel: [{individual: {prefix: a, roots: ["0", "1"]}}],'
        " podCounts: {individual: [4, 3]}}]}",
    ],
    ids=["v1beta1", "v1beta2"],
)
def test_a_workload_that_was_assigned_domains_holds_them(assignment: str) -> None:
    workload = f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {{name: elsewhere, namespace: default}}
spec:
  queueName: jobs
  podSets:
    - name: main
      count: 7
      template: {{spec: {{containers: [{{name: main, image: i, resources: {{limits: {{{GPU}: "1"}}}}}}]}}}}
status:
  admission:
    clusterQueue: team
    podSetAssignments:
      - name: main
        count: 7
        flavors: {{{GPU}: gpus}}
        resourceUsage: {{{GPU}: "7"}}
        topologyAssignment: {assignment % HOST}
  conditions:
    - {{type: QuotaReserved, status: "True", reason: QuotaReserved}}
    - {{type: Admitted, status: "True", reason: Admitted}}
"""
    decisions = start(*TWO_RACKS, workload, job("small", 1, UNCONSTRAINED), job("train", 5, REQUIRED)).cycle(1.0)

    assert assigned(decisions) == {"small": hosts(a1=1), "train": hosts(b0=4, b1=1)}


GONE = 'metadata: {deletionTimestamp: "1970-01-01T00:01:00Z", '


def after_a_loss(capsys: pytest.CaptureFixture[str], folder: Path, *lost: str, first: list[str]) -> list[Any]:
    """Two steps: all is placed, and then these nodes are gone."""
    before, then = folder / "before.yaml", folder / "then.yaml"
    before.write_text("---\n".join([QUEUES, *first]))
    then.write_text("---\n".join(node(name, name[0]).replace("metadata: {", GONE) for name in lost))
    assert run(["schedule", "-q", "-f", str(before), "--then", str(then), "-o", "json"]) == 0
    return [step["result"] for step in json.loads(capsys.readouterr().out)["steps"]]


def placed(result: Any) -> Counter[str]:
    return Counter(found["node"] for found in result["placements"])


def test_only_the_pods_of_a_node_that_failed_go_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    racks = [node(f"a{number}", "a") for number in range(3)]

    before, after = after_a_loss(capsys, tmp_path, "a1", first=[*racks, job("wide", 8, REQUIRED)])

    assert (placed(before), placed(after)) == ({"a0": 4, "a1": 4}, {"a2": 4})
    assert (after["suspended"], after["waiting"], after["gated"]) == ([], [], [])


def test_a_replacement_is_in_the_rack_that_the_others_are_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is room in the other rack, and none in its own: it looks for a place anew as a whole."""
    before, after = after_a_loss(capsys, tmp_path, "a1", first=[*TWO_RACKS, job("wide", 6, REQUIRED)])

    assert (placed(before), placed(after)) == ({"a0": 4, "a1": 2}, {"b0": 4, "b1": 2})
    assert [found["reason"] for found in after["suspended"]] == ["NodeFailures"]


def test_whoever_only_prefers_a_rack_may_be_given_a_node_of_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = after_a_loss(capsys, tmp_path, "a1", first=[*TWO_RACKS, job("wide", 6, PREFERRED)])

    assert (placed(before), placed(after)) == ({"a0": 4, "a1": 2}, {"b0": 2})
    assert after["suspended"] == []


def test_a_slice_is_completed_where_the_rest_of_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two slices of six, each in one rack: what one loses comes back into its rack, though the other has room."""
    slices = f'kueue.x-k8s.io/podset-slice-required-topology: {RACK}, kueue.x-k8s.io/podset-slice-size: "6"'
    racks = [node(f"{rack}{number}", rack, 3) for rack in "ab" for number in range(3)]

    before, after = after_a_loss(capsys, tmp_path, "a0", first=[*racks, job("wide", 12, slices)])

    lost = placed(before)["a0"]
    assert lost and after["suspended"] == []
    assert sum(count for name, count in placed(after).items() if name.startswith("a")) == lost


def test_whoever_loses_two_nodes_looks_for_a_place_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its pods would otherwise wait for ever for nodes that are no longer there."""
    racks = [node(f"a{number}", "a") for number in range(4)]

    before, after = after_a_loss(capsys, tmp_path, "a0", "a1", first=[*racks, job("wide", 8, REQUIRED)])

    assert placed(before) == {"a0": 4, "a1": 4}
    assert sum(placed(after).values()) == 8
    assert [found["reason"] for found in after["suspended"]] == ["NodeFailures"]


def test_pods_that_make_no_whole_slice_keep_nobody_from_starting() -> None:
    slices = f'{REQUIRED}, kueue.x-k8s.io/podset-slice-required-topology: {HOST}, kueue.x-k8s.io/podset-slice-size: "2"'
    decisions = start(*TWO_RACKS, job("odd", 7, slices)).cycle(now=0.0)

    assert Counter(nodes(decisions).values()) == {"a0": 4, "a1": 2}
