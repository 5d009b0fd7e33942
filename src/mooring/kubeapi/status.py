"""What the API answers when it says no: a Status object, with Kubernetes' codes, reasons and words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mooring.errors import MooringError

Object = dict[str, Any]
"""An API object as JSON decodes it."""


class ApiError(MooringError):
    """A request that is refused; `status` is the Status object that goes back."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        self.code, self.reason, self.message, self.details = code, reason, message, details
        super().__init__(message)

    @property
    def status(self) -> Object:
        status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details:
            status["details"] = self.details
        status["code"] = self.code
        return status


OMITTED = object()
"""In the place of a value that an error does not show though others of its type do."""


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field; `str` is the line that people read."""

    type: str
    """FieldValueInvalid, FieldValueRequired, ...: the reason in the Status' causes."""
    field: str
    detail: str
    value: Any = None
    """What was found; shown by the types that show it."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    @property
    def message(self) -> str:
        words = _WORDS.get(self.type, self.type)
        if self.type in _SHOWS_VALUE and self.value is not OMITTED:
            words = f"{words}: {_show(self.value)}"
        return f"{words}: {self.detail}" if self.detail else words


_WORDS = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueRequired": "Required value",
    "FieldValueNotFound": "Not found",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueTypeInvalid": "Invalid value",
    "InternalError": "Internal error",
}
_SHOWS_VALUE = {
    "FieldValueTooMany",
    "FieldValueInvalid",
    "FieldValueNotFound",
    "FieldValueNotSupported",
    "FieldValueDuplicate",
    "FieldValueTypeInvalid",
}


def _show(value: Any) -> str:
    import json

    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)


def qualified(group: str, plural: str) -> str:
    """A resource as messages name it: pods, deployments.apps."""
    return f"{plural}.{group}" if group else plural


def _details(group: str, kind: str, name: str, **more: Any) -> Object:
    details: Object = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in details.items() if value not in ("", None, [])}


def not_found(group: str, plural: str, name: str) -> ApiError:
    message = f'{qualified(group, plural)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(group, plural, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(group: str, plural: str, name: str) -> ApiError:
    message = f'{qualified(group, plural)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(group, plural, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    lines = [str(error) for error in errors]
    summary = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    causes = [{"reason": error.type, "message": error.message, "field": error.field} for error in errors]
    message = f'{qualified(group, kind)} "{name}" is invalid: {summary}' if lines else f'{kind} "{name}" is invalid'
    return ApiError(422, "Invalid", message, _details(group, kind, name, causes=causes))


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    subject = f'{qualified(group, plural)} "{name}"' if name or plural else ""
    message = f"{subject} is forbidden: {why}" if subject else f"forbidden: {why}"
    return ApiError(403, "Forbidden", message, _details(group, plural, name))


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed(group: str, plural: str, action: str) -> ApiError:
    message = f'{action} is not supported on resources of kind "{qualified(group, plural)}"'
    return ApiError(405, "MethodNotAllowed", message, _details(group, plural, ""))


def verb_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def gone_revision(asked: int, oldest: int) -> ApiError:
    return expired(f"too old resource version: {asked} ({oldest})")


def too_large_revision(asked: int, current: int) -> ApiError:
    """A list that wants to be newer than the store; the client is told to come again."""
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    message = f"Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, {**details, "retryAfterSeconds": 1})


def too_large(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def unsupported_media_type(supported: Sequence[str]) -> ApiError:
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(supported)}"
    return ApiError(415, "UnsupportedMediaType", message)


def not_acceptable(supported: Sequence[str]) -> ApiError:
    message = f"only the following media types are accepted: {', '.join(supported)}"
    return ApiError(406, "NotAcceptable", message)


def too_many_requests(message: str, seconds: int = 0, causes: Sequence[Object] = ()) -> ApiError:
    details: Object = {"retryAfterSeconds": seconds} if seconds else {}
    if causes:
        details["causes"] = list(causes)
    return ApiError(429, "TooManyRequests", message, details)


def internal(message: str) -> ApiError:
    causes = [{"message": message}]
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", {"causes": causes})


def success(group: str, plural: str, name: str, uid: str) -> Object:
    """What a deletion answers when the object is gone."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": _details(group, plural, name, uid=uid),
    }
