"""The reference of the configuration, from the types that configuration files are read into."""

import ast
import importlib
import inspect
import pkgutil
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from md_tables import code, plain, table

from mooring.plugins import DEFAULT_PLUGINS, OPTIONAL_PLUGINS

INTRODUCTION = """# Reference: configuration

This page is generated from the types that configuration files are read into: every field with its type and its default.
A field without a default is required. [Configuration](../configuration.md) explains how the documents are used.

"""
PACKAGES = ("mooring.config",)
MODULES = ("mooring.drivers.sim.scenario",)
TITLES = {
    "catalogue": "InstanceTypeCatalogue",
    "low_node_load": "Arguments of LowNodeLoad",
    "volcano_scheduler": "Volcano's scheduler configuration",
    "yunikorn": "YuniKorn's queues",
    "trimaran": "Arguments of the Trimaran plugins",
}
"""Titles of modules without a kind of their own."""


@dataclass(frozen=True)
class Setting:
    """One field of a configuration type."""

    name: str
    type: str
    default: str
    meaning: str


@cache
def documents() -> dict[str, list[type]]:
    """Every configuration type, by the module that defines it."""
    found: dict[str, list[type]] = {}
    for module in _modules():
        types_here = [
            each for each in vars(module).values() if _is_settings(each) and each.__module__ == module.__name__
        ]
        if types_here:
            found[module.__name__] = types_here
    plugins = [*(plugin for plugin, _ in DEFAULT_PLUGINS), *OPTIONAL_PLUGINS]
    for arguments in {plugin.args_type: None for plugin in plugins}:
        if _is_settings(arguments) and arguments not in found.get(arguments.__module__, []):
            nested = [each for each in _reachable(arguments) if each.__module__ == arguments.__module__]
            found.setdefault(arguments.__module__, []).extend(nested)
    return found


def settings(type_: type) -> list[Setting]:
    """Every field of a configuration type."""
    meanings = _meanings(type_)
    hints = get_type_hints(type_)
    return [
        Setting(field.encode_name, _shown(hints[field.name]), _default(field), meanings.get(field.name, ""))
        for field in msgspec.structs.fields(type_)
    ]


def page() -> str:
    """Return the page."""
    sections = []
    for module, types_here in documents().items():
        sections.append(f"## {_title(module, types_here)}\n")
        sections.append(plain(inspect.getdoc(importlib.import_module(module)) or "") + "\n")
        for type_ in types_here:
            sections.append(f"### {_name(type_)} {{ #{_anchor(type_)} }}\n")
            if type_.__doc__ and not type_.__doc__.startswith(type_.__name__ + "("):
                sections.append(plain(inspect.cleandoc(type_.__doc__)) + "\n")
            rows = [
                (code(each.name), each.type, code(each.default) if each.default else "required", plain(each.meaning))
                for each in settings(type_)
            ]
            sections.append(table(("field", "type", "default", "meaning"), rows))
    return INTRODUCTION + "\n".join(sections)


def _modules() -> Iterator[types.ModuleType]:
    for package in PACKAGES:
        for each in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            yield importlib.import_module(each.name)
    for name in MODULES:
        yield importlib.import_module(name)


def _is_settings(found: object) -> bool:
    is_struct = isinstance(found, type) and issubclass(found, msgspec.Struct)
    return is_struct and bool(msgspec.structs.fields(found))  # type: ignore[arg-type]


def _reachable(type_: type) -> list[type]:
    """Return a type, and the types of its fields, each once."""
    found, open_ = [], [type_]
    while open_:
        each = open_.pop(0)
        if each not in found:
            found.append(each)
            hints = get_type_hints(each)
            open_ += [inner for field in msgspec.structs.fields(each) for inner in _structs(hints[field.name])]
    return found


def _structs(hint: Any) -> list[type]:
    if _is_settings(hint):
        return [hint]
    return [found for inner in get_args(hint) for found in _structs(inner)]


def _title(module: str, types_here: list[type]) -> str:
    kind = getattr(importlib.import_module(module), "KIND", "") or TITLES.get(module.rpartition(".")[2], "")
    if kind:
        return f"{kind} (Kueue)" if kind == "Configuration" else str(kind)
    for type_ in types_here:
        for each in msgspec.structs.fields(type_):
            if each.name == "kind" and isinstance(each.default, str) and each.default:
                return each.default
    names = [_name(type_) for type_ in types_here if type_.__name__.endswith("Args")]
    if names:
        return "Arguments of " + ", ".join(name.removesuffix("Args") for name in names)
    return module.rpartition(".")[2].replace("_", " ").capitalize()


def _name(type_: type) -> str:
    return type_.__name__.lstrip("_")


def _anchor(type_: type) -> str:
    return f"{type_.__module__.rpartition('.')[2]}-{_name(type_)}".lower().replace("_", "-")


def _default(field: Any) -> str:
    if field.required:
        return ""
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, msgspec.Struct):
        return "the defaults of its fields"
    return {"None": "none", "True": "true", "False": "false", "''": '""'}.get(repr(value), str(value) or '""')


def _shown(hint: Any) -> str:
    """Name a type in words, with a link to its section if it has one."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_shown(each) for each in inner if each is not type(None))
    if origin in (list, tuple, set, frozenset):
        return "list of " + _shown(inner[0])
    if origin is dict:
        return "map of " + _shown(inner[1])
    if origin is not None and hasattr(hint, "__metadata__"):
        return _shown(inner[0])
    if origin is not None and str(origin).endswith("Literal"):
        return " or ".join(code(str(each)) for each in inner)
    if _is_settings(hint) and any(hint in types_here for types_here in documents().values()):
        return f"[{_name(hint)}](#{_anchor(hint)})"
    words = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "Any": "anything", "dict": "map"}
    name = getattr(hint, "__name__", str(hint))
    return words.get(name, name)


def _meanings(type_: type) -> dict[str, str]:
    """Return the docstring under each field, those of base types included."""
    found: dict[str, str] = {}
    for each in reversed(type_.__mro__):
        if not each.__module__.startswith("mooring."):
            continue
        body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(each))).body[0]
        assert isinstance(body, ast.ClassDef)
        for statement, after in zip(body.body, body.body[1:], strict=False):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                text = after.value if isinstance(after, ast.Expr) else None
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    found[statement.target.id] = inspect.cleandoc(text.value)
    return found
