"""Decode values as Go does: unknown fields are named and dropped, wrong types refused, zeros left out.

An object of a built-in kind goes through Go's structs in Kubernetes; what comes out is its canonical form. Ours comes
out the same, so that comparing and owning fields means the same here.
"""

import base64
import binascii
import json
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from mooring.kubeapi.schemas.types import Field, Type
from mooring.model.values.quantity import QuantityError, canonical_quantity

_TYPE_ERROR = "json: cannot unmarshal {found} into Go {place}of type {wanted}"
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)")
_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

Path = tuple[Any, ...]


class _Key(str):
    """A part of a path that is the key of a map: Go's own messages leave it out."""

    __slots__ = ()


class Decoded(NamedTuple):
    """A value in canonical form, and what was wrong with what was given."""

    value: Any
    strict: list[str]
    """Unknown and duplicate fields, as Kubernetes words them: `unknown field "spec.foo"`."""
    error: str
    """Why it cannot be decoded at all, in Go's words; empty if it can."""


class Repeated(dict[str, Any]):
    """An object of JSON in which a key came twice; the last value counts."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _keep_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Repeated(pairs)


def parse_json(body: bytes) -> Any:
    """Parse JSON and keep in mind which keys came twice; raises ValueError."""
    try:
        found = _JSON.decode(body.decode())
        return _without_surrogates(found) if _SURROGATE.search(body) else found
    except RecursionError:
        raise ValueError("exceeded max depth") from None


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _without_surrogates(value: Any) -> Any:
    """What Go makes of escapes that are half a character: a replacement character each."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case Repeated():
            return Repeated([(_without_surrogates(name), _without_surrogates(inner)) for name, inner in value.pairs])
        case dict():
            return {_without_surrogates(name): _without_surrogates(inner) for name, inner in value.items()}
        case list():
            return [_without_surrogates(inner) for inner in value]
    return value


def _refuse_constant(text: str) -> None:
    raise ValueError(f"invalid character {text[0]!r} looking for beginning of value")


_JSON = json.JSONDecoder(object_pairs_hook=_keep_repeated, parse_constant=_refuse_constant)


def decode(value: Any, type_: Type) -> Decoded:
    """Decode a value of JSON as the type."""
    decoder = _Decoder()
    try:
        return Decoded(decoder.value(value, type_, (), None), decoder.strict, decoder.error)
    except RecursionError:
        return Decoded(None, [], "exceeded max depth")


def repeated_fields(value: Any, path: Path = ()) -> list[str]:
    """Name the keys that came twice in JSON of no type: `duplicate field "spec.replicas"`."""
    if isinstance(value, list):
        return [name for index, inner in enumerate(value) for name in repeated_fields(inner, (*path, index))]
    if not isinstance(value, dict):
        return []
    found = []
    if isinstance(value, Repeated):
        seen: set[str] = set()
        for name, _ in value.pairs:
            if name in seen:
                found.append(f'duplicate field "{path_text((*path, name))}"')
            seen.add(name)
    return found + [problem for name, inner in value.items() for problem in repeated_fields(inner, (*path, name))]


def path_text(path: Path) -> str:
    """`spec.containers[0].name`"""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


