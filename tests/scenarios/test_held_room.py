"""While victims take their time to leave, what is held counts for everything that the holder will count when bound."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from mooring.assembly import assemble
from mooring.config.scheduler import parse_config
from mooring.engine.cycle import Scheduler
from mooring.model.api.meta import Condition, LabelSelector
from mooring.model.api.pods import Affinity, Pod, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from mooring.model.decisions import Bind, Decision, Evict
from mooring.model.events import Event, GangSeen, NodeSeen, ObjectSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import PLAIN_KIND
from mooring.model.numa.nodes import ALLOCATION, KUBELET, MACHINE
from mooring.testing.builders import make_config, make_node, make_pod, make_profile, make_scheduler, make_service


def after(scheduler: Scheduler, now: float, *events: Event) -> list[Decision]:
    """What is decided, besides letting pods wait."""
    scheduler.handle(*events)
    return [decision for decision in scheduler.cycle(now) if isinstance(decision, Bind | Evict)]


def evicts(decisions: list[Decision]) -> list[str]:
    return [decision.pod for decision in decisions if isinstance(decision, Evict)]


def spreading(name: str, **given: Any) -> Pod:
    """A pod of app y that spreads strictly over zones."""
    pod = make_pod(name, cpu=1, labels={"app": "y"}, **given)
    selector = LabelSelector(match_labels={"app": "y"})
    rule = TopologySpreadConstraint(
        topology_key="zone", max_skew=1, when_unsatisfiable="DoNotSchedule", label_selector=selector
    )
    pod.spec.topology_spread_constraints = [rule]
    return pod


def two_zones() -> Scheduler:
    nodes = [make_node("n1", cpu=2, labels={"zone": "z1"}), make_node("n2", cpu=8, labels={"zone": "z2"})]
    full = make_pod("full", cpu=2, priority=100, node="n1")
    low = make_pod("low", cpu=1, labels={"app": "y"}, node="n2")
    return make_scheduler(nodes=nodes, pods=[full, low])


def test_no_pod_spoils_the_spread_of_one_that_waits_for_its_victims() -> None:
    scheduler = two_zones()
    assert evicts(after(scheduler, 1.0, PodSeen(spreading("urgent", priority=100)))) == ["default/low"]

    other = make_pod("other", cpu=1, labels={"app": "y"})
    unconcerned = make_pod("unconcerned", cpu=1)
    assert after(scheduler, 2.0, PodSeen(other), PodSeen(unconcerned)) == [Bind("default/unconcerned", "n2")]

    assert after(scheduler, 3.0, PodLost("default/low")) == [Bind("default/urgent", "n2"), Bind("default/other", "n2")]


STRICT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
SPREADS_ALL = make_profile(
    args={"PodTopologySpread": {"defaultingType": "List", "defaultConstraints": [STRICT]}},
    schedulerName="default-scheduler",
)
NO_DEFAULTS = make_profile(
    args={"PodTopologySpread": {"defaultingType": "List", "defaultConstraints": []}}, schedulerName="lenient"
)


def indifferent(name: str, **given: Any) -> Pod:
    """A pod of app y that only prefers to spread: default constraints are not for it."""
    pod = spreading(name, **given)
    rules = pod.spec.topology_spread_constraints or ()
    pod.spec.topology_spread_constraints = [replace(rule, when_unsatisfiable="ScheduleAnyway") for rule in rules]
    return pod


@pytest.mark.parametrize("of_other_profile", [False, True])
def test_no_pod_spoils_a_spread_that_the_profile_of_the_holder_asks_for(of_other_profile: bool) -> None:
    scheduler = assemble(parse_config(make_config(SPREADS_ALL, NO_DEFAULTS), "test")).new_scheduler()
    nodes = [make_node("n1", cpu=2, labels={"zone": "z1"}), make_node("n2", cpu=8, labels={"zone": "z2"})]
    full = make_pod("full", cpu=2, priority=100, node="n1")
    service = ObjectSeen(make_service("y", selector={"app": "y"}))
    scheduler.handle(service, *map(NodeSeen, nodes), PodSeen(full), PodSeen(indifferent("low", node="n2")))
    urgent = make_pod("urgent", cpu=1, labels={"app": "y"}, priority=100)
    assert evicts(after(scheduler, 1.0, PodSeen(urgent))) == ["default/low"]

    other = make_pod("other", cpu=1, labels={"app": "y"}) if of_other_profile else indifferent("other")
    other.spec.scheduler_name = "lenient" if of_other_profile else other.spec.scheduler_name
    unconcerned = make_pod("unconcerned", cpu=1)
    assert after(scheduler, 2.0, PodSeen(other), PodSeen(unconcerned)) == [Bind("default/unconcerned", "n2")]

    bound = after(scheduler, 3.0, PodLost("default/low"))
    assert bound == [Bind("default/urgent", "n2"), Bind("default/other", "n2")]


def test_a_pod_that_leaves_the_spread_as_it_is_goes_elsewhere() -> None:
    scheduler = two_zones()
    after(scheduler, 1.0, PodSeen(spreading("urgent", priority=100)))
    scheduler.handle(PodLost("default/full"))

    assert after(scheduler, 2.0, PodSeen(make_pod("other", cpu=1, labels={"app": "y"}))) == [
        Bind("default/other", "n1")
    ]


def test_a_preemptor_is_bound_while_the_victims_of_another_are_still_leaving_the_same_node() -> None:
    """The row is over-committed until these have left; that is no reason to take the first one's room back."""
    pods = [make_pod("one", cpu=2, node="n"), make_pod("two", cpu=2, node="n")]
    scheduler = make_scheduler(nodes=[make_node("n", cpu=4)], pods=pods)
    first = after(scheduler, 1.0, PodSeen(make_pod("urgent", cpu=2, priority=20)))
    second = after(scheduler, 2.0, PodSeen(make_pod("later", cpu=2, priority=10)))
    assert sorted(evicts(first) + evicts(second)) == ["default/one", "default/two"]

    (victim,) = evicts(first)
    assert after(scheduler, 3.0, PodLost(victim)) == [Bind("default/urgent", "n")]
    (victim,) = evicts(second)
    assert after(scheduler, 4.0, PodLost(victim)) == [Bind("default/later", "n")]


