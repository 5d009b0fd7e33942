"""The queue: order, removal, parking and what brings pods back."""

from typing import Any

from mooring.assembly import assemble
from mooring.engine.plugin import Change
from mooring.engine.queue.queue import Queue
from mooring.model.events import PodSeen
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster
from mooring.testing.builders import make_pod, make_pods

PROFILE = assemble().default_profile


def fill(queue: Queue, cluster: Cluster, *pods: Any, now: float = 0.0) -> None:
    for pod in pods:
        cluster.observe(PodSeen(pod))
        queue.add(cluster.pods.records[pod.key], PROFILE, now)


def keys(queue: Queue, most: int = 100) -> list[str]:
    return [entry.record.pod.metadata.name for entry in queue.pop_batch(most)]


def test_higher_priority_goes_first_and_then_whoever_came_first() -> None:
    queue, cluster = Queue(), Cluster()
    fill(queue, cluster, make_pod("late"), make_pod("urgent", priority=5), now=2.0)
    fill(queue, cluster, make_pod("early"), now=1.0)

    assert keys(queue) == ["urgent", "early", "late"]


def test_a_batch_ends_where_the_shape_changes() -> None:
    queue, cluster = Queue(), Cluster()
    fill(queue, cluster, *make_pods(2, prefix="small"), make_pod("large", cpu=8), make_pod("small-again"))

    assert [keys(queue) for _ in range(3)] == [["small-0", "small-1"], ["large"], ["small-again"]]


def test_a_removed_pod_is_passed_over() -> None:
    queue, cluster = Queue(), Cluster()
    fill(queue, cluster, *make_pods(3))

    queue.remove(PodKey("default/pod-1"))

    assert len(queue) == 2
    assert keys(queue) == ["pod-0", "pod-2"]


def test_a_pod_removed_and_added_again_is_there_once_in_its_new_place() -> None:
    queue, cluster = Queue(), Cluster()
    fill(queue, cluster, *make_pods(2))

    for priority in (1, 9):
        queue.remove(PodKey("default/pod-1"))
        fill(queue, cluster, make_pod("pod-1", priority=priority))

    assert len(queue) == 2
    assert keys(queue) == ["pod-1", "pod-0"]
    assert len(queue) == 0


def test_a_pod_removed_while_an_older_entry_is_passed_over_stays_removed() -> None:
    queue, cluster = Queue(), Cluster()
    fill(queue, cluster, make_pod("pod"))
    queue.remove(PodKey("default/pod"))
    fill(queue, cluster, make_pod("pod", priority=3))
    queue.remove(PodKey("default/pod"))

    assert len(queue) == 0
    assert queue.peek() is None


def test_parked_pods_come_back_only_for_what_could_help_them() -> None:
    queue, cluster = Queue(), Cluster()
    fill(queue, cluster, make_pod("pod"))
    queue.park(queue.pop_batch(1), Change.POD_GONE)

    queue.note(Change.POD_BOUND)
    assert len(queue) == 0

    queue.note(Change.POD_GONE)
    assert keys(queue) == ["pod"]


def test_a_parked_pod_that_is_removed_does_not_come_back() -> None:
    queue, cluster = Queue(), Cluster()
    fill(queue, cluster, *make_pods(2))
    queue.park(queue.pop_batch(2), Change.ANY)

    queue.remove(PodKey("default/pod-0"))
    queue.note(Change.NODE)

    assert keys(queue) == ["pod-1"]


def test_pods_put_back_keep_their_places() -> None:
    queue, cluster = Queue(), Cluster()
    fill(queue, cluster, *make_pods(3))
    batch = queue.pop_batch(2)

    queue.put_back(batch)

    assert keys(queue) == ["pod-0", "pod-1", "pod-2"]


def test_gated_pods_stand_apart() -> None:
    queue, cluster = Queue(), Cluster()
    fill(queue, cluster, make_pod("held", gates=["example.com/quota"]))

    assert len(queue) == 0
    held = [(entry.record.key, rejection.reasons) for entry, rejection in queue.gated()]
    assert held == [("default/held", ("waiting for scheduling gates: [example.com/quota]",))]


def test_pods_that_waited_long_are_tried_again_though_others_like_them_keep_coming() -> None:
    queue, cluster = Queue(), Cluster()
    for now in (0.0, 100.0, 200.0):
        queue.advance(now)
        fill(queue, cluster, make_pod(f"pod-{now:g}"), now=now)
        queue.park(queue.pop_batch(1), Change.NODE)

    queue.advance(301.0)

    assert len(queue) == 3


def test_a_pod_that_is_told_again_as_it_is_keeps_its_place() -> None:
    queue, cluster = Queue(), Cluster()
    fill(queue, cluster, make_pod("parked"))
    queue.park(queue.pop_batch(1), Change.NODE)
    fill(queue, cluster, make_pod("first"), make_pod("second"))

    for name in ("parked", "first"):
        cluster.observe(PodSeen(make_pod(name)))
        queue.update(cluster.pods.records[PodKey(f"default/{name}")], PROFILE, 99.0)

    assert keys(queue) == ["first", "second"]


def test_a_pod_that_changed_keeps_the_time_since_which_it_waits() -> None:
    queue, cluster = Queue(), Cluster()
    fill(queue, cluster, make_pod("first"), now=1.0)
    fill(queue, cluster, make_pod("second"), now=2.0)
    queue.park(queue.pop_batch(2), Change.NODE)

    cluster.observe(PodSeen(make_pod("first", cpu=1)))
    queue.update(cluster.pods.records[PodKey("default/first")], PROFILE, 99.0)

    entry = queue.peek()
    assert entry is not None
    assert (entry.has(PodKey("default/first")), entry.queued_at) == (True, 1.0)
