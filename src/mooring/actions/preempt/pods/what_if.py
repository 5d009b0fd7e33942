"""One node at a time: take its victims away, ask the filters, bring back whom it can keep, and undo it all."""

from collections.abc import Sequence

import numpy as np

from mooring.actions.preempt.pods.candidates import Candidates
from mooring.actions.preempt.pods.reprieve import AskedFilter
from mooring.engine.answers.answers import is_by_usage
from mooring.engine.asking import ask_filter, ask_pre_filter, ask_rejection
from mooring.engine.plugin import SKIP, Mask, PreFilter
from mooring.engine.shortcuts import Incremental
from mooring.engine.verdict import Rejection
from mooring.state.cluster import Cluster
from mooring.state.placements import Released
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.shapes import Shape


class WhatIf:
    """Asks the filters of one pod about a cluster without some pods; the cluster is afterwards as it was before."""

    def __init__(self, cluster: Cluster, shape: Shape, filters: Sequence[AskedFilter]) -> None:
        self._cluster = cluster
        self._shape = shape
        self._filters = filters
        self._counts = [prepared for _, prepared in filters if isinstance(prepared, Incremental)]

    def victims(self, candidates: Candidates, position: int) -> Mask | Rejection:
        """Which victims of a row cannot be spared, or why the pod cannot run there even without all of them."""
        gone = candidates.gone[:, position].copy()
        groups = [[_record(self._cluster, slot)] for slot in candidates.slots[gone, position].tolist()]
        found = self.groups_gone(int(candidates.rows[position]), groups)
        if isinstance(found, Rejection):
            return found
        gone[gone] = found
        return gone

    def groups_gone(
        self, row: int, groups: Sequence[Sequence[PodRecord]], needs: Sequence[int] | None = None
    ) -> list[bool] | Rejection:
        """Which groups of pods cannot be spared, tried in order, or why the pod cannot run there without all of them.

        `needs` says of each group which other one, before it, has to stay for it to stay; a negative number for none.
        """
        gone = [True] * len(groups)
        before = [[(record, record.row) for record in group] for group in groups]
        with self._cluster.what_if():
            try:
                released = [self._release(group) for group in before]
                refused = self.refusal(row)
                if refused is not None:
                    return refused
                for number, group in enumerate(before):
                    if needs is not None and needs[number] >= 0 and gone[needs[number]]:
                        continue
                    for each in released[number]:
                        self._cluster.restore(each)
                    self.count(group, 1)
                    gone[number] = self.refusal(row) is not None
                    if gone[number]:
                        self._release(group)
                return gone
            finally:
                self.count([pod for group in before for pod in group if pod[0].row == UNBOUND], 1)

    def _release(self, group: Sequence[tuple[PodRecord, int]]) -> list[Released]:
        released = [self._cluster.release(record.key) for record, _ in group]
        self.count(group, -1)
        return released

    def count(self, pods: Sequence[tuple[PodRecord, int]], sign: int) -> None:
        """Take in that pods came to rows (sign 1) or went from them (sign -1)."""
        if not pods or not self._counts:
            return
        shapes = np.array([record.shape.id for record, _ in pods], np.intp)
        rows, signs = np.array([row for _, row in pods], np.intp), np.full(len(pods), sign, np.int64)
        for counts in self._counts:
            counts.update(shapes, rows, signs)

    def refusal(self, row: int) -> Rejection | None:
        """Why the first filter that refuses the pod on a row does so."""
        nodes = self._cluster.rows(np.array([row], np.intp))
        for plugin, prepared in self._filters:
            now = prepared
            if isinstance(plugin, PreFilter) and not is_by_usage(plugin) and not isinstance(prepared, Incremental):
                now = ask_pre_filter(plugin, self._shape, self._cluster)
            if isinstance(now, Rejection):
                return now
            if now is SKIP:
                continue
            code = int(ask_filter(plugin, self._shape, nodes, now)[0])
            if code:
                return ask_rejection(plugin, self._shape, code)
        return None


def _record(cluster: Cluster, slot: int) -> PodRecord:
    record = cluster.pods.by_slot[slot]
    assert record is not None
    return record
