"""The steps after the choice of nodes, for several pods that start together: each step is taken with all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from mooring.engine.binding import AFTER_RESERVE, reserve
from mooring.engine.queue.queue import Entry
from mooring.engine.verdict import Verdict
from mooring.state.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Steps:
    """Takes assumed pods through the steps; in a rehearsal, which only asks whether there is room, nobody takes any.

    What plugins reserved is given back by the trial in which it was, unless that is kept.
    """

    cluster: Cluster
    is_rehearsal: bool = False

    def reserve(self, entry: Entry) -> Verdict | None:
        """Reserve for an assumed pod, or say who refuses it."""
        if self.is_rehearsal:
            return None
        return reserve(entry.profile, self.cluster, entry.record, entry.record.row)

    def bind(self, entries: Sequence[Entry]) -> Verdict | None:
        """Take the pods through the remaining steps; the first refusal ends it."""
        for step in AFTER_RESERVE if not self.is_rehearsal else ():
            for entry in entries:
                refused = step(entry.profile, self.cluster, entry.record, entry.record.row)
                if refused is not None:
                    return refused
        return None
