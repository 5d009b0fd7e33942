"""Quota windows at work: what they will take is announced, not given away shortly before, and taken when it is time.

    notice   so long before quota is taken, whoever will have to give some back is told
    gate     nobody is admitted to quota that it would lose while it runs, as far as that is known
    reclaim  once quota is taken, whoever holds too much is suspended: if somebody waits for it, or in any case

Only trees of cohorts in which some queue has a window are looked at, and there only what windows speak of.
"""

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from mooring.actions.admit.lifecycle.following import make_structure
from mooring.actions.admit.lifecycle.known_ends import known_end
from mooring.actions.admit.lifecycle.lifecycle import Lifecycle
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.structure import Structure
from mooring.actions.admit.quota.windows import QuotaSchedule, Switch
from mooring.actions.admit.quota.workload_info import AdmittedWorkload
from mooring.actions.admit.windows.giving_back import find_overdrafts, wanted_by_right, who_gives_back
from mooring.model.api.kueue_workload import QUOTA_ENDS
from mooring.model.api.meta import timestamp_text
from mooring.model.decisions import Notice
from mooring.model.keys import WorkloadKey
from mooring.state.quota_tree import QuotaTree
from mooring.state.remembered import Derived
from mooring.state.tenants import TenantTable
from mooring.state.workloads import Eviction, Stage

QUOTA_WINDOW = "QuotaWindow"
"""The reason of a suspension because of a window."""


class WatchedTree(NamedTuple):
    """A tree of cohorts in which quotas change by the clock."""

    nodes: tuple[int, ...]
    """Parents first."""
    columns: tuple[int, ...]
    """Those of which windows speak."""
    windows: frozenset[int]
    evicts_always: frozenset[int]
    """The columns in which who holds too much goes in any case."""


MOST_LOOKS = 1024
"""Of so many switches and trees it is known that there is nothing new to tell."""


