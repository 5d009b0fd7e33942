"""What holds for workloads whatever they are made of, and for the recount of quotas whatever the tree."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mooring.actions.admit.quota.structure import Structure
from mooring.model.api.kueue import ClusterQueue, Cohort
from mooring.model.decisions import Admit, PodSetFlavors
from mooring.model.events import ObjectSeen, PodSeen, WorkloadSeen
from mooring.model.values.requests import pod_requests, to_column_units
from mooring.state.cluster import Cluster
from mooring.state.quota_tree import NO_PARENT, UNLIMITED
from mooring.state.undo import UndoLog
from mooring.testing.queueing_builders import (
    make_cohort,
    make_flavor,
    make_group,
    make_local_queue,
    make_queue,
    make_quota,
)
from mooring.testing.tenant_builders import Job, make_job
from mooring.testing.verify_tenants import QuotaWatch
from mooring.testing.workloads import PodTemplate, Running, make_pods, make_running

LIMITS = st.none() | st.integers(0, 8)


@st.composite
def pod_templates(draw: st.DrawFn) -> list[PodTemplate]:
    found = []
    for number in range(draw(st.integers(1, 3))):
        gang = draw(st.integers(1, 5))
        run, weight = gang * draw(st.integers(1, 3)), draw(st.integers(1, 2))
        metadata = {"name": f"kind{number}-{{i//{gang}}}-{{i}}"}
        document = {"metadata": metadata, "spec": {"containers": []}}
        found.append(PodTemplate(template=document, gang=gang, run=run, weight=weight))
    return found


def incomplete_gangs(names: list[str], templates: list[PodTemplate]) -> list[str]:
    members = Counter(name.rpartition("-")[0] for name in names)
    return [gang for gang, count in members.items() if count != templates[int(gang[4 : gang.index("-")])].gang]


@given(pod_templates(), st.integers(1, 60))
def test_gangs_are_always_complete_and_pods_hardly_more_than_asked_for(
    templates: list[PodTemplate], count: int
) -> None:
    more, fewer = (
        [found.document["metadata"]["name"] for found in make_pods(templates, count, at_most=at_most)]
        for at_most in (False, True)
    )

    largest = max(template.gang for template in templates)
    assert count <= len(more) < count + largest
    assert count - largest < len(fewer) <= count
    assert len(set(more)) == len(more)
    assert incomplete_gangs(more, templates) == incomplete_gangs(fewer, templates) == []
    assert more[: len(fewer)] == fewer


@given(pod_templates(), st.integers(1, 12), st.sampled_from([0.25, 0.5, 1.0, 1.5, 3.0]))
def test_running_pods_are_spread_evenly_over_the_nodes(
    templates: list[PodTemplate], nodes: int, per_node: float
) -> None:
    names = [f"node-{number}" for number in range(nodes)]

    found = list(make_running(Running(pods=templates, per_node=per_node), names, pods=0))

    on_node = Counter(document["spec"]["nodeName"] for document in found)
    assert set(on_node) <= set(names)
    assert all(count <= -(-per_node // 1) for count in on_node.values())


@given(st.data())
def test_the_recount_of_quotas_finds_what_the_tree_of_quotas_says(data: st.DataObject) -> None:
    cohorts: list[Cohort] = []
    queues: list[ClusterQueue] = []
    jobs: list[Job] = []
    for number in range(data.draw(st.integers(0, 3), "cohorts")):
        parent = data.draw(st.sampled_from(["", *(cohort.metadata.name for cohort in cohorts)]), "parent")
        quota = make_quota(
            data.draw(st.integers(0, 6)), borrowing_limit=data.draw(LIMITS), lending_limit=data.draw(LIMITS)
        )
        cohorts.append(make_cohort(f"cohort-{number}", make_group(default=quota), parent=parent))
    for number in range(data.draw(st.integers(1, 4), "queues")):
        cohort = data.draw(st.sampled_from(["", *(cohort.metadata.name for cohort in cohorts)]), "cohort")
        quota = make_quota(
            data.draw(st.integers(0, 6)), borrowing_limit=data.draw(LIMITS), lending_limit=data.draw(LIMITS)
        )
        queues.append(make_queue(f"queue-{number}", make_group(default=quota), cohort=cohort))
        cpu = data.draw(st.integers(0, 12), "cpu")
        jobs.append(make_job(f"job-{number}", queue=f"queue-{number}", cpu=cpu))
    cluster = Cluster()
    cluster.observe(*map(ObjectSeen, cohorts), *map(ObjectSeen, queues))
    cluster.observe(*(ObjectSeen(make_local_queue(queue.metadata.name)) for queue in queues))
    for job in jobs:
        cluster.observe(*map(PodSeen, job.pods), WorkloadSeen(job.queued))

    given_flavors = (PodSetFlavors("main", 1, {"cpu": "default"}),)
    problems = QuotaWatch(cluster).note(
        [Admit(job.key, job.workload.spec.queue_name, given_flavors, "") for job in jobs]
    )

    structure = Structure(queues, cohorts, [make_flavor()], log=UndoLog())
    tree = structure.tree
    for job in jobs:
        cpu = to_column_units("cpu", pod_requests(job.pods[0])["cpu"])
        tree.add(structure.queues[job.workload.spec.queue_name].node, 0, cpu)
    exceeded = set()
    for node, described in enumerate(tree.nodes):
        limit = 0 if described.parent == NO_PARENT else int(tree.borrowing_limit[node, 0])
        if limit != UNLIMITED and tree.usage[node, 0] > tree.subtree[node, 0] + limit:
            exceeded.add(f"{'queue' if described.is_queue else 'cohort'} {described.name}")
    assert {problem.partition(":")[0] for problem in problems} == exceeded
