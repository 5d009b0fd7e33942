"""The cluster: the one mutable thing. Events come in; what they mean for nodes, pods and gangs is taken in here."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.errors import InputError
from mooring.model.api.claims import ResourceClaim, ResourceClaimTemplate
from mooring.model.api.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.decisions import (
    Admit,
    Bind,
    Enqueue,
    Evict,
    KeepOut,
    Launch,
    Partition,
    Resize,
    Suspend,
    Terminate,
)
from mooring.model.devices.card_dialects import cards_of
from mooring.model.devices.compute_domains import CLIQUE
from mooring.model.devices.joining import UUIDS
from mooring.model.devices.reading import read_by_claim, read_by_class
from mooring.model.devices.sharing_config import CONFIG_LABEL, SharingConfig
from mooring.model.events import (
    Event,
    Failed,
    GangLost,
    GangSeen,
    NodeLoadLost,
    NodeLoadSeen,
    NodeLost,
    NodeSeen,
    ObjectLost,
    ObjectSeen,
    PodLost,
    PodSeen,
    Related,
    WorkloadLost,
    WorkloadSeen,
)
from mooring.model.gangs.gang import Gang
from mooring.model.gangs.membership import membership
from mooring.model.keys import GangKey, PodKey, WorkloadKey
from mooring.model.node_offer import NodeOffer
from mooring.model.numa.nodes import WrongAnnotation, kubelet_of_annotations, kubelet_of_topology
from mooring.model.pod_patch import PodPatch
from mooring.model.topology.requests import TopologyRequest
from mooring.state.devices.claims import ClaimTable
from mooring.state.devices.published import PublishedDevices
from mooring.state.effects import Among, EffectStore, ShapeEffects
from mooring.state.forecasts import Forecasts
from mooring.state.offers import OfferedRows
from mooring.state.partial_usage import PartialUsage
from mooring.state.plans import Plans
from mooring.state.pods import UNBOUND, PodChanges, PodRecord
from mooring.state.read_keys import NOTHING_READ, ReadKeys
from mooring.state.related import object_key, selected_pod_keys
from mooring.state.remembered import (
    GangStarts,
    Moves,
    OverloadedNodes,
    PartitionsTold,
    Preemptions,
    RefusedDecisions,
    Renewals,
)
from mooring.state.row_facts import Compute, RowFacts
from mooring.state.rows import NodeRows
from mooring.state.running import RunningPods
from mooring.state.shapes import Shape, ShapeTable, selected_keys
from mooring.state.shares import ShareRecords
from mooring.state.tenants import TenantTable
from mooring.state.touched import TouchedRows
from mooring.state.views import ClusterView
from mooring.state.waiting import WaitingTable
from mooring.state.workloads import WorkloadTable

IN_ONE_CLIQUE = TopologyRequest(required=CLIQUE)
LARGEST = 2**44
"""What a pod may ask for, of each resource, to be taken in among many at once: their sum is no number otherwise."""
SPARE_SHAPES = 4096
"""So many shapes, and as many as pods have, are kept for pods that may come again."""
MOST_NODE_CHANGES = 4096
"""Whoever has not looked for longer than that looks at all nodes."""


class Cluster(Plans):
    """Nodes, pods, shapes and related objects, with the versions that caches compare.

    Reading is free for all; writing happens here only: through `observe`, `amend`, `assume` and `release`, which it has
    from `Placements`, and through what `Plans` adds to that. All but `observe` is undone by a trial (`what_if`).
    """

    def __init__(self, *, read_keys: ReadKeys = NOTHING_READ, seed: int | None = 0) -> None:
        super().__init__(seed=seed)
        self.tenants = TenantTable()
        self.workloads = WorkloadTable(self.log)
        self.refused = RefusedDecisions()
        self.waiting = WaitingTable()
        self.forecasts = Forecasts(self.log)
        self.gang_starts = GangStarts(self.log)
        self.preemptions = Preemptions(self.log)
        self.partitions = PartitionsTold(self.log)
        self.moves = Moves(self.log)
        self.renewals = Renewals(self.log)
        self.overloaded = OverloadedNodes(self.log)
        self.last_runs: dict[str, float] = {}
        """When each action with a cadence of its own ran last, by name."""
        self.stopped_at: dict[str, PodKey] = {}
        """The pods at which actions had to stop because their time was up, by name: the next run goes on there."""
        self.shares = ShareRecords(self.log)
        self.sharing_configs: Mapping[str, SharingConfig] = {}
        """Of the device plugin, by the name that a label of nodes selects; nothing for nodes that select none."""
        self.published = PublishedDevices(self.devices)
        self.claims = ClaimTable(self.related, self.devices, self.published, self.pods, self.log)
        self.joined.tell(self.claims)
        self.device_takers = (*self.device_takers, self.claims)
        self.shapes = ShapeTable(read_keys, self.claims.asked_by)
        self.touched = TouchedRows(self.nodes, self.pod_changes)
        self._effects = EffectStore(self.shapes)
        self._partial_usages: dict[Hashable, PartialUsage] = {}
        self._row_facts: dict[Hashable, RowFacts] = {}
        self._running: RunningPods | None = None
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
        self._last_amended: tuple[PodPatch, PodSpec, PodSpec] | None = None
        """The patch that was applied last, to which spec, and what came of it."""
        self.offers = OfferedRows(self)
        self.view = ClusterView(self)
        """The cluster as plugins see it."""

    def forget_watchers(self) -> None:
        """Nobody outside the state looks any more into the sets that pods and gangs which change are noted in."""
        self.gangs.forget_watchers()
        own = (self.budgets, self.tentative)
        self.pods.watchers = [watched for watched in self.pods.watchers if any(each.is_own(watched) for each in own)]

    def note_run(self, action: str, now: float | None) -> None:
        """Note that an action with a cadence of its own runs now; None: that it has not run."""
        self.log.note(self.note_run, action, self.last_runs.get(action))
        if now is None:
            self.last_runs.pop(action, None)
        else:
            self.last_runs[action] = now

    def note_stopped(self, action: str, pod: PodKey | None) -> None:
        """Note at which pod an action had to stop; None: that it went through all of them."""
        self.log.note(self.note_stopped, action, self.stopped_at.get(action))
        if pod is None:
            self.stopped_at.pop(action, None)
        else:
            self.stopped_at[action] = pod

    # Events.

    def observe(self, *events: Event) -> None:
        """Apply what happened."""
        if self.log.is_undoing:  # a plugin gives back what it reserved
            with self.log.for_good():
                self.observe(*events)
            return
        for event in events:
            match event:
                case PodSeen(pod):  # the first, because most are
                    self._put_pod(pod)
                    self.tenants.note_pod(pod)
                    self._forget_shapes()
                case NodeSeen(node):
                    self._put_node(node)
                case NodeLost(name):
                    self._lose_node(name)
                case PodLost(key):
                    self._lose_pod(PodKey(key))
                    self.tenants.touch_pod(PodKey(key))
                    self._forget_shapes()
                case ObjectSeen(found):
                    if not self.tenants.put(found):
                        self._select_on(selected_pod_keys(found))
                        self.related.put(found)
                        self._see_topology(found.kind, found.metadata.name)
                        self._see_cards(found.kind, found.metadata.name)
                        self._see_devices(found)
                case ObjectLost(kind, key):
                    if not self.tenants.remove(kind, key):
                        self.related.remove(kind, key)
                        self._see_topology(kind, key)
                        self._see_cards(kind, key)
                        self._lose_devices(kind, key)
                case WorkloadSeen(workload):
                    self.tenants.put_workload(workload)
                case WorkloadLost(key):
                    self.tenants.remove_workload(WorkloadKey(key))
                case GangSeen(gang):
                    members = self.gangs.records[gang.key].members if gang.key in self.gangs.records else {}
                    self.gangs.put(self._in_one_clique(gang, members.values()))
                case GangLost(key):
                    self.gangs.remove(GangKey(key))
                case NodeLoadSeen(report):
                    self.nodes.load.put(report, self.nodes.row_of.get(report.node))
                    self._load_changed(report.node)
                case NodeLoadLost(name, of_node, of_gpus):
                    self.nodes.load.remove(name, self.nodes.row_of.get(name), of_node=of_node, of_gpus=of_gpus)
                    self._load_changed(name)
                case Failed():
                    self._undo(event)

    def pass_time(self, now: float) -> bool:
        """Let it be this late: reports of load grow old. Tell whether some are too old now for whoever reads them."""
        if not self.nodes.load.horizons:
            self.nodes.load.now = now
            return False
        rows = self.nodes.load.pass_time(now).tolist()
        for row in rows:
            self._row_changed(row)
        return bool(rows)

    def _load_changed(self, node: str) -> None:
        row = self.nodes.row_of.get(node)
        if row is not None:
            self._row_changed(row)

    def _row_changed(self, row: int) -> None:
        """Something about a row changed that no pod did: answers that follow its pods are asked for again."""
        if self.shapes.known:
            self.pod_changes.append(self.shapes.known[0].id, row, 0)

    def _undo(self, failed: Failed) -> None:
        """The world refused a decision: take back what was assumed, and let the action that decided it hear of it."""
        match failed.decision:
            case Bind(key):
                record = self.pods.records.get(PodKey(key))
                if record is not None and record.assumed:
                    self._take_back(record)
            case Evict(key):
                self.keep_running(PodKey(key))
                self.tenants.touch_pod(PodKey(key))  # without quota it must go all the same
            case Admit() | Suspend():
                self.tenants.note_refused(failed)
            case Enqueue(gang) | KeepOut(gang):
                self.shares.tell(GangKey(gang), None)
                self.refused.note(failed)
            case Partition(node):
                self.partitions.forget(node)
                self.refused.note(failed)
            case Launch() | Terminate() | Resize() as decision:
                plan_id = self.plan_for(decision)
                if plan_id is not None:
                    self.drop(plan_id)

    def assume_changes(self, changes: Iterable[Event]) -> None:
        """Apply what a plugin changes by a reservation; objects are as they were if the trial around it is undone."""
        for event in changes:
            if isinstance(event, ObjectSeen):
                kind, key = event.object.kind, object_key(event.object)
            elif isinstance(event, ObjectLost):
                kind, key = event.kind, event.key
            else:
                self.observe(event)
                continue
            before = self.related.find(kind, key)
            self.observe(event)
            self.log.note(self.observe, ObjectLost(kind, key) if before is None else ObjectSeen(before))

    def _see_devices(self, found: Related) -> None:
        """Take in what slices, rules, classes and claims say of devices."""
        match found:
            case ResourceSlice():
                was_wide = self.published.has_wide_pools
                self.published.put(found)
                if self.published.has_wide_pools != was_wide:
                    self._shape_anew(record for record in self.pods.records.values() if record.shape.claims)
                self.offer_extended(*self.published.take_touched())
            case DeviceTaintRule():
                self.published.put_rule(found)
            case DeviceClass():
                self.published.read(read_by_class(found))
                self._change_classes()
            case ResourceClaimTemplate():
                self.published.read(read_by_claim(found.spec.spec))
            case ResourceClaim():
                self.published.read(read_by_claim(found.spec))
                self.claims.put(found)

    def _lose_devices(self, kind: str, key: str) -> None:
        match kind:
            case "ResourceSlice":
                self.published.remove(key)
                self.offer_extended(*self.published.take_touched())
            case "DeviceTaintRule":
                self.published.remove_rule(key)
            case "DeviceClass":
                self._change_classes()
            case "ResourceClaim":
                self.claims.remove(key)

    def _change_classes(self) -> None:
        self.claims.classes_changed()
        self.offer_extended(*self.nodes.live_rows().tolist())
        self._shape_anew(self.pods.records.values())

    def offer_extended(self, *rows: int) -> None:
        """Let rows have as much of the extended resources that classes serve as they have devices for them."""
        if self.claims.extended.is_any:
            for row in rows:
                self.nodes.offer(row, self.claims.extended.offered(row, self.nodes.node(row)))

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

    def observe_running(self, pods: Iterable[Pod]) -> int:
        """Apply at once that there are pods which run, up to the first of which there is more to say; tell how many."""
        if self._amended_by or self.tenants.workload_of or self.log.depth:
            return 0
        by_shape = dict[Shape, list[PodRecord]]()
        known, rows, table = self.pods.records, self.nodes.row_of, self.pods
        for pod in pods:
            key, spec = pod.key, pod.spec
            if spec.node_name not in rows or key in known or pod.is_terminal or membership(pod) is not None:
                break
            selects = spec.affinity is not None or spec.topology_spread_constraints
            if selects and not self.shapes.selected_keys.issuperset(selected_keys(pod)):
                break
            try:
                shape = self.shapes.intern(pod, bound=True)
            except Exception:  # said when it is applied on its own
                break
            alike = by_shape.get(shape)
            if alike is None:
                if shape.claims is not None or self._takers_for(shape) or self.nodes.taken_by(shape).largest > LARGEST:
                    break
                alike = by_shape[shape] = []
            record = PodRecord(key, pod, table.new_slot(), shape, node_name=spec.node_name)
            known[key] = table.by_slot[record.slot] = record
            alike.append(record)
        too_much: InputError | None = None
        for shape, records in by_shape.items():
            table.shape.writable[[record.slot for record in records]] = shape.id
            try:
                self._bind_many(records, np.array([rows[record.node_name] for record in records], np.intp))
            except InputError as error:  # the others are there all the same
                too_much = error
        self._forget_shapes()
        if too_much is not None:
            raise too_much
        return sum(map(len, by_shape.values()))

    def _put_node(self, node: Node) -> None:
        known = self.nodes.row_of.get(node.metadata.name)
        is_launched = known is not None and node.metadata.name in self._launched
        if is_launched:
            with self.log.for_good():
                self._set_launched(node.metadata.name, None)
        elif known is not None and _same_for_scheduling(self.nodes.node(known), node):
            self.nodes.nodes[known] = node  # a heartbeat changes nothing that an answer depends on
            return
        is_new = known is None
        row = self._put_cards(node, known)
        self.published.put_node(row, node)
        self.offer_extended(row)
        self._node_changed(row)
        self._describe_numa(row)
        if node.metadata.name in self.nodes.load.of_node:
            self._row_changed(row)
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
        if name in self.nodes.load.of_node:
            self._row_changed(row)
        self.numa.describe(row, None, ())
        self.partitions.forget(name)
        if name in self._launched:
            with self.log.for_good():
                self._set_launched(name, None)
            self.devices.put(row, [])
        else:
            self.published.remove_node(name)
        self.nodes.remove(name)
        self._node_changed(row)

    def _put_cards(self, node: Node, known: int | None) -> int:
        """Describe a node, with the cards that it, its Device object and the device plugin's configuration tell of."""
        key = (node.metadata.labels or {}).get(CONFIG_LABEL, "")
        config = self.sharing_configs.get(key) or self.sharing_configs.get("default" if not key else "")
        device = self.related.koordinator_devices.get(node.metadata.name)
        cards = cards_of(node, device, config)
        if any(card.uuid for card in cards.cards):
            self.published.read(frozenset(UUIDS))
        with self.card_holders.described_anew(known, cards):
            return self.nodes.put(node, cards)

    def share_gpus_by(self, configs: Mapping[str, SharingConfig]) -> None:
        """Nodes that come from now on offer their GPUs as the device plugin's configurations say."""
        self.sharing_configs = configs

    def _see_cards(self, kind: str, name: str) -> None:
        row = self.nodes.row_of.get(name) if kind == "Device" else None
        if row is not None:
            self._put_cards(self.nodes.node(row), row)
            self._node_changed(row)

    def _describe_numa(self, row: int) -> None:
        """Learn from a node's annotations or its NodeResourceTopology how its kubelet gives out CPUs and memory."""
        node = self.nodes.node(row)
        try:
            kubelet = kubelet_of_annotations(node.metadata.annotations or {})
        except WrongAnnotation:
            kubelet = None  # refused where it comes from a file; a cluster's node may have it, and says nothing by it
        topology = self.related.node_resource_topologies.get(node.metadata.name)
        if kubelet is None and topology is not None:
            kubelet = kubelet_of_topology(topology)
        self.numa.describe(row, kubelet, self.pods.on(row))

    def _see_topology(self, kind: str, name: str) -> None:
        row = self.nodes.row_of.get(name) if kind == "NodeResourceTopology" else None
        if row is not None:
            self._describe_numa(row)

    def _node_changed(self, row: int) -> None:
        self.nodes_version += 1
        self._node_changes.append(row)

    def _put_pod(self, pod: Pod) -> None:
        if self._amended_by:
            pod = self.as_amended(pod)
        key = pod.key
        if pod.is_terminal:
            self._lose_pod(key)
            member = membership(pod) if pod.status.phase == "Succeeded" else None
            if member is not None:
                self.gangs.note_done(key, member)
            return
        if pod.spec.affinity is not None or pod.spec.topology_spread_constraints:
            self._select_on(selected_keys(pod))
        old = self.pods.records.get(key)
        leaving = None
        node_name = pod.spec.node_name
        # News from before the world learnt of our decision does not undo it.
        stays = old is not None and old.assumed and not node_name and old.pod.metadata.uid == pod.metadata.uid
        shape = self.shapes.intern(pod, bound=stays or bool(node_name))
        if shape.claims is not None and self.claims.extended.take_news():
            self.offer_extended(*self.nodes.live_rows().tolist())
        if old is not None and stays:
            with self.log.for_good():
                self._set_pod(old, pod, shape, self.shapes_version)
            self.gangs.see_anew(old, membership(pod))
            return
        if old is not None:
            if old.shape is shape and old.node_name == node_name:
                old.pod, old.assumed, old.gathered = pod, False, None  # the world confirms what we know
                if node_name:
                    self._set_nominated(old, False)
                self.gangs.see_anew(old, membership(pod))
                self.pods.changed((old.key,))
                if old.row != UNBOUND:
                    self.pod_updates.append(shape.id, old.row, 0)
                return
            is_same = old.pod.metadata.uid == pod.metadata.uid and old.node_name == node_name
            if is_same and node_name and old.shape.terminating == shape.terminating:
                self._see_changed(old, pod, shape)
                return
            if is_same:
                leaving = old.leaving  # it is another in what is said of it, and as much on its way out as before
            self._lose_pod(key)
        slot = self.pods.new_slot()
        record = PodRecord(key, pod, slot, shape, node_name=node_name, leaving=leaving)
        self.pods.records[key] = record
        self.pods.by_slot[slot] = record
        self.pods.shape.writable[slot] = shape.id
        member = membership(pod)
        if member is not None:
            self.gangs.join(record, member)
            part = self.gangs.records[member.gang]
            if shape.claims and part.gang is not None:
                self.gangs.put(self._in_one_clique(part.gang, (record,)))
            if leaving is not None:
                self.gangs.count_anew(key)
        if node_name:
            row = self.nodes.row_of.get(node_name)
            if row is None:
                self._homeless.setdefault(node_name, set()).add(slot)
            else:
                self._bind(record, row)

    def _see_changed(self, record: PodRecord, pod: Pod, shape: Shape) -> None:
        """A pod that runs was resized, tolerates more, or has other labels: it keeps its place and its devices."""
        with self.log.for_good():
            self._set_pod(record, pod, shape, self.shapes_version)
            self._set_nominated(record, False)
        record.assumed, record.gathered = False, None
        self.gangs.see_anew(record, membership(pod))

    def _in_one_clique(self, gang: Gang, members: Iterable[PodRecord]) -> Gang:
        """A gang of a ComputeDomain wants one NVLink clique, unless it says itself where it wants to be."""
        if gang.has_topology_request or not any(self.claims.domain_of(each.shape) for each in members):
            return gang
        return replace(gang, topology_request=IN_ONE_CLIQUE)

    # Pods that exist are changed by a decision.

    def amend(self, key: PodKey, patch: PodPatch) -> None:
        """Change a pod that waits, is assumed or runs: it stays where it is, and counts there as what it is now."""
        record = self.pods.records[key]
        last, spec = self._last_amended, record.pod.spec
        if last is not None and last[0] is patch and last[1] is spec:  # pods of a template share their spec
            spec = last[2]
        else:
            self._last_amended = patch, spec, (spec := patch.apply_to_spec(spec))
        pod = patch.apply(record.pod) if patch.labels or patch.annotations else record.pod
        self.replace_pod(msgspec.structs.replace(pod, spec=spec))

    def replace_pod(self, pod: Pod) -> None:
        """Let the pod of this name be this one, where it is: the node of its record counts, not what the pod says."""
        record = self.pods.records[pod.key]
        spec = pod.spec
        if spec.affinity is not None or spec.topology_spread_constraints:
            self._select_on(selected_keys(pod))
        shape = self.shapes.intern(pod, bound=bool(record.node_name))
        if shape.claims is not None and self.claims.extended.take_news():
            self.offer_extended(*self.nodes.live_rows().tolist())
        is_same_to_gangs = pod.metadata is record.pod.metadata and _same_group(pod.spec, record.pod.spec)
        self._set_pod(record, pod, shape, self.shapes_version)
        if not is_same_to_gangs:
            self._see_membership(record)

    def _set_pod(self, record: PodRecord, pod: Pod, shape: Shape, version: int) -> None:
        """Let a pod be another where it is; the shape was found when the shapes had this version."""
        if version != self.shapes_version:  # undoing: what tells pods apart has changed since
            shape = self.shapes.intern(pod, bound=bool(record.node_name))
        before = record.pod, record.shape
        record.pod = pod
        if shape is not record.shape:
            self._become(record, shape)
        elif record.row != UNBOUND:
            self.pod_updates.append(shape.id, record.row, 0)
        self._note_change(record)
        # The last to be noted: devices come back after the pod is again what it was when it had them.
        self.log.note(self._set_pod, record, *before, self.shapes_version)

    def _see_membership(self, record: PodRecord) -> None:
        """A pod may name another gang, or another role or rank in its gang, than it did."""
        found = membership(record.pod)
        if found != self.gangs.membership_of(record.key):
            gangs = (self.gangs.of_pod.get(record.key), found.gang if found is not None else None)
            self.log.note(self.gangs.put_back, self.gangs.members_of(gangs))
        self.gangs.see_anew(record, found)

    def _take_back(self, record: PodRecord) -> None:
        """A decision was not carried out: the pod waits again, even if the node was lost meanwhile."""
        self.keep_running(record.key)
        self.keep_gathered(record, None)
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
            self._find_home(record)
        self.pods.free_slot(record.slot)

    def _select_on(self, keys: Iterable[str]) -> None:
        new = self.shapes.select_on(keys)
        if not new:
            return
        labelled = (record for record in self.pods.records.values() if record.pod.metadata.labels)
        self._shape_anew((r for r in labelled if not new.isdisjoint(r.pod.metadata.labels or ())), tuple(new))

    def _shape_anew(self, records: Iterable[PodRecord], keys: Sequence[str] = ()) -> None:
        """What tells pods apart has changed: find their shapes again. With `keys`, nothing but these labels tells pods
        apart that were of one shape, unless they have claims: what became of those may tell more."""
        alike: dict[Hashable, Shape] = {}
        slots, ids = list[int](), list[int]()
        for record in records:
            pod, labels = record.pod, record.pod.metadata.labels or {}
            group = (record.shape.id, "" if record.node_name else pod.spec.node_name, *map(labels.get, keys))
            shape = alike.get(group) if keys and record.shape.claims is None else None
            if shape is None:
                shape = alike[group] = self.shapes.intern(pod, bound=bool(record.node_name))
            record.shape = shape
            slots.append(record.slot)
            ids.append(shape.id)
        if slots:
            self.pods.shape.writable[slots] = ids
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

    # Nodes that do not exist, or are supposed not to.

    @property
    def series(self) -> int:
        """A number for the rows as they are in a trial that opened or closed some; 0 while they are those of before."""
        offers, log = self.offers, self.log
        return offers.series if log.depth and offers.trial == log.outermost else 0

    def open_row(self, offer: NodeOffer) -> int:
        """Let there be one more node, which does not exist; return its row."""
        return int(self.offers.open(offer, 1)[0])

    def open_rows(self, offer: NodeOffer, count: int) -> NDArray[np.intp]:
        """Let there be so many more nodes of one kind; return their rows."""
        return self.offers.open(offer, count)

    def close_row(self, row: int) -> None:
        """Let there be no node on a row; no pod may be there."""
        self.offers.close([row])

    def close_rows(self, rows: Sequence[int]) -> None:
        """Let there be no nodes on some rows; no pod may be there."""
        self.offers.close(rows)

    # Reading.

    def nodes_changed_since(self, version: int) -> set[int] | None:
        """The rows of the nodes that changed since a `nodes_version`; None if that is no longer known."""
        count = self.nodes_version - version
        if not 0 <= count <= len(self._node_changes):
            return None
        return set(islice(reversed(self._node_changes), count))

    @property
    def description(self) -> tuple[int, ...]:
        """A value that changes whenever anything but the placing of pods does."""
        shapes = self.shapes
        concerning = (len(shapes.with_pod_affinity), bool(shapes.sharing_gpus))
        return self.nodes_version, self.related.version, self.shapes_version, *concerning, self.devices.version

    def rows(self, index: NDArray[np.intp] | None = None) -> NodeRows:
        """Some rows, or all nodes, as plugins read them."""
        return NodeRows(self.nodes, self.nodes.live_rows() if index is None else index)

    def effects(self, key: Hashable, of: Callable[[Shape], int], among: Among | None = None) -> ShapeEffects:
        """What each shape counts for somebody; see EffectStore."""
        version = (self.related.version, self.shapes_version)
        return self._effects.get(key, of, version, among)

    def usage_of_some(self, key: Hashable, counts: Callable[[Shape], bool]) -> PartialUsage:
        """What the pods of some shapes take of each row; `key` stands for `counts`, whoever asks."""
        found = self._partial_usages.get(key)
        if found is None:
            found = self._partial_usages[key] = PartialUsage(self.pods, self.pod_changes, self.shapes, counts)
        return found

    def row_facts(self, key: Hashable, width: int, compute: Compute) -> RowFacts:
        """So many numbers about each row, from its pods and what was reported of it; `key` stands for `compute`."""
        found = self._row_facts.get(key)
        if found is None:
            found = self._row_facts[key] = RowFacts(self, width, compute)
        return found

    def running_pods(self, *, with_costs: bool = False) -> RunningPods:
        """All bound pods by row, the most important first; `with_costs` also with what evicting each would cost."""
        if self._running is None or (with_costs and not self._running.with_costs):
            self._running = RunningPods(self, with_costs=with_costs)
        return self._running

    def bound_pods(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The shapes and the rows of all bound pods, as two columns."""
        version = (self.pod_changes.position, self.shapes_version)
        if self._bound is None or self._bound[0] != version:
            self._bound = (version, *self.pods.bound())
        return self._bound[1:]

    def shape_for(self, pod: Pod) -> Shape:
        """The shape of a pod that need not be in the cluster, as if it waited."""
        self._select_on(selected_keys(pod))
        shape = self.shapes.intern(pod, bound=False)
        if shape.claims is not None and self.claims.extended.take_news():
            self.offer_extended(*self.nodes.live_rows().tolist())
        return shape


def _same_group(one: PodSpec, other: PodSpec) -> bool:
    """Whether two specs say the same of the gang that their pods are of."""
    return one.scheduling_group == other.scheduling_group and one.workload_ref == other.workload_ref


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
