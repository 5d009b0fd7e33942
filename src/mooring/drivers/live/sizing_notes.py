"""Events on VerticalPodAutoscalers: why their pods are left as they are, each reason once."""

from mooring.actions.resize.section import SizingSection
from mooring.drivers.live.object_events import ObjectEvents
from mooring.engine.cycle import Scheduler

REASON = "NotResized"


class SizingNotes:
    """Tells what the action that resizes says of autoscalers, where that is news."""

    def __init__(self, events: ObjectEvents) -> None:
        self._events = events
        self._told: dict[str, frozenset[str]] = {}

    def tell(self, scheduler: Scheduler) -> None:
        autoscalers = scheduler.cluster.related.autoscalers
        notes = {key: told for section in scheduler.sections(SizingSection) for key, told in section.notes.items()}
        for key, told in notes.items():
            vpa = autoscalers.get(key)
            for note in told if vpa is not None else ():
                if vpa is not None and note not in self._told.get(key, ()):
                    self._events.record(vpa, vpa.metadata.uid, REASON, note, warning=True)
        self._told = {key: frozenset(told) for key, told in notes.items()}
