"""What holds of every preemption: it is kube-scheduler's, nobody goes in vain, and looking leaves no trace."""

from typing import Any

from drawing import choices
from hypothesis import event, given
from hypothesis import strategies as st
from plain_preemption import PlainChoice, fits, plain_choice
from stories import assembled
from test_rollback import fingerprint

from examples import examples
from mooring.actions.preempt.pods.search import Found, InVain, VictimSearch, refusals
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.state.cluster import Cluster
from mooring.testing.builders import make_cluster, make_node, make_pod, make_selector
from mooring.testing.random_clusters import APPS, Choose, Template, one_in, one_of, random_node, random_template
from mooring.testing.random_clusters import random_related as random_objects

PROFILE = assembled(None).default_profile
PLAIN_TERMS = ("affinity", "spread", "host_ports")
URGENT = 25


def random_budget(choose: Choose, index: int) -> PodDisruptionBudget:
    given: dict[str, Any] = {"status": PodDisruptionBudgetStatus(disruptions_allowed=choose(3))}
    spec: dict[str, Any] = {}
    if one_in(choose, 3):
        given, spec = {}, {"min_available": choose(5)}
    labels = {} if one_in(choose, 8) else {"app": one_of(choose, APPS)}
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=f"budget-{index}", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=make_selector(labels), **spec),
        **given,
    )


def random_running(choose: Choose, template: Template, name: str, node: str) -> Pod:
    pod = template.pod(name, node=node, terminating=one_in(choose, 16), priority=choose(4) * 10)
    pod.status.start_time = None if one_in(choose, 6) else f"2026-01-0{1 + choose(9)}T00:00:00Z"
    return pod


def crowded(choose: Choose, *, nodes: int, pods: int, plain: bool) -> tuple[Cluster, Pod]:
    """A cluster with many pods of several priorities, and one that wants in; `plain` leaves out terms about others."""
    templates = [random_template(choose) for _ in range(4)]
    if plain:
        templates = [Template({k: v for k, v in t.given.items() if k not in PLAIN_TERMS}) for t in templates]
        made = [make_node(f"node-{index}", cpu=1 + choose(2), memory="2Gi", gpu=2) for index in range(nodes)]
    else:
        made = [random_node(choose, f"node-{index}") for index in range(nodes)]
    running = [
        random_running(choose, one_of(choose, templates), f"pod-{index}", f"node-{choose(nodes)}")
        for index in range(pods)
    ]
    budgets = [random_budget(choose, index) for index in range(choose(3))]
    cluster = make_cluster(nodes=made, pods=running, related=[*random_objects(choose), *budgets])
    wanted = dict(one_of(choose, templates).given) | {"priority": one_of(choose, (URGENT, 15, 40))}
    if one_in(choose, 2):
        wanted["cpu"] = one_of(choose, ("1", "1500m", "2"))
    return cluster, make_pod("urgent", **wanted)


def found_by(search: VictimSearch, pod: Pod) -> Found | InVain | None:
    """None where the pod fits as things are."""
    answer = refusals(PROFILE, search.cluster, search.cluster.shape_for(pod))
    return None if len(answer.feasible) else search.find(answer, pod)


def as_plain(found: Found | InVain | None) -> PlainChoice | None:
    if not isinstance(found, Found):
        return None
    return PlainChoice(found.node, tuple(victim.key for victim in found.victims), found.violations)


def check(cluster: Cluster, pod: Pod) -> None:
    before = fingerprint(cluster)
    found = found_by(VictimSearch(cluster), pod)
    event("fits" if found is None else "preempts" if isinstance(found, Found) else "in vain")
    if found is None:
        return
    assert fingerprint(cluster) == before
    assert as_plain(found) == plain_choice(PROFILE, cluster, pod)
    if isinstance(found, Found):
        assert all(victim.priority < (pod.spec.priority or 0) for victim in found.victims)
        check_nobody_goes_in_vain(cluster, pod, found)


def check_nobody_goes_in_vain(cluster: Cluster, pod: Pod, found: Found) -> None:
    shape = cluster.shape_for(pod)
    for spared in found.victims:
        with cluster.what_if():
            for victim in found.victims:
                if victim is not spared:
                    cluster.release(victim.key)
            assert not fits(PROFILE, cluster, shape, found.row), f"{spared.key} need not go from {found.node}"


@examples(150)
@given(choose=choices(), nodes=st.integers(1, 8), pods=st.integers(1, 40))
def test_all_nodes_at_once_choose_as_node_by_node(choose: Choose, nodes: int, pods: int) -> None:
    check(*crowded(choose, nodes=nodes, pods=pods, plain=True))


@examples(150)
@given(choose=choices(), nodes=st.integers(1, 6), pods=st.integers(1, 30))
def test_terms_about_other_pods_are_heeded_as_node_by_node(choose: Choose, nodes: int, pods: int) -> None:
    check(*crowded(choose, nodes=nodes, pods=pods, plain=False))


@given(choose=choices(), plain=st.booleans(), changes=st.integers(1, 12))
def test_what_is_kept_between_decisions_changes_none(choose: Choose, plain: bool, changes: int) -> None:
    cluster, pod = crowded(choose, nodes=5, pods=20, plain=plain)
    kept = VictimSearch(cluster)
    for _ in range(changes):
        found_by(kept, pod)
        bound = [record for record in cluster.pods.records.values() if record.row >= 0]
        if not bound:
            return
        record = one_of(choose, bound)
        row = record.row
        cluster.release(record.key)
        if one_in(choose, 2):
            cluster.assume(record.key, one_of(choose, [row, *cluster.nodes.live_rows().tolist()]))

        assert found_by(kept, pod) == found_by(VictimSearch(cluster), pod)
