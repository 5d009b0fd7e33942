"""A permit plugin that lets a pod wait, seen through the commands."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]

PLUGIN = """
from mooring.plugin import Permit, Wait


class Approval(Permit):
    def permit(self, pod, cluster, row):
        return None if (pod.pod.metadata.annotations or {}).get("approved") else Wait(60)
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{{notes}}}}}
spec: {{containers: [{{name: c, image: x, resources: {{requests: {{cpu: 4}}}}}}]}}
"""
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: node}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n"
MESSAGE = "waits for the permission of Approval, 60 s at most"
APPROVED = 'approved: "yes"'


def first_files(write: Call) -> list[str]:
    """A node for one pod, two pods, and a plugin that lets the first of them wait."""
    pods = [POD.format(name="first", notes=""), POD.format(name="second", notes=APPROVED)]
    return ["-f", write("---\n".join([NODE, *pods]), "first.yaml"), "--plugin", write(PLUGIN, "approval.py")]


def test_a_pod_that_waits_in_its_place_is_shown_waiting(mooring: Call, write: Call) -> None:
    result = json.loads(mooring("schedule", *first_files(write), "-o", "json").out)

    messages = {pod["pod"]: pod["message"] for pod in result["waiting"]}
    assert (result["summary"]["waiting"], result["summary"]["alreadyBound"]) == (2, 0)
    assert messages == {"first": MESSAGE, "second": "0/1 nodes are available: 1 Insufficient cpu."}


def test_it_is_bound_if_it_is_allowed_in_time_and_gives_way_if_it_is_not(mooring: Call, write: Call) -> None:
    approved = write(POD.format(name="first", notes=APPROVED), "approved.yaml")

    in_time = mooring("schedule", "-q", *first_files(write), "--then", f"30s:{approved}")
    too_late = mooring("schedule", "-q", *first_files(write), "--then", f"90s:{approved}")

    assert "Pod/first" in in_time.out.partition("STEP 2")[2]
    assert "Pod/second" in too_late.out.partition("STEP 2")[2]
    assert (in_time.code, too_late.code) == (0, 0)


def test_explain_says_that_it_holds_its_place(mooring: Call, write: Call) -> None:
    outcome = mooring("explain", "first", *first_files(write))

    assert outcome.out.startswith(f"pod default/first goes to node: it {MESSAGE}\n")


@pytest.mark.parametrize("queue", ["", "queue: q, "], ids=["by itself", "in a shared queue"])
def test_members_that_a_gang_can_do_without_are_shown_waiting_too(mooring: Call, write: Call, queue: str) -> None:
    group = GROUP.replace("queue: q", queue.removesuffix(", ") or "minResources: {}")
    members = [POD.format(name=name, notes="scheduling.k8s.io/group-name: g") for name in ("a", "b", "c")]
    text = "---\n".join([NODE.replace("cpu: 4", "cpu: 40"), QUEUE, group, *members])

    outcome = mooring("schedule", "-o", "json", "-f", write(text), "--plugin", write(PLUGIN, "approval.py"))

    behind = "gang default/g: waits for the members to start that it needs"
    messages = {pod["pod"]: pod["message"] for pod in json.loads(outcome.out)["waiting"]}
    assert messages == {"a": MESSAGE, "b": MESSAGE, "c": behind}


QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"
NAMED = "scheduling.volcano.sh/queue-name: q"


def shared_files(write: Call, first: str) -> list[str]:
    """As `first_files`, in a queue of Volcano; what waits first is given."""
    second = POD.format(name="second", notes=f"{APPROVED}, {NAMED}")
    return [
        "-f",
        write("---\n".join([NODE, QUEUE, first, second]), "shared.yaml"),
        "--plugin",
        write(PLUGIN, "approval.py"),
    ]


GROUP = (
    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 2, queue: q}\n"
)


def gang(notes: str = "") -> str:
    """Two members that fill the node."""
    member = POD.replace("cpu: 4", "cpu: 2")
    marks = f"scheduling.k8s.io/group-name: g{notes}"
    return "---\n".join([GROUP, *(member.format(name=name, notes=marks) for name in ("first-a", "first-b"))])


@pytest.mark.parametrize(
    ("first", "approved", "names"),
    [
        (POD.format(name="first", notes=NAMED), POD.format(name="first", notes=f"{APPROVED}, {NAMED}"), ["first"]),
        (gang(), gang(f", {APPROVED}"), ["first-a", "first-b"]),
    ],
    ids=["a pod", "a gang"],
)
def test_in_a_shared_queue_too_it_holds_its_place_until_its_time_is_over(
    mooring: Call, write: Call, first: str, approved: str, names: list[str]
) -> None:
    files = shared_files(write, first)
    then = write(approved, "approved.yaml")

    def placed(after: str) -> list[list[str]]:
        outcome = mooring("schedule", "-q", "-o", "json", *files, "--then", f"{after}:{then}")
        steps = json.loads(outcome.out)["steps"]
        return [sorted(found["pod"] for found in step["result"]["placements"]) for step in steps]

    assert placed("30s") == [[], names]
    assert placed("90s") == [[], ["second"]]
