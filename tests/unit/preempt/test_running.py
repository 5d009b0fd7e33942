"""Running pods as matrices: read again only where something happened, and always as if read anew."""

import numpy as np
from preemption_builders import make_running

from mooring.state.running import RunningPods
from mooring.testing.builders import HOSTNAME, make_cluster, make_node, make_pod, make_spread


def test_pods_whose_shapes_are_told_apart_anew_are_known_by_their_new_shapes() -> None:
    apps = ("web", "api", "web", "batch")
    cluster = make_cluster(
        nodes=[make_node("a", cpu=4), make_node("b", cpu=4)],
        pods=[
            make_running(f"{app}-{number}", "ab"[number % 2], labels={"app": app}, cpu=1, started=f"0{number}:00")
            for number, app in enumerate(apps)
        ],
    )
    kept = RunningPods(cluster)
    kept.refresh()
    before = kept.shapes.copy()

    cluster.shape_for(make_pod("new", spread=[make_spread(HOSTNAME, labels={"app": "web"})]))
    kept.refresh()

    anew = RunningPods(cluster)
    anew.refresh()
    is_pod = np.arange(kept.slots.shape[1]) < kept.counts[:, np.newaxis]
    assert not np.array_equal(kept.shapes[is_pod], before[is_pod])
    for what in RunningPods.ALWAYS:
        assert np.array_equal(getattr(kept, what)[is_pod], getattr(anew, what)[is_pod]), what
