"""The types of all resources that are served: built in, or declared by a CustomResourceDefinition at run time."""

from typing import Protocol

from mooring.kubeapi.registry import Resource
from mooring.kubeapi.schemas.decoding import Decoded, decode
from mooring.kubeapi.schemas.notation import type_of_kind
from mooring.kubeapi.schemas.types import PLAIN, Field, Type
from mooring.kubeapi.status import ApiError, Object, bad_request

STRICT, WARN, IGNORE = "Strict", "Warn", "Ignore"
"""What a client wants done about unknown and duplicate fields."""


class Declared(Protocol):
    """A version of a custom resource, as its definition describes it."""

    @property
    def type(self) -> Type: ...

    @property
    def openapi(self) -> Object:
        """The schema as clients see it."""
        ...

    def decode(self, value: Object) -> Decoded:
        """Prune an object, and name what was pruned."""
        ...


def _any_object() -> Type:
    """A kind of which only the metadata is known."""
    metadata = type_of_kind("v1", "ConfigMap")
    assert metadata is not None
    fields = {name: Field(PLAIN["string"]) for name in ("apiVersion", "kind")}
    return Type("struct", item=PLAIN["any"], make_fields=lambda: {**fields, "metadata": metadata.fields["metadata"]})


_ANY_OBJECT = _any_object()


class Schemas:
    """Finds the type of a resource in one of its versions, and decodes objects by it."""

    def __init__(self) -> None:
        self._declared: dict[tuple[str, str], Declared] = {}

    def declare(self, key: str, version: str, declared: Declared) -> None:
        self._declared[key, version] = declared

    def forget(self, key: str) -> None:
        for found in [found for found in self._declared if found[0] == key]:
            del self._declared[found]

    def declared(self, resource: Resource, version: str = "") -> Declared | None:
        if not resource.definition:
            return None
        return self._declared.get((resource.key, version or resource.storage_version))

    def type_of(self, resource: Resource, version: str = "") -> Type:
        if (declared := self.declared(resource, version)) is not None:
            return declared.type
        return type_of_kind(resource.api_version(version), resource.kind) or _ANY_OBJECT

    def decode(self, resource: Resource, value: Object, version: str = "") -> Decoded:
        """The canonical form of an object; unknown fields are named and gone."""
        if (declared := self.declared(resource, version)) is not None:
            return declared.decode(value)
        return decode(value, self.type_of(resource, version))

    def read(self, resource: Resource, value: Object, version: str, validation: str, warnings: list[str]) -> Object:
        """The object of a request's body; raises 400 for what cannot be decoded, or may not with strict validation."""
        decoded = self.decode(resource, value, version)
        error = decoded.error
        if not error and decoded.strict and validation == STRICT:
            error = strict_error(decoded.strict)
        if error:
            raise cannot_be_handled(resource, version or resource.storage_version, error)
        if validation != IGNORE:
            warnings.extend(decoded.strict)
        found: Object = decoded.value
        return found


def strict_error(problems: list[str]) -> str:
    return f"strict decoding error: {', '.join(problems)}"


def cannot_be_handled(resource: Resource, version: str, error: str) -> ApiError:
    return bad_request(f'{resource.kind} in version "{version}" cannot be handled as a {resource.kind}: {error}')
