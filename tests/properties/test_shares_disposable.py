"""Actions for shares keep nothing that decides: thrown away in the middle of a story, and built anew, they go on.

What is not in the objects of the cluster (past use, which jobs were let in, what gangs were told) is in the state.
"""

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mooring.actions.shares.action import Share
from mooring.actions.shares.let_in import LetIn
from mooring.actions.shares.reclaim import Reclaim
from mooring.assembly import Assembly, assemble
from mooring.config.settings import parse_settings
from mooring.drivers.offline.differences import differences
from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Decision, Evict
from mooring.model.events import PodLost
from mooring.model.loading.manifests import build_manifests

Json = dict[str, Any]
VOLCANO = "scheduling.volcano.sh/v1beta1"
STEPS = 8


def assembled(chance: Random) -> Assembly:
    policy: Json = {
        "apiVersion": "config.mooring.dev/v1alpha1",
        "kind": "TenantPolicy",
        "shares": {"division": chance.choice(("Proportion", "Capacity", "Weighted"))},
    }
    if chance.random() < 0.5:
        policy["usageHalfLifeSeconds"] = 30
    return assemble(parse_settings([policy], "policy"))


def renew(scheduler: Scheduler, assembly: Assembly) -> None:
    """Throw the actions for shares away, and put new ones in their places."""
    for action in scheduler.actions:
        if isinstance(action, Share) and action.followed is not None:
            action.followed.end()
    anew = iter([action for action in assembly.new_scheduler().actions if isinstance(action, Share | Reclaim | LetIn)])
    scheduler.actions = [
        next(anew) if isinstance(action, Share | Reclaim | LetIn) else action for action in scheduler.actions
    ]


def some_object(chance: Random) -> Json:
    """A node, a queue of some family, a group or a pod."""
    return chance.choice((node, volcano_queue, kai_queue, quota, group, pod, pod, pod, pod))(chance)


def node(chance: Random) -> Json:
    allocatable = {"cpu": chance.choice(("2", "4", "8")), "memory": "16Gi", "pods": "20"}
    name = f"n{chance.randint(1, 3)}"
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


def volcano_queue(chance: Random) -> Json:
    spec: Json = {"weight": chance.randint(1, 3)}
    if chance.random() < 0.3:
        spec["capability"] = {"cpu": chance.choice(("2", "4"))}
    return {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": chance.choice("ab")}, "spec": spec}


def kai_queue(chance: Random) -> Json:
    resource = {"quota": chance.choice((1000, 2000)), "limit": -1, "overQuotaWeight": chance.randint(1, 2)}
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"cpu": resource, "memory": free, "gpu": free}
    api, name = "scheduling.run.ai/v2", chance.choice(("ka", "kb"))
    return {"apiVersion": api, "kind": "Queue", "metadata": {"name": name}, "spec": {"resources": resources}}


def quota(chance: Random) -> Json:
    api, name = "scheduling.x-k8s.io/v1alpha1", "quota"
    spec = {"min": {"cpu": "1"}, "max": {"cpu": chance.choice(("2", "3"))}}
    return {"apiVersion": api, "kind": "ElasticQuota", "metadata": {"name": name, "namespace": "eq"}, "spec": spec}


def group(chance: Random) -> Json:
    spec: Json = {"minMember": chance.randint(1, 2), "queue": chance.choice("ab")}
    if chance.random() < 0.6:
        spec["minResources"] = {"cpu": chance.choice(("1", "2", "3"))}
    status = {"phase": chance.choice(("Pending", "Pending", "Inqueue"))}
    name = f"g{chance.randint(0, 3)}"
    return {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec, "status": status}


def pod(chance: Random) -> Json:
    metadata: Json = {"name": f"p{chance.randint(0, 15)}", "namespace": "default"}
    kind = chance.randint(0, 4)
    if kind == 0:
        metadata["annotations"] = {"scheduling.volcano.sh/queue-name": chance.choice("ab")}
    elif kind == 1:
        metadata["annotations"] = {"scheduling.k8s.io/group-name": f"g{chance.randint(0, 3)}"}
    elif kind == 2:
        metadata["labels"] = {"kai.scheduler/queue": chance.choice(("ka", "kb"))}
    elif kind == 3:
        metadata["namespace"] = "eq"
    requests = {"cpu": chance.choice(("500m", "1", "2"))}
    spec: Json = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    spec["priority"] = chance.choice((0, 0, 10))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def key_of(found: Json) -> tuple[str, str, str, str]:
    metadata = found["metadata"]
    return found["apiVersion"], found["kind"], metadata.get("namespace", ""), metadata["name"]


@given(seed=st.integers(0, 10**9))
def test_actions_that_are_thrown_away_at_any_time_decide_the_same(seed: int) -> None:
    chance = Random(seed)
    assembly = assembled(chance)
    kept, renewed = assembly.new_scheduler(), assembly.new_scheduler()
    known: dict[tuple[str, str, str, str], Json] = {}
    before = build_manifests([])
    for step in range(STEPS):
        for _ in range(chance.randint(0, 6)):
            found = some_object(chance)
            known[key_of(found)] = found
        for key in chance.sample(list(known), min(len(known), chance.randint(0, 2))):
            del known[key]
        after = build_manifests(list(known.values()))
        events = list(differences(before, after))
        before, now = after, step * 7.0
        decisions: list[list[Decision]] = []
        for scheduler in (kept, renewed):
            scheduler.handle(*events)
            decisions.append(scheduler.cycle(now))
            scheduler.handle(*(PodLost(found.pod) for found in decisions[-1] if isinstance(found, Evict)))
        assert decisions[0] == decisions[1]
        if chance.random() < 0.5:
            renew(renewed, assembly)
