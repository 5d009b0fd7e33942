"""What is wrong with an applied configuration by its type: fields that are not declared, items that come twice."""

from typing import Any

from mooring.kubeapi.patch.field_sets import ElementError, Path, is_granular_list, item_element, path_text
from mooring.kubeapi.schemas.types import Type
from mooring.model.values.strategic_merge import go_text


def undeclared(applied: Any, type_: Type) -> list[str]:
    """The problems of a configuration, as Kubernetes words them: `.spec.foo: field not declared in schema`."""
    found: list[str] = []
    _check(applied, type_, (), found)
    return found


def _check(value: Any, type_: Type, path: Path, found: list[str]) -> None:
    if value is None or type_.form == "plain":
        _check_plain(value, type_, path, found)
    elif type_.form == "list":
        if not isinstance(value, list):
            found.append(f"{path_text(path)}: expected list, got {_shown(value)}")
        elif type_.item is not None:
            _check_list(value, type_, path, found)
    elif not isinstance(value, dict):
        found.append(f"{path_text(path)}: expected map, got {_shown(value)}")
    else:
        for name, inner in value.items():
            here = (*path, f"f:{name}")
            declared = type_.field_type(name)
            if declared is None:
                found.append(f"{path_text(here)}: field not declared in schema")
            else:
                _check(inner, declared, here, found)


def _check_list(value: list[Any], type_: Type, path: Path, found: list[str]) -> None:
    assert type_.item is not None
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if is_granular_list(type_):
            try:
                element = item_element(item, type_)
            except ElementError as error:
                found.append(f"{path_text(path)}: element {index}: {error}")
                continue
            if element in seen:
                found.append(f"{path_text(path)}: duplicate entries for key {path_text((element,))}")
            seen.add(element)
        _check(item, type_.item, (*path, element), found)


_PLAIN: dict[str, tuple[str, tuple[type, ...]]] = {
    "string": ("string", (str,)),
    "bytes": ("string", (str,)),
    "bool": ("boolean", (bool,)),
    "int32": ("numeric (int or float)", (int, float)),
    "int64": ("numeric (int or float)", (int, float)),
    "double": ("numeric (int or float)", (int, float)),
}


def _check_plain(value: Any, type_: Type, path: Path, found: list[str]) -> None:
    if value is None or type_.name not in _PLAIN or type_.form != "plain":
        return
    wanted, types = _PLAIN[type_.name]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        got = _go_type(value) if wanted.startswith("numeric") else _shown(value)
        found.append(f"{path_text(path)}: expected {wanted}, got {got}")


def _shown(value: Any) -> str:
    return "&{" + go_text(value) + "}"


def _go_type(value: Any) -> str:
    match value:
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
        case bool():
            return "bool"
    return "string"
