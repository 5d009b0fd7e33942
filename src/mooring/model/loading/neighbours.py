"""From what changed to all that has to be read with it.

Some of it is translated again (`again`). The rest is only read for what it says of those (`context`): the Deployment of
a pod that changed, the PodGroup of its gang.
"""

from collections.abc import Callable, Iterable
from typing import Any

from mooring.model.api.kueue_labels import queue_name
from mooring.model.api.pods import Pod
from mooring.model.api.workloads import StatefulSet
from mooring.model.gangs.dialects.volcano import VolcanoPodGroup
from mooring.model.jobs.app_wrapper import WRAPPER
from mooring.model.jobs.expansion import OwnerKey
from mooring.model.keys import GangKey
from mooring.model.loading.collection import WORKLOAD_TYPES
from mooring.model.loading.links import Links
from mooring.model.loading.ties import Ties
from mooring.model.objects.job_kinds import JOB_KINDS
from mooring.model.objects.picture import Identity
from mooring.model.objects.tables import Tables
from mooring.model.queued.gathering import POD_GROUP_KIND
from mooring.model.quotas.objects import CoreResourceQuota, LimitRange

_GATHERED = frozenset(kind.type for kind in JOB_KINDS)
_MAKERS = frozenset(WORKLOAD_TYPES)


class Neighbours:
    """What has to be read because of some changes; it grows as more of it becomes known."""

    def __init__(self, links: Links, find: Callable[[Identity], Any], tables: Tables, *, expands: bool) -> None:
        self._links = links
        self._find = find
        self._tables = tables
        self._expands = expands
        self.again: dict[Identity, None] = {}
        self.context: dict[Identity, None] = {}
        self.gangs: dict[GangKey, None] = {}
        self.groups: dict[Any, None] = {}
        self._walked_down: set[Identity] = set()
        self._todo: list[Callable[[], None]] = []

    def reach(self, changed: Iterable[Identity]) -> None:
        """Follow all ties of what changed, was added or is gone."""
        for identity in changed:
            self._visit(identity, changed=True)
        self._run()

    def reach_all(self, identities: Iterable[Identity]) -> None:
        """Take in everything there is: no tie leads out of it."""
        self.again = dict.fromkeys(identities)
        self.groups = dict.fromkeys(self._links.groups)

    def reach_former(self, ties: Ties, gangs: Iterable[GangKey]) -> None:
        """Follow the ties that something had before it changed or went."""
        for name in ties.names:
            for other in self._links.dependents.get(name, ()):
                self._visit(other, changed=True)
        for owner in (*ties.names, *ties.owners):
            self._visit_owner(owner)
        for group in ties.groups:
            self._visit_group(group)
        for gang in gangs:
            self._visit_gang(gang)
        self._run()

    def reach_gangs(self, gangs: Iterable[GangKey]) -> bool:
        """Follow the ties of gangs as well; False if everybody who has to do with them is here already."""
        before = len(self.again), len(self.context)
        for gang in gangs:
            self._visit_gang(gang)
        self._run()
        return (len(self.again), len(self.context)) != before

    def _run(self) -> None:
        while self._todo:
            self._todo.pop()()

    def _later(self, visit: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        self._todo.append(lambda: visit(*args, **kwargs))

    def _visit(self, identity: Identity, *, changed: bool) -> None:
        """Something is translated again. If it changed itself, so are all that depend on it."""
        ties = self._links.ties(identity)
        is_new = identity not in self.again
        if is_new:
            self.again[identity] = None
            self.context.pop(identity, None)
        if ties is not None:
            if (changed or (is_new and self._gathers(identity))) and identity not in self._walked_down:
                self._walked_down.add(identity)
                for name in ties.names:
                    for other in self._links.dependents.get(name, ()):
                        self._later(self._visit, other, changed=True)
            if is_new:
                for name in ties.names:  # two kinds of Job may have one name, and those who name it mean either
                    self._later(self._visit_owner, name)
                for owner in ties.owners:
                    self._later(self._visit_owner, owner)
                for group in ties.groups:
                    self._visit_group(group)
        if is_new:
            for gang in self._links.gangs(identity):
                self._visit_gang(gang)
            type_, namespace, _ = identity
            if self._expands and (type_ in (CoreResourceQuota, LimitRange) or self._tables.governs(namespace)):
                self._visit_namespace(namespace)

    def _visit_owner(self, owner: OwnerKey) -> None:
        for identity in self._links.named.get(owner, ()):
            if self._gathers(identity):
                self._later(self._visit, identity, changed=False)
            elif identity not in self.again and identity not in self.context:
                self.context[identity] = None
                ties = self._links.ties(identity)
                for above in ties.owners if ties is not None else ():
                    self._later(self._visit_owner, above)

    def _visit_group(self, group: Any) -> None:
        if group not in self.groups:
            self.groups[group] = None
            for identity in self._links.groups.get(group, ()):
                self._later(self._visit, identity, changed=False)
            if isinstance(group, str):  # a gang, named by those that start together with it
                self._visit_gang(GangKey(group))

    def _visit_gang(self, gang: GangKey) -> None:
        if gang not in self.gangs:
            self.gangs[gang] = None
            self._visit_group(gang)
            for identity in self._links.members.get(gang, ()):
                self._later(self._visit, identity, changed=False)
            for identity in self._links.declarers.get(gang, ()):
                if identity not in self.again:
                    self.context[identity] = None
                    ties = self._links.ties(identity) if identity[0] is VolcanoPodGroup else None
                    for owner in ties.owners if ties is not None else ():  # its Job tells who schedules it
                        self._later(self._visit_owner, owner)

    def _visit_namespace(self, namespace: str) -> None:
        """Quotas and limits are about everything in a namespace."""
        group = ("namespace", namespace)
        if group not in self.groups:
            self.groups[group] = None
            for identity in self._links.in_namespace.get(namespace, ()):
                self._later(self._visit, identity, changed=False)

    def _gathers(self, identity: Identity) -> bool:
        """Whether an owner is always read with all that is its: to see what it lacks, or because it queues as one."""
        type_ = identity[0]
        if type_ is Pod or (self._expands and type_ in _MAKERS):
            return True
        seen: set[Identity] = set()
        todo = [identity]
        while todo:
            above = todo.pop()
            found = self._find(above)
            if found is None or above in seen:
                continue
            seen.add(above)
            if above[0] in _GATHERED and self._queues(found):
                return True
            ties = self._links.ties(above)
            todo += (each for owner in (ties.owners if ties else ()) for each in self._links.named.get(owner, ()))
        return False

    def _queues(self, found: Any) -> bool:
        metadata = found.metadata
        is_put_in_queue = not metadata.owner_references and self._tables.has_default_queue(metadata.namespace)
        return bool(queue_name(metadata)) or (is_put_in_queue and not isinstance(found, StatefulSet))

    def pod_groups(self) -> list[OwnerKey]:
        """The groups of plain pods and the AppWrappers among them, by the keys of their workloads' owners."""
        kinds = (POD_GROUP_KIND, WRAPPER)
        return [group for group in self.groups if isinstance(group, tuple) and group[0] in kinds]