def test_a_pod_whose_victim_had_its_cpus_is_bound_with_cpus_of_its_own() -> None:
    machine = {"regular": {"sockets": 1, "coresPerNuma": 4, "threadsPerCore": 1, "memoryPerNuma": "16Gi"}}
    kubelet = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
    node = make_node("n", cpu=3, annotations={MACHINE: json.dumps(machine), KUBELET: json.dumps(kubelet)})

    def pinned(name: str, **given: Any) -> Pod:
        limits = {"cpu": "3", "memory": "1Gi"}
        return make_pod(name, spec={"containers": [{"name": "main", "resources": {"limits": limits}}]}, **given)

    scheduler = make_scheduler(nodes=[node], pods=[pinned("low", node="n")])
    assert evicts(after(scheduler, 1.0, PodSeen(pinned("urgent", priority=100)))) == ["default/low"]
    scheduler.handle(PodLost("default/low"))

    (bind,) = [found for found in scheduler.cycle(2.0) if isinstance(found, Bind)]
    assert (bind.pod, [key for key, _ in bind.annotations]) == ("default/urgent", [ALLOCATION])


@pytest.mark.parametrize("fraction", ["0.25", "0.5"])
def test_a_fraction_waits_while_a_whole_gpu_is_being_freed(fraction: str) -> None:
    node = make_node("n", gpu=1, labels={"nvidia.com/gpu.memory": "16384"})
    running = make_pod("running", annotations={"gpu-fraction": "0.25"}, node="n")
    scheduler = make_scheduler(nodes=[node], pods=[running])
    assert evicts(after(scheduler, 1.0, PodSeen(make_pod("whole", gpu=1, priority=100)))) == ["default/running"]

    assert after(scheduler, 2.0, PodSeen(make_pod("late", annotations={"gpu-fraction": fraction}))) == []
    assert after(scheduler, 3.0, PodLost("default/running")) == [Bind("default/whole", "n")]


