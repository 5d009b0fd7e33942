"""What holds for workloads that become gangs, whatever their sizes: Volcano Jobs, LeaderWorkerSets, PodCliqueSets."""

from collections import Counter
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mooring.model.gangs.gang import Gang, Membership
from mooring.model.gangs.membership import membership
from mooring.model.loading.manifests import build_manifests
from mooring.model.objects.picture import Manifests

Document = dict[str, Any]
POD = {"containers": [{"name": "main"}]}


@st.composite
def volcano_jobs(draw: st.DrawFn) -> Document:
    tasks = []
    for index in range(draw(st.integers(1, 3))):
        size, parts = draw(st.integers(1, 3)), draw(st.integers(0, 3))
        task: Document = {"name": f"t{index}", "replicas": size * parts, "template": {"spec": POD}}
        if draw(st.booleans()):
            task["minAvailable"] = draw(st.integers(0, size * parts))
        if parts and draw(st.booleans()):
            least = draw(st.integers(0, parts))
            task["partitionPolicy"] = {"totalPartitions": parts, "partitionSize": size, "minPartitions": least}
        tasks.append(task)
    spec: Document = {"tasks": tasks}
    if draw(st.booleans()):
        spec["minAvailable"] = draw(st.integers(0, sum(task["replicas"] for task in tasks)))
    return document("batch.volcano.sh/v1alpha1", "Job", spec, draw(st.sampled_from(["", "u1"])))


@st.composite
def leader_worker_sets(draw: st.DrawFn) -> Document:
    count, groups = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    template: Document = {"workerTemplate": {"spec": POD}, "size": count * groups + draw(st.integers(0, 1))}
    if draw(st.booleans()):
        template["subGroupPolicy"] = {"subGroupSize": count}
    startup = draw(st.sampled_from(["LeaderCreated", "LeaderReady"]))
    spec = {"replicas": draw(st.integers(0, 3)), "leaderWorkerTemplate": template, "startupPolicy": startup}
    return document("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)


@st.composite
def clique_sets(draw: st.DrawFn) -> Document:
    names = [f"c{index}" for index in range(draw(st.integers(1, 4)))]
    cliques = []
    for name in names:
        replicas = draw(st.integers(1, 3))
        spec = {"podSpec": POD, "replicas": replicas, "minAvailable": draw(st.integers(1, replicas))}
        cliques.append({"name": name, "spec": spec})
    grouped = names[: draw(st.integers(0, len(names)))]
    groups = []
    if grouped:
        replicas = draw(st.integers(1, 3))
        least = draw(st.integers(1, replicas))
        groups = [{"name": "g", "cliqueNames": grouped, "replicas": replicas, "minAvailable": least}]
    template = {"cliques": cliques, "podCliqueScalingGroups": groups}
    return document("grove.io/v1alpha1", "PodCliqueSet", {"replicas": draw(st.integers(0, 2)), "template": template})


def document(api_version: str, kind: str, spec: Document, uid: str = "") -> Document:
    metadata = {"name": "work", "namespace": "ml", "uid": uid}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


workloads = st.one_of(volcano_jobs(), leader_worker_sets(), clique_sets())


def gang_of_each(manifests: Manifests) -> dict[str, Membership]:
    found: dict[str, Membership] = {}
    for pod in manifests.pods:
        belongs = membership(pod)
        assert belongs is not None, f"{pod.key} is of no gang"
        found[pod.key] = belongs
    return found


def lacks(gang: Gang, roles: Counter[str]) -> list[str]:
    """What keeps members with these roles from being whole."""
    short = [role.name for role in gang.roles if roles[role.name] < role.minimum]
    return [*short, *(["in all"] if roles.total() < gang.minimum else [])]


@given(workloads)
def test_all_pods_of_a_workload_are_of_gangs_that_they_make_whole(workload: Document) -> None:
    manifests = build_manifests([workload])

    roles: dict[str, Counter[str]] = {}
    for belongs in gang_of_each(manifests).values():
        roles.setdefault(belongs.gang, Counter())[belongs.role] += 1
    gangs = {gang.key: gang for gang in manifests.gangs}
    assert gangs.keys() == roles.keys()
    for key, gang in gangs.items():
        assert lacks(gang, roles[key]) == []
        assert gang.minimum >= 1
        assert not gang.after or gang.after in gangs


@given(workloads)
def test_ranks_count_the_pods_of_a_role(workload: Document) -> None:
    ranks: dict[tuple[str, str], list[int | None]] = {}
    for gang, role, rank in gang_of_each(build_manifests([workload])).values():
        ranks.setdefault((gang, role), []).append(rank)

    for (_, role), found in ranks.items():
        first = 1 if role == "worker" else 0  # the leader of a group is its pod number 0
        assert found == list(range(first, first + len(found)))


@given(workloads, st.data())
def test_what_is_there_is_not_made_again_and_what_is_missing_is(workload: Document, data: st.DataObject) -> None:
    whole = build_manifests([workload])
    kept = data.draw(st.lists(st.booleans(), min_size=len(whole.pods), max_size=len(whole.pods)))
    left = [pod for pod, is_kept in zip(whole.pods, kept, strict=True) if is_kept]
    dump = [{"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod)} for pod in left]

    again = build_manifests([workload, *dump])

    assert gang_of_each(again) == gang_of_each(whole)
    assert {gang.key: gang for gang in again.gangs} == {gang.key: gang for gang in whole.gangs}
