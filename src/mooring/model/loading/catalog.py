"""The catalog: objects in, one by one, as they are added, changed or deleted; out, what the engine is to be told.

There is one translation. Manifests are put into an empty catalog, and its `picture` is taken; a driver that follows a
world puts and removes what it sees, and asks for the `changes` from time to time. Only what has to do with a change is
translated again: which that is, `ties.py` and `neighbours.py` know.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from mooring.errors import ManifestError
from mooring.model.api.kueue import ClusterQueue, LocalQueue
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PriorityClass
from mooring.model.events import Event, GangSeen, NodeLost, NodeSeen, ObjectLost, ObjectSeen, PodLost, PodSeen
from mooring.model.gangs.dialects.grove import ClusterTopologyBinding
from mooring.model.jobs.expansion import OwnerKey
from mooring.model.jobs.train_job import ClusterTrainingRuntime, TrainingRuntime
from mooring.model.keys import GangKey
from mooring.model.loading.alone import Alone, translate_alone
from mooring.model.loading.arrival import complete, stands_for
from mooring.model.loading.collection import Collected, Collection, taken
from mooring.model.loading.documents import Document
from mooring.model.loading.links import Links, parts_in_gangs
from mooring.model.loading.neighbours import Neighbours
from mooring.model.loading.published import Published, Slot, outputs_of
from mooring.model.loading.ties import ALL_OF, Entry, Ties
from mooring.model.objects.kinds import Kind, decode, find_kind, ignored_name, kind_of_type
from mooring.model.objects.picture import Identity, Manifests, Source, identity_of
from mooring.model.objects.tables import TABLE_TYPES, Tables
from mooring.model.places import Place
from mooring.model.queued.gathering import Gathering
from mooring.model.topology.requests import HyperNode
from mooring.model.what_matters import is_same

ObjectT = TypeVar("ObjectT")
_READ_BY_OTHERS = (ClusterQueue, LocalQueue, TrainingRuntime, ClusterTrainingRuntime)
"""Tables whose entries are read against further ones: what changes those, changes whoever reads these."""
_BEFORE_PODS = (ObjectLost, ObjectSeen, NodeLost, NodeSeen, GangSeen)
"""What is told of before pods."""
_OF_PODS = (PodLost, PodSeen)
Former = tuple[Ties, frozenset[GangKey]]
"""What an object was tied to before it changed, and the gangs that it had a part in."""


class Catalog:
    """Everything that was put, and what has been told of it.

    Where it `expands`, workloads become the pods that their controllers would create, quotas and limits of namespaces
    are applied, and what contradicts itself is refused: for manifests, that nobody has accepted yet. Where it does not,
    controllers and the API server have done all that, and a contradiction is a problem of those that it is about.
    """

    def __init__(self, *, expands: bool = True) -> None:
        self._expands = expands
        self._sources: dict[Identity, Source] = {}
        self._copies: dict[Identity, list[Identity]] = {}
        """What each manifest with replicas stands for."""
        self._tables = Tables()
        self._ranked = 0
        self._generated: Counter[tuple[str, str, str]] = Counter()
        self._ignored: Counter[str] = Counter()
        self._links: Links | None = None  # from the first change on: who only takes a picture has no use for them
        self._published = Published()
        self._made: dict[Identity, list[Identity]] = {}
        """By workload, what was made for it when it was last translated."""
        self._maker: dict[Identity, Identity] = {}
        self._changed: defaultdict[Identity, list[Former]] = defaultdict(list)
        """Who has to be translated again, with what it was tied to before."""
        self.problems: list[ManifestError] = []
        """Why some objects could not be translated when they were last tried; what was told of them before stands."""
        self.translated = 0
        """How many objects the last changes were about, with all that had to be translated again for them."""

    # In.

    def add_document(self, document: Document) -> None:
        """Take in a document of some manifests; kinds that scheduling does not read are counted."""
        kind = find_kind(document.api_version, document.kind)
        if kind is None:
            self._ignored[ignored_name(document.api_version, document.kind)] += 1
            return
        self.add(kind, decode(document.source, kind.type, document.place, kind.name), document.place)

    def add(self, kind: Kind, found: Any, place: Place) -> None:
        """Take in an object (it is taken over) that must be the only one of its name."""
        doubt = self._complete(kind, found, place)
        self._ranked += 1
        for number, (each, where) in enumerate(self._stands_for(found, place)):
            identity = identity_of(each)
            known = self._sources.get(identity)
            if known is not None:
                raise taken(each, where, known.place)
            self._store(identity, None, Source(each, where, (self._ranked, number), doubt))

    def put(self, found: Any, place: Place) -> None:
        """Take in an object as it is now; it takes the place of the one of its kind and name."""
        kind = kind_of_type(type(found))
        if kind is None:
            raise place.error("", expected="a kind that scheduling reads", found=type(found).__name__)
        doubt = self._complete(kind, found, place)
        original = identity_of(found)
        if not self._expands:
            stands_for(found, place, expands=False)
            known = self._sources.get(original)
            self._ranked += 1
            rank = (self._ranked, 0) if known is None else known.rank
            self._store(original, known, Source(found, place, rank, doubt))
            return
        former = self._copies.pop(original, [original])
        copies = self._stands_for(found, place)
        first = next((known for identity in former if (known := self._sources.get(identity)) is not None), None)
        self._ranked += 1
        number_of_first = self._ranked if first is None else first.rank[0]
        for number, (each, where) in enumerate(copies):
            identity = identity_of(each)
            self._store(identity, self._sources.get(identity), Source(each, where, (number_of_first, number), doubt))
        for identity in set(former).difference(identity_of(each) for each, _ in copies):
            self._drop(identity)

    def remove(self, type_: type[Any], namespace: str, name: str) -> bool:
        """Take an object away, with everything that it stood for; False if it was not there."""
        original = (type_, namespace, name)
        dropped = [self._drop(identity) for identity in self._copies.pop(original, [original])]
        return any(dropped)

    def _complete(self, kind: Kind, found: Any, place: Place) -> ManifestError | None:
        doubt = complete(kind, found, place, checks=self._expands)
        if not found.metadata.name:
            self._generate_name(kind.name, found)
        return doubt

    def _stands_for(self, found: Any, place: Place) -> list[tuple[Any, Place]]:
        copies = stands_for(found, place, expands=self._expands)
        if len(copies) != 1 or copies[0][0] is not found:
            self._copies[identity_of(found)] = [identity_of(each) for each, _ in copies]
        return copies

    def _generate_name(self, kind_name: str, found: Any) -> None:
        """Count where the API server would draw lots: the same manifests give the same names."""
        metadata = found.metadata
        key = (kind_name, metadata.namespace, metadata.generate_name)
        metadata.name = f"{metadata.generate_name}{self._generated[key]}"
        self._generated[key] += 1

    def _store(self, identity: Identity, known: Source | None, source: Source) -> None:
        if known is not None and is_same(known.object, source.object):
            known.object, known.place = source.object, source.place
            return
        self._sources[identity] = source
        self._change(identity, known, source.object)
        if self._links is not None:
            self._links.put(source.object, known.object if known is not None else None)

    def _drop(self, identity: Identity) -> bool:
        known = self._sources.pop(identity, None)
        if known is None:
            return False
        self._change(identity, known, None)
        if self._links is not None:
            self._links.remove(identity)
        return True

    # What a change means for others.

    def _change(self, identity: Identity, known: Source | None, found: Any) -> None:
        """Keep the tables, and note who has to be translated again: the object itself, and who is read against it."""
        before, is_read = None, identity[0] in TABLE_TYPES
        if is_read:
            before = self._worked_out(identity[0])
            if found is not None:
                self._tables.put(self._sources[identity])
            elif known is not None:
                self._tables.remove(known.object)
        links = self._links
        if links is None:
            return
        if is_read:
            for entry in self._entries(identity, known, found, before):
                self._touch(entry)
        former = self._changed[identity]
        ties = links.ties(identity)
        if ties is not None:
            former.append((ties, links.gangs(identity)))
        if identity in self._maker:  # whose name it takes
            self._note(self._maker[identity])

    def _note(self, identity: Identity) -> None:
        self._changed[identity] = self._changed[identity]

    def _worked_out(self, type_: type[Any]) -> Any:
        """What is worked out from all objects of a kind, where that is what others read."""
        if self._links is None or type_ not in ALL_OF:
            return None
        tables = self._tables
        if type_ is PriorityClass:
            return tables.priorities.default
        if type_ is HyperNode:
            return tables.tiers
        return tables.bindings if type_ is ClusterTopologyBinding else tables.default_class

    def _entries(self, identity: Identity, known: Source | None, found: Any, before: Any) -> Iterator[Entry]:
        """The entries of tables that are not what they were."""
        type_ = identity[0]
        if type_ is Node:
            if known is None or found is None or not _is_same_place(known.object, found):
                yield identity
                yield ALL_OF[Node]
        else:
            yield identity
            if type_ in ALL_OF and self._worked_out(type_) != before:
                yield ALL_OF[type_]

    def _touch(self, entry: Entry) -> None:
        assert self._links is not None
        for identity in self._links.readers.get(entry, ()):
            self._note(identity)
            if identity[0] in _READ_BY_OTHERS:
                self._touch(identity)

    # Out.

    def picture(self) -> Manifests:
        """Everything as it is now, translated as a whole."""
        manifests = self._collect(self._in_order(self._sources)).manifests
        manifests.ignored = Counter(self._ignored)
        return manifests

    @property
    def has_changes(self) -> bool:
        """Whether there may be anything that the engine has not been told yet."""
        return self._links is None or bool(self._changed)

    def changes(self) -> list[Event]:
        """What the engine has not been told yet; the first time, everything."""
        if self._links is None:
            self._links = Links(expands=self._expands)
            for identity, source in self._sources.items():
                self._links.put(source.object)
                self._note(identity)
        self.problems, self.translated = [], 0
        try:
            events, _ = self._translate(self._changed)
            self._changed.clear()
        except ManifestError:
            if self._expands:
                raise
            events = self._translate_apart()
        return events

    def tell_again(self) -> None:
        """Forget what was told: the next changes are everything, for somebody who begins anew."""
        self._links, self._published = None, Published()
        self._changed.clear()
        self._made.clear()
        self._maker.clear()

    def find(self, type_: type[ObjectT], namespace: str, name: str) -> ObjectT | None:
        """An object as it was put."""
        found: ObjectT | None = self._object((type_, namespace, name))
        return found

    def _translate_apart(self) -> list[Event]:
        """Translate one thing after another, so that only those are left out that something is wrong with."""
        events: list[Event] = []
        for identity in list(self._changed):
            if identity not in self._changed:  # somebody else brought it along
                continue
            try:
                found, again = self._translate({identity: self._changed[identity]})
            except ManifestError as error:
                self.problems.append(error)
                continue  # it is tried again with the next changes
            events += found
            for done in (identity, *again):
                self._changed.pop(done, None)
        return events

    def _translate(self, changed: Mapping[Identity, Iterable[Former]]) -> tuple[list[Event], Iterable[Identity]]:
        """Translate what changed and what has to do with it; the events, and who was translated.

        Pods that are alone are translated on their own, and told of between the others.
        """
        alone = self._alone(changed)
        # Before anything counts as told: one that cannot be translated lets all be tried apart.
        found = [(identity, translate_alone(source, self._tables)) for identity, source in self._in_order(alone)]
        events: list[Event] = []
        concerned: Iterable[Identity] = alone
        if len(alone) < len(changed):
            events, again = self._translate_together(changed, alone)
            if not alone.keys().isdisjoint(again):  # read all the same, for somebody who changed
                alone = {identity: None for identity in alone if identity not in again}
                found = [pair for pair in found if pair[0] in alone]
            concerned = (*alone, *again)
        self.translated += len(alone)
        gone = (identity for identity in alone if identity not in self._sources)
        return self._between(events, self._published.replace_pods(gone, found), changed), concerned

    def _between(
        self, events: list[Event], of_pods: list[Event], changed: Mapping[Identity, Iterable[Former]]
    ) -> list[Event]:
        """Events with others of pods put between: pods that go, in the order of the changes, then those that come, in
        theirs."""
        if not events or not of_pods:
            return events or of_pods
        first = next((at for at, each in enumerate(events) if not isinstance(each, _BEFORE_PODS)), len(events))
        last = next((at for at in range(first, len(events)) if not isinstance(events[at], _OF_PODS)), len(events))
        both = [*events[first:last], *of_pods]
        seen = [each for each in both if isinstance(each, PodSeen)]
        seen.sort(key=lambda each: self._sources[identity_of(each.pod)].rank)
        lost = [each for each in both if isinstance(each, PodLost)]
        if lost:
            order = {f"{namespace}/{name}": at for at, (type_, namespace, name) in enumerate(changed) if type_ is Pod}
            lost.sort(key=lambda each: order.get(each.key, len(order)))
        return [*events[:first], *lost, *seen, *events[last:]]

    def _alone(self, changed: Mapping[Identity, Iterable[Former]]) -> dict[Identity, None]:
        """The pods among what changed that nobody else has to be read with."""
        links = self._links
        if links is None or self._expands:
            return {}
        alone = Alone(links, self._object, self._tables, self._published)
        return {identity: None for identity, former in changed.items() if alone.has(identity, former)}

    def _translate_together(
        self, changed: Mapping[Identity, Iterable[Former]], alone: Container[Identity]
    ) -> tuple[list[Event], Mapping[Identity, None]]:
        """Translate some changes with all that has to do with them, but for those who are alone; and whom that was."""
        links = self._links
        assert links is not None
        around = Neighbours(links, self._object, self._tables, expands=self._expands)
        if self._sources.keys() == changed.keys():
            around.reach_all(identity for identity in changed if identity not in alone)
        else:
            around.reach(identity for identity in changed if identity not in alone)
        for identity, former in changed.items():
            for ties, gangs in former if identity not in alone else ():
                around.reach_former(ties, gangs)
        while True:
            collected = self._collect(self._in_order((*around.again, *around.context)))
            parts = parts_in_gangs(collected, around.again)
            if not around.reach_gangs(gang for member_of, declares in parts.values() for gang in member_of | declares):
                break
        concerned = dict.fromkeys((*(identity for identity in changed if identity not in alone), *around.again))
        self.translated += len(concerned)
        slots = self._slots(around, concerned, collected)
        for identity in around.again:
            links.note_gangs(identity, *parts[identity])
        outputs = outputs_of(collected, Gathering(collected.manifests, self._tables))
        return self._published.replace(slots, outputs), concerned

    def _in_order(self, identities: Iterable[Identity]) -> list[tuple[Identity, Source]]:
        known = self._sources
        found = [(identity, known[identity]) for identity in identities if identity in known]
        found.sort(key=lambda pair: pair[1].rank)
        return found

    def _collect(self, sources: Iterable[tuple[Identity, Source]]) -> Collected:
        collection = Collection(self._tables, expands=self._expands)
        collection.include(sources)
        return collection.finish()

    def _object(self, identity: Identity) -> Any:
        source = self._sources.get(identity)
        return None if source is None else source.object

    def _slots(self, around: Neighbours, concerned: Iterable[Identity], collected: Collected) -> list[Slot]:
        """On whose account everything is that this translation is about, before and now."""
        made: defaultdict[Identity, list[Identity]] = defaultdict(list)
        for identity, maker in collected.made_by.items():
            made[maker].append(identity)
        slots: list[Slot] = [*around.gangs, *around.pod_groups()]
        for identity in concerned:
            before, now = self._made.pop(identity, []), made.get(identity, [])
            for old in before:
                self._maker.pop(old, None)
            for new in now:
                self._maker[new] = identity
            if now:
                self._made[identity] = now
            slots += [identity, *map(_owner_key, (identity, *before, *now))]
        return slots


def _owner_key(identity: Identity) -> OwnerKey:
    kind = kind_of_type(identity[0])
    assert kind is not None
    return kind.name, *identity[1:]


def _is_same_place(old: Node, new: Node) -> bool:
    """Whether a node is the same to those who ask which pods belong there: flavors, daemons, HyperNodes."""
    return old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints
