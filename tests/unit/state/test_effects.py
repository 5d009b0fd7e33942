"""What shapes mean to somebody, shared by all who ask the same."""

from mooring.model.events import PodSeen
from mooring.model.keys import PodKey
from mooring.state.effects import EffectStore
from mooring.testing.builders import make_cluster, make_pod


def test_effects_handed_out_again_know_the_shapes_that_appeared_since() -> None:
    cluster = make_cluster(pods=[make_pod("small", cpu=1)])
    store = EffectStore(cluster.shapes)

    first = store.get("large", lambda shape: int(shape.request("cpu") > 1000), (0,))
    assert not first.any

    cluster.observe(PodSeen(make_pod("large", cpu=8)))
    again = store.get("large", lambda shape: int(shape.request("cpu") > 1000), (0,))

    assert again.any
    assert again.of(cluster.pods.records[PodKey("default/large")].shape.id) == 1


def test_effects_are_computed_anew_for_another_version_of_the_rest() -> None:
    cluster = make_cluster(pods=[make_pod("pod")])
    store = EffectStore(cluster.shapes)
    assert store.get("key", lambda shape: 1, (0,)).any

    assert not store.get("key", lambda shape: 0, (1,)).any
