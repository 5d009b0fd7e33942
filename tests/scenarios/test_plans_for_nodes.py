"""Plans that launch nodes, terminate nodes and resize pods: carried out step by step, undone if the world refuses."""

from collections.abc import Callable

import pytest

from mooring.assembly import assemble
from mooring.drivers.offline.driver import Offline
from mooring.engine.action import Action, Cycle
from mooring.engine.cycle import Scheduler
from mooring.engine.disruption import Disrupted, Voluntary, begin, disrupt, holds_of, successor_of
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, ResourceRequirements
from mooring.model.decisions import Bind, Decision, Evict, Launch, Resize, Terminate, Wait
from mooring.model.events import Failed, NodeLost, NodeSeen, PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.model.loading.catalog import Catalog
from mooring.model.node_offer import NodeOffer
from mooring.model.pod_patch import ContainerResources, PodPatch
from mooring.observe.progress import Progress
from mooring.state.plans import Amend, Held, Plan, Reason
from mooring.state.pods import UNBOUND
from mooring.testing.builders import make_node, make_owner, make_pod, make_scheduler

LARGE = NodeOffer(make_node("large", cpu=8))


class Once(Action):
    """Does one thing, in the first cycle."""

    def __init__(self, do: Callable[[Cycle], list[Decision]]) -> None:
        self._do = do
        self._is_done = False

    def is_idle(self, cycle: Cycle) -> bool:
        return self._is_done

    def run(self, cycle: Cycle) -> list[Decision]:
        self._is_done = True
        return self._do(cycle)


def launch_for(*names: str, until: float | None = None) -> Once:
    """Launch one large node for some pods that wait."""

    def do(cycle: Cycle) -> list[Decision]:
        parked = {entry.record.key: entry for found in cycle.queue.parked() for entry in found.entries}
        entries = [parked[PodKey(f"default/{name}")] for name in names]
        holds = tuple(Held(entry.record.key, UNBOUND, offer=0) for entry in entries)
        _, decisions = begin(cycle.cluster, Plan(Reason.SCALE_UP, holds, opens=(LARGE,), until=until))
        for entry in entries:
            cycle.queue.set_aside(entry)
        return decisions

    return Once(do)


def close(name: str) -> Once:
    """Let a node go whose pods have room elsewhere."""

    def do(cycle: Cycle) -> list[Decision]:
        cluster = cycle.cluster
        records = list(cluster.pods.on(cluster.nodes.row_of[name]))
        row = cluster.nodes.row_of["other"]
        holds = tuple(Held(successor_of(cluster, record), row) for record in records)
        plan = Plan(Reason.CONSOLIDATION, holds, closes=(name,), subject=name)
        made = disrupt(cluster, cycle.queue, records, Voluntary("its node is not needed"), plan)
        assert isinstance(made, Disrupted)
        return made.decisions

    return Once(do)


def resize(name: str, cpu: str) -> Once:
    patch = PodPatch.of(resources={"main": ResourceRequirements(requests={"cpu": cpu})})

    def do(cycle: Cycle) -> list[Decision]:
        return begin(cycle.cluster, Plan(Reason.RESIZE, amends=(Amend(PodKey(name), patch),), subject=name))[1]

    return Once(do)


def scheduler_with(action: Action, nodes: list[Node], pods: list[Pod]) -> Scheduler:
    scheduler = make_scheduler(nodes=nodes, pods=pods)
    scheduler.actions = (*scheduler.actions, action)
    return scheduler


def after(found: Scheduler, now: float, *events: NodeSeen | NodeLost | PodSeen | PodLost | Failed) -> list[Decision]:
    found.handle(*events)
    return [decision for decision in found.cycle(now) if not isinstance(decision, Wait)]


def free_cpu(scheduler: Scheduler, node: str) -> int:
    row = scheduler.cluster.nodes.row_of[node]
    return int(scheduler.cluster.rows().free("cpu")[list(scheduler.cluster.rows().index).index(row)])


# Nodes that are launched.