class WindowKeeper:
    """Knows the trees that windows speak of, as they are and as they will be."""

    def __init__(self, schedule: QuotaSchedule, tenants: TenantTable, lifecycle: Lifecycle) -> None:
        self.schedule = schedule
        self.longest_notice = max((window.notice_seconds for window in schedule.windows), default=0)
        self.lifecycle = lifecycle
        self._tenants = tenants
        self._watched: Derived[None, dict[int, WatchedTree]] = Derived()
        self._trees: Derived[tuple[int, ...], QuotaTree] = Derived()
        """By the windows that are open: all quotas, and no usage."""
        self._looked: Derived[tuple[float, int], tuple[Ledger, int]] = Derived(MOST_LOOKS)
        """By switch and tree, the ledger and how often it had changed when we last looked who is to be told."""

    # What there is.

    def watched(self) -> dict[int, WatchedTree]:
        """By root, the trees to look at."""
        watched = self._watched.at(self._tenants.version)
        return watched.of(None, self._find_watched, self.lifecycle.admission.structure)

    def _find_watched(self, structure: Structure) -> dict[int, WatchedTree]:
        windows: dict[int, dict[int, int]] = {}
        for index, key in enumerate(self.schedule.keys):
            queue, column = structure.queues.get(key.queue), structure.column_of.get(key.column)
            if queue is not None and column is not None:
                windows.setdefault(queue.root, {})[index] = column
        nodes: dict[int, list[int]] = {root: [] for root in windows}
        for node, path in enumerate(structure.tree.paths):
            if path[-1] in nodes:
                nodes[path[-1]].append(node)
        always = {index for index, key in enumerate(self.schedule.keys) if self.schedule.evicts_always(key)}
        return {
            root: WatchedTree(
                tuple(nodes[root]),
                tuple(sorted(set(found.values()))),
                frozenset(found),
                frozenset(column for index, column in found.items() if index in always),
            )
            for root, found in windows.items()
        }

    def tree_at(self, moment: float) -> QuotaTree:
        """The quotas as they will be, with nobody using any; whoever adds usage takes it away again."""
        return self._trees.at(self._tenants.version).of(self.schedule.open_at(moment), self._make_tree, moment)

    def _make_tree(self, moment: float) -> QuotaTree:
        log = self.lifecycle.admission.ledger.log
        return make_structure(self._tenants, log, self.schedule.overrides(moment)).tree

    def notice_seconds(self, switch: Switch, watched: WatchedTree) -> float:
        """How long before a switch a tree hears of it; less than 0 if it is none of its business."""
        windows = self.schedule.windows
        return max((windows[index].notice_seconds for index in switch.windows if index in watched.windows), default=-1)

    def staying(self, root: int, until: float) -> Iterator[AdmittedWorkload]:
        """Who in a tree will hold quota at a moment to come, as far as that is known."""
        ledger, workloads = self.lifecycle.admission.ledger, self.lifecycle.workloads
        for node in self.watched()[root].nodes:
            for admitted in ledger.admitted_in(node):
                end = known_end(workloads[admitted.pending.key])
                if not admitted.is_evicted and (end is None or end > until):
                    yield admitted

    # Notice.

    def give_notice(self, now: float) -> None:
        """Tell those who will have to give quota back, each once for every time that it is taken."""
        for switch in self._switches_ahead(now):
            for root, watched in self.watched().items():
                if switch.at - self.notice_seconds(switch, watched) <= now:
                    self._look_ahead(switch.at, root, watched, now)

    def _switches_ahead(self, now: float) -> Iterator[Switch]:
        for switch in self.schedule.switches(now):
            if switch.at - self.longest_notice > now:
                return
            yield switch

    def _look_ahead(self, at: float, root: int, watched: WatchedTree, now: float) -> None:
        lifecycle, ledger = self.lifecycle, self.lifecycle.admission.ledger
        seen = ledger, sum(ledger.generation[node] for node in watched.nodes)
        if self._looked.get((at, root)) == seen:
            return
        self._looked.put((at, root), seen)
        future = Ledger(self.tree_at(at))
        for admitted in self.staying(root, at):
            future.reserve(admitted)
        overdrawn = {found.column for found in find_overdrafts(future.tree, watched.nodes, watched.columns)}
        least = lifecycle.admission.own.runtime.seconds
        wanted = dict.fromkeys(watched.columns, inf)
        for admitted in who_gives_back(future, watched.nodes, wanted):
            key = admitted.pending.key
            workload = lifecycle.workloads[key]
            if at not in workload.told_ends:
                earlier = (told for told in workload.told_ends if told > now)
                lifecycle.note_told_ends(workload, frozenset((at, *earlier)))
                goes_at = max(at, admitted.running_since + least)
                if self._was_told(key, goes_at):
                    continue
                columns = [column for column in sorted(overdrawn) if admitted.usage.get(column)]
                is_certain = any(column in watched.evicts_always for column in columns)
                message = _announcement(future.tree, admitted, columns, at, goes_at, is_certain)
                lifecycle.decisions.append(Notice(key, message, goes_at))
        for admitted in list(future.admitted_workloads()):
            future.release(admitted.pending.key)

    def _was_told(self, key: WorkloadKey, goes_at: float) -> bool:
        """Whether a workload says itself that it was told: before a restart, by us or another."""
        annotations = self.lifecycle.workloads[key].workload.metadata.annotations or {}
        return annotations.get(QUOTA_ENDS) == timestamp_text(goes_at)

    # Reclaim.

    def reclaim(self, now: float) -> None:
        """Suspend whoever holds what is no longer there, as far as it is wanted."""
        admission = self.lifecycle.admission
        tree = admission.structure.tree
        for watched in self.watched().values():
            overdrawn = {found.column for found in find_overdrafts(tree, watched.nodes, watched.columns)}
            wanted = {
                column: inf if column in watched.evicts_always else self._missing(watched, column)
                for column in sorted(overdrawn)
            }
            for admitted in who_gives_back(admission.ledger, watched.nodes, wanted):
                workload = self.lifecycle.workloads[admitted.pending.key]
                # Who is too young goes later; nobody else goes in its place.
                if workload.stage in (Stage.RESERVED, Stage.ADMITTED) and not admission.own.runtime.spares(admitted):
                    columns = [column for column in wanted if admitted.usage.get(column)]
                    self.lifecycle.evict(workload, Eviction(QUOTA_WINDOW, _explanation(tree, admitted, columns), now))

    def _missing(self, watched: WatchedTree, column: int) -> float:
        """How much of what is waited for by right is not idle anywhere in the tree."""
        admission = self.lifecycle.admission
        tree = admission.structure.tree
        owned = sum(tree.nominal_of(node, column) for node in watched.nodes)
        held = sum(tree.usage_of(node, column) for node in watched.nodes if tree.nodes[node].is_queue)
        return max(0, wanted_by_right(admission, watched.nodes, column) - max(0, owned - held))

    # Time.

    def next_wake(self, now: float) -> float | None:
        """When there is something to announce or to take, though nothing happens."""
        times = [self.schedule.next_change(now)]
        for switch in self.schedule.switches(now):
            if times[0] is None or switch.at - self.longest_notice >= times[0]:
                break
            notices = (switch.at - self.notice_seconds(switch, watched) for watched in self.watched().values())
            times += [time for time in notices if now < time < switch.at]
        return min((time for time in times if time is not None), default=None)


def _names(tree: QuotaTree, columns: list[int]) -> str:
    return ", ".join(f"{tree.columns[column].resource} of flavor {tree.columns[column].flavor}" for column in columns)


def _announcement(
    tree: QuotaTree, admitted: AdmittedWorkload, columns: list[int], at: float, goes_at: float, is_certain: bool
) -> str:
    when = "" if goes_at == at else f" at {timestamp_text(goes_at)}"
    condition = "" if is_certain else " if somebody waits for it"
    return (
        f"At {timestamp_text(at)} there will be less quota of {_names(tree, columns)} than "
        f"ClusterQueue {admitted.pending.queue_name} uses: the workload will be suspended{when}{condition}"
    )


def _explanation(tree: QuotaTree, admitted: AdmittedWorkload, columns: list[int]) -> str:
    return (
        f"Suspended because there is less quota of {_names(tree, columns)} now than "
        f"ClusterQueue {admitted.pending.queue_name} uses"
    )