def preempted(pod: Pod) -> Pod:
    """A pod as the world shows it while it leaves because others preempt it."""
    reason = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    metadata = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return replace(pod, metadata=metadata, status=replace(pod.status, conditions=[reason]))


def nominated(pod: Pod, node: str) -> Pod:
    return replace(pod, status=replace(pod.status, nominated_node_name=node))


def test_a_pod_that_has_given_up_its_room_is_not_counted_there_any_more() -> None:
    """Two urgent pods take the room that two others hold while pods leave; a third one gets none."""
    low = [make_pod(name, cpu=1, node="n") for name in ("a", "b")]
    scheduler = make_scheduler(nodes=[make_node("n", cpu=2)], pods=low)
    middle = [make_pod(name, cpu=1, priority=10) for name in ("m1", "m2")]
    assert sorted(evicts(after(scheduler, 1.0, *map(PodSeen, middle)))) == ["default/a", "default/b"]
    after(scheduler, 2.0, *(PodSeen(preempted(pod)) for pod in low), *(PodSeen(nominated(pod, "n")) for pod in middle))

    urgent = [make_pod(name, cpu=1, priority=100) for name in ("u1", "u2", "u3")]
    for at, pod in enumerate(urgent):
        assert after(scheduler, 3.0 + at, PodSeen(pod)) == []
    held = {held.key for _, plan in scheduler.cluster.plans() for held in plan.holds}

    assert held == {"default/u1", "default/u2"}
    gone = after(scheduler, 9.0, *(PodLost(pod.key) for pod in low))
    assert gone == [Bind("default/u1", "n"), Bind("default/u2", "n")]


def test_room_that_becomes_free_goes_to_the_most_urgent_pod_that_waits_for_it() -> None:
    low = [make_pod(name, cpu=1, node="n") for name in ("a", "b")]
    scheduler = make_scheduler(nodes=[make_node("n", cpu=2)], pods=low)
    less = evicts(after(scheduler, 1.0, PodSeen(make_pod("less-urgent", cpu=1, priority=10))))
    more = evicts(after(scheduler, 2.0, PodSeen(make_pod("urgent", cpu=1, priority=100))))

    assert after(scheduler, 3.0, PodLost(less[0])) == [Bind("default/urgent", "n")]
    assert after(scheduler, 4.0, PodLost(more[0])) == [Bind("default/less-urgent", "n")]


def near(name: str, app: str, **given: Any) -> Pod:
    """A pod that must be in a zone with a pod of an app."""
    term = PodAffinityTerm(topology_key="zone", label_selector=LabelSelector(match_labels={"app": app}))
    return make_pod(name, cpu=1, affinity=Affinity(pod_affinity=PodAffinity(required=[term])), **given)


def one_zone(low: Pod) -> Scheduler:
    nodes = [make_node("n1", cpu=2, labels={"zone": "z", "disk": "ssd"}), make_node("n2", cpu=2, labels={"zone": "z"})]
    return make_scheduler(nodes=nodes, pods=[low])


def test_a_pod_is_not_bound_near_a_pod_that_only_holds_its_room() -> None:
    scheduler = one_zone(make_pod("low", cpu=2, node="n1"))
    urgent = make_pod("urgent", cpu=2, priority=100, labels={"app": "x"}, node_selector={"disk": "ssd"})

    decisions = after(scheduler, 1.0, PodSeen(urgent), PodSeen(near("friend", "x")))
    assert (evicts(decisions), len(decisions)) == (["default/low"], 1)
    assert after(scheduler, 2.0) == []
    assert after(scheduler, 3.0, PodLost("default/low")) == [Bind("default/urgent", "n1"), Bind("default/friend", "n2")]


