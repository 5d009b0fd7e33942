"""What holds where a policy says what preemption may cost: whoever is protected stays, and little work is lost."""

from datetime import datetime

from drawing import choices
from hypothesis import event, given
from hypothesis import strategies as st
from plain_gangs import URGENT, check_no_gang_is_broken, crowded_with_gangs, plain_placing, victim_priority
from stories import assembled
from test_preempt_gangs import add_gang, wanted

from examples import examples
from mooring.actions.preempt.gangs.search import GangFound, find_for_gang
from mooring.actions.preempt.pods.search import Found, InVain, VictimSearch, refusals
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.testing.builders import make_pod
from mooring.testing.random_clusters import Choose

PROFILE = assembled(None).default_profile
MORNING = datetime.fromisoformat("2026-01-01T00:00:00Z").timestamp()
HOUR = 3600


def random_costs(choose: Choose) -> PreemptionCostArgs:
    return PreemptionCostArgs(
        least_work_lost=bool(choose(2)),
        minimum_runtime_seconds=choose(4) * HOUR,
        most_preemptions_per_workload=choose(3),
        window_seconds=2 * HOUR,
    )


def is_protected(record: PodRecord, args: PreemptionCostArgs, now: float, spared: set[str]) -> bool:
    start = record.pod.status.start_time
    ran = None if start is None else now - datetime.fromisoformat(start).timestamp()
    return (ran is not None and ran < args.minimum_runtime_seconds) or record.key in spared


def note_some(choose: Choose, cluster: Cluster, search: VictimSearch, now: float) -> None:
    """Let some workloads have been preempted before."""
    for record in list(cluster.pods.records.values()):
        for _ in range(choose(3)):
            cluster.preemptions.note(search.running.workload_of(record), now - choose(4) * HOUR)


def spared_pods(cluster: Cluster, search: VictimSearch, args: PreemptionCostArgs, now: float) -> set[str]:
    workloads = cluster.preemptions.spared(args, now)
    return {key for key, record in cluster.pods.records.items() if search.running.workload_of(record) in workloads}


@examples(120)
@given(choose=choices(), nodes=st.integers(1, 5), pods=st.integers(1, 12), gangs=st.integers(0, 3), gang=st.booleans())
def test_whoever_is_protected_is_no_victim(choose: Choose, nodes: int, pods: int, gangs: int, gang: bool) -> None:
    cluster = crowded_with_gangs(choose, nodes=nodes, pods=pods, gangs=gangs)
    members = add_gang(choose, cluster, shapes=1) if gang else []
    # Not before the latest start: there is no telling how long somebody runs who starts in the future.
    now, args = MORNING + (8 + choose(3)) * HOUR, random_costs(choose)
    search = VictimSearch(cluster, with_costs=True)
    note_some(choose, cluster, search, now)
    found: Found | GangFound | InVain
    if gang:
        place = plain_placing(PROFILE, members)
        found = find_for_gang(search, [(record, PROFILE) for record in members], URGENT, place, now=now, costs=args)
    else:
        pod = make_pod("urgent", priority=URGENT, **wanted(choose))
        answer = refusals(PROFILE, cluster, cluster.shape_for(pod))
        if len(answer.feasible):
            return
        found = search.find(answer, pod, now, args)
    if isinstance(found, InVain):
        event("protected" if found.again_after is not None else "in vain")
        assert found.again_after is None or found.again_after > 0
        return
    event("found")
    spared = spared_pods(cluster, search, args, now)
    assert not [victim.key for victim in found.victims if is_protected(victim, args, now, spared)]
    assert all(victim_priority(cluster, victim) < URGENT for victim in found.victims)
    check_no_gang_is_broken(cluster, found.victims)


@examples(100)
@given(choose=choices(), nodes=st.integers(1, 6))
def test_the_pod_with_the_least_work_to_lose_goes(choose: Choose, nodes: int) -> None:
    cluster = crowded_with_gangs(choose, nodes=nodes, pods=0, gangs=0)
    hours = [choose(9) for _ in range(nodes)]
    for index, hour in enumerate(hours):
        cpu = 2 + choose(2)
        pod = make_pod(f"pod-{index}", cpu=cpu, node=f"node-{index}")
        pod.status.start_time = f"2026-01-01T0{hour}:00:00Z"
        cluster.observe_many([], [pod])
    urgent = make_pod("urgent", cpu=2, priority=URGENT)
    answer = refusals(PROFILE, cluster, cluster.shape_for(urgent))
    if len(answer.feasible):
        return

    found = VictimSearch(cluster, with_costs=True).find(
        answer, urgent, MORNING, PreemptionCostArgs(least_work_lost=True)
    )

    assert isinstance(found, Found)
    assert [victim.pod.status.start_time for victim in found.victims] == [f"2026-01-01T0{max(hours)}:00:00Z"]


@examples(60)
@given(choose=choices(), nodes=st.integers(1, 5), pods=st.integers(1, 12), gangs=st.integers(0, 3))
def test_a_policy_that_says_nothing_changes_nothing(choose: Choose, nodes: int, pods: int, gangs: int) -> None:
    cluster = crowded_with_gangs(choose, nodes=nodes, pods=pods, gangs=gangs)
    pod = make_pod("urgent", priority=URGENT, **wanted(choose))
    answer = refusals(PROFILE, cluster, cluster.shape_for(pod))
    if len(answer.feasible):
        return
    plain = VictimSearch(cluster).find(answer, pod)

    assert VictimSearch(cluster, with_costs=True).find(answer, pod, MORNING, PreemptionCostArgs()) == plain
