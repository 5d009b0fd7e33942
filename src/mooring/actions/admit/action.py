"""The action: gives waiting workloads quota, starts and stops their pods, and says why the others wait.

Quota alone decides, not how many pods a cycle may place: admission runs until nothing new can be decided. What it
decides is done to the state at once; that victims are gone, that pods are ready or done, it learns from the world.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from mooring.actions.admit.cycle.conditions import NAMESPACE_MISMATCH
from mooring.actions.admit.cycle.cycle import Admission, CycleReport
from mooring.actions.admit.cycle.entry_processing import MayStart, anybody
from mooring.actions.admit.cycle.faults import blame, in_turn_of
from mooring.actions.admit.cycle.pending import NamespaceLabels
from mooring.actions.admit.cycle.policies.own_rules import OwnRules
from mooring.actions.admit.lifecycle.following import WorkloadSync, make_structure
from mooring.actions.admit.lifecycle.gatekeeper import Gatekeeper, Rehearsal, Rehearse
from mooring.actions.admit.lifecycle.lifecycle import Lifecycle
from mooring.actions.admit.lifecycle.pods import WorkloadPods, tell
from mooring.actions.admit.quota.resource_rules import ResourceRules
from mooring.actions.admit.quota.windows import QuotaSchedule
from mooring.actions.admit.section import AdmissionSection
from mooring.actions.admit.topology.assigner import TopologyAssigner
from mooring.actions.admit.topology.node_failures import NODE_FAILURES, NodesThere
from mooring.actions.admit.topology.survey import TopologySurvey
from mooring.actions.admit.windows.gate import WindowGate
from mooring.actions.admit.windows.keeping import WindowKeeper
from mooring.config.queueing import QueueingSettings
from mooring.config.tenant_policy import TenantPolicy
from mooring.engine.action import Action, Cycle, Fault
from mooring.engine.disruption import Forced, disrupt
from mooring.engine.profile import Profile
from mooring.errors import InvariantBroken, PluginError, TurnFailed
from mooring.model.decisions import Admit as Admitted
from mooring.model.decisions import Decision
from mooring.model.keys import WorkloadKey
from mooring.model.memory import Memory
from mooring.model.queued.workloads import ResumeError
from mooring.state.cluster import Cluster
from mooring.state.remembered import Derived, Seen
from mooring.state.undo import Trial
from mooring.state.workloads import Eviction, Stage, WorkloadRecord, WorkloadTable

MOST_REBUILDS = 3
"""So often what is derived is made anew at once, each time without the workload in whose turn something raised."""
ENDLESS = (
    "admission tries these workloads again and again and decides nothing; it goes on when something changes in their "
    "tree of cohorts"
)


class Admit(Action):
    """The action. `rehearse` is how it finds out whether pods could be placed, where a policy asks for that."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        settings: QueueingSettings | None = None,
        policy: TenantPolicy | None = None,
        rehearse: Rehearse | None = None,
    ) -> None:
        self._profiles = profiles
        self._settings = settings or QueueingSettings()
        self._policy = policy or TenantPolicy()
        self._rehearse = rehearse or Rehearsal(profiles)
        self._schedule = QuotaSchedule(self._policy.quota_windows)
        self._recalled = Memory()
        self._own: OwnRules | None = None
        self._opened: _Opened | None = None

    def run(self, cycle: Cycle) -> list[Decision]:
        cluster = cycle.cluster
        if self._opened is None and not cluster.tenants.workloads and not cluster.workloads.records:
            return []
        try:
            with Trial(cluster.log, is_base=True) as run:
                decisions = self._run(cycle, self._open(cluster, cycle.now))
                cluster.workloads.end_run()
                run.keep()
        except Exception as error:
            self._give_up(cycle, error)
            raise
        cluster.workloads.note_run()
        return decisions

    def _give_up(self, cycle: Cycle, error: Exception) -> None:
        """Something raised outside the turn of a workload for quota: the run was undone, and no driver was told of it.

        What is derived is made anew from the state. The workload that it was about is left alone for a while; others go
        on in the next run. Until then no pod may start whose workload is not admitted.
        """
        cluster = cycle.cluster
        cluster.workloads.note_undone(lambda times: cycle.queue.backoff.end(cycle.now, times))
        if self._opened is not None:
            self._report_faults(cycle, self._opened.lifecycle)
        self._leave_alone(cycle, error)
        cluster.workloads.end_run()
        with cluster.log.for_good():
            for _ in range(MOST_REBUILDS):
                self._opened = None
                try:
                    self._open(cluster, cycle.now).following.rebuild(cycle.now)
                except Exception as another:  # it is tried again in the next run
                    self._leave_alone(cycle, another)
                else:
                    break
            else:
                self._opened = None
            pods = WorkloadPods(cluster, cycle.queue, self._profiles, cycle.now)
            known, queued = cluster.workloads.records, cluster.tenants.workloads.items()
            self._hold_back((known.get(key) or WorkloadRecord(found) for key, found in queued), pods)

    def _leave_alone(self, cycle: Cycle, error: Exception) -> None:
        if isinstance(error, TurnFailed):
            key, backoff, now = WorkloadKey(error.turn), cycle.queue.backoff, cycle.now
            cycle.cluster.workloads.aside.set_aside(
                key,
                Fault(key, error.error).message,
                lambda times: backoff.end(now, times),
                workload=cycle.cluster.tenants.workloads.get(key),
                moment=_moment(cycle.cluster),
            )

    def _run(self, cycle: Cycle, opened: "_Opened") -> list[Decision]:
        cluster, queue, now = cycle.cluster, cycle.queue, cycle.now
        lifecycle, following = opened.lifecycle, opened.following
        lifecycle.admission.own.set_time(now)
        pods = WorkloadPods(cluster, queue, self._profiles, now)
        # 1. Follow the world: queues, workloads and pods that changed.
        aside = lifecycle.aside
        back = aside.take_due(now, cluster.tenants.workloads, _moment(cluster))
        key = None
        try:
            for workload in following.catch_up(now, back):
                key = workload.key
                self._look_at(lifecycle, workload, pods)
        except Exception as error:
            blame(key, error)
        self._look_at_cluster(opened, cluster, now)
        # 2. Act on what is due.
        self._look_who_is_ready(lifecycle, pods)
        lifecycle.pass_time(now)
        lifecycle.admission.own.look_again(lifecycle.admission.pending)
        # 3. Decide, cycle after cycle, until nothing new can be decided.
        self._decide(cycle, opened, pods)
        if opened.windows is not None:
            opened.windows.reclaim(now)
            opened.windows.give_notice(now)
        # 4. Start and stop pods accordingly.
        evictions = self._move_pods(lifecycle, pods)
        # 5. Say why the others wait.
        told = tell(lifecycle.take_spoken_of(), lifecycle, pods)
        if not self._report_faults(cycle, lifecycle):
            following.distrust()
        self._let_through(lifecycle)
        return self._with_patches(lifecycle.take_decisions(), lifecycle, pods) + evictions + told

    def _with_patches(self, decisions: list[Decision], lifecycle: Lifecycle, pods: WorkloadPods) -> list[Decision]:
        """Let each admission carry what its flavors and checks give the pods of each pod set."""
        found: list[Decision] = []
        for decision in decisions:
            if isinstance(decision, Admitted) and (key := WorkloadKey(decision.workload)) in lifecycle.workloads:
                decision = replace(decision, pod_patches=pods.patches(lifecycle.workloads[key], decision.podsets))
            found.append(decision)
        return found

    def _look_who_is_ready(self, lifecycle: Lifecycle, pods: WorkloadPods) -> None:
        key = None
        try:
            for workload in list(lifecycle.unready.values()):
                key = workload.key
                if workload.stage is Stage.ADMITTED and key not in lifecycle.aside:
                    lifecycle.set_ready(workload, pods.is_ready(workload), pods.now)
        except Exception as error:
            blame(key, error)

    def _let_through(self, lifecycle: Lifecycle) -> None:
        """Who was set aside, came back and waits no more, got through."""
        known = {key: lifecycle.workloads.get(key) for key in lifecycle.aside.come_back()}
        lifecycle.aside.forget(
            key for key, found in known.items() if found is None or found.stage not in (Stage.WAITING, Stage.OUTSIDE)
        )

    def resume(self, cluster: Cluster, now: float) -> None:
        if not cluster.workloads.records:
            return
        try:
            with cluster.log.for_good():
                self._open(cluster, now).following.rebuild(now)
        except Exception:  # the next run meets it again, and sets the workload aside that it is about
            self._opened = None

    def next_wake(self, cluster: Cluster, now: float) -> float | None:
        if self._opened is None or not cluster.workloads.records:
            return cluster.workloads.run_again_at
        lifecycle, windows = self._opened.lifecycle, self._opened.windows
        times = [lifecycle.next_deadline(), lifecycle.admission.own.next_look(lifecycle.admission.pending)]
        times += [lifecycle.aside.next, cluster.workloads.run_again_at]
        if windows is not None:
            times.append(windows.next_wake(now))
        return min((time for time in times if time is not None), default=None)

    @property
    def lifecycle(self) -> Lifecycle | None:
        """Workloads, lines and ledger, to be read; None as long as nothing has queued."""
        return None if self._opened is None else self._opened.lifecycle

    def report(self, cycle: Cycle) -> AdmissionSection:
        lifecycle = self.lifecycle
        return AdmissionSection(
            None if lifecycle is None else lifecycle.admission,
            {} if lifecycle is None else lifecycle.workloads,
            lambda: self.admission(cycle.cluster, cycle.now),
        )

    def admission(self, cluster: Cluster, now: float) -> Admission:
        """Queues, lines and ledger, to be read: as they are, or as they would be if a workload came now."""
        if self._opened is not None:
            return self._opened.lifecycle.admission
        table = WorkloadTable(cluster.log)
        return self._make_admission(cluster, now, table, self._make_own(table))

    def _make_admission(self, cluster: Cluster, now: float, table: WorkloadTable, own: OwnRules) -> Admission:
        """The queues as they are, with the quotas that open windows give them, in which no workload waits yet."""
        settings, tenants = self._settings, cluster.tenants
        pods_ready = settings.pods_ready
        own.set_time(now)
        return Admission(
            make_structure(tenants, cluster.log, self._schedule.overrides(now)),
            local_queues=tenants.local_queues.values(),
            namespace_labels=NamespaceLabels(cluster.related),
            fair_sharing=settings.fair_sharing,
            strategies=settings.preemption_strategies,
            rules=ResourceRules(
                settings.excluded_prefixes,
                settings.transformations,
                settings.ignores_undeclared,
                settings.device_classes,
                cluster.related.resource_claim_templates,
            ),
            orders_by_eviction=pods_ready is None or pods_ready.orders_by_eviction,
            holds_freed_room=self._policy.hold_freed_room,
            own=own,
            balances_placement=settings.balances_placement,
            table=table,
        )

    def _open(self, cluster: Cluster, now: float) -> "_Opened":
        if self._opened is None:
            tenants = cluster.tenants
            if self._own is None:
                self._own = self._make_own(cluster.workloads)
            admission = self._make_admission(cluster, now, cluster.workloads, self._own)
            lifecycle = Lifecycle(self._settings, admission, tenants.finished_pods, cluster.workloads)
            pods_ready = self._settings.pods_ready
            self._opened = _Opened(
                lifecycle,
                WorkloadSync(tenants, cluster.workloads, lifecycle, self._schedule, now),
                WindowKeeper(self._schedule, tenants, lifecycle) if self._schedule else None,
                Gatekeeper(
                    self._rehearse,
                    blocks_admission=pods_ready is not None and pods_ready.blocks_admission,
                    check_placement=self._policy.check_placement,
                ),
            )
        return self._opened

    def _make_own(self, table: WorkloadTable) -> OwnRules:
        settings, policy = self._settings, self._policy
        own = OwnRules(
            table,
            policy.minimum_runtime_before_reclaim_seconds,
            policy.usage_half_life_seconds if settings.fair_sharing else 0,
            settings.usage_history,
        )
        own.recall(self._recalled)
        return own

    def remember(self, memory: Memory) -> None:
        if self._own is not None:
            self._own.remember(memory)
        else:
            memory.local_queues, memory.borrowed = self._recalled.local_queues, self._recalled.borrowed

    def recall(self, memory: Memory) -> None:
        self._recalled = memory

    # Following.

    def _look_at(self, lifecycle: Lifecycle, workload: WorkloadRecord, pods: WorkloadPods) -> None:
        """See how the pods of a workload have fared."""
        if workload.stage is Stage.DONE:
            return
        if pods.is_done(workload):
            lifecycle.finish(workload)
            return
        admitted = lifecycle.admission.admitted(workload.key)
        if workload.is_holding and admitted is not None:
            gone = {given.name: given.count - pods.to_run(workload, given) for given in workload.pod_sets}
            reclaimed = {name: count for name, count in gone.items() if count > 0}
            if reclaimed != dict(admitted.reclaimed):
                lifecycle.admission.reclaim(workload.key, reclaimed)
        if workload.stage is Stage.ADMITTED:
            lifecycle.set_ready(workload, pods.is_ready(workload), pods.now)
        lifecycle.look_at_pods_of(workload)

    def _look_at_cluster(self, opened: "_Opened", cluster: Cluster, now: float) -> None:
        """Nodes may have room that they had not, or have failed; namespaces may have other labels."""
        lifecycle = opened.lifecycle
        opened.gatekeeper.look_at(cluster, lifecycle)
        if lifecycle.admission.structure.topology_flavors:
            self._look_at_topologies(opened, cluster)
            if opened.nodes_seen.is_news(cluster.nodes_version):
                self._replace_failed_nodes(lifecycle, NodesThere.of(cluster), now)
        if opened.related_seen.is_news(cluster.related.version):
            lifecycle.admission.pending.try_again(_misplaced(lifecycle))

    def _replace_failed_nodes(self, lifecycle: Lifecycle, nodes: NodesThere, now: float) -> None:
        """Whoever was assigned a node that has failed gets another for it, or else looks for a place anew."""
        for workload in list(lifecycle.workloads.values()):
            if workload.stage is not Stage.ADMITTED or workload.key in lifecycle.aside:
                continue
            with in_turn_of(workload.key):
                failed = nodes.failed(workload.pod_sets, is_ready=workload.is_ready)
                pod_sets = lifecycle.admission.find_replacement(workload.key, failed[0]) if len(failed) == 1 else None
                if pod_sets is not None:
                    lifecycle.reassign(workload, pod_sets, f"Node {failed[0]} has failed, and its pods go elsewhere")
                elif failed:
                    message = f"Workload was evicted as there was no replacement for a failed node: {', '.join(failed)}"
                    lifecycle.evict(workload, Eviction(NODE_FAILURES, message, now))

    def _look_at_topologies(self, opened: "_Opened", cluster: Cluster) -> None:
        admission = opened.lifecycle.admission

        def holds_domains(workload: str) -> bool:
            admitted = admission.admitted(WorkloadKey(workload))
            return admitted is not None and bool(admitted.topology_use)

        flavors, assigner = admission.structure.flavors, admission.topology
        if opened.survey.of(assigner, TopologySurvey, cluster, flavors, assigner, holds_domains).look():
            queues = admission.structure.queues.values()
            admission.pending.retry(queue for queue in queues if queue.topology_flavors)

    # Deciding.

    def _decide(self, cycle: Cycle, opened: "_Opened", pods: WorkloadPods) -> None:
        now, lifecycle, windows = cycle.now, opened.lifecycle, opened.windows
        with opened.gatekeeper.at_work(lifecycle, pods) as gate:
            while True:
                gone = [workload for workload in lifecycle.leaving.values() if _is_gone(workload, lifecycle, pods)]
                lifecycle.complete_evictions(gone, now)
                pending, settling = lifecycle.admission.pending, lifecycle.settling
                settling.wake(pending.changed)
                pending.changed.clear()
                if not pending.has_heads_outside(settling.asleep):
                    return
                may_use: MayStart = anybody if windows is None else WindowGate(windows, now).may_use
                report = lifecycle.admission.run_cycle(
                    now, asleep=settling.asleep, may_start=gate.may_start, may_use=may_use
                )
                gate.end_cycle()
                self._act_on(report, cycle, lifecycle)

    def _report_faults(self, cycle: Cycle, lifecycle: Lifecycle) -> bool:
        """Say what was raised in whose turn; whether all of that was raised by plugins."""
        raised = lifecycle.admission.take_faults()
        for key, error in raised.items():
            cycle.report(key, error)
        return all(isinstance(error, PluginError) for error in raised.values())

    def _act_on(self, report: CycleReport, cycle: Cycle, lifecycle: Lifecycle) -> None:
        workloads, now = lifecycle.workloads, cycle.now
        for key, condition in report.conditions.items():
            lifecycle.say(workloads[key], condition)
        for key in report.failed:
            self._leave_alone(cycle, TurnFailed(key, lifecycle.admission.faults[key]))
            lifecycle.leave_alone(workloads[key])
        for preempted in report.preempted:
            with in_turn_of(preempted.preemptor):
                lifecycle.preempt(preempted, now)
        for admitted in report.admitted:
            try:
                lifecycle.reserve(workloads[admitted.workload], now)
            except Exception as error:
                blame(admitted.workload, error)
        queues = lifecycle.admission.structure.queues
        named = [*(found.queue for found in report.admitted), *(found.queue for found in report.preempted)]
        decided, pending = {queues[name].root for name in named}, lifecycle.admission.pending
        for root in lifecycle.settling.note_cycle(report.tried, decided, report.held, pending.count_waiting):
            tried = [found.key for found in report.tried if queues[found.queue_name].root == root]
            cycle.report(", ".join(tried), InvariantBroken(ENDLESS))

    # Carrying out.

    def _move_pods(self, lifecycle: Lifecycle, pods: WorkloadPods) -> list[Decision]:
        """Bring the pods of all workloads that moved in line with their stages."""
        found = lifecycle.take_moved()
        self._hold_back((workload for workload in found if workload.key in lifecycle.aside), pods)
        moved = [workload for workload in found if workload.key not in lifecycle.aside]
        for workload in moved:
            try:
                self._bring_in_line(workload, lifecycle, pods)
            except Exception as error:
                blame(workload.key, error)
        lifecycle.take_moved()  # those that could not start: they are among these
        evictions: list[Decision] = []
        for workload in moved:
            if workload.stage is Stage.LEAVING or workload.was_evicted:
                with in_turn_of(workload.key):
                    evictions += _stop(workload, pods)
        return evictions

    def _hold_back(self, workloads: Iterable[WorkloadRecord], pods: WorkloadPods) -> None:
        """Keep pods from starting whose workloads may not, as far as that can be done after something raised."""
        for workload in workloads:
            if workload.stage is not Stage.ADMITTED:
                with suppress(Exception):  # what raised before may raise again
                    pods.bring_in_line(workload)

    def _bring_in_line(self, workload: WorkloadRecord, lifecycle: Lifecycle, pods: WorkloadPods) -> None:
        if workload.stage is Stage.LEAVING:
            pods.withdraw(workload)
        try:
            pods.bring_in_line(workload)
        except ResumeError as error:
            lifecycle.deactivate(workload, "FailedToStart", str(error), pods.now)
            pods.bring_in_line(workload)
        lifecycle.speak_of(workload)


