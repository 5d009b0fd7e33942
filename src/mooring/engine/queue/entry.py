"""A pod in the queue."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from mooring.engine.asking import blame
from mooring.engine.profile import Profile
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.state.pods import PodRecord


class Where(Enum):
    """Where somebody waits in the queue."""

    ACTIVE = "active"
    """To be tried now."""
    BACKOFF = "backoff"
    """To be tried when it has stayed behind for long enough, or nobody else is there."""
    SHARED = "shared"
    """To be tried by the shares of queues."""
    PARKED = "parked"
    """Tried in vain: until something happens that could help."""
    GATED = "gated"
    """Behind a gate."""
    GANG = "gang"
    """With its gang; of a gang itself: GATHERING as long as it is not complete."""
    GATHERING = "gathering"
    TAKEN = "taken"
    """By whoever tries it now."""


@dataclass(order=True, slots=True)
class Entry:
    """A pod in the queue; entries compare by the profile's order, then by arrival."""

    key: Any
    arrival: int
    record: PodRecord = field(compare=False)
    profile: Profile = field(compare=False)
    queued_at: float = field(default=0.0, compare=False)
    attempts: int = field(default=0, compare=False)
    """How often it was tried in vain."""
    tried_at: float = field(default=0.0, compare=False)
    """When that was last so."""
    faults: int = field(default=0, compare=False)
    """How often something raised in its turn."""
    size = 1

    @property
    def turn_name(self) -> str:
        """What tells its turn from all others."""
        return self.record.key

    @property
    def nominated_node(self) -> str:
        """Where the world says that room is made for it: it is tried there first, and by itself."""
        return self.record.pod.status.nominated_node_name

    def has(self, key: PodKey) -> bool:
        """Whether it is this pod's turn."""
        return self.record.key == key


def sort_key(profile: Profile, pod: Pod, queued_at: float) -> Any:
    """A pod's place by the profile's order."""
    try:
        return profile.queue_sort.sort_key(pod, queued_at)
    except Exception as error:
        blame(profile.queue_sort, "sort_key", error)
