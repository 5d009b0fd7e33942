"""What most kinds do alike: defaults by type, a status that only its subresource writes, a generation that counts."""

import copy
from typing import Any, ClassVar

from mooring.kubeapi.kinds.defaults import apply_defaults
from mooring.kubeapi.kinds.field_errors import immutable
from mooring.kubeapi.kinds.known import check_known
from mooring.kubeapi.kinds.metadata import check_metadata, check_metadata_update, subdomain
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.schemas.decoding import decode
from mooring.kubeapi.schemas.notation import type_of_kind
from mooring.kubeapi.status import FieldError, Object
from mooring.kubeapi.strategy import Strategy

_NOT_CONTENT = ("metadata", "status", "apiVersion", "kind")


class Standard(Strategy):
    """The rules of a kind, as far as it has none of its own; kinds that have some override `check` and the like."""

    counts_generation: ClassVar[bool] = True
    """Whether metadata.generation follows changes of the content."""
    keeps_status: ClassVar[bool] = False
    """Whether whoever creates an object may write its status."""
    is_checked_by_model: ClassVar[bool] = False
    immutable_fields: ClassVar[tuple[str, ...]] = ()
    """Paths that are set for good at creation."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.has_status = "status" in resource.subresources
        self._type = type_of_kind(resource.api_version(), resource.kind)
        status = self._type.fields.get("status") if self._type is not None else None
        self._empty_status: Object = {}
        if status is not None and status.type.form == "struct":
            self._empty_status = decode({}, status.type).value

    def check_name(self, name: str) -> str:
        """What is wrong with a name; empty if nothing is."""
        return subdomain(name)

    def default(self, obj: Object) -> None:
        """Fill in an object."""
        self.write_as_go(obj)
        apply_defaults(obj, self.resource.api_version(), self.resource.kind)

    def write_as_go(self, obj: Object) -> None:
        """Give an object the form that Go gives it: what comes from within the process has not had it yet."""
        if self._type is not None:
            decoded = decode(obj, self._type).value
            obj.clear()
            obj.update(decoded)

    def prepare_create(self, obj: Object) -> None:
        if self.has_status and not self.keeps_status:
            obj["status"] = copy.deepcopy(self._empty_status)
        if self.counts_generation:
            obj["metadata"]["generation"] = 1
        else:
            obj["metadata"].pop("generation", None)
        self.begin(obj)

    def begin(self, obj: Object) -> None:
        """What else creation does."""

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource in ("status", "approval"):
            _take_all_but(new, old, ("status", "metadata", "apiVersion", "kind"))
            return
        if self.has_status:
            new["status"] = old.get("status", {})
        self.change(new, old, subresource)
        if self.counts_generation and self.is_new_generation(new, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def change(self, new: Object, old: Object, subresource: str) -> None:
        """What else an update does."""

    def is_new_generation(self, new: Object, old: Object) -> bool:
        return any(new.get(name) != old.get(name) for name in new.keys() | old.keys() if name not in _NOT_CONTENT)

    def validate(self, obj: Object) -> list[FieldError]:
        found = check_metadata(obj, self.check_name) + self.check(obj)
        return found or (check_known(obj) if self.is_checked_by_model else [])

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[FieldError]:
        found = check_metadata_update(new, old)
        if subresource == "status":
            return found + self.check_status(new, old)
        found += self.check(new)
        for path in self.immutable_fields:
            found += immutable(path, value_at(new, path), value_at(old, path))
        found += self.check_update(new, old)
        return found or (check_known(new) if self.is_checked_by_model else [])

    def check(self, obj: Object) -> list[FieldError]:
        """What is wrong with the content, whether new or changed."""
        return []

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        """What may not be changed in this way."""
        return []

    def check_status(self, new: Object, old: Object) -> list[FieldError]:
        return []


def _take_all_but(new: Object, old: Object, kept: tuple[str, ...]) -> None:
    for name in old.keys() | new.keys():
        if name not in kept:
            if name in old:
                new[name] = old[name]
            else:
                del new[name]


def value_at(obj: Any, path: str) -> Any:
    for name in path.split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj
