"""What actions keep: the objects that can be reached from them between cycles."""

import gc
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

PLAIN = (type, ModuleType, BuiltinFunctionType, str, bytes, int, float)
"""What holds nothing that an action could keep."""


def classes_kept_by(roots: Iterable[object], room: str, besides: Iterable[object] = ()) -> set[type]:
    """The classes of one room of which some object can be reached from others, not by way of `besides`."""
    seen = {id(found) for found in besides}
    waiting: list[Any] = list(roots)
    found: set[type] = set()
    while waiting:
        current = waiting.pop()
        if id(current) in seen or isinstance(current, PLAIN):
            continue
        seen.add(id(current))
        if isinstance(current, FunctionType):  # what it closes over, not the module that it is from
            waiting += [cell.cell_contents for cell in current.__closure__ or () if _is_filled(cell)]
            waiting += current.__defaults__ or ()
            continue
        if type(current).__module__.startswith(room):
            found.add(type(current))
        waiting += gc.get_referents(current)
    return found


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
