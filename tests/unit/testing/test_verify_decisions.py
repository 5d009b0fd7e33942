"""Decisions that must not be are found: victims that count for more, quota that is not there."""

from collections.abc import Sequence

import pytest

from mooring.model.api.kueue import ANY, LOWER_OR_NEWER_EQUAL_PRIORITY, LOWER_PRIORITY, NEVER, ClusterQueue, Cohort
from mooring.model.api.pods import PodStatus
from mooring.model.decisions import Admit, Decision, Evict, PodSetFlavors, Suspend
from mooring.model.events import ObjectSeen, PodSeen, WorkloadSeen
from mooring.state.cluster import Cluster
from mooring.testing.builders import make_cluster, make_node, make_pod
from mooring.testing.queueing_builders import make_cohort, make_group, make_local_queue, make_queue, make_quota
from mooring.testing.tenant_builders import Job, make_job
from mooring.testing.verify_evictions import wrong_victims
from mooring.testing.verify_tenants import QuotaWatch


@pytest.mark.parametrize(
    ("evict", "problem"),
    [
        pytest.param(Evict("default/low", "node", "default/new", ""), "", id="as it should be"),
        pytest.param(
            Evict("default/equal", "node", "default/new", ""),
            "default/equal of priority 5 is to be evicted for default/new of priority 5",
            id="as important",
        ),
        pytest.param(
            Evict("default/low", "other", "default/new", ""),
            "default/low is to be evicted from other, and is on node",
            id="elsewhere",
        ),
        pytest.param(
            Evict("default/gone", "node", "default/new", ""),
            "default/gone is to be evicted, and does not exist",
            id="nobody",
        ),
        pytest.param(
            Evict("default/low", "node", "default/gone", ""),
            "default/low is to be evicted for default/gone, which does not exist",
            id="for nobody",
        ),
        pytest.param(Evict("default/equal", "node", "", ""), "", id="for no one's sake"),
    ],
)
def test_victims_are_less_important_and_where_they_are_said_to_be(evict: Evict, problem: str) -> None:
    pods = [
        make_pod("low", priority=1, node="node"),
        make_pod("equal", priority=5, node="node"),
        make_pod("new", priority=5),
    ]
    cluster = make_cluster(nodes=[make_node("node")], pods=pods)

    assert list(wrong_victims(cluster, [evict])) == ([problem] if problem else [])


def make_tenants(queues: Sequence[ClusterQueue], jobs: Sequence[Job], cohorts: Sequence[Cohort] = ()) -> Cluster:
    cluster = Cluster()
    cluster.observe(*map(ObjectSeen, cohorts), *map(ObjectSeen, queues))
    cluster.observe(*(ObjectSeen(make_local_queue(queue.metadata.name)) for queue in queues))
    for job in jobs:
        cluster.observe(*map(PodSeen, job.pods), WorkloadSeen(job.queued))
    return cluster


def admit(job: Job) -> Admit:
    count = job.workload.spec.pod_sets[0].count
    given = (PodSetFlavors("main", count, {"cpu": "default"}),)
    return Admit(job.key, job.workload.spec.queue_name, given, "")


def test_more_than_the_quota_is_found_and_what_is_done_no_longer_counts() -> None:
    jobs = [make_job("first", pods=2, cpu=4), make_job("second", cpu=4)]
    cluster = make_tenants([make_queue()], jobs)
    watch = QuotaWatch(cluster)

    assert watch.note([admit(jobs[0])]) == []
    assert watch.note([admit(jobs[1])]) == ["queue queue: 12000 of default/cpu held, 10000 allowed"]

    done = jobs[0].pods[0]
    done.status = PodStatus(phase="Succeeded")
    cluster.observe(PodSeen(done))
    assert watch.note([]) == []


