"""The cluster: the one mutable thing. Events come in; what they mean for nodes, pods and gangs is taken in here."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from mooring.errors import InvariantBroken
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.events import (
    AdmitFailed,
    BindFailed,
    Event,
    EvictFailed,
    GangLost,
    GangSeen,
    NodeLost,
    NodeSeen,
    ObjectLost,
    ObjectSeen,
    PodLost,
    PodSeen,
    SuspendFailed,
    WorkloadLost,
    WorkloadSeen,
)
from mooring.model.gangs.membership import membership
from mooring.model.keys import GangKey, PodKey, WorkloadKey
from mooring.state.effects import Among, EffectStore, ShapeEffects
from mooring.state.intentions import Intentions
from mooring.state.pods import UNBOUND, PodChanges, PodRecord
from mooring.state.read_keys import NOTHING_READ, ReadKeys
from mooring.state.related import RelatedObjects, selected_pod_keys
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape, ShapeTable, selected_keys
from mooring.state.tenants import TenantTable
from mooring.state.touched import TouchedRows
from mooring.state.views import ClusterView

SPARE_SHAPES = 4096
"""So many shapes, and as many as pods have, are kept for pods that may come again."""
MOST_NODE_CHANGES = 4096
"""Whoever has not looked for longer than that looks at all nodes."""


class Cluster(Intentions):
    """Nodes, pods, shapes and related objects, with the versions that caches compare.

    Reading is free for all; writing happens here only: through `observe`, through `assume` and `release`, which it has
    from `Placements`, and through what `Intentions` adds to that. All but `observe` is undone by a trial (`what_if`).
    """

    def __init__(self, *, read_keys: ReadKeys = NOTHING_READ, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.related = RelatedObjects()
        self.tenants = TenantTable()
        self.shapes = ShapeTable(read_keys)
        self.touched = TouchedRows(self.nodes, self.pod_changes)
        self._effects = EffectStore(self.shapes)
        self._bound: tuple[tuple[int, int], NDArray[np.int32], NDArray[np.int32]] | None = None
        self.pod_updates = PodChanges()
        """Bound pods that were seen anew where they are, as the same shape: when they started, what they are called."""
        self.nodes_version = 0
        """Rises when a node comes, goes or is described anew."""
        self.shapes_version = 0
        """Rises when pods are shaped again because someone selects on a new label key, or shapes are forgotten."""
        self._node_changes = deque[int](maxlen=MOST_NODE_CHANGES)
        """The row behind each of the latest rises of nodes_version, in order."""
        self._most_shapes = SPARE_SHAPES
        self.view = ClusterView(self)
        """The cluster as plugins see it."""

    # Events.

    def observe(self, *events: Event) -> None:
        """Apply what happened."""
        for event in events:
            match event:
                case NodeSeen(node):
                    self._put_node(node)
                case NodeLost(name):
                    self._lose_node(name)
                case PodSeen(pod):
                    self._put_pod(pod)
                    self.tenants.note_pod(pod)
                    self._forget_shapes()
                case PodLost(key):
                    self._lose_pod(PodKey(key))
                    self.tenants.note_pod_lost(PodKey(key))
                    self._forget_shapes()
                case ObjectSeen(found):
                    if not self.tenants.put(found):
                        self._select_on(selected_pod_keys(found))
                        self.related.put(found)
                case ObjectLost(kind, key):
                    if not self.tenants.remove(kind, key):
                        self.related.remove(kind, key)
                case WorkloadSeen(workload):
                    self.tenants.put_workload(workload)
                case WorkloadLost(key):
                    self.tenants.remove_workload(WorkloadKey(key))
                case GangSeen(gang):
                    self.gangs.put(gang)
                case GangLost(key):
                    self.gangs.remove(GangKey(key))
                case AdmitFailed() | SuspendFailed():
                    self.tenants.note_refused(event)
                case EvictFailed(key):
                    self.keep_running(key)
                case BindFailed(key):
                    record = self.pods.records.get(key)
                    if record is not None and record.assumed:
                        self._take_back(record)

    def observe_many(self, nodes: Iterable[Node], pods: Sequence[Pod]) -> None:
        """Apply many nodes and pods at once: selectors first, so that no pod is shaped twice."""
        for node in nodes:
            self._put_node(node)
        last = None
        for pod in pods:
            if pod.spec is not last:
                last = pod.spec
                if last.affinity is not None or last.topology_spread_constraints:
                    self._select_on(selected_keys(pod))
        for pod in pods:
            self._put_pod(pod)

    def _put_node(self, node: Node) -> None:
        known = self.nodes.row_of.get(node.metadata.name)
        if known is not None and _same_for_scheduling(self.nodes.node(known), node):
            self.nodes.nodes[known] = node  # a heartbeat changes nothing that an answer depends on
            return
        is_new = known is None
        row = self.nodes.put(node)
        self._node_changed(row)
        if is_new:
            for slot in self._homeless.pop(node.metadata.name, ()):
                record = self.pods.by_slot[slot]
                assert record is not None
                self._bind(record, row)

    def _lose_node(self, name: str) -> None:
        row = self.nodes.row_of.get(name)
        if row is None:
            return
        for record in list(self.pods.on(row)):
            self._unbind(record)
            self._homeless.setdefault(name, set()).add(record.slot)
        self.nodes.remove(name)
        self._node_changed(row)

    def _node_changed(self, row: int) -> None:
        self.nodes_version += 1
        self._node_changes.append(row)

    def _put_pod(self, pod: Pod) -> None:
        if pod.is_terminal:
            self._lose_pod(pod.key)
            member = membership(pod) if pod.status.phase == "Succeeded" else None
            if member is not None:
                self.gangs.note_done(pod.key, member)
            return
        if pod.spec.affinity is not None or pod.spec.topology_spread_constraints:
            self._select_on(selected_keys(pod))
        old = self.pods.records.get(pod.key)
        leaving = None
        node_name = pod.spec.node_name
        # News from before the world learnt of our decision does not undo it.
        stays = old is not None and old.assumed and not node_name and old.pod.metadata.uid == pod.metadata.uid
        shape = self.shapes.intern(pod, bound=stays or bool(node_name))
        if old is not None and stays:
            self._reshape(old, pod, shape)
            self.gangs.see_anew(old, membership(pod))
            return
        if old is not None:
            if old.shape is shape and old.node_name == node_name:
                old.pod, old.assumed = pod, False  # the world confirms what we know
                if node_name:
                    self._set_nominated(old, False)
                self.gangs.see_anew(old, membership(pod))
                self.pods.changed((old.key,))
                if old.row != UNBOUND:
                    self.pod_updates.append(shape.id, old.row, 0)
                return
            if old.pod.metadata.uid == pod.metadata.uid and old.node_name == node_name:
                leaving = old.leaving  # it is another in what is said of it, and as much on its way out as before
            self._lose_pod(pod.key)
        slot = self.pods.new_slot()
        record = PodRecord(pod.key, pod, slot, shape, node_name=node_name, leaving=leaving)
        self.pods.records[pod.key] = record
        self.pods.by_slot[slot] = record
        self.pods.shape.writable[slot] = shape.id
        member = membership(pod)
        if member is not None:
            self.gangs.join(record, member)
            if leaving is not None:
                self.gangs.count_anew(pod.key)
        if node_name:
            row = self.nodes.row_of.get(node_name)
            if row is None:
                self._homeless.setdefault(node_name, set()).add(slot)
            else:
                self._bind(record, row)

    def see_waiting_as(self, pod: Pod) -> None:
        """Let a pod that waits be this one: for asking what would be, were it changed."""
        record = self.pods.records[pod.key]
        if record.row != UNBOUND:
            raise InvariantBroken(f"pod {pod.key} is bound, to {record.node_name}")
        self.log.note(self._reshape, record, record.pod, record.shape)
        self._reshape(record, pod, self.shape_for(pod))

    def _reshape(self, record: PodRecord, pod: Pod, shape: Shape) -> None:
        """A pod that keeps its place is another than we knew."""
        row = record.row
        if row != UNBOUND and record.shape is not shape:
            self._unbind(record)
        record.pod, record.shape = pod, shape
        self.pods.changed((record.key,))
        self.pods.shape.writable[record.slot] = shape.id
        if row != UNBOUND and record.row == UNBOUND:
            self._bind(record, row)

    def _take_back(self, record: PodRecord) -> None:
        """A decision was not carried out: the pod waits again, even if the node was lost meanwhile."""
        self.keep_running(record.key)
        self._set_nominated(record, False)
        if record.row != UNBOUND:
            self.release(record.key)
        else:
            self._come_back(record)

    def _lose_pod(self, key: PodKey) -> None:
        record = self.pods.records.pop(key, None)
        if record is None:
            return
        self.gangs.leave(key)
        if record.row != UNBOUND:
            self._unbind(record)
        elif record.node_name:
            self._homeless.get(record.node_name, set()).discard(record.slot)
        self.pods.free_slot(record.slot)

    def _select_on(self, keys: Iterable[str]) -> None:
        new = self.shapes.select_on(keys)
        if not new:
            return
        changed = False
        for record in self.pods.records.values():
            labels = record.pod.metadata.labels
            if labels and not new.isdisjoint(labels):
                record.shape = self.shapes.intern(record.pod, bound=bool(record.node_name))
                self.pods.shape.writable[record.slot] = record.shape.id
                changed = True
        if changed:
            self.shapes_version += 1

    def _forget_shapes(self) -> None:
        """Forget the shapes that no pod has, if there are many of them and nobody is only asking what would be."""
        if self.shapes.in_use <= self._most_shapes or self.log.depth:
            return
        living = {record.shape.id for record in self.pods.records.values()}
        self.shapes.forget_but(living)
        self.nodes.forget_shapes_but(living)
        self.shapes_version += 1
        self._most_shapes = 2 * len(living) + SPARE_SHAPES

    # Reading.

    def nodes_changed_since(self, version: int) -> set[int] | None:
        """The rows of the nodes that changed since a `nodes_version`; None if that is no longer known."""
        count = self.nodes_version - version
        if count > len(self._node_changes):
            return None
        return set(islice(self._node_changes, len(self._node_changes) - count, None))

    @property
    def description(self) -> tuple[int, int, int, int]:
        """A value that changes whenever anything but the placing of pods does."""
        return self.nodes_version, self.related.version, self.shapes_version, len(self.shapes.with_pod_affinity)

    def rows(self, index: NDArray[np.intp] | None = None) -> NodeRows:
        """Some rows, or all nodes, as plugins read them."""
        return NodeRows(self.nodes, self.nodes.live_rows() if index is None else index)

    def effects(self, key: Hashable, of: Callable[[Shape], int], among: Among | None = None) -> ShapeEffects:
        """What each shape counts for somebody; see EffectStore."""
        version = (self.related.version, self.shapes_version)
        return self._effects.get(key, of, version, among)

    def bound_pods(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The shapes and the rows of all bound pods, as two columns."""
        version = (self.pod_changes.position, self.shapes_version)
        if self._bound is None or self._bound[0] != version:
            self._bound = (version, *self.pods.bound())
        return self._bound[1:]

    def shape_for(self, pod: Pod) -> Shape:
        """The shape of a pod that need not be in the cluster, as if it waited."""
        self._select_on(selected_keys(pod))
        return self.shapes.intern(pod, bound=False)


def _same_for_scheduling(old: Node, new: Node) -> bool:
    return (
        old.spec == new.spec
        and old.is_ready == new.is_ready
        and old.metadata.labels == new.metadata.labels
        and old.metadata.annotations == new.metadata.annotations
        and old.status.allocatable == new.status.allocatable
        and old.status.capacity == new.status.capacity
        and old.status.images == new.status.images
        and old.status.declared_features == new.status.declared_features
    )
