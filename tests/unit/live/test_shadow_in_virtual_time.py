"""What a shadow decides is compared with what happens, by the scores of the moment, and never outlives the truth."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.assembly import assemble
from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.shadow.client import ReadOnlyClient
from mooring.drivers.live.shadow.driver import Shadow
from mooring.drivers.live.shadow.pods import KeptScores
from mooring.drivers.live.shadow.telling import LINES, LINES_SECONDS, Telling
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.errors import InvariantBroken
from mooring.model.keys import PodKey
from mooring.model.objects.kinds import find_kind
from mooring.observe.shadow_log import (
    ComparedAdmission,
    ComparedPod,
    ComparedPreemption,
    Outcome,
    ShadowLog,
    Side,
    read_shadow_log,
)
from mooring.report.shadow import make_shadow_report

TIMEOUT = 60.0
KUEUE = "kueue.x-k8s.io/v1beta2"
Object = dict[str, Any]


def node(name: str, cpu: str = "4", **more: Any) -> Object:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status, "spec": more}


def pod(name: str, cpu: str = "1", on: str = "", **more: Any) -> Object:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    spec = {"containers": [container], "schedulerName": "default-scheduler", **more}
    if on:
        spec["nodeName"] = on
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


class World:
    """A cluster as watches show it, at a time that the test says, and a shadow of its scheduler."""

    def __init__(self, *objects: Object) -> None:
        self.now = 1_800_000_000.0
        self.cache = ObjectCache()
        self.lines: list[Any] = []
        self.put(*objects)
        scheduler = assemble(None).new_scheduler()
        self.shadow = Shadow(scheduler, self.cache, self.lines.append, timeout_seconds=TIMEOUT, clock=lambda: self.now)
        self.shadow.begin()
        self.turn()

    def put(self, *objects: Object) -> None:
        for found in objects:
            self.cache.put(_resource(found), msgspec.Raw(json.dumps(found).encode()))

    def remove(self, found: Object) -> None:
        self.cache.remove(_resource(found), (found["metadata"].get("namespace", ""), found["metadata"]["name"]))

    def turn(self, *objects: Object, later: float = 0.1) -> list[Any]:
        """Let these come, and the shadow act on them; return the new comparisons."""
        before = len(self.lines)
        self.put(*objects)
        self.now += later
        while self.shadow.turn() and len(self.shadow.scheduler.queue):
            pass
        return self.lines[before:]

    def chosen(self, name: str) -> str:
        """The node on which the shadow sees a pod."""
        return self.shadow.scheduler.cluster.pods.records[PodKey(f"default/{name}")].node_name

    def is_assumed(self, name: str) -> bool:
        return self.shadow.scheduler.cluster.pods.records[PodKey(f"default/{name}")].assumed


def _resource(found: Object) -> Resource:
    kind = find_kind(found["apiVersion"], found["kind"])
    assert kind is not None, found
    version = found["apiVersion"].rpartition("/")[2]
    return Resource(kind, version, f"{found['kind'].lower()}s", namespaced="namespace" in found["metadata"])


def only(lines: list[Any]) -> Any:
    [line] = lines
    return line


def other_of(chosen: str) -> str:
    return "b" if chosen == "a" else "a"


# Pods.


def test_the_same_node_is_agreement() -> None:
    world = World(node("a"), node("b", cpu="2"))
    world.turn(pod("web"))
    assert world.chosen("web") == "a" and world.is_assumed("web")

    line = only(world.turn(pod("web", on="a"), later=2.0))

    assert (line.outcome, line.node, line.bound) == (Outcome.SAME, "a", "a")
    assert line.ours_seconds == pytest.approx(0.0) and line.theirs_seconds == pytest.approx(2.0)
    assert not world.is_assumed("web")


def test_a_node_that_scored_equally_is_a_tie_and_the_truth_replaces_what_was_assumed() -> None:
    world = World(node("a"), node("b"))
    world.turn(pod("web"))
    other = other_of(world.chosen("web"))

    line = only(world.turn(pod("web", on=other)))

    assert (line.outcome, line.bound, line.difference, line.plugins) == (Outcome.TIE, other, 0, {})
    assert world.chosen("web") == other and not world.is_assumed("web")


def test_another_node_comes_with_the_difference_and_the_plugins_that_make_it() -> None:
    world = World(node("a", cpu="8"), node("b", cpu="2"))
    world.turn(pod("web"))

    line = only(world.turn(pod("web", on="b")))

    assert (line.outcome, line.node, line.bound) == (Outcome.OTHER, "a", "b")
    assert line.difference == sum(line.plugins.values()) > 0
    assert line.plugins["NodeResourcesFit"] > 0
    assert not line.is_drift


def test_another_node_that_a_filter_refuses_names_the_filter() -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    world = World(node("a"), node("b", taints=[taint]))
    world.turn(pod("web"))

    line = only(world.turn(pod("web", on="b")))

    assert (line.outcome, line.difference) == (Outcome.OTHER, None)
    assert line.refused_by == ["TaintToleration: node(s) had untolerated taint(s)"]


def test_a_difference_that_an_earlier_one_explains_is_marked() -> None:
    world = World(node("a"), node("b"))
    world.turn(pod("first"), pod("second"))
    first, second = world.chosen("first"), world.chosen("second")
    assert {first, second} == {"a", "b"}

    # The present scheduler breaks the first tie otherwise; then the node that is left is the best for both.
    lines = world.turn(pod("first", on=second), pod("second", on=first))

    assert [line.outcome for line in lines] == [Outcome.TIE, Outcome.OTHER]
    assert [line.is_drift for line in lines] == [False, True]
    report = make_shadow_report(lines)
    assert (report.agreement, report.same_state_agreement, report.drift) == (0.5, 1.0, 1)


def test_binds_that_arrive_together_are_compared_in_the_order_of_the_queue() -> None:
    world = World(node("a"), node("b"))
    world.turn(pod("first"), pod("second"))
    first, second = world.chosen("first"), world.chosen("second")

    lines = world.turn(pod("second", on=first), pod("first", on=second))

    assert [(line.pod, line.outcome) for line in lines] == [
        ("default/first", Outcome.TIE),
        ("default/second", Outcome.OTHER),
    ]
    assert lines[1].is_drift


def test_a_pod_that_is_bound_before_we_decide_is_judged_in_hindsight() -> None:
    world = World(node("a", cpu="8"), node("b", cpu="2"))

    best, worse = world.turn(pod("one", on="a"), pod("two", on="b"))

    assert (best.outcome, best.hindsight, best.node) == (Outcome.BEFORE_US, "same", "a")
    assert (worse.outcome, worse.hindsight, worse.node) == (Outcome.BEFORE_US, "other", "a")
    assert worse.difference > 0 and worse.ours_seconds is None


def test_pods_that_run_already_and_pods_of_other_schedulers_are_not_compared() -> None:
    world = World(node("a"), pod("old", on="a"))
    foreign = pod("foreign", schedulerName="another")

    world.turn(foreign)
    world.turn({**foreign, "spec": {**foreign["spec"], "nodeName": "a"}}, pod("old", on="a"))

    assert world.lines == []


def test_a_pod_that_is_bound_although_we_found_no_node_says_why_we_did_not() -> None:
    world = World(node("a", cpu="2"))
    world.turn(pod("large", cpu="3"))

    line = only(world.turn(pod("large", cpu="3", on="a")))

    assert line.outcome is Outcome.UNSCHEDULABLE
    assert line.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert line.refused_by == ["NodeResourcesFit: Insufficient cpu"]


def test_a_decision_that_nothing_confirms_is_dropped_and_its_room_is_free_again() -> None:
    world = World(node("a", cpu="2"))
    world.turn(pod("kept", cpu="2"))
    world.turn(pod("small", cpu="1"))
    assert world.chosen("kept") == "a" and world.chosen("small") == ""

    lines = world.turn(later=TIMEOUT + 1)

    assert [(line.pod, line.outcome) for line in lines] == [("default/kept", Outcome.UNCONFIRMED)]
    assert world.chosen("kept") == "" and world.chosen("small") == "a"
    line = only(world.turn(pod("kept", cpu="2", on="a")))  # in the end it happens: the last word counts
    assert line.outcome is Outcome.SAME
    assert make_shadow_report(world.lines).outcomes["unconfirmed"] == 0


# Preemption.


def test_an_eviction_that_happens_is_of_both_and_one_that_does_not_is_ours_alone() -> None:
    low, high = pod("low", cpu="2", on="a", priority=0), pod("high", cpu="2", priority=100)
    happens, stays = World(node("a", cpu="2"), low), World(node("a", cpu="2"), low)
    for world in (happens, stays):
        world.turn(high)

    happens.remove(low)
    gone = happens.turn()
    kept = stays.turn(later=TIMEOUT + 1)

    expected = {"victim": "default/low", "preemptor": "default/high", "node": "a"}
    for line, side in ((only(gone), Side.BOTH), (only(kept), Side.OURS)):
        assert isinstance(line, ComparedPreemption)
        assert (line.side, line.victim, line.preemptor, line.node) == (side, *expected.values())
    assert happens.chosen("high") == "a"
    assert only(happens.turn(pod("high", cpu="2", on="a", priority=100))).outcome is Outcome.SAME


def test_a_pod_that_is_bound_elsewhere_makes_our_evictions_for_it_needless() -> None:
    low, high = pod("low", cpu="2", on="a", priority=0), pod("high", cpu="2", priority=100)
    world = World(node("a", cpu="2"), low)
    world.turn(high)

    lines = world.turn(node("b", cpu="2"), pod("high", cpu="2", priority=100, on="b"))

    pods = [line for line in lines if isinstance(line, ComparedPod)]
    evictions = [line for line in lines if isinstance(line, ComparedPreemption)]
    assert [(line.outcome, line.node, line.bound) for line in pods] == [(Outcome.PREEMPTION, "a", "b")]
    assert [(line.side, line.victim) for line in evictions] == [(Side.OURS, "default/low")]
    assert world.shadow.scheduler.cluster.pods.records[PodKey("default/low")].leaving is None


def test_a_pod_that_the_present_scheduler_preempts_alone_is_noted() -> None:
    world = World(node("a"), pod("low", on="a"))
    victim = pod("low", on="a")
    victim["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]

    line = only(world.turn(victim))

    assert isinstance(line, ComparedPreemption) and (line.side, line.victim) == (Side.THEIRS, "default/low")


# Admission.


def queues(cpu: str) -> list[Object]:
    quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    return [
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}},
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": "team"},
            "spec": {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}]},
        },
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"clusterQueue": "team"},
        },
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
    ]


def workload(name: str, cpu: str, *, admitted: bool = False) -> Object:
    resources = {"requests": {"cpu": cpu}}
    template = {"spec": {"containers": [{"name": "main", "image": "pause", "resources": resources}]}}
    status: Object = {}
    if admitted:
        assignment = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": cpu}}
        conditions = [{"type": type_, "status": "True"} for type_ in ("QuotaReserved", "Admitted")]
        admission = {"clusterQueue": "team", "podSetAssignments": [assignment]}
        status = {"admission": admission, "conditions": conditions}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"queueName": "team", "podSets": [{"name": "main", "count": 1, "template": template}]},
        "status": status,
    }


def admissions(lines: list[Any]) -> list[tuple[Side, str]]:
    return [(line.side, line.workload) for line in lines if isinstance(line, ComparedAdmission)]


def test_workloads_are_admitted_by_both_by_us_alone_or_by_them_alone() -> None:
    world = World(node("a", cpu="16"), *queues("4"))
    world.turn(workload("fits", "3"))
    world.turn(workload("waits", "3"))

    assert admissions(world.turn(workload("fits", "3", admitted=True))) == [(Side.BOTH, "default/fits")]
    theirs = world.turn(workload("waits", "3", admitted=True))
    assert admissions(theirs) == [(Side.THEIRS, "default/waits")]
    assert "insufficient unused quota" in theirs[0].message

    idle = World(node("a", cpu="16"), *queues("4"), workload("fits", "3"))
    assert admissions(idle.turn(later=TIMEOUT + 1)) == [(Side.OURS, "default/fits")]
    assert admissions(idle.turn(later=TIMEOUT + 1)) == []  # decided again, and said once


# What is told.


def test_nothing_but_reads_is_sent() -> None:
    client = ReadOnlyClient.__new__(ReadOnlyClient)
    requests: list[Callable[[], Any]] = [
        lambda: asyncio.run(client.post("/api/v1/namespaces/default/pods/web/binding", b"{}")),
        lambda: asyncio.run(client.patch("/api/v1/namespaces/default/pods/web/status", b"{}")),
        lambda: asyncio.run(client.request("DELETE", "/api/v1/namespaces/default/pods/web", is_fenced=False)),
        lambda: client.post_at_once("/api/v1/namespaces/default/events", b"{}", lambda error: None),
    ]
    for send in requests:
        with pytest.raises(InvariantBroken, match="a shadow changes nothing"):
            send()


def test_the_log_reads_as_it_was_written(tmp_path: Path) -> None:
    world = World(node("a", cpu="8"), node("b", cpu="2"))
    world.turn(pod("web"))
    lines = world.turn(pod("web", on="b"))
    path = tmp_path / "shadow.jsonl"
    log = ShadowLog(str(path))
    for line in lines:
        log.note(line)
    log.close()

    assert list(read_shadow_log(path)) == lines
    path.write_bytes(path.read_bytes() + b'{"kind": "Pod", "ti')  # it is being written
    assert list(read_shadow_log(path)) == lines


def test_few_differences_are_logged_and_all_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    telling = Telling(ShadowLog(), clock=lambda: now)
    line = ComparedPod(
        time=0.0,
        pod="default/web",
        outcome=Outcome.OTHER,
        node="a",
        bound="b",
        difference=4,
        plugins={"NodeResourcesFit": 5, "ImageLocality": -1},
    )

    with caplog.at_level("INFO"):
        for _ in range(LINES + 7):
            telling.note(line)
        now += LINES_SECONDS
        telling.note(line)

    said = (
        "pod default/web was bound to b; Mooring would choose a: 4 points less (NodeResourcesFit +5, ImageLocality -1)"
    )
    assert caplog.messages == [said] * LINES + ["7 more differences were not logged: the report has them all", said]
    text = telling.metrics.text().decode()
    assert f'mooring_shadow_pods_total{{outcome="other"}} {float(LINES + 8)}' in text
    assert f'mooring_shadow_differing_plugins_total{{plugin="NodeResourcesFit"}} {float(LINES + 8)}' in text
    assert 'plugin="ImageLocality"' not in text


def test_scores_of_old_decisions_are_given_up_when_memory_is_short() -> None:
    world = World(node("a"), node("b"))
    world.turn(pod("one"), pod("two"))
    kept = [world.shadow.pods._waiting[PodKey(f"default/{name}")].decided for name in ("one", "two")]
    first, second = kept
    assert first is not None and second is not None

    scores = KeptScores(most_cells=second.cells)
    scores.keep(PodKey("default/one"), first)
    scores.keep(PodKey("default/two"), second)

    assert first.evaluation is None and second.evaluation is not None
    line = only(world.turn(pod("one", on=other_of(first.decision.node))))
    assert (line.outcome, line.difference) == (Outcome.OTHER, None)


# Whatever the present scheduler does.

ACTIONS = st.lists(
    st.tuples(st.sampled_from(["create", "bind", "delete", "wait"]), st.integers(0, 5), st.integers(0, 2)), max_size=40
)


@settings(deadline=None)
@given(ACTIONS)
def test_a_shadow_never_drifts_from_the_cluster(actions: list[tuple[str, int, int]]) -> None:
    world = World(*(node(f"n{number}", cpu="2") for number in range(3)))
    there: dict[str, str] = {}
    for action, number, where in actions:
        name = f"p{number}"
        if action == "create" and name not in there:
            there[name] = ""
            world.put(pod(name))
        elif action == "bind" and there.get(name) == "":
            there[name] = f"n{where}"
            world.put(pod(name, on=f"n{where}"))
        elif action == "delete" and name in there:
            del there[name]
            world.remove(pod(name))
        world.turn(later=TIMEOUT if action == "wait" else 1.0)

        records = world.shadow.scheduler.cluster.pods.records
        assert records.keys() == {f"default/{name}" for name in there}
        for name, bound in there.items():
            record = records[PodKey(f"default/{name}")]
            assert record.node_name == bound or (not bound and record.assumed)
        unconfirmed = set(world.shadow.pods.unconfirmed())
        assert unconfirmed == {key for key, record in records.items() if record.assumed}
        for key in unconfirmed:
            decided = world.shadow.pods._waiting[key].decided
            assert decided is not None and world.now - decided.at < TIMEOUT
    pods = [line for line in world.lines if isinstance(line, ComparedPod) and line.bound]
    bound_once = {(line.pod, line.time) for line in pods}
    assert len(pods) == len(bound_once)
