"""Completion indexes as a Job's status writes them: `1,3-5,7`."""

from collections.abc import Iterable


def parse_indexes(text: str | None, limit: int) -> set[int]:
    """Read indexes; those that the Job no longer has are left out.

    >>> sorted(parse_indexes("1,3-5", 5))
    [1, 3, 4]
    """
    found: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last.isdecimal() or not last):
            found.update(range(int(first), min(int(last or first) + 1, limit)))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Write indexes, runs of three or more as a range.

    >>> format_indexes([7, 1, 3, 4, 5])
    '1,3-5,7'
    """
    parts: list[str] = []
    first = last = None
    for index in [*sorted(indexes), None]:
        if last is not None and index == last + 1:
            last = index
            continue
        if first is not None:
            is_range = last is not None and last > first + 1
            parts += [f"{first}-{last}"] if is_range else [str(first)] if first == last else [str(first), str(last)]
        first = last = index
    return ",".join(parts)
