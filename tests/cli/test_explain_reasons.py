"""`mooring explain` where something other than nodes decides: queues, reservations, evictions, a gang's place."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]

NODES = """
apiVersion: v1
kind: Node
metadata: {name: "gpu-{i}", labels: {rack: "r{i//2}", block: "b{i//4}"}, annotations: {mooring.dev/replicas: "%d"}}
status: {allocatable: {cpu: 32, memory: 256Gi, pods: 110, nvidia.com/gpu: 4}}
"""
RESERVING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig: [{name: GangScheduling, args: {reserveAfterSeconds: 0}}]
"""
AT_EIGHT, AT_NINE = 'creationTimestamp: "2026-03-02T08:00:00Z"', 'creationTimestamp: "2026-03-02T09:00:00Z"'


def pod(name: str, gpus: int, *, metadata: str = "", spec: str = "", status: str = "") -> str:
    asks = f"resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}"
    meta = ", ".join(filter(None, (f'name: "{name}"', metadata)))
    inside = ", ".join(filter(None, (spec, f"containers: [{{name: c, image: x, {asks}}}]")))
    return f"---\napiVersion: v1\nkind: Pod\nmetadata: {{{meta}}}\nspec: {{{inside}}}\nstatus: {{{status}}}\n"


def members(name: str, count: int, gpus: int, *, more: str = "", spec: str = "") -> str:
    """Pods of the gang `big`."""
    metadata = f'labels: {{scheduling.x-k8s.io/pod-group: big}}, annotations: {{mooring.dev/replicas: "{count}"}}'
    return pod(f"{name}-{{i}}", gpus, metadata=f"{metadata}{more}", spec=spec)


def gang(minimum: int, metadata: str = "") -> str:
    head = "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup"
    return f"{head}\nmetadata: {{name: big{metadata}}}\nspec: {{minMember: {minimum}}}\n"


def reserving() -> str:
    """A gang for which room is kept, and two pods behind it: one that ends in time, one that does not."""
    busy = "nodeName: gpu-0, activeDeadlineSeconds: 7200"
    started = 'phase: Running, startTime: "2026-03-02T08:00:00Z"'
    return (
        NODES % 3
        + pod("busy", 4, metadata=AT_EIGHT, spec=busy, status=started)
        + gang(12, f", {AT_EIGHT}")
        + members("big", 12, 1, more=f", {AT_EIGHT}")
        + pod("long", 2, metadata=AT_NINE, spec="activeDeadlineSeconds: 36000")
        + pod("short", 2, metadata=AT_NINE, spec="activeDeadlineSeconds: 600")
    )


def explained(mooring: Call, name: str, *arguments: Any) -> dict[str, Any]:
    outcome = mooring("explain", name, "-q", "-o", "json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def scheduled(mooring: Call, *arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(mooring("schedule", "-q", "-o", "json", *arguments).out)
    return found


@pytest.fixture
def reservation(write: Call) -> list[Any]:
    return ["--config", write(RESERVING, "config.yaml"), "-f", write(reserving())]


def test_a_pod_behind_a_reservation_is_explained_in_finite_time(mooring: Call, reservation: list[Any]) -> None:
    (placement,) = scheduled(mooring, *reservation)["placements"]

    found = explained(mooring, "short", *reservation)

    assert (found["state"], found["node"]) == ("placed", placement["node"])


def test_who_is_kept_out_of_reserved_room_is_told_so_and_offered_nothing_else(
    mooring: Call, reservation: list[Any]
) -> None:
    found = explained(mooring, "long", *reservation)

    assert (found["message"], found["feasible"]) == ("room is kept for gang default/big, which is ahead", 2)
    assert found["remedies"] == []
    lines = mooring("explain", "long", "-q", *reservation).out.splitlines()
    assert "WHAT WOULD MAKE IT FIT" not in lines
    assert "it is not for want of a node that it waits" in lines


VOLCANO = """
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: ml}
spec: {weight: 1, capability: {nvidia.com/gpu: "8"}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: mpi}
spec:
  minAvailable: 2
  schedulerName: default-scheduler
  queue: ml
  tasks:
    - name: w
      replicas: 3
      template: {spec: {containers: [{name: w, image: x, resources: {limits: {nvidia.com/gpu: 4}}}]}}
"""


def test_who_waits_for_its_queue_is_told_what_schedule_tells(mooring: Call, write: Call) -> None:
    file = write(NODES % 4 + VOLCANO)
    result = scheduled(mooring, "-f", file)
    (waiting,) = result["waiting"]

    found = explained(mooring, waiting["pod"], "-f", file)

    assert found["message"] == waiting["message"]
    assert "queue ml" in found["message"]
    assert (found["feasible"], found["remedies"]) == (2, [])
    for placement in result["placements"]:  # queues have turns of their own, which nobody sees coming
        placed = explained(mooring, placement["pod"], "-f", file)
        assert (placed["state"], placed["node"]) == ("placed", placement["node"])


def test_a_pod_right_behind_many_that_fit_nowhere_is_explained(mooring: Call, write: Call) -> None:
    wall = pod("no-{i}", 9, metadata='annotations: {mooring.dev/replicas: "10"}', spec="priority: 10")
    file = write(NODES % 3 + wall + pod("yes", 1))

    assert explained(mooring, "yes", "-f", file)["state"] == "placed"


def evicting() -> str:
    fill = pod("fill-{i}", 4, metadata='annotations: {mooring.dev/replicas: "3"}', spec='nodeName: "gpu-{i}"')
    high = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n"
    group = "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: urgent}\n"
    group += "spec: {minMember: 2, priorityClassName: high}\n"
    named = 'annotations: {mooring.dev/replicas: "2", scheduling.k8s.io/group-name: urgent}'
    return NODES % 4 + high + fill + group + pod("w-{i}", 4, metadata=named)


def test_evictions_are_shown_with_the_priorities_that_counted(mooring: Call, write: Call) -> None:
    (evicted,) = scheduled(mooring, "-f", write(evicting()))["evicted"]

    assert (evicted["priority"], evicted["preemptorPriority"]) == (0, 1000)


def test_a_victim_counts_for_what_its_gang_does(mooring: Call, write: Call) -> None:
    low = "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: low}\n"
    high = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: some}\nvalue: 500\n"
    low += "spec: {minMember: 1, priorityClassName: some}\n"
    named = "annotations: {scheduling.k8s.io/group-name: low}"
    runs = pod("runs", 4, metadata=named, spec="nodeName: gpu-0")
    file = write(NODES % 1 + high + low + runs + pod("urgent", 4, spec="priority: 501"))

    (evicted,) = scheduled(mooring, "-f", file)["evicted"]

    assert (evicted["priority"], evicted["preemptorPriority"]) == (500, 501)


