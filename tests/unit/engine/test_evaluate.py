"""One pod against all nodes: the first reason counts, and the message is kube-scheduler's."""

from mooring.assembly import assemble
from mooring.engine.answers.kept import KeptAnswers
from mooring.engine.evaluate import Evaluation, evaluate
from mooring.engine.ranking.ranking import can_rank
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.testing.builders import ZONE, make_affinity, make_cluster, make_node, make_pod, make_taint, make_toleration

PROFILE = assemble().default_profile


def ask(pod: Pod, *nodes: Node) -> Evaluation:
    cluster = make_cluster(nodes=nodes)
    return evaluate(PROFILE, cluster, cluster.shape_for(pod))


def test_the_first_plugin_that_refuses_a_node_gives_its_reason() -> None:
    evaluation = ask(make_pod(cpu=8), make_node("a", cpu=1, unschedulable=True, taints=[make_taint("broken")]))

    verdict = evaluation.verdict(0)

    assert verdict is not None
    assert (verdict.plugin, verdict.reasons) == ("NodeUnschedulable", ("node(s) were unschedulable",))


def test_the_message_counts_each_reason_in_the_order_of_its_words() -> None:
    evaluation = ask(
        make_pod(cpu=8, memory="64Gi"),
        make_node("a", cpu=4, memory="1Gi"),
        make_node("b", cpu=4, memory="128Gi"),
        make_node("c", taints=[make_taint("dedicated")]),
    )

    assert evaluation.message() == (
        "0/3 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
    )
    assert evaluation.refusing_plugins() == ("NodeResourcesFit", "TaintToleration")


def test_without_nodes_there_is_nothing_to_count() -> None:
    assert ask(make_pod()).message() == "no nodes available to schedule pods"


def test_scores_are_weighted_and_added() -> None:
    pod = make_pod(cpu=1, memory="1Gi", tolerations=[make_toleration("spot")])

    evaluation = ask(pod, make_node("a", cpu=4, memory="4Gi"))

    assert {name: scores.tolist() for name, scores in evaluation.scores.items()} == {
        "TaintToleration": [300],
        "NodeResourcesFit": [75],
        "VolumeBinding": [0],
        "NodeResourcesBalancedAllocation": [75],
    }
    assert evaluation.totals.tolist() == [450]


def test_a_pod_that_names_its_nodes_looks_at_no_others() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["b"]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    pod = make_pod(cpu=64, affinity=make_affinity(nodes=required))

    evaluation = ask(pod, make_node("a", zone="x"), make_node("b", labels={ZONE: "x"}))

    assert evaluation.message() == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_default_plugins_that_have_nothing_to_say_do_not_keep_plain_pods_from_being_ranked() -> None:
    cluster = make_cluster(nodes=[make_node("a"), make_node("b")])

    answers = KeptAnswers().fresh(PROFILE, cluster, cluster.shape_for(make_pod("plain")))

    assert [found.plugin.name for found in answers.domain_filters] == []
    assert can_rank(answers)
