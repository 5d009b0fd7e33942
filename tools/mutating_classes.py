"""Count what changes outside the state: classes that assign attributes of their own after they were made.

    python tools/mutating_classes.py [room ...]          rooms of src/mooring; by default actions and state

A class counts if a method other than `__init__`, `__post_init__` or `__new__` assigns, augments or deletes an attribute
of `self` or a part of one, calls a method of one that changes a list, a set or a mapping, or uses it as a heap. Where
`__init__` or a field shows that the attribute is an object and no collection, such a method is counted with the class
of that object.

Of actions, those that are kept between cycles are counted apart: they are in kept_by_actions.toml, each with the reason
why they may be dropped. All others are local to one call; tests/properties/test_kept_by_actions.py sees to that.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src" / "mooring"
MAKING = ("__init__", "__post_init__", "__new__")


CHANGES = {
    *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "insert", "pop", "popitem"),
    *("popleft", "remove", "setdefault", "sort", "update"),
}


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def attribute_of_self(node: ast.expr) -> str:
    """`self.x`, `self.x[key]` or `self.x[key].y` as x; empty for anything else."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return node.attr
        node = node.value
    return ""


ON_HEAPS = {"heapify", "heappop", "heappush", "heappushpop", "heapreplace"}

COLLECTIONS = {"Counter", "Mapping", "MutableMapping", "OrderedDict", "Sequence"}
"""Names like those of classes that are collections all the same."""


def objects_of(cls: ast.ClassDef) -> set[str]:
    """The attributes that are objects of a class: made by calling it, or given as a parameter that is one."""
    fields = (node for node in cls.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name))
    found = {node.target.id for node in fields if isinstance(node.target, ast.Name) and _names_a_class(node.annotation)}
    making = [node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    for method in making:
        given = {arg.arg: arg.annotation for arg in (*method.args.args, *method.args.kwonlyargs)}
        for node in ast.walk(method):
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                targets, value = [node.target], node.value
            else:
                continue
            made: ast.expr | None = value.func if isinstance(value, ast.Call) else None
            if isinstance(value, ast.Name):
                made = given.get(value.id)
            if _names_a_class(made):
                found.update(target.attr for target in targets if isinstance(target, ast.Attribute))
    return found


def _names_a_class(made: ast.expr | None) -> bool:
    made = made.value if isinstance(made, ast.Subscript) else made
    return isinstance(made, ast.Name) and made.id.lstrip("_")[:1].isupper() and made.id not in COLLECTIONS


def mutated(cls: ast.ClassDef) -> set[str]:
    """The attributes that methods of a class change after it was made."""
    objects = objects_of(cls)
    found: set[str] = set()
    for method in cls.body:
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) or method.name in MAKING:
            continue
        for node in ast.walk(method):
            if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
                found.add(attribute_of_self(node))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
                changed = node.func.value
                is_object = isinstance(changed, ast.Attribute) and changed.attr in objects and is_self(changed.value)
                found.add("" if is_object else attribute_of_self(changed))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ON_HEAPS:
                found.add(attribute_of_self(node.args[0]))
    return found - {""}


def classes_in(room: Path) -> Iterator[tuple[str, set[str]]]:
    for path in sorted(room.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and (attributes := mutated(node)):
                yield f"{path.relative_to(SOURCES).as_posix()} {node.name}", attributes


def reasons() -> dict[str, str]:
    """Why actions may keep objects of these classes between cycles."""
    kinds = tomllib.loads((Path(__file__).parent / "kept_by_actions.toml").read_text())
    return {name: reason for found in kinds.values() for name, reason in found.items()}


def main() -> None:
    """Print each class with its attributes, and the sums."""
    known = reasons()
    for room in sys.argv[1:] or ["actions", "state"]:
        found = list(classes_in(SOURCES / room))
        for name, attributes in found:
            print(f"  {name}: {', '.join(sorted(attributes))}{'' if name not in known else f'  ({known[name]})'}")
        print(f"{room}: {_sums(found)}")
        kept = [(name, attributes) for name, attributes in found if name in known]
        if kept:
            print(f"  of these kept between cycles: {_sums(kept)}")


def _sums(found: list[tuple[str, set[str]]]) -> str:
    return f"{len(found)} classes, {sum(len(attributes) for _, attributes in found)} attributes"


if __name__ == "__main__":
    main()