def test_pods_are_bound_to_the_node_that_was_launched_for_them_once_it_is_there() -> None:
    found = scheduler_with(
        launch_for("a", "b"), [make_node("small", cpu=1)], [make_pod("a", cpu=4), make_pod("b", cpu=4)]
    )

    assert after(found, 0) == [Launch("large-0", LARGE)]
    assert after(found, 1) == []
    assert after(found, 2, NodeSeen(LARGE.node_named("large-0"))) == [
        Bind("default/a", "large-0"),
        Bind("default/b", "large-0"),
    ]
    assert not found.cluster.has_plans


def test_nobody_else_gets_a_place_on_a_node_that_is_not_there_yet() -> None:
    found = scheduler_with(launch_for("a"), [make_node("small", cpu=1)], [make_pod("a", cpu=4)])
    after(found, 0)

    assert after(found, 1, PodSeen(make_pod("c", cpu=2))) == []
    both = {Bind("default/a", "large-0"), Bind("default/c", "large-0")}
    assert set(after(found, 2, NodeSeen(LARGE.node_named("large-0")))) == both


def test_a_node_that_could_not_be_launched_leaves_nothing_behind() -> None:
    found = scheduler_with(launch_for("a"), [make_node("small", cpu=1)], [make_pod("a", cpu=4)])
    before = found.cluster.nodes.fingerprint()
    (launch,) = after(found, 0)

    assert after(found, 1, Failed(launch, "no capacity", retry_after=30.0)) == []

    assert not found.cluster.has_plans
    assert list(found.cluster.nodes.row_of) == ["small"]
    assert found.cluster.rows().names == ["small"]
    assert before["rows"] == found.cluster.nodes.fingerprint()["rows"]
    assert found.cluster.setbacks["default/a"].times == 1
    assert after(found, 2, NodeSeen(make_node("new", cpu=4))) == [Bind("default/a", "new")]
    assert found.cluster.nodes.row_of == {"small": 0, "new": 1}, "the row is used again"


def test_a_node_that_never_comes_is_waited_for_until_the_plan_ends() -> None:
    found = scheduler_with(launch_for("a", until=100.0), [make_node("small", cpu=1)], [make_pod("a", cpu=4)])
    after(found, 0)

    assert after(found, 99) == [] and found.cluster.has_plans
    assert found.next_wake(99) == 100.0
    assert after(found, 100) == [] and not found.cluster.has_plans
    assert list(found.cluster.nodes.row_of) == ["small"]


def test_a_node_that_is_there_and_not_ready_keeps_its_pods_waiting() -> None:
    found = scheduler_with(launch_for("a", until=100.0), [make_node("small", cpu=1)], [make_pod("a", cpu=4)])
    after(found, 0)

    ready = LARGE.node_named("large-0")
    small = make_node("large-0", cpu=1)
    assert after(found, 1, NodeSeen(small)) == [] and found.cluster.has_plans
    assert after(found, 2, NodeSeen(ready)) == [Bind("default/a", "large-0")]


def test_plans_that_rest_on_a_node_are_given_up_with_it() -> None:
    pods = [make_pod("a", cpu=4), make_pod("b", cpu=2)]
    found = scheduler_with(launch_for("a"), [make_node("small", cpu=1)], pods)
    (launch,) = after(found, 0)
    cluster, queue = found.cluster, found.queue
    (entry,) = [entry for parked in queue.parked() for entry in parked.entries]
    cluster.adopt(Plan(Reason.SCALE_UP, holds_of([entry], [cluster.nodes.row_of["large-0"]])))
    queue.set_aside(entry)

    assert after(found, 1, Failed(launch, "no capacity")) == []

    assert not cluster.has_plans
    assert set(after(found, 2, NodeSeen(make_node("new", cpu=8)))) == {
        Bind("default/a", "new"),
        Bind("default/b", "new"),
    }


# Nodes that go.


