"""The Topology Manager: hints of the managers, merged by the node's policy."""

from itertools import product
from typing import NamedTuple

from mooring.model.numa.machine import Bits, Machine, narrower
from mooring.model.numa.settings import KubeletSettings


class Hint(NamedTuple):
    """NUMA nodes on which something could be; None: it does not matter where."""

    numa: Bits | None
    preferred: bool


ANYWHERE = Hint(None, True)
NOWHERE = Hint(None, False)
NOTHING_SAID = NOWHERE
"""What managers read where no policy has merged anything."""

Hints = list[Hint] | None
"""Of one resource: None where it does not care, empty where there is no place for it."""


def merge(resources: list[Hints], machine: Machine, settings: KubeletSettings) -> tuple[Hint, bool]:
    """The one hint that all have to live with, and whether a pod is admitted with it."""
    lists = [[ANYWHERE] if hints is None else hints or [NOWHERE] for hints in resources]
    single = settings.topology_policy == "single-numa-node"
    if single:
        lists = [[hint for hint in hints if hint.preferred and _at_most_one(hint.numa)] for hints in lists]
    best = _best(lists, machine, closest=settings.prefer_closest and not single)
    if single and best.numa == machine.numa:
        best = Hint(None, best.preferred)
    return best, best.preferred or settings.topology_policy == "best-effort"


def _at_most_one(numa: Bits | None) -> bool:
    return numa is None or numa.bit_count() == 1


def _best(lists: list[list[Hint]], machine: Machine, closest: bool) -> Hint:
    # Without a preferred one, as many nodes as the resource that needs most of them: more would be waste, fewer remote.
    smallest = [min((h.numa.bit_count() for h in hints if h.numa is not None), default=0) for hints in lists]
    wanted = max(smallest, default=0)
    best: Hint | None = None
    seen: set[Hint] = set()
    for permutation in product(*lists):
        merged = _merge_one(permutation, machine.numa)
        # Comparing depends on nothing but the merged hint: one that came before cannot win now.
        if merged.numa and merged not in seen:
            seen.add(merged)
            best = merged if best is None else _better(best, merged, wanted, machine, closest)
    return best or Hint(machine.numa, False)


def _merge_one(permutation: tuple[Hint, ...], all_numa: Bits) -> Hint:
    numa, first, preferred = all_numa, None, True
    for hint in permutation:
        preferred = preferred and hint.preferred
        if hint.numa is not None:
            first = hint.numa if first is None else first
            preferred = preferred and hint.numa == first
            numa &= hint.numa
    return Hint(numa, preferred)


def _better(current: Hint, candidate: Hint, wanted: int, machine: Machine, closest: bool) -> Hint:
    if current.preferred != candidate.preferred:
        return current if current.preferred else candidate
    assert current.numa is not None and candidate.numa is not None
    size, other = current.numa.bit_count(), candidate.numa.bit_count()
    if not current.preferred and size <= wanted and size != other:
        # At the wanted size already, or the other one is nearer to it from below.
        return candidate if size < other <= wanted else current
    return candidate if _nearer(candidate.numa, current.numa, machine, closest) else current


def _nearer(one: Bits, other: Bits, machine: Machine, closest: bool) -> bool:
    if closest and one != other and one.bit_count() == other.bit_count():
        return (machine.average_distance(one), one) < (machine.average_distance(other), other)
    return narrower(one, other)
