"""Pods that have to do with no other object but their owners, who say nothing of them: most of a cluster's pods.

Such a pod is what it is, with the priority that its class gives it. So it is translated on its own, where a collection
would take a hundred steps to find that there is nothing to do.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from mooring.model.api.kai_labels import is_kai_pod
from mooring.model.api.kueue_labels import APP_WRAPPER, QUEUE_NAME
from mooring.model.api.pods import Pod
from mooring.model.api.workloads import CronJob
from mooring.model.gangs.dialects import kai_pods
from mooring.model.gangs.dialects.annotations import CARRIED as ANNOTATIONS_CARRIED
from mooring.model.jobs.expansion import OwnerKey, template_of
from mooring.model.keys import GangKey
from mooring.model.loading.collection import WITH_TEMPLATE
from mooring.model.loading.links import Links
from mooring.model.loading.published import Published
from mooring.model.loading.ties import Ties
from mooring.model.objects.picture import Identity, Source
from mooring.model.objects.tables import Tables

_MAY_BE_SILENT = frozenset({*WITH_TEMPLATE, CronJob})
_SAYINGS = frozenset({*ANNOTATIONS_CARRIED, *kai_pods.CARRIED, QUEUE_NAME, APP_WRAPPER})
"""Labels and annotations by which an owner says something of its pods."""


class Alone:
    """Tells which changes are of such pods; for one moment, as it remembers what it found of owners."""

    def __init__(self, links: Links, find: Callable[[Identity], Any], tables: Tables, published: Published) -> None:
        self._links = links
        self._find = find
        self._tables = tables
        self._published = published
        self._silent: dict[OwnerKey, bool] = {}

    def has(self, identity: Identity, former: Iterable[tuple[Ties, frozenset[GangKey]]]) -> bool:
        """Whether a pod is alone and was so before it changed, or went."""
        if identity[0] is not Pod or self._links.gangs(identity):
            return False
        ties = self._links.ties(identity)
        if ties is not None and not self._is_alone(ties):
            return False
        is_known = ties is not None
        for before, gangs in former:
            if gangs or (before is not ties and not self._is_alone(before)):
                return False
            is_known = True
        return is_known

    def _is_alone(self, ties: Ties) -> bool:
        return (
            ties.is_plain
            and ties.names[0] not in self._links.dependents
            and not self._published.has(ties.names[0])
            and all(self._is_silent(owner) for owner in ties.owners)
        )

    def _is_silent(self, owner: OwnerKey) -> bool:
        known = self._silent.get(owner)
        if known is None:
            known = self._silent[owner] = all(map(self._says_nothing, self._above(owner)))
        return known

    def _above(self, owner: OwnerKey) -> Iterable[Identity]:
        """Who an owner may be, and who owns it in turn."""
        links = self._links
        found: dict[Identity, None] = {}
        todo = [owner]
        while todo:
            for identity in links.named.get(todo.pop(), ()):
                ties = links.ties(identity)
                if identity not in found and ties is not None:
                    found[identity] = None
                    todo += ties.owners
        return found

    def _says_nothing(self, identity: Identity) -> bool:
        """Whether an owner can be left out when its pods are read: it is in no queue, and has no word for them.

        One whose template is in doubt cannot: that is said of its pods, too.
        """
        found = self._find(identity)
        if identity[0] not in _MAY_BE_SILENT or self._tables.has_default_queue(identity[1]):
            return False
        template, metadata = template_of(found), found.metadata
        if any(marks and not _SAYINGS.isdisjoint(marks) for marks in (metadata.labels, metadata.annotations)):
            return False
        if template is None or is_kai_pod(template.spec, template.metadata.labels):
            return False
        spec = template.spec
        name = spec.priority_class_name
        return not name or (spec.priority is None and name in self._tables.priorities.by_name)


def translate_alone(source: Source, tables: Tables) -> Pod:
    """A pod that is alone, with its priority; itself, if the API server has written that down."""
    pod: Pod = source.object
    spec = pod.spec
    exists = spec.node_name or pod.metadata.resource_version
    if spec.priority is not None and spec.preemption_policy and (exists or not spec.priority_class_name):
        return pod
    spec = replace(spec)
    tables.priorities.resolve(spec, source.place, pod)
    return replace(pod, spec=spec)
