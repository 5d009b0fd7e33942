"""One node at a time: take its victims away, ask the filters, bring back whom it can keep, and undo it all."""

from collections.abc import Sequence

import numpy as np

from mooring.actions.preempt.crowd import Crowd
from mooring.actions.preempt.reprieve import AskedFilter
from mooring.engine.answers import is_by_usage
from mooring.engine.evaluate import ask_filter
from mooring.engine.plugin import SKIP, Incremental, Mask, PreFilter
from mooring.engine.verdict import Rejection
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape


class WhatIf:
    """Asks the filters of one pod about a cluster without some pods; the cluster is afterwards as it was before."""

    def __init__(self, cluster: Cluster, shape: Shape, filters: Sequence[AskedFilter]) -> None:
        self._cluster = cluster
        self._shape = shape
        self._filters = filters
        self._counts = [prepared for _, prepared in filters if isinstance(prepared, Incremental)]

    def victims(self, crowd: Crowd, position: int) -> Mask | Rejection:
        """Which victims of a row cannot be spared, or why the pod cannot run there even without all of them."""
        row = int(crowd.rows[position])
        gone = crowd.gone[:, position].copy()
        records = [_record(self._cluster, slot) for slot in crowd.slots[gone, position].tolist()]
        checkpoint = self._cluster.checkpoint()
        try:
            for record in records:
                self._cluster.release(record.key)
            self._count(records, row, -1)
            refused = self._refusal(row)
            if refused is not None:
                return refused
            for number, record in zip(np.flatnonzero(gone).tolist(), records, strict=True):
                self._cluster.assume(record.key, row)
                self._count([record], row, 1)
                if self._refusal(row) is None:
                    gone[number] = False
                else:
                    self._cluster.release(record.key)
                    self._count([record], row, -1)
            return gone
        finally:
            self._count([record for record in records if record.row != row], row, 1)
            self._cluster.rollback(checkpoint)

    def _count(self, records: Sequence[PodRecord], row: int, sign: int) -> None:
        if not records:
            return
        shapes = np.array([record.shape.id for record in records], np.intp)
        rows, signs = np.full(len(records), row, np.intp), np.full(len(records), sign, np.int64)
        for counts in self._counts:
            counts.update(shapes, rows, signs)

    def _refusal(self, row: int) -> Rejection | None:
        """Why the first filter that refuses the pod on a row does so."""
        nodes = self._cluster.rows(np.array([row], np.intp))
        for plugin, prepared in self._filters:
            now = prepared
            if isinstance(plugin, PreFilter) and not is_by_usage(plugin) and not isinstance(prepared, Incremental):
                now = plugin.pre_filter(self._shape, self._cluster)
            if isinstance(now, Rejection):
                return now
            if now is SKIP:
                continue
            code = int(ask_filter(plugin, self._shape, nodes, now)[0])
            if code:
                return plugin.rejection(self._shape, code)
        return None


def _record(cluster: Cluster, slot: int) -> PodRecord:
    record = cluster.pods.by_slot[slot]
    assert record is not None
    return record