def test_what_a_queue_borrows_and_what_a_cohort_has_in_all_is_counted() -> None:
    group = make_group(default=make_quota(10, borrowing_limit=2))
    queues = [make_queue("a", group, cohort="all"), make_queue("b", group, cohort="all")]
    jobs = [make_job("a", queue="a", cpu=13), make_job("b", queue="b", cpu=9)]
    watch = QuotaWatch(make_tenants(queues, jobs))

    assert watch.note([admit(job) for job in jobs]) == [
        "queue a: 13000 of default/cpu held, 12000 allowed",
        "cohort all: 22000 of default/cpu held, 20000 allowed",
    ]


def test_what_is_not_lent_is_not_there_for_others() -> None:
    kept = make_group(default=make_quota(10, lending_limit=1))
    queues = [make_queue("a", kept, cohort="team"), make_queue("b", cohort="team")]
    cohorts = [make_cohort("team", parent="company"), make_cohort("company", make_group(default=make_quota(5)))]
    jobs = [make_job("b", queue="b", cpu=16), make_job("a", queue="a", cpu=9), make_job("more", queue="b", cpu=1)]
    watch = QuotaWatch(make_tenants(queues, jobs, cohorts))

    # Queue b has 10 of its own, 1 of queue a and 5 of the company; the other 9 are for queue a alone.
    assert watch.note([admit(job) for job in jobs[:2]]) == []
    assert watch.note([admit(jobs[2])]) == ["cohort company: 17000 of default/cpu held, 16000 allowed"]


def test_what_is_on_its_way_out_does_not_count_and_comes_back_when_it_is_admitted_again() -> None:
    jobs = [make_job("low", cpu=8), make_job("high", cpu=8, priority=1)]
    watch = QuotaWatch(make_tenants([make_queue(within_queue=LOWER_PRIORITY)], jobs))
    suspend = Suspend(jobs[0].key, "InClusterQueue", "", jobs[1].key)

    assert watch.note([admit(jobs[0])]) == []
    assert watch.note([suspend, admit(jobs[1])]) == []
    assert watch.note([admit(jobs[0])]) == ["queue queue: 16000 of default/cpu held, 10000 allowed"]


@pytest.mark.parametrize(
    ("within", "priority", "problem"),
    [
        pytest.param(LOWER_PRIORITY, 2, "", id="lower"),
        pytest.param(LOWER_PRIORITY, 1, ", whose priority is not higher", id="equal"),
        pytest.param(LOWER_OR_NEWER_EQUAL_PRIORITY, 1, "", id="equal, where that is enough"),
        pytest.param(LOWER_OR_NEWER_EQUAL_PRIORITY, 0, ", whose priority is not higher", id="higher"),
        pytest.param(NEVER, 2, ", whose queue preempts nobody there", id="never"),
    ],
)
def test_a_victim_in_the_same_queue_is_what_the_policy_allows(within: str, priority: int, problem: str) -> None:
    jobs = [make_job("victim", priority=1), make_job("new", priority=priority)]
    watch = QuotaWatch(make_tenants([make_queue(within_queue=within)], jobs))
    decisions: list[Decision] = [admit(jobs[0]), Suspend(jobs[0].key, "InClusterQueue", "", jobs[1].key)]

    said = f"default/victim was preempted by default/new{problem}"
    assert watch.note(decisions) == ([said] if problem else [])


@pytest.mark.parametrize(
    ("cohort", "problem"),
    [
        pytest.param("all", "", id="of the same cohort"),
        pytest.param("theirs", ", whose queue shares no quota with its own", id="of another cohort"),
    ],
)
def test_a_victim_in_another_queue_shares_quota(cohort: str, problem: str) -> None:
    queues = [make_queue("ours", cohort="all", reclaim=ANY), make_queue("theirs", cohort=cohort)]
    jobs = [make_job("victim", queue="theirs", priority=9), make_job("new", queue="ours")]
    watch = QuotaWatch(make_tenants(queues, jobs))
    decisions: list[Decision] = [admit(jobs[0]), Suspend(jobs[0].key, "InCohortReclamation", "", jobs[1].key)]

    said = f"default/victim was preempted by default/new{problem}"
    assert watch.note(decisions) == ([said] if problem else [])
