"""A node that refuses every bind is left out, longer each time; a pod that nothing binds blames no node."""

from mooring.drivers.live.pods.refusals import RefusingNodes
from mooring.testing.builders import make_node


def test_a_node_that_refuses_several_pods_is_left_out_for_longer_each_time() -> None:
    found, node = RefusingNodes(), make_node("n")
    assert [found.refused("n", uid, 0.0) for uid in "abc"] == [0.0, 0.0, 0.5]
    assert found.as_seen(node).spec.unschedulable
    assert not found.as_seen(make_node("m")).spec.unschedulable
    found.try_again("n")
    assert found.as_seen(node) is node
    assert [found.refused("n", uid, 1.0) for uid in "abc"] == [0.0, 0.0, 1.0]
    found.try_again("n")
    found.bound("n")
    assert [found.refused("n", uid, 2.0) for uid in "abc"][-1] == 0.5


def test_one_pod_alone_blames_no_node_and_a_bind_clears_it() -> None:
    found = RefusingNodes()
    assert [found.refused("n", "a", float(at)) for at in range(9)] == [0.0] * 9
    found.refused("n", "b", 9.0)
    found.bound("n")
    assert [found.refused("n", uid, 9.0) for uid in "ab"] == [0.0, 0.0]


def test_pods_that_other_nodes_refused_before_blame_no_node() -> None:
    found = RefusingNodes()
    for uid in "abcdef":
        found.refused(f"first-{uid}", uid, 0.0)
    assert [found.refused("n", uid, 1.0) for uid in "abcdef"] == [0.0] * 6
