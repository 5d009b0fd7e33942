"""Pods that spilled over go back to their pool, cycle by cycle: the whole list of decisions, whatever comes between."""

from typing import Any

import pytest

from mooring.assembly import assemble
from mooring.config.scheduler import parse_config
from mooring.engine.action import Deadline
from mooring.engine.cycle import Scheduler
from mooring.engine.disruption import FIRST_BACKOFF_SECONDS
from mooring.engine.follow_up import PATIENCE_SECONDS
from mooring.model.api.meta import LabelSelector, ObjectMeta
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PodDisruptionBudgetSpec
from mooring.model.decisions import Bind, Decision, Evict, Wait
from mooring.model.events import Failed, NodeSeen, PodLost, PodSeen
from mooring.testing.builders import make_config, make_node, make_owner, make_pod, make_profile, make_scheduler

POOL = {"name": "r", "nodeLabels": {"pool": "r"}, "namespaces": ["team"], "movesBack": True}
HOURS = 100_000.0


def member(name: str, node: str = "", cpu: int = 2, **given: Any) -> Pod:
    return make_pod(name, namespace="team", cpu=cpu, memory="1Gi", node=node, owner=make_owner("web"), **given)


def budget(at_least: int) -> PodDisruptionBudget:
    spec = PodDisruptionBudgetSpec(min_available=at_least, selector=LabelSelector(match_labels={"app": "web"}))
    return PodDisruptionBudget(metadata=ObjectMeta(name="b", namespace="team"), spec=spec)


def scheduler(
    *pods: Pod, most: int = 1, moves: bool = True, related: tuple[PodDisruptionBudget, ...] = ()
) -> Scheduler:
    pools = {"pools": [{**POOL, "movesBack": moves}], "mostMovesAtATime": most}
    profile = make_profile(args={"NodePools": pools})
    profile["plugins"] = {"multiPoint": {"enabled": [{"name": "NodePools", "weight": 100}]}}
    nodes = [make_node("ours", cpu=4, labels={"pool": "r"}), make_node("other", cpu=16)]
    return make_scheduler(nodes=nodes, pods=pods, profile=profile, related=related)


def leaves(name: str) -> Evict:
    return Evict(f"team/{name}", "other", "", "Moved back to node pool r: node ours has room", "ours", "eviction")


def after(found: Scheduler, now: float, *events: PodSeen | PodLost | Failed | NodeSeen) -> list[Decision]:
    found.handle(*events)
    return [decision for decision in found.cycle(now) if not isinstance(decision, Wait)]


def test_one_goes_and_the_next_when_what_came_in_its_place_has_a_place() -> None:
    found = scheduler(member("a", "other"), member("b", "other"))

    assert after(found, 0) == [leaves("a")]
    assert after(found, 1) == []
    assert after(found, 2, PodSeen(member("a", "other", terminating=True))) == []
    assert after(found, 3, PodLost("team/a")) == []
    assert after(found, 4, PodSeen(member("c"))) == [Bind("team/c", "ours"), leaves("b")]
    assert after(found, 5, PodSeen(member("c", "ours")), PodLost("team/b")) == []
    assert after(found, 6, PodSeen(member("d"))) == [Bind("team/d", "ours")]
    assert after(found, HOURS, PodSeen(member("d", "ours"))) == []


def test_several_go_as_far_as_there_is_room_for_all_of_them() -> None:
    found = scheduler(*(member(name, "other") for name in "abc"), most=3)

    assert after(found, 0) == [leaves("a"), leaves("b")]
    assert after(found, 1, PodLost("team/a"), PodSeen(member("d"))) == [Bind("team/d", "ours")]
    assert after(found, 2, PodLost("team/b"), PodSeen(member("e"))) == [Bind("team/e", "ours")]
    assert after(found, 3, PodSeen(member("d", "ours")), PodSeen(member("e", "ours"))) == []


@pytest.mark.parametrize(("at_least", "first"), [(1, ["a", "b"]), (2, ["a"]), (3, [])])
def test_no_more_go_at_a_time_than_their_budget_has_to_give(at_least: int, first: list[str]) -> None:
    pods = [member(name, "other", cpu=1, labels={"app": "web"}) for name in "abc"]
    found = scheduler(*pods, most=2, related=(budget(at_least),))

    assert after(found, 0) == [leaves(name) for name in first]


def test_without_the_setting_there_is_no_such_action() -> None:
    found = scheduler(member("a", "other"), moves=False)

    assert [type(action).__name__ for action in found.actions if "Move" in type(action).__name__] == []
    assert after(found, 0) == []


