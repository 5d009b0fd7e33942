"""Only `state` changes: nobody else writes to the cluster or to what is in it, but by its methods."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mooring
from mooring.state.quota_tree import FlavorResource, QuotaTree, TreeNode
from mooring.state.undo import Trial, UndoLog
from mooring.testing.builders import make_cluster, make_node, make_pod

SOURCES = Path(mooring.__file__).parent
READERS = ("engine", "plugins", "actions", "report", "drivers", "assembly.py", "plugin.py")
"""The rooms that read the state; `testing` makes states that never were, and `state` is who may."""

OF_THE_STATE = {"cluster", "record", "records", "table", "pods", "nodes", "gangs", "tenants", "related", "shapes"}
"""How the state and its parts are called everywhere: what hangs on such a name is the state's."""
OTHERS = {"actions/admit", "drivers/offline", "report", "actions/shares"}
"""Rooms in which some of these names mean something of their own: there, only the cluster counts."""
CHANGES = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}


def files() -> Iterator[Path]:
    for reader in READERS:
        found = SOURCES / reader
        yield from sorted(found.rglob("*.py")) if found.is_dir() else [found]


def names_in(node: ast.expr) -> list[str]:
    """`self.cluster.pods.records[key].row` as its names, from left to right."""
    if isinstance(node, ast.Attribute):
        return [*names_in(node.value), node.attr.lstrip("_")]
    if isinstance(node, ast.Subscript | ast.Starred):
        return names_in(node.value)
    return [node.id.lstrip("_")] if isinstance(node, ast.Name) else []


def writes_in(source: str, room: str) -> Iterator[str]:
    """What the source of a room's file writes to that belongs to the state."""
    own = {"cluster"} if any(room.startswith(other) for other in OTHERS) else OF_THE_STATE
    for node in ast.walk(ast.parse(source)):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = [part for target in node.targets for part in getattr(target, "elts", [target])]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            # cluster.pods.records.pop(...): the state's own methods are called on the cluster itself, or on its tables.
            targets = [node.func] if len(names_in(node.func)) > 3 else []
        for target in targets:
            names = names_in(target)
            is_below = any(name in own for name in names[:-1] if name != "self")
            if isinstance(target, ast.Attribute | ast.Subscript) and is_below and names[0] != "queue":
                yield f"{room}:{target.lineno} {'.'.join(names)}"


def test_nobody_but_the_state_writes_to_it() -> None:
    rooms = ((path.read_text(), path.relative_to(SOURCES).as_posix()) for path in files())

    assert [write for source, room in rooms for write in writes_in(source, room)] == []


@pytest.mark.parametrize(
    "line",
    [
        "record.row = 3",
        "cluster.pods.records.pop(key)",
        "self._cluster.nodes.version += 1",
        "touched, table.touched = table.touched, set()",
        "del cluster.gangs.records[key]",
    ],
)
def test_a_write_is_found(line: str) -> None:
    assert list(writes_in(line, "actions/place/action.py"))


def test_reading_and_the_clusters_own_methods_are_free() -> None:
    source = "cluster.assume(key, row)\nrow = cluster.pods.records[key].row\nself.held = None\nqueue.gangs.get(key)\n"

    assert list(writes_in(source, "actions/place/action.py")) == []


def test_there_is_one_undo_log() -> None:
    """Whatever is tried out, quota as well as places, is undone by the cluster's: nobody else makes one."""
    makers = [
        path.relative_to(SOURCES).as_posix()
        for path in sorted(SOURCES.rglob("*.py"))
        if "testing" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and names_in(node.func)[-1:] == ["UndoLog"]
    ]

    assert makers == ["state/placements.py"]


def test_quota_and_places_are_tried_out_in_one_what_if() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=4)], pods=[make_pod("pod", cpu=1)])
    tree = QuotaTree([TreeNode("queue", is_queue=True)], [FlavorResource("default", "cpu")], cluster.log)
    (key,) = cluster.pods.records

    with cluster.what_if():
        tree.add(0, 0, 3)
        cluster.assume(key, 0)

    assert (tree.usage_of(0, 0), cluster.pods.records[key].node_name) == (0, "")


def test_what_is_for_good_outlives_a_what_if_around_it() -> None:
    log = UndoLog()
    tree = QuotaTree([TreeNode("queue", is_queue=True)], [FlavorResource("default", "cpu")], log)

    with Trial(log):
        with log.for_good():
            tree.add(0, 0, 3)
        with Trial(log):
            tree.add(0, 0, 1)

    assert tree.usage_of(0, 0) == 3
