"""Manifests that change step by step."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mooring.errors import ManifestError
from mooring.model.loading.manifests import Manifests
from mooring.model.loading.steps import load_steps

Tell = Callable[..., list[Manifests]]

GONE = 'deletionTimestamp: "2026-03-02T12:00:00Z"'
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: "n-{i}", labels: {rack: "r-{i//2}"}, annotations: {mooring.dev/replicas: "3"}}
status: {allocatable: {cpu: 8, memory: 32Gi, pods: 20}}
---
apiVersion: v1
kind: Pod
metadata: {name: "fill-{i}", annotations: {mooring.dev/replicas: "3"}}
spec: {nodeName: "n-{i}", containers: [{name: c, image: x}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: t}
spec: {parallelism: 3, completions: 3, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}
"""


def pod(name: str, metadata: str = "", status: str = "") -> str:
    phase = f"\nstatus: {{phase: {status}}}" if status else ""
    inside = f"name: {name}, {metadata}" if metadata else f"name: {name}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{{inside}}}\nspec: {{containers: [{{name: c, image: x}}]}}{phase}\n"


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    def steps(*texts: str) -> list[Manifests]:
        for number, text in enumerate(texts):
            (tmp_path / f"{number}.yaml").write_text(text)
        return load_steps([[tmp_path / f"{number}.yaml"] for number in range(len(texts))])

    return steps


def pods(manifests: Manifests) -> list[str]:
    return [found.metadata.name for found in manifests.pods]


def test_one_copy_of_a_manifest_with_replicas_can_be_deleted(tell: Tell) -> None:
    node = f"apiVersion: v1\nkind: Node\nmetadata: {{name: n-1, {GONE}}}\n"

    _, after, later = tell(CLUSTER, f"{pod('fill-0', GONE)}---\n{node}", pod("fill-2", GONE))

    assert [found.metadata.name for found in after.nodes] == ["n-0", "n-2"]
    assert pods(after) == ["fill-1", "fill-2", "t-lshfx", "t-bwblf", "t-vz5qt"]
    assert pods(later) == ["fill-1", "t-lshfx", "t-bwblf", "t-vz5qt"]
    assert [found.spec.node_name for found in later.pods[:1]] == ["n-1"]
    assert all("mooring.dev/replicas-without" not in (found.metadata.annotations or {}) for found in later.pods)


def test_one_copy_can_be_said_to_be_another(tell: Tell) -> None:
    _, after = tell(CLUSTER, pod("fill-1", status="Succeeded"))

    assert {found.metadata.name: found.status.phase for found in after.pods if "fill" in found.metadata.name} == {
        "fill-0": "",
        "fill-1": "Succeeded",
        "fill-2": "",
    }


def test_a_workload_makes_another_pod_for_one_that_is_deleted(tell: Tell) -> None:
    before, after, later, again = tell(CLUSTER, pod("t-bwblf", GONE), pod("other"), pod("t-bwblf", GONE))

    assert pods(after) == pods(before)
    uids = [
        {found.metadata.name: found.metadata.uid for found in step.pods}["t-bwblf"] for step in (before, after, later)
    ]
    assert uids[0] != uids[1] == uids[2]
    assert {found.metadata.name: found.metadata.uid for found in again.pods}["t-bwblf"] not in uids


@pytest.mark.parametrize("owner", ["", "ownerReferences: [{kind: Job, name: t, controller: true}]"])
def test_one_pod_of_a_workload_can_be_done(tell: Tell, owner: str) -> None:
    _, after, later = tell(CLUSTER, pod("t-bwblf", owner, "Succeeded"), pod("t-bwblf", GONE))

    for step in (after, later):
        running = [found.metadata.name for found in step.pods if not found.is_terminal]
        assert running == ["fill-0", "fill-1", "fill-2", "t-lshfx", "t-vz5qt"]


def test_documents_without_a_name_are_added_each_time(tell: Tell) -> None:
    nameless = pod("x").replace("name: x", "generateName: run-")

    *_, last = tell(pod("a") + "---\n" + nameless, pod("a", GONE) + "---\n" + nameless, nameless)

    assert pods(last) == ["run-0", "run-1", "run-2"]


def test_what_is_leaving_at_first_is_still_there(tell: Tell) -> None:
    first, second = tell(pod("a", GONE), pod("a", GONE))

    assert (pods(first), pods(second)) == (["a"], [])


@pytest.mark.parametrize(
    ("kind", "name", "found"), [("Pod", "t-9", "default/t-9"), ("Node", "n-9", "n-9"), ("Job", "u", "default/u")]
)
def test_a_deletion_that_matches_nothing_is_refused(tell: Tell, kind: str, name: str, found: str) -> None:
    version = "batch/v1" if kind == "Job" else "v1"

    with pytest.raises(ManifestError) as error:
        tell(CLUSTER, f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}, {GONE}}}\n")

    assert str(error.value).endswith(
        f"1.yaml: document 1 ({kind} {found}): metadata.name: "
        f"expected the name of a {kind} that is there, to delete it, found {found}"
    )
