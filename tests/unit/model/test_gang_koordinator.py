"""Koordinator's gangs: by annotations on pods, or on a PodGroup of Coscheduling."""

import pytest
from gang_manifests import memberships, only_gang, read, refusal

from mooring.model.gangs.gang import Gang
from mooring.model.keys import GangKey

PREFIX = "gang.scheduling.koordinator.sh"


def pod(pod_name: str, /, *, namespace: str = "default", spec: str = "", labels: str = "", **annotations: str) -> str:
    """Annotations are given by the part after the prefix, with underscores for dashes."""
    marks = ", ".join(f"{PREFIX}/{key.replace('_', '-')}: '{value}'" for key, value in annotations.items())
    return f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {pod_name}, namespace: {namespace}, labels: {{{labels}}}, annotations: {{{marks}}}}}
spec: {{{spec} containers: [{{name: main, image: x}}]}}
"""


def group(marks: str = "") -> str:
    return f"""
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {{name: train, annotations: {{{marks}}}}}
spec: {{minMember: 3}}
"""


def test_pods_declare_their_gang_by_annotations_alone() -> None:
    members = [pod(f"a-{i}", name="train", min_available="2", waiting_time="30s") for i in range(3)]
    manifests = read("".join(members))

    assert only_gang(manifests) == Gang(
        key=GangKey("PodGroup.scheduling.x-k8s.io/default/train"),
        name="default/train",
        minimum=2,
        timeout_seconds=30.0,
        once_satisfied=True,
    )
    assert memberships(manifests) == {f"a-{i}": ("default/train", "", i) for i in range(3)}


@pytest.mark.parametrize(
    ("policy", "once"), [("", True), ("once-satisfied", True), ("waiting-and-running", False), ("only-waiting", False)]
)
def test_the_match_policy_says_whether_the_minimum_counts_after_the_start(policy: str, once: bool) -> None:
    manifests = read(pod("a", name="train", min_available="1", match_policy=policy))

    assert only_gang(manifests).once_satisfied == once


def test_a_gang_of_coscheduling_alone_counts_its_minimum_always() -> None:
    assert not only_gang(read(group())).once_satisfied


@pytest.mark.parametrize("label", ["pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name"])
def test_a_pod_group_of_pods_that_koordinator_schedules_is_koordinators(label: str) -> None:
    manifests = read(group() + pod("a", spec="schedulerName: koord-scheduler,", labels=f"{label}: train"))

    assert only_gang(manifests).once_satisfied
    assert memberships(manifests) == {"a": ("default/train", "", None)}


def test_a_pod_group_may_say_it_in_its_own_annotations_and_its_pods_go_first() -> None:
    waits = f"{PREFIX}/match-policy: waiting-and-running"

    assert not only_gang(read(group(waits))).once_satisfied
    labelled = pod("a", labels="pod-group.scheduling.sigs.k8s.io: train", match_policy="once-satisfied")
    assert only_gang(read(group(waits) + labelled)).once_satisfied


def test_gangs_of_one_group_start_together_in_whichever_namespace() -> None:
    together = '["jobs/workers", "default/leader"]'
    manifests = read(
        pod("leader-0", name="leader", min_available="1", groups=together)
        + pod("worker-0", namespace="jobs", name="workers", min_available="2", groups=together)
        + pod("alone-0", name="alone", min_available="1", groups='["default/alone"]')
    )

    key = "GangGroup.scheduling.koordinator.sh/default/leader,jobs/workers"
    assert {gang.name: gang.parent for gang in manifests.gangs if not gang.of_gangs} == {
        "default/leader": key,
        "jobs/workers": key,
        "default/alone": "",
    }
    assert [gang for gang in manifests.gangs if gang.of_gangs] == [
        Gang(key=GangKey(key), name="default/leader, jobs/workers", minimum=2, of_gangs=True)
    ]


def test_a_gang_that_another_names_in_its_group_belongs_to_it() -> None:
    manifests = read(
        pod("a-0", name="a", min_available="1", groups='["default/a", "default/b"]')
        + pod("b-0", name="b", min_available="1")
    )

    assert len({gang.parent for gang in manifests.gangs if not gang.of_gangs}) == 1


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("min-available", "none", "a whole number of at least 1"),
        ("total-number", "0", "a whole number of at least 1"),
        ("mode", "Lax", "one of Strict, NonStrict"),
        ("match-policy", "never", "one of only-waiting, waiting-and-running, once-satisfied"),
        ("waiting-time", "long", "a duration such as 90s, 10m or 1h30m"),
        ("groups", "a, b", 'a list of gangs in JSON, such as ["default/leader", "default/workers"]'),
        ("groups", '["a"]', 'a list of gangs in JSON, such as ["default/leader", "default/workers"]'),
    ],
)
def test_what_cannot_be_read_is_refused(key: str, text: str, expected: str) -> None:
    found = refusal(pod("a", name="train", **{key.replace("-", "_"): text}))

    shown = '"' + text.replace('"', '\\"') + '"'
    assert found == f"1 (Pod default/a): metadata.annotations.{PREFIX}/{key}: expected {expected}, found {shown}"