def test_a_pod_is_not_bound_near_a_pod_that_is_leaving() -> None:
    scheduler = one_zone(make_pod("low", cpu=2, labels={"app": "x"}, node="n1"))
    urgent = make_pod("urgent", cpu=2, priority=100, node_selector={"disk": "ssd"})

    decisions = after(scheduler, 1.0, PodSeen(urgent), PodSeen(near("friend", "x")))
    assert (evicts(decisions), len(decisions)) == (["default/low"], 1)
    assert after(scheduler, 2.0, PodLost("default/low")) == [Bind("default/urgent", "n1")]


def test_a_pod_is_not_bound_near_a_gang_for_which_room_is_only_kept() -> None:
    """The gang lacks room for its second member, so that it has none; it may never come."""
    nodes = [make_node(name, cpu=4, labels={"zone": "z"}) for name in ("n1", "n2")]
    scheduler = make_scheduler(nodes=nodes, pods=[make_pod("busy", cpu=4, priority=100, node="n1")])
    gang = {"mooring.dev/gang-name": "gang", "mooring.dev/gang-minimum": "2"}
    members = [make_pod(f"gang-{i}", cpu=3, labels={"app": "x"}, annotations=gang) for i in range(2)]
    declared = Gang(gang_key(PLAIN_KIND, "default", "gang"), "default/gang", 2)
    assert after(scheduler, 1.0, GangSeen(declared), *map(PodSeen, members)) == []

    assert after(scheduler, 1000.0, PodSeen(near("friend", "x"))) == []
    assert after(scheduler, 1001.0) == []


def test_a_pod_does_not_spread_by_a_pod_that_is_leaving() -> None:
    """With `low` counted, a second pod in z1 leaves a skew of one; without, of two."""
    nodes = [make_node("n1", cpu=4, labels={"zone": "z1"}), make_node("n2", cpu=2, labels={"zone": "z2"})]
    pods = [make_pod("first", cpu=1, labels={"app": "y"}, node="n1", priority=100)]
    pods.append(make_pod("low", cpu=2, labels={"app": "y"}, node="n2"))
    scheduler = make_scheduler(nodes=nodes, pods=pods)
    urgent = make_pod("urgent", cpu=2, priority=100, node_selector={"zone": "z2"})

    decisions = after(scheduler, 1.0, PodSeen(urgent), PodSeen(spreading("more")))
    assert (evicts(decisions), len(decisions)) == (["default/low"], 1)
    assert after(scheduler, 2.0, PodLost("default/low")) == [Bind("default/urgent", "n2")]


def relying(holder: Pod) -> Scheduler:
    """`holder` waits for `low` to leave n1, and would not fit there without `counted`, which runs in the other zone."""
    nodes = [make_node("n1", cpu=2, labels={"zone": "z1"}), make_node("n2", cpu=2, labels={"zone": "z2"})]
    pods = [
        make_pod("first", cpu=1, labels={"app": "y"}, priority=100, node="n1"),
        make_pod("low", cpu=1, node="n1"),
        make_pod("counted", cpu=2, labels={"app": "y"}, node="n2"),
    ]
    scheduler = make_scheduler(nodes=nodes, pods=pods)
    assert evicts(after(scheduler, 1.0, PodSeen(holder))) == ["default/low"]
    return scheduler


def gang_of(priority: int) -> list[Event]:
    """A gang of one pod that fits on n2 alone, and without `counted`."""
    gang = {"mooring.dev/gang-name": "gang", "mooring.dev/gang-minimum": "1"}
    member = make_pod("middle", cpu=2, priority=priority, annotations=gang, node_selector={"zone": "z2"})
    return [GangSeen(Gang(gang_key(PLAIN_KIND, "default", "gang"), "default/gang", 1)), PodSeen(member)]


def pod_of(priority: int) -> list[Event]:
    return [PodSeen(make_pod("middle", cpu=2, priority=priority, node_selector={"zone": "z2"}))]


