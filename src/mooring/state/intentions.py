"""The one book of what is meant to happen: who is leaving, and who is nominated to the room that this makes.

Every action reads it and writes to it through the cluster, so that none evicts whom another has evicted before, or who
holds room and never ran. Pods that are assumed are in the columns themselves (`placements.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mooring.errors import InvariantBroken
from mooring.model.keys import NO_GANG, GangKey, PodKey
from mooring.state.placements import Placements
from mooring.state.pods import UNBOUND, Leaving, PodRecord


@dataclass(frozen=True, slots=True)
class NominatedPod:
    """Where room is being made for one pod."""

    key: PodKey
    uid: str
    node: str
    row: int
    labels: Mapping[str, str]
    """Of the node: with others it may be in another domain, and of no use to a gang that wants a certain one."""


@dataclass(frozen=True, eq=False, slots=True)
class Nomination:
    """Pods that hold room, because it is being made for them, or until they are permitted to start.

    A gang is nominated as a whole.
    """

    pods: tuple[NominatedPod, ...]
    victims: tuple[Leaving, ...]
    """Who has to be gone before."""
    gang: GangKey = NO_GANG
    """The key of the outermost gang; nothing for a pod by itself."""
    until: float | None = None
    """When they give up their room, if a permit plugin lets them wait in it."""
    plugin: str = ""
    """That plugin."""
    message: str = ""
    """Why they wait, then."""


class Intentions(Placements):
    """Pods on rows, and what is to become of them."""

    def __init__(self, *, seed: int | None = 0) -> None:
        super().__init__(seed=seed)
        self._nomination_of: dict[PodKey, Nomination] = {}
        """By pod."""

    # Leaving.

    def mark_leaving(self, key: PodKey) -> bool:
        """A pod is on its way out; tell whether it has to be told: False for whoever was, or is terminating anyway."""
        record = self.pods.records[key]
        if record.nominated:
            raise InvariantBroken(f"pod {key} holds room that is being made for it: it does not run")
        if record.leaving is not None:
            return False
        self._set_leaving(record, Leaving(record.key, record.pod.metadata.uid))
        return record.pod.metadata.deletion_timestamp is None

    def keep_running(self, key: PodKey) -> None:
        """A pod that was to leave stays after all: it could not be evicted, or waits again."""
        record = self.pods.records.get(key)
        if record is not None and record.leaving is not None:
            self._set_leaving(record, None)

    def is_out_of_the_way(self, leaving: Leaving) -> bool:
        """Whether a pod that was to leave is gone, or stays after all, or its node is gone with it."""
        record = self.pods.records.get(leaving.key)
        return record is None or record.leaving is not leaving or record.row == UNBOUND

    def _set_leaving(self, record: PodRecord, leaving: Leaving | None) -> None:
        self.log.note(self._set_leaving, record, record.leaving)
        record.leaving = leaving
        self.gangs.count_anew(record.key)
        self.pods.changed((record.key,))

    # Holding room.

    def hold(self, key: PodKey, row: int) -> None:
        """Let a waiting pod hold room that is not free yet: nobody else sees any there, and it does not run."""
        self.assume(key, row)
        self._set_nominated(self.pods.records[key], True)

    def let_go(self, key: PodKey) -> None:
        """Take back the room that a pod holds: it waits again."""
        record = self.pods.records[key]
        if record.row != UNBOUND:
            self.release(key)
        elif record.node_name:
            self._come_back(record)
        self._set_nominated(record, False)

    def _set_nominated(self, record: PodRecord, nominated: bool) -> None:
        if record.nominated != nominated:
            self.log.note(self._set_nominated, record, record.nominated)
            record.nominated = nominated
            self.gangs.count_anew(record.key)
            self.pods.changed((record.key,))

    # Nominations.

    def nominate(self, nomination: Nomination) -> None:
        """Let pods hold the room that is being made for them."""
        for pod in nomination.pods:
            self.hold(pod.key, pod.row)
            self._enter(pod.key, nomination)

    def renominate(self, nomination: Nomination, longer: Nomination) -> None:
        """Let pods that hold room keep it, for another reason."""
        for pod in nomination.pods:
            self._enter(pod.key, longer)

    def confirm(self, nomination: Nomination) -> None:
        """The room is there: the pods have it like others that are assumed."""
        for pod in nomination.pods:
            self._enter(pod.key, None)
            record = self.pods.records.get(pod.key)
            if record is not None:
                self._set_nominated(record, False)

    def withdraw(self, nomination: Nomination) -> None:
        """Give up the room that was being made: those who still hold it wait again."""
        for pod in nomination.pods:
            self._enter(pod.key, None)
            record = self.pods.records.get(pod.key)
            if record is not None and record.nominated:
                self.let_go(pod.key)

    def nomination_of(self, key: PodKey) -> Nomination | None:
        return self._nomination_of.get(key)

    def nominations(self) -> Iterator[Nomination]:
        """All of them, in the order in which they were made."""
        return iter(dict.fromkeys(self._nomination_of.values()))

    def _enter(self, key: PodKey, nomination: Nomination | None) -> None:
        self.log.note(self._enter, key, self._nomination_of.get(key))
        if nomination is None:
            self._nomination_of.pop(key, None)
        else:
            self._nomination_of[key] = nomination
