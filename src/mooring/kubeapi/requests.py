"""A request as admission sees it."""

from dataclasses import dataclass, field
from typing import Protocol

from mooring.kubeapi.auth.user import SYSTEM, User
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import Object

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"


@dataclass(slots=True)
class Request:
    """What someone wants to do to one object. Admission may change `object`, and add to `warnings`."""

    operation: str
    resource: Resource
    namespace: str
    """"" where the resource has none."""
    name: str
    object: Object
    """The new object; of a deletion, what is there."""
    old: Object | None = None
    subresource: str = ""
    user: User = SYSTEM
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    verb: str = "update"
    """How it was asked for: an update may be a patch, and a creation may be an update or a patch of nothing."""


class Admission(Protocol):
    """What may change or refuse a request before it is carried out. Refusals are raised as ApiError."""

    def mutate(self, request: Request) -> None: ...

    def validate(self, request: Request) -> None: ...


class NoAdmission:
    """Lets everything through as it is."""

    def mutate(self, request: Request) -> None:
        pass

    def validate(self, request: Request) -> None:
        pass