def test_a_node_goes_when_its_pods_have_left_and_takes_no_others_until_then() -> None:
    pod = make_pod("p", cpu=2, node="idle", owner=make_owner("web"))
    found = scheduler_with(close("idle"), [make_node("idle", cpu=8), make_node("other", cpu=4)], [pod])

    evict = Evict("default/p", "idle", "", "its node is not needed", "other", "eviction")
    assert after(found, 0) == [evict]
    assert after(found, 1, PodSeen(make_pod("new", cpu=4))) == [], "it fits on the node that goes alone"
    assert after(found, 2, PodLost("default/p")) == [Terminate("idle", "consolidation")]
    assert after(found, 3, PodSeen(make_pod("p2", cpu=2, owner=make_owner("web")))) == [Bind("default/p2", "other")]
    assert found.cluster.has_plans
    assert after(found, 4, NodeLost("idle")) == []
    assert not found.cluster.has_plans


def test_a_node_that_could_not_be_terminated_takes_pods_again() -> None:
    pod = make_pod("p", cpu=2, node="idle", owner=make_owner("web"))
    found = scheduler_with(close("idle"), [make_node("idle", cpu=8), make_node("other", cpu=4)], [pod])
    after(found, 0)
    (terminate,) = after(found, 1, PodLost("default/p"), PodSeen(make_pod("new", cpu=4)))
    assert isinstance(terminate, Terminate)

    assert after(found, 2, Failed(terminate, "not allowed")) == [Bind("default/new", "idle")]
    assert not found.cluster.has_plans


# Pods that are resized.


def test_a_resized_pod_counts_as_what_it_will_be_until_the_world_says_so() -> None:
    pod = make_pod("p", cpu=2, node="a")
    found = scheduler_with(resize("default/p", "6"), [make_node("a", cpu=8)], [pod])

    (decision,) = after(found, 0)
    assert decision == Resize("default/p", (ContainerResources("main", (("cpu", "6"),)),))
    assert free_cpu(found, "a") == 2000
    assert after(found, 1, PodSeen(make_pod("p", cpu=2, node="a", labels={"news": "of before"}))) == []
    assert free_cpu(found, "a") == 2000
    assert found.cluster.has_plans
    assert after(found, 2, PodSeen(make_pod("p", cpu=6, node="a"))) == []
    assert (free_cpu(found, "a"), found.cluster.has_plans) == (2000, False)


def test_a_pod_that_could_not_be_resized_counts_as_what_it_was() -> None:
    found = scheduler_with(resize("default/p", "6"), [make_node("a", cpu=8)], [make_pod("p", cpu=2, node="a")])
    (decision,) = after(found, 0)

    assert after(found, 1, Failed(decision, "not allowed")) == []

    assert (free_cpu(found, "a"), found.cluster.has_plans) == (6000, False)


# The world of files.


def offline(action: Action, nodes: list[Node], pods: list[Pod]) -> Offline:
    catalog, scheduler = Catalog(), assemble().new_scheduler()
    scheduler.actions = (*scheduler.actions, action)
    picture = catalog.picture()
    picture.nodes.extend(nodes)
    picture.pods.extend(pods)
    scheduler.load(picture, 0.0)
    return Offline(scheduler, 0.0, picture)


def done(driver: Offline) -> list[Decision]:
    return [decision for decision in driver.decide(Progress()) if not isinstance(decision, Wait)]


def test_offline_a_node_appears() -> None:
    driver = offline(launch_for("a"), [make_node("small", cpu=1)], [make_pod("a", cpu=4)])

    assert done(driver) == [Launch("large-0", LARGE), Bind("default/a", "large-0")]


def test_offline_a_node_goes() -> None:
    pod = make_pod("p", cpu=2, node="idle", owner=make_owner("web"))
    driver = offline(close("idle"), [make_node("idle", cpu=8), make_node("other", cpu=4)], [pod])

    assert [type(decision) for decision in done(driver)] == [Evict, Terminate, Bind]
    assert list(driver.scheduler.cluster.nodes.row_of) == ["other"]
    assert not driver.scheduler.cluster.has_plans


@pytest.mark.parametrize(("cpu", "free"), [pytest.param("6", 2000, id="done"), pytest.param("9", 6000, id="never")])
def test_offline_a_pod_is_resized_if_its_node_can_hold_that(cpu: str, free: int) -> None:
    driver = offline(resize("default/p", cpu), [make_node("a", cpu=8)], [make_pod("p", cpu=2, node="a")])

    done(driver)

    assert (free_cpu(driver.scheduler, "a"), driver.scheduler.cluster.has_plans) == (free, False)
