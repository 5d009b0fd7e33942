"""The steps after the choice of nodes, for several pods that start together: each step is taken with all of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mooring.engine.binding import AFTER_RESERVE, Chosen, reserve, shorter
from mooring.engine.permits import Hold
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
    holds: list[Hold] = field(default_factory=list)
    """Whoever was let wait: filled in by who tries them together."""
    _chosen: dict[str, Chosen] = field(default_factory=dict)

    def reserve(self, entry: Entry) -> Verdict | None:
        """Reserve for an assumed pod, or say who refuses it."""
        if self.is_rehearsal:
            return None
        chosen = self._chosen[entry.record.key] = Chosen.of(entry.profile, self.cluster, entry.record)
        return reserve(chosen)

    def bind(self, entries: Sequence[Entry]) -> Verdict | None:
        """Take the pods through the remaining steps; the first refusal ends it, then a step that lets one wait."""
        for step in AFTER_RESERVE if not self.is_rehearsal else ():
            held: Verdict | None = None
            for entry in entries:
                refused = step(self._chosen[entry.record.key])
                if refused is not None and refused.hold_seconds is None:
                    return refused
                if refused is not None:
                    held = shorter(held, refused)
            if held is not None:
                return held
        return None
