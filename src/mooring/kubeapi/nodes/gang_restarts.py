"""Gangs that restart in place on simulated nodes: when one rank fails, all begin anew where they are, devices and all.

Pods ask for it by the annotation `mooring.dev/gang-restart: InPlace`, or by the restart strategy InPlaceRestart of
their JobSet. The part of JobSet's agent is played here: each pod counts its attempts, and a pod that is behind its gang
begins anew. A rank whose pod failed for good is made anew by its controller, and joins at the attempt of its gang.
"""

from collections.abc import Iterator
from typing import Any

from mooring.model.kubelet.plan import IN_PLACE, gang_restart

Object = dict[str, Any]
JOB_SET = "jobset.sigs.k8s.io/jobset-name"
ATTEMPT = "jobset.sigs.k8s.io/in-place-restart-attempt"
"""The annotation by which JobSet knows how often a pod has begun anew."""


def gang_of(pod: Object) -> str:
    """What pods that restart together have in common: their JobSet, else their controller; nothing for the others."""
    if gang_restart(pod) != IN_PLACE:
        return ""
    metadata = pod["metadata"]
    owner = next((one for one in metadata.get("ownerReferences") or () if one.get("controller")), None)
    job_set = (metadata.get("labels") or {}).get(JOB_SET)
    return f"{metadata['namespace']}/{job_set}" if job_set else str((owner or {}).get("uid") or "")


class GangRestarts:
    """At which attempt each gang is, and each of its pods."""

    def __init__(self) -> None:
        self._attempt_of_gang: dict[str, int] = {}
        self._members: dict[str, dict[str, tuple[tuple[str, str], int]]] = {}
        """By gang and uid: the pod's key and its attempt."""
        self._gang_of: dict[str, str] = {}

    def join(self, pod: Object) -> bool:
        """Count a pod in; tell whether it is of a gang that restarts in place."""
        metadata = pod["metadata"]
        uid = metadata["uid"]
        if uid in self._gang_of:
            return True
        gang = gang_of(pod)
        if not gang:
            return False
        self._gang_of[uid] = gang
        known = (metadata.get("annotations") or {}).get(ATTEMPT, "")
        attempt = int(known) if known.isdecimal() else self._attempt_of_gang.get(gang, 0)
        self._attempt_of_gang[gang] = max(attempt, self._attempt_of_gang.get(gang, 0))
        self._members.setdefault(gang, {})[uid] = ((metadata["namespace"], metadata["name"]), attempt)
        return True

    def leave(self, uid: str) -> None:
        gang = self._gang_of.pop(uid, "")
        members = self._members.get(gang, {})
        members.pop(uid, None)
        if gang and not members:
            del self._members[gang], self._attempt_of_gang[gang]

    def failed(self, uid: str) -> Iterator[tuple[str, str]]:
        """A pod failed: all of its gang are to begin anew. Return the keys of the others that are behind."""
        gang = self._gang_of[uid]
        key, attempt = self._members[gang][uid]
        self._members[gang][uid] = (key, attempt + 1)
        self._attempt_of_gang[gang] = max(attempt + 1, self._attempt_of_gang[gang])
        for other, (name, known) in self._members[gang].items():
            if other != uid and known < self._attempt_of_gang[gang]:
                yield name

    def is_behind(self, uid: str) -> bool:
        """Whether a pod has to begin anew to be where its gang is; it counts as having done so from now on."""
        gang = self._gang_of[uid]
        key, attempt = self._members[gang][uid]
        if attempt >= self._attempt_of_gang[gang]:
            return False
        self._members[gang][uid] = (key, self._attempt_of_gang[gang])
        return True

    def attempt(self, uid: str) -> int:
        return self._members[self._gang_of[uid]][uid][1]
