"""How much is kept, table by table: everything that can be reached from something, summed by the way to it."""

import collections
import functools
import gc
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

Reached = tuple[str, Any]
_PLAIN = (str, bytes, int, float, bool, type(None), type, types.ModuleType, types.CodeType)
_SERIES = (list, tuple, set, frozenset, collections.deque)


def kept(root: object) -> collections.Counter[str]:
    """The lengths of all that can be reached, by the way to it; all that a table holds is reached in one way."""
    found: collections.Counter[str] = collections.Counter()
    seen: dict[int, object] = {}
    todo: collections.deque[Reached] = collections.deque([("", root)])
    while todo:
        way, each = todo.popleft()
        if isinstance(each, _PLAIN) or id(each) in seen:
            continue
        seen[id(each)] = each
        if isinstance(each, np.ndarray):
            found[way] += each.size
        elif isinstance(each, tuple) and way.endswith("[]"):
            pass  # one entry of a table, which is counted there
        elif isinstance(each, (*_SERIES, dict, bytearray)):
            found[way] += len(each)
        todo.extend(_within(way, each))
    return found


def _within(way: str, each: Any) -> Iterator[Reached]:
    if isinstance(each, dict):
        for key, value in each.items():
            yield f"{way}[]", value
            yield f"{way}.key", key
    elif isinstance(each, _SERIES):
        for value in each:
            yield f"{way}[]", value
    elif isinstance(each, types.FunctionType):  # its globals are not its own
        yield f"{way}.closure", [cell.cell_contents for cell in each.__closure__ or ()]
    elif isinstance(each, functools.partial):
        yield f"{way}.partial", [each.func, each.args]
    else:
        named = {id(value): name for name, value in getattr(each, "__dict__", {}).items()}
        for value in gc.get_referents(each):
            if value is not getattr(each, "__dict__", None):
                yield f"{way}.{named.get(id(value), type(value).__name__)}", value
        for name, value in getattr(each, "__dict__", {}).items():
            yield f"{way}.{name}", value
