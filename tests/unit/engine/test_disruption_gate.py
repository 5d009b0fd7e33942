"""The one gate for evictions: what it lets through, what it refuses, and that there is no other."""

import ast
from pathlib import Path

import pytest
from msgspec.structs import replace

import mooring
from mooring.engine.cycle import Scheduler
from mooring.engine.disruption import Disrupted, Forced, Refusal, Voluntary, disrupt, successor_of
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.policies import PodDisruptionBudget, PodDisruptionBudgetSpec
from mooring.model.decisions import Evict
from mooring.model.events import GangSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import PLAIN_KIND
from mooring.state.plans import Held, Plan, Reason
from mooring.state.pods import PodRecord
from mooring.testing.builders import make_node, make_owner, make_pod, make_scheduler, make_selector

START = "2026-01-01T00:00:00Z"
START_SECONDS = 1_767_225_600.0


def one_that_may_go() -> PodDisruptionBudget:
    spec = PodDisruptionBudgetSpec(max_unavailable=1, selector=make_selector({"app": "web"}))
    return PodDisruptionBudget(metadata=ObjectMeta(name="web", namespace="default"), spec=spec)


def two_web_pods() -> tuple[Scheduler, list[PodRecord]]:
    pods = [make_pod(name, node="a", labels={"app": "web"}, owner=make_owner("web")) for name in ("w0", "w1")]
    scheduler = make_scheduler(nodes=[make_node("a"), make_node("b")], pods=pods, related=[one_that_may_go()])
    return scheduler, [scheduler.cluster.pods.records[pod.key] for pod in pods]


def test_a_forced_eviction_exceeds_a_budget_and_spends_it() -> None:
    scheduler, pods = two_web_pods()

    made = disrupt(scheduler.cluster, scheduler.queue, pods, Forced("Preempted", "default/urgent"))

    assert made == Disrupted(
        [Evict(f"default/w{number}", "a", "default/urgent", "Preempted") for number in range(2)], None
    )
    assert scheduler.cluster.budgets.fingerprint() == {"default/web": {"default/w0", "default/w1"}}


def test_a_pod_is_told_and_its_budget_spent_once() -> None:
    scheduler, pods = two_web_pods()

    first = disrupt(scheduler.cluster, scheduler.queue, pods[:1], Forced("first"))
    second = disrupt(scheduler.cluster, scheduler.queue, pods[:1], Forced("second"))

    assert (len(first.decisions), second.decisions) == (1, [])
    assert scheduler.cluster.budgets.fingerprint() == {"default/web": {"default/w0"}}


def test_a_voluntary_eviction_of_more_than_a_budget_gives_evicts_none() -> None:
    scheduler, pods = two_web_pods()

    made = disrupt(scheduler.cluster, scheduler.queue, pods, Voluntary("Moved"))

    assert made == Refusal("default/w1", "a disruption budget has none to give")
    assert not scheduler.cluster.budgets.fingerprint()
    assert not any(record.leaving for record in pods)


def test_a_voluntary_eviction_goes_by_the_eviction_api_and_names_the_node_of_the_successor() -> None:
    scheduler, (pod, _) = two_web_pods()
    cluster = scheduler.cluster
    plan = Plan(Reason.MOVE, (Held(successor_of(cluster, pod), cluster.nodes.row_of["b"]),), subject="web")

    made = disrupt(cluster, scheduler.queue, [pod], Voluntary("Moved"), plan)

    assert isinstance(made, Disrupted) and made.plan is not None
    assert made.decisions == [Evict("default/w0", "a", "", "Moved", "b", "eviction")]
    assert [leaving.key for leaving in made.plan.leaves] == ["default/w0"]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [("karpenter.sh/do-not-disrupt", "true"), ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")],
)
def test_a_pod_may_say_that_it_is_not_to_be_disrupted(annotation: str, value: str) -> None:
    pod = make_pod("p", node="a", annotations={annotation: value})
    scheduler = make_scheduler(nodes=[make_node("a")], pods=[pod])
    record = scheduler.cluster.pods.records[pod.key]

    made = disrupt(scheduler.cluster, scheduler.queue, [record], Voluntary("Moved"))

    assert made == Refusal("default/p", f"its annotation {annotation} is {value}")
    assert disrupt(scheduler.cluster, scheduler.queue, [record], Forced("Preempted")).decisions


def test_a_pod_that_started_a_moment_ago_is_not_moved() -> None:
    bare = make_pod("p", node="a")
    pod = replace(bare, status=replace(bare.status, start_time=START))
    scheduler = make_scheduler(nodes=[make_node("a")], pods=[pod])
    record = scheduler.cluster.pods.records[pod.key]
    why = Voluntary("Moved", minimum_runtime=600)

    scheduler.queue.now = START_SECONDS + 599
    assert disrupt(scheduler.cluster, scheduler.queue, [record], why) == Refusal(
        "default/p", "it has run for less than 600s"
    )
    scheduler.queue.now = START_SECONDS + 600
    assert isinstance(disrupt(scheduler.cluster, scheduler.queue, [record], why), Disrupted)


def test_a_gang_goes_as_a_whole_or_not_at_all() -> None:
    gang = {"mooring.dev/gang-name": "train"}
    members = [make_pod(f"m{number}", node="a", annotations=gang) for number in range(2)]
    scheduler = make_scheduler(nodes=[make_node("a")], pods=members)
    scheduler.cluster.observe(GangSeen(Gang(gang_key(PLAIN_KIND, "default", "train"), "default/train", minimum=2)))
    records = [scheduler.cluster.pods.records[pod.key] for pod in members]

    part = disrupt(scheduler.cluster, scheduler.queue, records[:1], Voluntary("Moved"))
    assert part == Refusal(records[0].key, "others of its gang would be left behind")
    assert isinstance(disrupt(scheduler.cluster, scheduler.queue, records, Voluntary("Moved")), Disrupted)


def test_no_other_module_of_the_core_makes_an_eviction() -> None:
    root = Path(mooring.__file__).parent
    makers = []
    for room in ("engine", "actions", "plugins", "state"):
        for path in sorted((root / room).rglob("*.py")):
            calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
            if any(isinstance(call.func, ast.Name) and call.func.id == "Evict" for call in calls):
                makers.append(path.relative_to(root).as_posix())
    assert makers == ["engine/disruption.py"]
