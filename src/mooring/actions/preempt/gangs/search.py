"""Room for a gang as a whole: who has to go, from wherever, so that all of its members have a place at one moment.

Columns say who might be enough (`gang_proposals.py`). What they propose is tried in earnest: the victims are taken
away, the gang is placed as gangs are placed, and whoever leaves it its places comes back. The cluster is afterwards as
it was before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.gangs.check import MembersInPlace
from mooring.actions.preempt.gangs.choice import Choice
from mooring.actions.preempt.gangs.demand import Board, Want
from mooring.actions.preempt.gangs.pool import NOBODY, Pool
from mooring.actions.preempt.gangs.proposals import Asked, Proposals
from mooring.actions.preempt.gangs.spare import in_order, spare
from mooring.actions.preempt.pods.search import Filters, InVain, VictimSearch, why_protected
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.engine.evaluate import Evaluation, prepare_filters
from mooring.engine.plugin import Mask
from mooring.engine.profile import Profile
from mooring.state.cluster import Cluster
from mooring.state.placements import Released
from mooring.state.pods import UNBOUND, PodRecord

Assignment: TypeAlias = Sequence[tuple[PodRecord, int]]
"""Members, each with its row."""
Placing: TypeAlias = Callable[[Cluster], Assignment | None]
"""Places the whole gang on the cluster as it stands; None, and nothing is left behind, if that cannot be."""

BEFORE = "pod group preemption: "


@dataclass(frozen=True)
class GangFound:
    """Room can be made for the whole gang."""

    assignments: tuple[tuple[PodRecord, int], ...]
    victims: tuple[PodRecord, ...]
    """The most important first."""
    violations: int
    """How many of them go beyond what disruption budgets allow."""
    gangs: Mapping[str, str] = field(default_factory=dict)
    """The victims that go because their whole gang does, by pod key: the gang's name."""

    @property
    def message(self) -> str:
        return f"{BEFORE}found a placement for podgroup, preempting {len(self.victims)} victims"


def find_for_gang(
    search: VictimSearch,
    members: Sequence[tuple[PodRecord, Profile]],
    priority: int,
    place: Placing,
    *,
    domains: NDArray[np.int32] | None = None,
    only_filters: bool = True,
    now: float = 0.0,
    costs: PreemptionCostArgs | None = None,
) -> GangFound | InVain:
    """Whom to evict for a gang of this priority that does not fit, and where each of its members then goes.

    `domains` says of each row of the table in which domain it is, negative for none, where all members have to share
    one. `only_filters` says that `place` looks at nothing but filters otherwise.
    """
    # 1. What is asked for, and on which rows that could be.
    wants = wants_of(search, members)
    rows = search.cluster.nodes.live_rows()
    rows = rows[np.logical_or.reduce([want.is_row for want in wants])[rows]]
    if domains is not None:
        rows = rows[domains[rows] >= 0]
    # 2. Who might have to go.
    record, profile = members[0]
    victims = search.victims(priority, record.key, rows, now, costs, profile.filters)
    asked = Asked(wants, rows, domains, only_filters=only_filters)
    proposals = Proposals(victims.pool(), search.shares, asked, victims.cost)
    # 3. The least costly of them that would be enough, as far as columns can tell, until the gang has its places.
    for gone in proposals:
        found = _carry_through(search, proposals, gone, place)
        if found is not None:
            return found
    # 4. Nothing helps: say why.
    if victims.cost is not None and victims.cost.args.protects:
        unprotected = Proposals(victims.pool(heed_protection=False), search.shares, asked, victims.cost)
        if unprotected.is_enough_somewhere and not proposals.is_enough_somewhere:
            seconds = victims.seconds_protected(victims.everybody)
            return InVain(BEFORE + why_protected(seconds), seconds)
    return InVain(BEFORE + _why(proposals, sum(want.count for want in wants)))


def wants_of(search: VictimSearch, members: Sequence[tuple[PodRecord, Profile]]) -> list[Want]:
    """Members by shape, those first for which there is the least room."""
    cluster = search.cluster
    by_shape: dict[tuple[str, int], list[tuple[PodRecord, Profile]]] = {}
    for record, profile in members:
        by_shape.setdefault((profile.name, record.shape.id), []).append((record, profile))
    wants = []
    for group in by_shape.values():
        record, profile = group[0]
        answer = Evaluation(record.shape, cluster, profile, cluster.nodes.live_rows())
        prepare_filters(answer)
        filters = Filters(answer)
        settled = search.settled.of(profile, cluster, record.shape)
        is_row = np.zeros(cluster.nodes.capacity, np.bool_)
        if not settled.refused:
            is_row[: len(settled.is_row)] = settled.is_row
        records = tuple(member for member, _ in group)
        wants.append(Want(profile, record.shape, records, filters.by_usage, filters.elsewhere, is_row))
    nodes = cluster.rows()
    return sorted(wants, key=lambda want: int(want.room(nodes).sum()) - want.count)