class _Decoder:
    def __init__(self) -> None:
        self.strict: list[str] = []
        self.error = ""

    def value(self, value: Any, type_: Type, path: Path, struct: Type | None) -> Any:
        """The canonical form of one value that is not null; `struct` is the struct that it stands in."""
        match type_.form:
            case "struct":
                if isinstance(value, dict):
                    return self._struct(value, type_, path)
            case "list":
                if isinstance(value, list):
                    return self._list(value, type_, path, struct)
            case "map":
                if isinstance(value, dict):
                    return self._map(value, type_, path, struct)
            case _:
                return self._plain(value, type_, path, struct)
        return self._wrong(value, type_, path, struct)

    def _struct(self, value: dict[str, Any], type_: Type, path: Path) -> dict[str, Any]:
        fields, found = type_.fields, {}
        if isinstance(value, Repeated):
            self._note_repeated(value, type_, path)
        for name, inner in value.items():
            field = fields.get(name)
            if field is None:
                if type_.item is not None:
                    found[name] = self.value(inner, type_.item, (*path, name), type_)
                elif not isinstance(value, Repeated):
                    self.strict.append(f'unknown field "{path_text((*path, name))}"')
            elif inner is not None:
                if type(inner) is _EXACT.get(field.type.name):
                    decoded = inner
                else:
                    decoded = self.value(inner, field.type, (*path, name), type_)
                if field.is_pointer or field.is_always or decoded or not _is_left_out(field):
                    found[name] = decoded
        for name, zero in _always(type_):
            if name not in found:
                found[name] = _zero_struct(zero) if isinstance(zero, Type) else zero
        return found

    def _note_repeated(self, value: Repeated, type_: Type, path: Path) -> None:
        """Name unknown and duplicate fields in the order in which they were written."""
        seen: set[str] = set()
        for name, _ in value.pairs:
            if name in seen:
                self.strict.append(f'duplicate field "{path_text((*path, name))}"')
            elif type_.form == "struct" and name not in type_.fields and type_.item is None:
                self.strict.append(f'unknown field "{path_text((*path, name))}"')
            seen.add(name)

    def _list(self, value: list[Any], type_: Type, path: Path, struct: Type | None) -> list[Any]:
        item = type_.item
        assert item is not None
        exact = _EXACT.get(item.name) if item.form == "plain" else None
        if exact is not None and all(type(inner) is exact for inner in value):
            return list(value)
        found = []
        for index, inner in enumerate(value):
            found.append(_zero(item) if inner is None else self.value(inner, item, (*path, index), struct))
        return found

    def _map(self, value: dict[str, Any], type_: Type, path: Path, struct: Type | None) -> dict[str, Any]:
        item = type_.item
        assert item is not None
        if isinstance(value, Repeated):
            self._note_repeated(value, type_, path)
        found = {}
        for name, inner in value.items():
            found[name] = _zero(item) if inner is None else self.value(inner, item, (*path, _Key(name)), struct)
        return found

    def _plain(self, value: Any, type_: Type, path: Path, struct: Type | None) -> Any:
        match type_.name:
            case "string":
                if isinstance(value, str):
                    return value
            case "bool":
                if isinstance(value, bool):
                    return value
            case "int32" | "int64":
                if isinstance(value, int) and not isinstance(value, bool):
                    low, high = _RANGES[type_.name]
                    if low <= value <= high:
                        return value
            case "double":
                if isinstance(value, int | float) and not isinstance(value, bool):
                    return value
            case "any" | "raw":
                return self._raw(value, path)
            case _:
                return self._written(value, type_, path, struct)
        return self._wrong(value, type_, path, struct)

    def _raw(self, value: Any, path: Path) -> Any:
        if isinstance(value, Repeated):
            self._note_repeated(value, _ANYTHING, path)
        if isinstance(value, dict):
            return {name: self._raw(inner, (*path, name)) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._raw(inner, (*path, index)) for index, inner in enumerate(value)]
        return value

    def _written(self, value: Any, type_: Type, path: Path, struct: Type | None) -> Any:
        """Values that are written as strings, or as numbers, and have a form of their own."""
        match type_.name:
            case "quantity":
                return self._quantity(value)
            case "int-or-string":
                if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
                    return value
            case "bytes":
                if isinstance(value, str):
                    try:
                        base64.b64decode(value, validate=True)
                    except (binascii.Error, ValueError):
                        self._fail("illegal base64 data at input byte 0")
                    return value
            case "time" | "microtime":
                if isinstance(value, str):
                    return self._time(value, has_micros=type_.name == "microtime")
        return self._wrong(value, type_, path, struct)

    def _quantity(self, value: Any) -> Any:
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            self._fail(_QUANTITY)
            return "0"
        try:
            return canonical_quantity(value)
        except QuantityError:
            self._fail(_QUANTITY)
            return "0"

    def _time(self, value: str, *, has_micros: bool) -> str:
        layout = "2006-01-02T15:04:05.000000Z07:00" if has_micros else "2006-01-02T15:04:05Z07:00"
        if not _TIME.fullmatch(value):
            self._fail(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"')
            return value
        try:
            moment = datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            self._fail(f'parsing time "{value}": {error}')
            return value
        if value.endswith("Z") and len(value) == (27 if has_micros else 20):
            return value
        return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{moment.microsecond:06d}Z" if has_micros else "Z")

    def _wrong(self, value: Any, type_: Type, path: Path, struct: Type | None) -> Any:
        name = struct.name.rpartition(".")[2] if struct is not None else ""
        fields = ".".join(part for part in path if type(part) is str)
        if isinstance(value, int | float) and not isinstance(value, bool) and type_.name in _RANGES:
            found = f"number {value}"
        else:
            found = _json_name(value)
        place = f"struct field {name}.{fields} " if name and fields else "value "
        self._fail(_TYPE_ERROR.format(found=found, place=place, wanted=go_name(type_)))
        return _zero(type_)

    def _fail(self, error: str) -> None:
        self.error = self.error or error


_ANYTHING = Type("map")
_EXACT = {"string": str, "bool": bool}
"""Plain types of which every value of a Python type is one."""


def _is_left_out(field: Field) -> bool:
    """Whether Go leaves this zero out: all but structs, which it writes as `{}` unless told to omit them."""
    return field.type.form != "struct" or field.omits_zero


_ALWAYS: dict[Type, list[tuple[str, Any]]] = {}


def _always(type_: Type) -> list[tuple[str, Any]]:
    """Fields that Go writes even if nobody said anything; for structs their type, as each gets an object of its own."""
    if type_ not in _ALWAYS:
        _ALWAYS[type_] = [
            (name, field.type if field.type.form == "struct" else _zero(field.type))
            for name, field in type_.fields.items()
            if not field.is_pointer and not field.omits_zero and _is_written(field)
        ]
    return _ALWAYS[type_]


def _zero_struct(type_: Type) -> dict[str, Any]:
    return {name: _zero_struct(zero) if isinstance(zero, Type) else zero for name, zero in _always(type_)}


def empty_object(type_: Type) -> dict[str, Any]:
    """What Go writes for an object that says nothing: structs that are always there, and null for lists and maps."""
    found: dict[str, Any] = {}
    for name, field in type_.fields.items():
        if field.type.form == "struct" and not field.is_pointer:
            if not field.omits_zero:
                found[name] = empty_object(field.type)
        elif field.is_always:
            found[name] = None if field.is_pointer or field.type.form != "plain" else _zero(field.type)
    return found


def _is_written(field: Field) -> bool:
    if field.type.form == "struct":
        return True
    return field.is_always and field.type.form == "plain" and field.type.name in ("string", "int32", "int64", "bool")


def _zero(type_: Type) -> Any:
    match type_.form:
        case "struct" | "map":
            return {}
        case "list":
            return []
    return {"string": "", "int32": 0, "int64": 0, "double": 0, "bool": False, "quantity": "0"}.get(type_.name)


def _json_name(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case None:
            return "null"
    return "object"


_GO_NAMES = {
    "double": "float64",
    "bytes": "[]uint8",
    "time": "v1.Time",
    "microtime": "v1.MicroTime",
    "int-or-string": "intstr.IntOrString",
    "quantity": "resource.Quantity",
    "raw": "runtime.RawExtension",
    "any": "interface {}",
}


def go_name(type_: Type) -> str:
    """What Go calls a type in its messages: `v1.PodSpec`, `[]v1.Container`, `map[string]string`."""
    match type_.form:
        case "struct":
            return type_.name.rpartition("/")[2]
        case "list":
            assert type_.item is not None
            return f"[]{go_name(type_.item)}"
        case "map":
            assert type_.item is not None
            return f"map[string]{go_name(type_.item)}"
    return _GO_NAMES.get(type_.name, type_.name)
