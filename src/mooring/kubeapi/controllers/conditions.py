"""Conditions in the status of objects."""

from typing import Any

from mooring.model.api.meta import timestamp_text

Object = dict[str, Any]


def find_condition(status: Object, type_: str) -> Object | None:
    return next((one for one in status.get("conditions") or () if one.get("type") == type_), None)


def is_true(obj: Object, type_: str) -> bool:
    found = find_condition(obj.get("status") or {}, type_)
    return found is not None and found["status"] == "True"


def set_condition(status: Object, type_: str, value: str, now: float, **fields: Any) -> bool:
    """Put a condition in its place; its time stays while its status does. Tells whether anything changed."""
    moment = timestamp_text(now)
    conditions = status.setdefault("conditions", [])
    found = find_condition(status, type_)
    if found is None:
        conditions.append({"type": type_, "status": value, "lastTransitionTime": moment, **fields})
        return True
    before = dict(found)
    if found["status"] != value:
        found["lastTransitionTime"] = moment
    found.update({"status": value, **fields})
    return found != before


def drop_condition(status: Object, type_: str) -> None:
    if status.get("conditions"):
        status["conditions"] = [one for one in status["conditions"] if one.get("type") != type_]
