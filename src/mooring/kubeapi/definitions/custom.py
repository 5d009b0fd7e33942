"""Custom resources: the rules of objects that a CustomResourceDefinition declares."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mooring.kubeapi.definitions.structural import fill_in, has_defaults, make_type, prune
from mooring.kubeapi.definitions.validation import check_schema
from mooring.kubeapi.kinds.metadata import check_metadata, check_metadata_update
from mooring.kubeapi.schemas.decoding import Decoded
from mooring.kubeapi.schemas.types import Type
from mooring.kubeapi.status import FieldError, Object
from mooring.kubeapi.strategy import Strategy
from mooring.kubeapi.tables.ages import age
from mooring.kubeapi.tables.column import AGE, NAME, Cell, Column
from mooring.kubeapi.tables.json_path import JsonPathError, find_all

_NOT_CONTENT = ("metadata", "apiVersion", "kind")


class Version:
    """One version of a custom resource, as its definition has it."""

    def __init__(self, declared: Object) -> None:
        self.name: str = declared.get("name", "")
        self.is_served = bool(declared.get("served"))
        self.is_stored = bool(declared.get("storage"))
        self.schema: Object = (declared.get("schema") or {}).get("openAPIV3Schema") or {}
        self.subresources: Object = declared.get("subresources") or {}
        self.type: Type = make_type(self.schema, is_root=True)
        self.has_defaults = has_defaults(self.schema)
        self.columns: Sequence[Column] = _columns(declared.get("additionalPrinterColumns"))
        self.selectable: list[str] = [each.get("jsonPath", "") for each in declared.get("selectableFields") or ()]

    @property
    def openapi(self) -> Object:
        """The schema as clients see it, with what every object has."""
        properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
        schema = {name: value for name, value in self.schema.items() if name != "properties"}
        return {"type": "object", **schema, "properties": {**properties, **(self.schema.get("properties") or {})}}

    def decode(self, value: Object) -> Decoded:
        return prune(value, self.schema)


def _columns(declared: Any) -> Sequence[Column]:
    if not declared:
        return (NAME, replace(AGE, type="date"))
    found = [NAME]
    for each in declared:
        path, type_ = each.get("jsonPath", ""), each.get("type", "string")
        priority, text = each.get("priority", 0), each.get("description", "")
        found.append(Column(each["name"], _cell(path, type_), type_, each.get("format", ""), priority, text))
    return tuple(found)


def _cell(path: str, type_: str) -> Cell:
    def cell(obj: Object, now: float) -> Any:
        try:
            found = find_all(obj, path)
        except JsonPathError:
            return None
        if not found or found[0] is None:
            return None
        if type_ == "date":
            return age(str(found[0]), now)
        if type_ == "string":
            return ",".join(str(each) for each in found) if len(found) > 1 else _text(found[0])
        return found[0]

    return cell


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


class CustomResources(Strategy):
    """Defaults, generations and checks by the schema of the stored version."""

    def __init__(self, version: Version) -> None:
        self._version = version
        self._has_status = "status" in version.subresources
        self.fields_selectable = {  # type: ignore[misc]
            path.removeprefix("."): tuple(path.removeprefix(".").split(".")) for path in version.selectable
        }

    def default(self, obj: Object) -> None:
        pruned = prune(obj, self._version.schema).value
        obj.clear()
        obj.update(pruned)
        fill_in(obj, self._version.schema)

    def prepare_create(self, obj: Object) -> None:
        if self._has_status:
            obj.pop("status", None)
        obj["metadata"]["generation"] = 1

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            status = new.get("status")
            metadata = {**old["metadata"], "managedFields": new["metadata"].get("managedFields")}
            if metadata["managedFields"] is None:
                del metadata["managedFields"]
            new.clear()
            new.update({**old, "metadata": metadata})
            new.pop("status", None)
            if status is not None:
                new["status"] = status
            return
        if self._has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        ignored = (*_NOT_CONTENT, "status") if self._has_status else _NOT_CONTENT
        is_changed = any(new.get(name) != old.get(name) for name in new.keys() | old.keys() if name not in ignored)
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + is_changed

    def validate(self, obj: Object) -> list[FieldError]:
        return check_metadata(obj) + check_schema(obj, self._version.schema, "")

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[FieldError]:
        return check_metadata_update(new, old) + check_schema(new, self._version.schema, "", old)
