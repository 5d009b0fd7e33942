"""Which objects have to do with one another, in the direction in which a change travels.

What objects say ties them (`ties.py`). Which gangs an object has a part in is known once it has been translated.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Any

from mooring.model.api.pods import Pod
from mooring.model.jobs.expansion import OwnerKey
from mooring.model.keys import GangKey
from mooring.model.loading.collection import Collected
from mooring.model.loading.ties import NO_TIES, Entry, Ties, ties_of, ties_of_changed
from mooring.model.objects.picture import Identity, identity_of


class Links:
    """All ties, in the direction in which a change travels."""

    def __init__(self, *, expands: bool) -> None:
        self._expands = expands
        self.named: defaultdict[OwnerKey, set[Identity]] = defaultdict(set)
        self.dependents: defaultdict[OwnerKey, set[Identity]] = defaultdict(set)
        self.groups: defaultdict[Hashable, set[Identity]] = defaultdict(set)
        self.readers: defaultdict[Entry, set[Identity]] = defaultdict(set)
        self.in_namespace: defaultdict[str, set[Identity]] = defaultdict(set)
        self.members: defaultdict[GangKey, set[Identity]] = defaultdict(set)
        """By gang: the pods that name it, or the workloads that pods of it were made for."""
        self.declarers: defaultdict[GangKey, set[Identity]] = defaultdict(set)
        self._ties: dict[Identity, Ties] = {}
        self._gangs: dict[Identity, tuple[frozenset[GangKey], frozenset[GangKey]]] = {}

    def ties(self, identity: Identity) -> Ties | None:
        return self._ties.get(identity)

    def gangs(self, identity: Identity) -> frozenset[GangKey]:
        """The gangs that an object had a part in when it was last translated."""
        parts = self._gangs.get(identity)
        return frozenset() if parts is None else parts[0] | parts[1]

    def put(self, found: Any, former: Any = None) -> None:
        """Tie an object; `former` is what was put in its place before, if anything."""
        identity = identity_of(found)
        known, ties = self._ties.get(identity), None
        if known is not None and type(found) is type(former) is Pod:
            ties = ties_of_changed(found, former, known)
            if ties is known:
                return
        if ties is None:
            ties = ties_of(found, expands=self._expands)
        self._tie(identity, NO_TIES if known is None else known, ties)
        self._ties[identity] = ties
        if self._expands:
            self.in_namespace[identity[1]].add(identity)

    def remove(self, identity: Identity) -> None:
        self._tie(identity, self._ties.pop(identity, NO_TIES), NO_TIES)
        self.in_namespace[identity[1]].discard(identity)
        self.note_gangs(identity, frozenset(), frozenset())
        self._gangs.pop(identity, None)

    def note_gangs(self, identity: Identity, member_of: frozenset[GangKey], declares: frozenset[GangKey]) -> None:
        """Remember what a translation has shown."""
        old_member_of, old_declares = self._gangs.get(identity, (frozenset(), frozenset()))
        _move(self.members, identity, old_member_of, member_of)
        _move(self.declarers, identity, old_declares, declares)
        if member_of or declares:
            self._gangs[identity] = member_of, declares
        else:
            self._gangs.pop(identity, None)

    def _tie(self, identity: Identity, old: Ties, new: Ties) -> None:
        if old.names is not new.names:
            _move(self.named, identity, old.names, new.names)
        if old.owners is not new.owners:
            _move(self.dependents, identity, old.owners, new.owners)
        if old.groups is not new.groups:
            _move(self.groups, identity, old.groups, new.groups)
        if old.reads is not new.reads:
            _move(self.readers, identity, old.reads, new.reads)


def _move(
    index: defaultdict[Any, set[Identity]], identity: Identity, old: Iterable[Hashable], new: Iterable[Hashable]
) -> None:
    for key in old:
        index[key].discard(identity)
        if not index[key]:
            del index[key]
    for key in new:
        index[key].add(identity)


def parts_in_gangs(
    collected: Collected, identities: Iterable[Identity]
) -> dict[Identity, tuple[frozenset[GangKey], frozenset[GangKey]]]:
    """By object, the gangs that it or its pods are members of, and those that it declares."""
    member_of: defaultdict[Identity, set[GangKey]] = defaultdict(set)
    for gang, members in collected.declarations.members.items():
        for pod, _ in members:
            identity = identity_of(pod)
            member_of[collected.made_by.get(identity, identity)].add(gang)
    declares: defaultdict[Identity, set[GangKey]] = defaultdict(set)
    for identity, gangs in collected.declarations.declared_by.items():
        declares[collected.made_by.get(identity, identity)].update(gangs)
    # A gang of gangs that no object declares is declared by all that have a part in those.
    declared = set(chain(*declares.values()))
    whole_of = {
        gang.key: gang.parent for gang in collected.declarations.gangs if gang.parent and gang.parent not in declared
    }
    for identity in {*member_of, *declares} if whole_of else ():
        parts = member_of[identity] | declares[identity]
        declares[identity].update(whole_of[gang] for gang in parts if gang in whole_of)
    return {
        identity: (frozenset(member_of.get(identity, ())), frozenset(declares.get(identity, ())))
        for identity in identities
    }