@pytest.mark.parametrize("preemptor", [pytest.param(pod_of, id="pod"), pytest.param(gang_of, id="gang")])
def test_no_pod_is_evicted_by_which_a_more_urgent_one_spreads_that_holds_its_room(
    preemptor: Callable[[int], list[Event]],
) -> None:
    """Without `counted`, z1 would have two pods of app y with the holder, and z2 none."""
    scheduler = relying(spreading("urgent", priority=100))
    assert after(scheduler, 2.0, *preemptor(10)) == []

    decisions = after(scheduler, 3.0, PodLost("default/low"))
    assert decisions[0] == Bind("default/urgent", "n1")
    assert evicts(decisions) == ["default/counted"], "nothing relies on it any more"


def test_a_pod_that_is_more_urgent_than_the_holder_evicts_what_that_relies_on() -> None:
    scheduler = relying(spreading("urgent", priority=100))

    assert evicts(after(scheduler, 2.0, *pod_of(200))) == ["default/counted"]


def test_of_the_pods_by_which_a_holder_spreads_those_that_are_not_needed_may_be_evicted() -> None:
    scheduler = relying(spreading("urgent", priority=100))
    also = make_pod("also", cpu=2, labels={"app": "y"}, priority=5, node="n3")
    scheduler.handle(NodeSeen(make_node("n3", cpu=2, labels={"zone": "z2"})), PodSeen(also))

    assert evicts(after(scheduler, 2.0, *pod_of(10))) == ["default/counted"]
    assert after(scheduler, 3.0, PodLost("default/low")) == [Bind("default/urgent", "n1")]


@pytest.mark.parametrize("preemptor", [pytest.param(pod_of, id="pod"), pytest.param(gang_of, id="gang")])
def test_no_pod_is_evicted_near_which_a_more_urgent_one_holds_its_room(
    preemptor: Callable[[int], list[Event]],
) -> None:
    nodes = [make_node("n1", cpu=1, labels={"zone": "z2"}), make_node("n2", cpu=2, labels={"zone": "z2"})]
    pods = [make_pod("low", cpu=1, node="n1"), make_pod("friend", cpu=2, labels={"app": "x"}, priority=5, node="n2")]
    scheduler = make_scheduler(nodes=nodes, pods=pods)
    assert evicts(after(scheduler, 1.0, PodSeen(near("urgent", "x", priority=100)))) == ["default/low"]
    assert after(scheduler, 2.0, *preemptor(10)) == []

    decisions = after(scheduler, 3.0, PodLost("default/low"))
    assert decisions[0] == Bind("default/urgent", "n1")
    assert evicts(decisions) == ["default/friend"]


def test_members_of_a_gang_that_share_a_card_are_bound_near_each_other_though_their_kind_runs_elsewhere() -> None:
    """Each is near the other once both are there; asked about one after the other, the first would be near none."""
    labels = {"nvidia.com/gpu.memory": "16384"}
    nodes = [make_node("n1", cpu=2, gpu=1, labels=labels), make_node("n2", cpu=1, labels=labels)]
    elsewhere = make_pod("elsewhere", cpu=1, labels={"app": "x"}, node="n2")
    running = make_pod("running", cpu=1, annotations={"gpu-fraction": "0.5"}, priority=5, node="n1")
    scheduler = make_scheduler(nodes=nodes, pods=[elsewhere, running])
    gang = {"mooring.dev/gang-name": "gang", "mooring.dev/gang-minimum": "2", "gpu-fraction": "0.5"}
    term = PodAffinityTerm(
        topology_key="kubernetes.io/hostname", label_selector=LabelSelector(match_labels={"app": "x"})
    )
    affinity = Affinity(pod_affinity=PodAffinity(required=[term]))
    members = [
        make_pod(f"gang-{i}", cpu=1, labels={"app": "x"}, annotations=gang, affinity=affinity, priority=100)
        for i in range(2)
    ]
    declared = Gang(gang_key(PLAIN_KIND, "default", "gang"), "default/gang", 2)
    assert evicts(after(scheduler, 1.0, GangSeen(declared), *map(PodSeen, members))) == ["default/running"]

    bound = after(scheduler, 2.0, PodLost("default/running"))
    assert [(found.pod, found.node) for found in bound if isinstance(found, Bind)] == [
        ("default/gang-0", "n1"),
        ("default/gang-1", "n1"),
    ]