def _carry_through(search: VictimSearch, proposals: Proposals, gone: Mask, place: Placing) -> GangFound | None:
    """Take units away, place the gang, and find out who may stay; None if it finds no place even so."""
    cluster, pool = search.cluster, proposals.pool
    with search.running.supposing():
        for unit in np.flatnonzero(gone).tolist():
            _release(cluster, pool.records(unit))
        placed = place(cluster)
    if placed is None:
        return None
    assignments = tuple(placed)
    rows = np.unique(np.array([row for _, row in assignments], np.intp))
    board = Board(pool, search.shares, rows, proposals.wants)
    still_gone = spare(board, Choice(gone, _counts(proposals.wants, assignments, rows)), proposals.order(gone))
    still_gone = _heed_others(search, proposals, gone, still_gone, assignments)
    units = np.flatnonzero(still_gone)
    if not len(units):
        return None  # with everybody in place the gang was refused before: placing looks at more than this trial does
    victims, gangs = pool.goers(units.tolist())
    return GangFound(assignments, victims, proposals.violations(still_gone), gangs)


def _release(cluster: Cluster, records: Sequence[PodRecord]) -> list[Released]:
    # A gang takes its surplus with it, which may have gone before.
    return [cluster.release(record.key) for record in records if record.row != UNBOUND]


def _counts(wants: Sequence[Want], assignments: Assignment, rows: NDArray[np.intp]) -> list[NDArray[np.int64]]:
    """Of each want: how many members each row gets."""
    want_of = {record.key: number for number, want in enumerate(wants) for record in want.records}
    counts = [np.zeros(len(rows), np.int64) for _ in wants]
    for record, row in assignments:
        counts[want_of[record.key]][int(np.searchsorted(rows, row))] += 1
    return counts


def _heed_others(
    search: VictimSearch, proposals: Proposals, gone: Mask, still_gone: Mask, assignments: Assignment
) -> Mask:
    """Of those who could stay by usage: who has to go even so, because of filters that look further."""
    pool, cluster = proposals.pool, search.cluster
    matters = np.zeros(len(pool), np.bool_)
    for want in proposals.wants:
        if want.elsewhere:
            is_concern = search.relevance.of(want.profile.name, want.shape, want.elsewhere)
            matters[pool.unit[is_concern[pool.shapes]]] = True
    doubtful = gone & ~still_gone & matters
    if not doubtful.any():
        return still_gone
    gone_again = proposals.board.closed(still_gone | doubtful)
    doubtful, still_gone = gone_again & ~still_gone, gone_again
    order = proposals.order(gone)
    with search.running.supposing():
        units = np.flatnonzero(still_gone).tolist()
        released = {each.record.key: each for unit in units for each in _release(cluster, pool.records(unit))}
        for record, row in assignments:
            cluster.assume(record.key, row)
        in_place = MembersInPlace(cluster, proposals.wants)

        def bring_back(candidates: Mask) -> bool:
            """Let all come back whom the members leave their places; tell whether anybody did."""
            before = int(np.count_nonzero(still_gone))
            for unit in in_order(candidates & still_gone, order):
                core = int(pool.core[unit])
                if core == NOBODY or not still_gone[core]:
                    back = proposals.core_records(unit, still_gone)
                    still_gone[unit] = not in_place.let_back([released[record.key] for record in back])
            return int(np.count_nonzero(still_gone)) < before

        bring_back(doubtful)
        if (doubtful & still_gone).any():
            # Whoever is refused leaves room for others; who comes back may, as with pods that spread, let others in.
            while bring_back(still_gone.copy()):
                pass
    return still_gone


def _why(proposals: Proposals, count: int) -> str:
    pool: Pool = proposals.pool
    if not len(pool):
        return "no pods of lower priority to preempt"
    pods = int(pool.sizes[pool.core < 0].sum())
    if proposals.is_enough_somewhere:
        return f"no placement found even without all {pods} pods of lower priority"
    return f"room for {proposals.most_room} of {count} members even without all {pods} pods of lower priority"
