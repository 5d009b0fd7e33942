"""Checks of what a plugin says about pods that wait: a change that ends its refusal must be one that it waits for."""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from mooring.engine.asking import ask_is_helped_by
from mooring.engine.plugin import Change, Changed, FilterAnswers, Plugin
from mooring.model.events import Event, NodeSeen, ObjectLost, ObjectSeen, PodLost, PodSeen
from mooring.state.cluster import Cluster
from mooring.state.related import object_key
from mooring.state.shapes import Shape
from mooring.testing.asking import asked_shapes, bound, names, prepare
from mooring.testing.promise_checks import related_objects_change
from mooring.testing.random_clusters import Choose, one_of, random_node
from mooring.testing.situations import Situation


def check_a_refusal_ends_only_by_what_it_waits_for(plugin: Plugin, situation: Situation) -> None:
    """Where a plugin accepts a node that it refused before, `helped_by` names the change, and `is_helped_by` agrees."""
    if not isinstance(plugin, FilterAnswers):
        return
    cluster, choose = situation.cluster(plugin), situation.choose()
    shapes = asked_shapes(cluster)
    before = [_refused(plugin, cluster, shape) for shape in shapes]
    for changed, event in _changes(cluster, choose):
        cluster.observe(event)
        now = [_refused(plugin, cluster, shape) for shape in shapes]
        for shape, then, left in zip(shapes, before, now, strict=True):
            opened = sorted(then - left)
            if not opened:
                continue
            where = f"accepts {names(cluster, np.array(opened))} after {changed.change} of {_name(changed)}"
            # That a node changed is noted for everybody: a new one may take what all others refuse.
            assert plugin.helped_by & (changed.change & ~Change.NODE) or changed.change == Change.NODE, (
                f"{plugin.name} {where}, which it refused, and does not name that in helped_by{situation.about(shape)}"
            )
            assert ask_is_helped_by(plugin, shape, changed), (
                f"{plugin.name} {where}, which it refused, and is_helped_by said that this would not help"
                f"{situation.about(shape)}"
            )
        before = now


def _refused(plugin: FilterAnswers, cluster: Cluster, shape: Shape) -> set[int]:
    """The rows that a plugin refuses."""
    rows = cluster.nodes.live_rows()
    return set(rows[prepare(plugin, cluster, shape).codes(cluster.rows()) != 0].tolist())


def _changes(cluster: Cluster, choose: Choose) -> Iterator[tuple[Changed, Event]]:
    """Things that happen one after the other, each with the object that it happens to."""
    for row in cluster.nodes.live_rows().tolist():
        old = cluster.nodes.node(row)
        new = random_node(choose, old.metadata.name)
        yield Changed(Change.NODE, old, new), NodeSeen(new)
    for record in bound(cluster)[:6]:
        yield Changed(Change.POD_GONE, record.pod, None), PodLost(record.key)
        node = cluster.nodes.name(int(one_of(choose, cluster.nodes.live_rows().tolist())))
        pod = replace(record.pod, spec=replace(record.pod.spec, node_name=node))
        yield Changed(Change.POD_BOUND, None, pod), PodSeen(pod)
    for event in related_objects_change(choose):
        match event:
            case ObjectSeen(found):
                yield Changed(Change.RELATED, cluster.related.find(found.kind, object_key(found)), found), event
            case ObjectLost(kind, key):
                yield Changed(Change.RELATED, cluster.related.find(kind, key), None), event


def _name(changed: Changed) -> str:
    found = changed.new or changed.old
    return "nothing" if found is None else f"{found.kind} {found.metadata.name}"
