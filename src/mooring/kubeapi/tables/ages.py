"""How long ago something was, as kubectl says it."""

from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def human_duration(seconds: float) -> str:
    """Two units at most, the fewer the longer it is."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    for limit, unit, small, names in (
        (10 * _MINUTE, _MINUTE, 1, "ms"),
        (3 * _HOUR, _MINUTE, 0, "m"),
        (8 * _HOUR, _HOUR, _MINUTE, "hm"),
        (2 * _DAY, _HOUR, 0, "h"),
        (8 * _DAY, _DAY, _HOUR, "dh"),
        (2 * _YEAR, _DAY, 0, "d"),
        (8 * _YEAR, _YEAR, _DAY, "yd"),
    ):
        if whole < 2 * _MINUTE:
            return f"{whole}s"
        if whole < limit:
            many, rest = divmod(whole, unit)
            few = rest // small if small else 0
            return f"{many}{names[0]}{few}{names[1]}" if few else f"{many}{names[0]}"
    return f"{whole // _YEAR}y"


def moment(text: str) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def age(text: str | None, now: float) -> str:
    """How old something is that began at a moment in the API's form."""
    if not text:
        return "<unknown>"
    try:
        return human_duration(now - moment(text))
    except ValueError:
        return "<unknown>"