@dataclass(frozen=True, slots=True)
class _Opened:
    """What is made from the state when the first workload queues, and given up as a whole when something raised."""

    lifecycle: Lifecycle
    following: WorkloadSync
    windows: WindowKeeper | None
    gatekeeper: Gatekeeper
    survey: Derived[TopologyAssigner, TopologySurvey] = field(default_factory=lambda: Derived(1))
    nodes_seen: Seen = field(default_factory=Seen)
    related_seen: Seen = field(default_factory=Seen)


def _misplaced(lifecycle: Lifecycle) -> list[WorkloadKey]:
    """The workloads whose queue does not select their namespace."""
    found = (record for record in lifecycle.workloads.values() if record.condition.message == NAMESPACE_MISMATCH)
    return sorted(record.key for record in found if record.stage is Stage.WAITING)


def _is_gone(workload: WorkloadRecord, lifecycle: Lifecycle, pods: WorkloadPods) -> bool:
    """Tell whether an eviction is complete.

    A workload is admitted at most once a run: else two that take each other's quota would go on for ever.
    """
    has_given_up = workload.admitted_in_run != lifecycle.run and not workload.is_still_admitted
    return has_given_up and workload.key not in lifecycle.aside and not pods.placed(workload)


def _moment(cluster: Cluster) -> tuple[int, int]:
    """What the world says of nodes and objects."""
    return cluster.nodes_version, cluster.related.version


def _stop(workload: WorkloadRecord, pods: WorkloadPods) -> list[Decision]:
    """Evict the pods of a workload that have a node, and were not told before.

    Some may have got theirs after their workload had stopped: another scheduler was just binding them, or whoever
    stopped it died before it evicted them.
    """
    eviction = workload.eviction
    preemptor = eviction.preemptor if eviction is not None else ""
    message = eviction.message if eviction is not None else workload.condition.message
    return disrupt(pods.cluster, pods.queue, pods.placed(workload), Forced(message, preemptor)).decisions
