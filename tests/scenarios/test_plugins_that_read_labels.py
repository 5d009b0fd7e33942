"""A plugin reads the labels that it says it reads; whoever forgets to say so is told how."""

import pytest

from mooring.assembly import assemble
from mooring.engine.evaluate import evaluate
from mooring.errors import ConfigError, PluginError
from mooring.model.decisions import Bind
from mooring.model.keys import PodKey
from mooring.plugin import ALL, Depends, Filter, Mask, NodeRows, Shape
from mooring.testing.builders import make_node, make_pod, make_scheduler


class TeamNodes(Filter):
    """Pods of a team run on its nodes."""

    depends_on = Depends.NODE
    reads_pod_labels = ("team",)

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return nodes.has_label("team", pod.label("team") or "")


class Forgetful(Filter):
    """The same, unsaid."""

    depends_on = Depends.NODE

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return nodes.has_label("team", pod.label("team") or "")


NODES = [make_node("a", labels={"team": "vision"}), make_node("b", labels={"team": "search"})]


def test_a_label_that_is_declared_decides() -> None:
    pods = [make_pod("search", labels={"team": "search"}), make_pod("vision", labels={"team": "vision"})]

    decisions = make_scheduler(nodes=NODES, pods=pods, plugins=[TeamNodes]).cycle(now=0.0)

    assert decisions == [Bind("default/search", "b"), Bind("default/vision", "a")]


def test_pods_that_differ_in_an_index_label_share_a_shape_beside_such_a_plugin() -> None:
    pods = [make_pod(f"pod-{i}", labels={"team": "vision", "index": f"{i}"}) for i in range(30)]
    scheduler = make_scheduler(nodes=NODES, pods=pods, plugins=[TeamNodes])

    assert len({record.shape.id for record in scheduler.cluster.pods.records.values()}) == 1


def test_a_label_that_is_read_unsaid_is_told_with_the_line_to_add() -> None:
    assembly = assemble(extra_plugins=[Forgetful])
    scheduler = make_scheduler(nodes=NODES, pods=[make_pod("pod", labels={"team": "vision"})], plugins=[Forgetful])
    profile = assembly.default_profile
    shape = scheduler.cluster.pods.records[PodKey("default/pod")].shape

    with pytest.raises(PluginError) as told:
        evaluate(profile, scheduler.cluster, shape)

    assert (told.value.plugin, told.value.point) == ("Forgetful", "filter")
    assert str(told.value).endswith(
        ': plugin Forgetful: filter: it reads the label "team" of pods without saying so: '
        'add reads_pod_labels = ("team",) to the class'
    )


@pytest.mark.parametrize("said", [True, "team", (1,)])
def test_a_declaration_that_is_no_list_of_keys_is_refused(said: object) -> None:
    class Odd(TeamNodes):
        reads_pod_labels = said  # type: ignore[assignment]

    with pytest.raises(ConfigError, match=r'Odd: reads_pod_labels: expected keys, such as \("team",\), or ALL, found'):
        make_scheduler(nodes=NODES, plugins=[Odd])


def test_a_plugin_may_read_all_labels() -> None:
    class Crowd(Filter):
        """Pods with more than two labels run on nodes of the search team."""

        depends_on = Depends.NODE
        reads_pod_labels = ALL

        def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
            return nodes.has_label("team", "search" if len(pod.labels) > 2 else "vision")

    pods = [make_pod("few", labels={"a": "1"}), make_pod("many", labels={"a": "1", "b": "2", "c": "3"})]

    decisions = make_scheduler(nodes=NODES, pods=pods, plugins=[Crowd]).cycle(now=0.0)

    assert decisions == [Bind("default/few", "a"), Bind("default/many", "b")]
