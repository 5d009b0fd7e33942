"""Which attributes of devices anybody reads: others tell no devices apart.

Drivers publish a uuid, a serial number or a bus address of each device. As long as no selector and no constraint reads
them, the devices of thousands of nodes are alike, and what is found out for one node serves all.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from mooring.model.api.claims import ResourceClaimSpec
from mooring.model.api.devices import DeviceClass, DeviceSelector
from mooring.model.cel.syntax import Call, Expression, Index, ListOf, Literal, MapOf, Name, Select, parse
from mooring.model.cel.values import CelCompileError

EVERYTHING = "*"
"""Among the names of attributes that are read: all of them are."""


def read_by_class(found: DeviceClass) -> frozenset[str]:
    """The attributes, without their domains, that the selectors of a class read."""
    return _read_by_selectors(found.spec.selectors or ())


def read_by_claim(spec: ResourceClaimSpec) -> frozenset[str]:
    """The same of a claim's selectors and constraints."""
    names = {_short(each.match_attribute or each.distinct_attribute or "") for each in spec.devices.constraints or ()}
    for request in spec.devices.requests or ():
        asked = [request.exactly] if request.exactly is not None else list(request.first_available or ())
        for each in asked:
            names |= _read_by_selectors(each.selectors or ())
    return frozenset(names)


def _read_by_selectors(selectors: Sequence[DeviceSelector]) -> frozenset[str]:
    texts = [each.cel.expression for each in selectors if each.cel is not None]
    return frozenset[str]().union(*(read_by_expression(text) for text in texts))


@lru_cache(maxsize=4096)
def read_by_expression(text: str) -> frozenset[str]:
    """The attributes that an expression over a device reads; EVERYTHING among them if it may read any."""
    try:
        return frozenset(_names(parse(text)))
    except (CelCompileError, RecursionError):
        return frozenset((EVERYTHING,))


def _names(node: Expression) -> Iterator[str]:
    match node:
        case Select(Index(Select(Name("device"), "attributes"), key), field):
            yield field
            yield from _names(key)
        case Index(Index(Select(Name("device"), "attributes"), key), Literal(str(field))):
            yield field
            yield from _names(key)
        case Select(Name("device"), field) if field != "attributes":
            return
        case Name("device"):
            yield EVERYTHING
        case _:
            for part in _parts(node):
                yield from _names(part)


def _parts(node: Expression) -> Iterator[Expression]:
    match node:
        case Select(operand):
            yield operand
        case Index(operand, key):
            yield from (operand, key)
        case Call(_, target, arguments):
            yield from (*((target,) if target is not None else ()), *arguments)
        case ListOf(items):
            yield from items
        case MapOf(pairs):
            for pair in pairs:
                yield from pair


def _short(name: str) -> str:
    return name.rpartition("/")[2]