def test_who_spilled_again_is_let_be_until_the_pool_has_other_room_and_longer_each_time() -> None:
    found = scheduler(member("a", "other"))
    little = make_pod("little", namespace="team", cpu="100m", memory="1Gi", node="ours")
    less = make_pod("less", namespace="team", cpu="100m", memory="1Gi", node="ours")

    assert after(found, 0) == [leaves("a")]
    # What comes in its place is put elsewhere by somebody: the pool has the room that it had.
    assert after(found, 1, PodLost("team/a"), PodSeen(member("b", "other"))) == []
    assert found.next_wake(1) == 1 + FIRST_BACKOFF_SECONDS
    assert after(found, HOURS) == []
    assert after(found, HOURS, PodSeen(little)) == [leaves("b")]
    # In vain again: twice as long, whatever room there is.
    again = HOURS + 1
    assert after(found, again, PodLost("team/b"), PodSeen(member("c", "other"))) == []
    assert after(found, again + 2 * FIRST_BACKOFF_SECONDS - 1, PodSeen(less)) == []
    assert after(found, again + 2 * FIRST_BACKOFF_SECONDS) == [leaves("c")]


def test_room_that_was_taken_meanwhile_is_no_reason_to_try_again_at_once() -> None:
    found = scheduler(member("a", "other"))
    taker = make_pod("taker", namespace="team", cpu=3, memory="1Gi", node="ours")

    assert after(found, 0) == [leaves("a")]
    assert after(found, 1, PodSeen(taker), PodLost("team/a"), PodSeen(member("b"))) == [Bind("team/b", "other")]
    assert after(found, 2, PodSeen(member("b", "other")), PodLost("team/taker")) == []
    assert after(found, 1 + FIRST_BACKOFF_SECONDS) == [leaves("b")]


def test_nobody_else_goes_while_what_was_made_waits() -> None:
    found = scheduler(member("a", "other"), member("b", "other", cpu=1))

    assert after(found, 0) == [leaves("a")]
    assert after(found, 1, PodLost("team/a"), PodSeen(member("c", cpu=99))) == []
    assert after(found, HOURS) == []


def test_a_workload_that_was_made_smaller_holds_up_nobody() -> None:
    found = scheduler(member("a", "other"), member("b", "other"))

    assert after(found, 0) == [leaves("a")]
    assert after(found, 1, PodLost("team/a")) == []
    assert found.next_wake(1) == 1 + PATIENCE_SECONDS
    assert after(found, PATIENCE_SECONDS) == []
    assert after(found, 1 + PATIENCE_SECONDS) == [leaves("b")]


def test_who_could_not_be_evicted_is_let_be() -> None:
    found = scheduler(member("a", "other"))

    assert after(found, 0) == [leaves("a")]
    assert after(found, 1, Failed(leaves("a"), "no")) == []
    assert after(found, HOURS) == []


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_another_of_the_same_name_stands_for_the_one_that_went(kind: str) -> None:
    def made(uid: str, node: str = "") -> Pod:
        pod = make_pod("a", namespace="team", cpu=2, memory="1Gi", node=node, owner=make_owner("db", kind=kind))
        pod.metadata.uid = uid
        return pod

    found = scheduler(made("1", "other"))

    assert after(found, 0) == [leaves("a")]
    assert after(found, 1, PodLost("team/a"), PodSeen(made("2"))) == [Bind("team/a", "ours")]
    assert after(found, 2, PodSeen(made("2", "ours"))) == []


def test_pods_that_ask_for_the_profile_by_another_name_go_back_too() -> None:
    pools = {"pools": [POOL], "mostMovesAtATime": 1}
    profile = make_profile(args={"NodePools": pools})
    profile["plugins"] = {"multiPoint": {"enabled": [{"name": "NodePools", "weight": 100}]}}
    assembly = assemble(parse_config(make_config(profile), "profile")).taking_on(["batch"])
    found = assembly.new_scheduler()
    nodes = [make_node("ours", cpu=4, labels={"pool": "r"}), make_node("other", cpu=16)]
    found.handle(*map(NodeSeen, nodes), PodSeen(member("a", "other", scheduler_name="batch")))

    assert after(found, 0) == [leaves("a")]


def after_steps(most: int) -> Deadline:
    steps = iter(range(most))
    return lambda: next(steps, None) is None


def test_a_look_that_takes_too_long_goes_on_a_second_later_where_it_stopped() -> None:
    """The first pods find no room, and would use up the time of every run."""
    large = [member(f"large-{i}", "other", cpu=5 + i) for i in range(3)]
    found = scheduler(*large, member("small", "other"))
    found.new_deadline = lambda: after_steps(2)

    assert after(found, 0) == []
    assert found.next_wake(0) == 1.0
    assert after(found, 1) == [leaves("small")]
