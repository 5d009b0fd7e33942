"""Asked before quota is given: will the workload lose it while it runs?

A workload whose end is known is kept from quota that is taken before then; another one only within the notice. Quota
within its queue's own at that time is none that it would lose, nor is any that it could still borrow; and one that may
be stopped at any time is not kept from anything.
"""

from collections.abc import Iterable, Iterator

from mooring.actions.admit.cycle.entry_processing import StartRefusal
from mooring.actions.admit.cycle.nominate import Entry
from mooring.actions.admit.cycle.pending_queue import Requeue
from mooring.actions.admit.lifecycle.known_ends import is_preemptible, known_seconds
from mooring.actions.admit.quota.workload_info import AdmittedWorkload
from mooring.actions.admit.windows.keeping import WatchedTree, WindowKeeper
from mooring.model.api.meta import timestamp_text
from mooring.state.quota_tree import QuotaTree

FARTHEST_SECONDS = 8 * 86400.0
"""How far to look ahead: windows recur by the week."""


class WindowGate:
    """The answers of one cycle. It is made before the cycle begins, when nobody's what-if is in the ledger."""

    def __init__(self, keeper: WindowKeeper, now: float) -> None:
        self._keeper = keeper
        self._now = now
        self._usage = keeper.lifecycle.admission.structure.tree.usage.copy()
        """What queues hold, those included that were let through in this cycle; rows of cohorts mean nothing."""
        self._gone: dict[tuple[int, float], dict[tuple[int, int], int]] = {}

    def may_use(self, entry: Entry) -> StartRefusal | None:
        watched = self._keeper.watched().get(entry.queue.root)
        if watched is None:
            return None
        usage = {column: amount for column, amount in entry.assignment.usage.items() if column in watched.columns}
        refusal = self._will_lose(entry, watched, usage)
        if refusal is None:
            for column, amount in usage.items():
                self._usage[entry.queue.node, column] += amount
        return refusal

    def _will_lose(self, entry: Entry, watched: WatchedTree, usage: dict[int, int]) -> StartRefusal | None:
        workload = self._keeper.lifecycle.workloads[entry.pending.key]
        if is_preemptible(workload):
            return None
        seconds = known_seconds(workload)
        seen: set[int] = set()
        for at in self._switches(watched, seconds):
            tree = self._keeper.tree_at(at)
            if id(tree) in seen:
                continue  # the same quotas at an earlier time were enough, and later there are not more workloads
            seen.add(id(tree))
            if not self._keeps(entry, usage, tree, at):
                when = timestamp_text(at)
                runs = "and nobody says how long it runs" if seconds is None else f"before its {seconds:.0f}s are over"
                return StartRefusal(Requeue.QUOTA_ENDS, f"the quota that it would use is taken back at {when}, {runs}")
        return None

    def _switches(self, watched: WatchedTree, seconds: float | None) -> Iterator[float]:
        """The moments at which a workload that starts now could lose its quota."""
        keeper, now = self._keeper, self._now
        until = now + (keeper.longest_notice if seconds is None else min(seconds, FARTHEST_SECONDS))
        for switch in keeper.schedule.switches(now):
            if switch.at > until or (seconds is not None and switch.at == until):
                return  # what ends just when quota is taken loses none
            notice = keeper.notice_seconds(switch, watched)
            if notice >= 0 and (seconds is not None or switch.at - notice <= now):
                yield switch.at

    def _keeps(self, entry: Entry, usage: dict[int, int], tree: QuotaTree, at: float) -> bool:
        """Tell whether quotas as they will be leave the workload what it would use."""
        node, root = entry.queue.node, entry.queue.root
        beyond = [
            column
            for column, amount in usage.items()
            if int(self._usage[node, column]) + amount > tree.subtree_of(node, column)
        ]
        if not beyond:
            return True
        gone = dict(self._gone_by(root, at))
        for place, amount in _total(
            victim.admitted for victim in entry.victims if not victim.admitted.is_evicted
        ).items():
            gone[place] = gone.get(place, 0) + amount
        with tree.what_if():
            for queue in self._keeper.watched()[root].nodes:
                if tree.nodes[queue].is_queue:
                    for column in beyond:
                        tree.add(queue, column, max(0, int(self._usage[queue, column]) - gone.get((queue, column), 0)))
            return all(
                not tree.exceeds(node, column, usage[column]) or usage[column] <= tree.available(node, column)
                for column in beyond
            )

    def _gone_by(self, root: int, at: float) -> dict[tuple[int, int], int]:
        """By queue and column, what those hold who will be gone at a moment."""
        if (root, at) not in self._gone:
            keeper = self._keeper
            staying = {id(admitted) for admitted in keeper.staying(root, at)}
            ledger, nodes = keeper.lifecycle.admission.ledger, keeper.watched()[root].nodes
            everybody = (admitted for node in nodes for admitted in ledger.admitted_in(node))
            self._gone[root, at] = _total(admitted for admitted in everybody if id(admitted) not in staying)
        return self._gone[root, at]


def _total(admitted_workloads: Iterable[AdmittedWorkload]) -> dict[tuple[int, int], int]:
    """By queue and column, what these hold together."""
    total: dict[tuple[int, int], int] = {}
    for admitted in admitted_workloads:
        for column, amount in admitted.usage.items():
            total[admitted.node, column] = total.get((admitted.node, column), 0) + amount
    return total
