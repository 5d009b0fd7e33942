"""How many pods of a shape each row would take, one after the other: kept as a column, and asked again where a change
touched it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.actions.batches import Batches
from mooring.engine.answers.answers import ShapeAnswers
from mooring.engine.profile import Profile
from mooring.engine.ranking.blocks import FEASIBLE_FROM
from mooring.engine.shortcuts import ForeseenRoom, room_by
from mooring.state.cluster import Cluster
from mooring.state.remembered import Derived
from mooring.state.rows import Rows
from mooring.state.shapes import Shape

MOST = 1 << 40
"""More than any row takes: the answer of filters that have nothing to say."""


@dataclass
class Room:
    """The room for one shape, at one moment."""

    counts: NDArray[np.int64]
    """One a row of the table."""
    is_exact: bool
    """Whether filling rows up to their counts, in any order, is sure to succeed; else they are upper bounds."""
    answers: ShapeAnswers


class RoomColumns:
    """The room for every shape that a gang asks for."""

    MOST_KEPT = 512

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._known: Derived[tuple[str, int], tuple[int, tuple[int, ...], Room]] = Derived(self.MOST_KEPT)

    def of(self, profile: Profile, cluster: Cluster, shape: Shape) -> Room:
        answers = self._batches.answers(cluster, profile, shape)
        key = (profile.name, shape.id)
        known = self._known.get(key) if self._batches.cached else None
        position = cluster.pod_changes.position
        # What gathering refused has no description: it is asked again each time.
        is_known = known is not None and answers.description and known[1] == answers.description
        if known is not None and is_known and known[2].answers is answers:
            room = known[2]
            changes = cluster.pod_changes.since(known[0])
            if changes is None:
                room = _count(answers)
            elif len(changes[1]):
                rows = np.unique(changes[1])
                room.counts[rows] = _counts(answers, rows)
        else:
            room = _count(answers)
        self._known.put(key, (position, answers.description, room))
        return room


def _count(answers: ShapeAnswers) -> Room:
    rows = np.arange(len(answers.keys))
    is_exact = (
        not answers.domain_filters
        and not answers.has_steps
        and all(isinstance(plugin, ForeseenRoom) for plugin, _ in answers.usage_filters)
    )
    return Room(_counts(answers, rows), is_exact, answers)


def _counts(answers: ShapeAnswers, rows: Rows) -> NDArray[np.int64]:
    """The least that any filter leaves on each row; nothing where one refuses the first pod already."""
    counts = np.full(len(rows), MOST, np.int64)
    if answers.refused:
        return np.zeros(len(rows), np.int64)
    counts[answers.keys[rows] < FEASIBLE_FROM] = 0
    left = np.flatnonzero(counts)
    if len(left):
        nodes = answers.cluster.rows(rows[left])
        for plugin, prepared in answers.usage_filters:
            room = room_by(plugin, answers.shape, nodes, prepared)
            if room is not None:
                counts[left] = np.minimum(counts[left], room)
    if answers.shape.host_ports:
        counts = np.minimum(counts, 1)
    return counts