def test_a_pod_that_got_its_place_by_evictions_names_them(mooring: Call, write: Call) -> None:
    file = write(evicting())
    result = scheduled(mooring, "-f", file)
    (victim,) = result["evicted"]
    (taken,) = [found["pod"] for found in result["placements"] if found["node"] == victim["node"]]

    found = explained(mooring, taken, "-f", file)

    assert found["message"] == f"room is made for its gang by evicting default/{victim['pod']}"
    assert found["evicted"] == [f"default/{victim['pod']}"]
    lines = mooring("explain", taken, "-q", "-f", file).out.splitlines()
    assert lines[lines.index("WHY THIS NODE") + 1] == f"{victim['node']} would not take it until those were evicted"


def test_the_place_of_a_gang_decides_and_no_tie_is_spoken_of(mooring: Call, write: Call) -> None:
    topology = "---\napiVersion: kai.scheduler/v1alpha1\nkind: Topology\nmetadata: {name: dc}\n"
    topology += "spec: {levels: [{nodeLabel: block}, {nodeLabel: rack}]}\n"
    group = "---\napiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: k}\n"
    group += "spec: {minMember: 8, topologyConstraint: {topology: dc, requiredTopologyLevel: rack}}\n"
    named = 'annotations: {pod-group-name: k, mooring.dev/replicas: "8"}'
    file = write(NODES % 8 + topology + group + pod("d-{i}", 1, metadata=named))

    assert explained(mooring, "d-0", "-f", file)["gangPlace"] == "gang default/k is to be in one rack"
    out = mooring("explain", "d-0", "-q", "-f", file).out
    assert "the place of its gang decides: gang default/k is to be in one rack\n" in out
    assert "the seed" not in out


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param("schedulingGates: [{name: example.com/x}]", "behind a gate", id="gated"),
        pytest.param("schedulerName: volcano", "for another scheduler", id="not ours"),
    ],
)
def test_members_that_exist_and_are_not_counted_are_named(mooring: Call, write: Call, spec: str, words: str) -> None:
    file = write(NODES % 2 + gang(3) + members("here", 2, 1) + members("not", 1, 1, spec=spec))
    message = f"gang default/big waits for its members: 2 of 3 exist, and 1 more {words}"

    gated = {found["pod"]: found["message"] for found in scheduled(mooring, "-f", file)["gated"]}

    assert (gated["here-0"], gated["here-1"]) == (message, message)
    assert explained(mooring, "here-0", "-f", file)["message"] == message


def test_a_gang_that_simply_lacks_members_says_no_more_than_that(mooring: Call, write: Call) -> None:
    file = write(NODES % 2 + gang(3) + members("here", 2, 1))

    assert explained(mooring, "here-0", "-f", file)["message"] == "gang default/big waits for its members: 2 of 3 exist"


@pytest.mark.parametrize(("deadline", "placed"), [(600, ["brief"]), (36000, [])], ids=["in time", "too late"])
def test_a_job_passes_a_reservation_if_its_deadline_is_in_time(
    mooring: Call, write: Call, deadline: int, placed: list[str]
) -> None:
    job = f"""---
apiVersion: batch/v1
kind: Job
metadata: {{name: brief, {AT_NINE}}}
spec:
  activeDeadlineSeconds: {deadline}
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: x, resources: {{limits: {{nvidia.com/gpu: 2}}}}}}]
"""
    text = reserving().partition('---\napiVersion: v1\nkind: Pod\nmetadata: {name: "long"')[0]
    result = scheduled(mooring, "--config", write(RESERVING, "config.yaml"), "-f", write(text + job))

    assert [found["owner"].removeprefix("Job/") for found in result["placements"]] == placed
