"""The shares that are kept up to date from changes equal those found from nothing, whatever happens in between."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mooring.actions.shares.action import Share
from mooring.actions.shares.following import SharedJobs
from mooring.actions.shares.sharing import Sharing
from mooring.actions.shares.volcano.family import VolcanoFamily
from mooring.assembly import assemble
from mooring.config.settings import parse_settings
from mooring.drivers.offline.differences import differences
from mooring.engine.cycle import Scheduler
from mooring.engine.queue.parked import Turn
from mooring.model.decisions import Evict
from mooring.model.events import PodLost
from mooring.model.loading.manifests import build_manifests

VOLCANO = "scheduling.volcano.sh/v1beta1"
Json = dict[str, Any]
names = st.sampled_from("abc")


@st.composite
def nodes(draw: st.DrawFn) -> Json:
    allocatable = {"cpu": draw(st.sampled_from(("2", "4"))), "memory": "8Gi", "pods": "20"}
    name = draw(st.sampled_from(("n1", "n2", "n3")))
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


@st.composite
def queues(draw: st.DrawFn) -> Json:
    spec: Json = {"weight": draw(st.integers(1, 3))}
    if draw(st.booleans()):
        spec["capability"] = {"cpu": draw(st.sampled_from(("1", "3")))}
    return {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": draw(names)}, "spec": spec}


@st.composite
def groups(draw: st.DrawFn) -> Json:
    spec: Json = {"minMember": draw(st.integers(1, 3)), "queue": draw(names)}
    return {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": f"g-{draw(names)}"}, "spec": spec}


@st.composite
def pods(draw: st.DrawFn) -> Json:
    requests = {"cpu": draw(st.sampled_from(("500m", "1", "2")))}
    if draw(st.booleans()):
        requests["memory"] = "1Gi"
    annotation = draw(st.sampled_from(("scheduling.volcano.sh/queue-name", "scheduling.k8s.io/group-name", "other")))
    named = f"g-{draw(names)}" if "group" in annotation else draw(names)
    spec: Json = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    if draw(st.integers(0, 2)) == 0:
        spec["nodeName"] = draw(st.sampled_from(("n1", "n2", "n3")))
    metadata = {"name": f"p{draw(st.integers(0, 9))}", "annotations": {annotation: named}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


things = st.one_of(nodes(), queues(), groups(), pods(), pods(), pods())
steps = st.lists(st.tuples(st.lists(things, max_size=6), st.lists(st.integers(0, 40), max_size=2)), max_size=6)


def _key(document: Json) -> tuple[str, str]:
    return document["kind"], document["metadata"]["name"]


def _standing(sharing: Sharing) -> tuple[Any, ...]:
    cache = sharing.cache
    demands = sorted(sharing.demands(), key=lambda demand: demand.key)
    reports = {spec.name: sharing.report(spec.name) for spec in cache.tree.specs}
    return demands, reports


def _waiting(scheduler: Scheduler) -> list[Turn]:
    parked = [turn for found in scheduler.queue.parked() for turn in found.turns()]
    return [turn for turn in parked if scheduler.shared.of_turn(scheduler.cluster, turn)]


@given(steps, st.sampled_from(("Proportion", "Capacity")))
def test_what_is_kept_equals_what_is_found_from_nothing(story: list[tuple[list[Json], list[int]]], kind: str) -> None:
    policy = {"apiVersion": "config.mooring.dev/v1alpha1", "kind": "TenantPolicy", "shares": {"division": kind}}
    scheduler = assemble(parse_settings([policy], "policy")).new_scheduler()
    share = next(
        action for action in scheduler.actions if isinstance(action, Share) and isinstance(action.family, VolcanoFamily)
    )
    known: dict[tuple[str, str], Json] = {("Queue", "a"): _queue("a")}
    before = build_manifests([])
    for number, (come, go) in enumerate(story):
        known.update((_key(document), document) for document in come)
        for at in go:
            if len(known) > 1:
                del known[list(known)[1:][at % (len(known) - 1)]]
        after = build_manifests(list(known.values()))
        scheduler.handle(*differences(before, after))
        before = after
        decisions = scheduler.cycle(float(number))
        scheduler.handle(*(PodLost(found.pod) for found in decisions if isinstance(found, Evict)))
        turns = _waiting(scheduler)
        if turns and share.followed is not None:
            share.followed.follow(turns, float(number))
            anew = SharedJobs(scheduler.cluster, share.settings, share.family, share.shared)
            anew.follow(turns, float(number))
            assert share.followed.jobs == anew.jobs
            assert share.followed.refused == anew.refused
            assert _standing(share.followed.sharing) == _standing(anew.sharing)


def _queue(name: str) -> Json:
    return {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}
