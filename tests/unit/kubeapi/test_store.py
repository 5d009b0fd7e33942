"""The store: revisions, order, what watchers see, what survives."""

from pathlib import Path
from typing import Any

import pytest

from mooring.errors import ConfigError
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.log import SqliteLog
from mooring.kubeapi.store.records import Record
from mooring.kubeapi.store.store import Store


def obj(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


def names(records: list[Record]) -> list[str]:
    return [record.name for record in records]


def test_each_change_has_the_next_revision() -> None:
    store = Store()

    revisions = [store.put("pods", "a", "x", obj("x")).revision, store.put("pods", "a", "y", obj("y")).revision]
    revisions.append(store.remove("pods", "a", "x", obj("x")).revision)

    assert revisions == [2, 3, 4]
    assert store.revision == 4
    assert names(list(store.records("pods"))) == ["y"]


def test_lists_are_ordered_by_namespace_and_name() -> None:
    store = Store()
    for namespace, name in (("b", "2"), ("a", "9"), ("b", "1"), ("a", "10")):
        store.put("pods", namespace, name, obj(name))

    assert [record.key for record in store.records("pods")] == [("a", "10"), ("a", "9"), ("b", "1"), ("b", "2")]


def test_a_watch_sees_what_is_published_once_and_in_order() -> None:
    store = Store()
    watch = store.watch("pods", None, store.revision)

    store.put("pods", "a", "x", obj("x"))
    store.put("pods", "a", "x", obj("x", colour="red"))
    store.remove("pods", "a", "x", obj("x", colour="red"))
    before = list(watch.waiting)
    store.flush()

    assert before == []
    assert [(type_, record.revision) for type_, record in watch.waiting] == [
        ("ADDED", 2),
        ("MODIFIED", 3),
        ("DELETED", 4),
    ]


def test_a_watch_from_the_past_begins_with_what_it_missed() -> None:
    store = Store()
    first = store.put("pods", "a", "x", obj("x")).revision
    store.put("pods", "a", "y", obj("y"))
    store.put("pods", "b", "z", obj("z"))
    store.flush()

    watch = store.watch("pods", "a", first)
    store.put("pods", "a", "w", obj("w"))
    store.flush()

    assert [(type_, record.name) for type_, record in watch.waiting] == [("ADDED", "y"), ("ADDED", "w")]


def test_a_watch_from_the_future_waits_for_it() -> None:
    store = Store()
    watch = store.watch("pods", None, store.revision + 2)
    for name in "abc":
        store.put("pods", "n", name, obj(name))
    store.flush()

    assert [record.name for _, record in watch.waiting] == ["c"]


def test_who_selects_sees_objects_come_and_go_with_their_labels() -> None:
    store = Store()
    watch = store.watch("pods", None, 1, lambda record: record.labels.get("colour") == "red")
    store.put("pods", "n", "x", obj("x", colour="blue"))
    store.put("pods", "n", "x", obj("x", colour="red"))
    store.put("pods", "n", "x", obj("x", colour="red", size="big"))
    store.put("pods", "n", "x", obj("x", colour="green"))
    store.flush()

    seen = [(type_, record.revision, record.labels["colour"]) for type_, record in watch.waiting]
    assert seen == [("ADDED", 3, "red"), ("MODIFIED", 4, "red"), ("DELETED", 5, "red")]


def test_what_is_forgotten_is_gone() -> None:
    store = Store()
    for name in "abc":
        store.put("pods", "n", name, obj(name))
    store.flush()
    store.compact()

    with pytest.raises(ApiError) as refused:
        store.watch("pods", None, 2)
    assert (refused.value.code, refused.value.reason) == (410, "Expired")
    assert not store.watch("pods", None, store.revision).waiting


def test_only_so_much_is_remembered() -> None:
    store = Store(most_events=3)
    for name in "abcdef":
        store.put("pods", "n", name, obj(name))

    assert store.compacted == 4
    assert len(store.table("pods").events) == 3


def test_a_list_of_the_past_shows_what_was_there() -> None:
    store = Store()
    store.put("pods", "n", "a", obj("a", colour="red"))
    then = store.put("pods", "n", "b", obj("b")).revision
    store.put("pods", "n", "a", obj("a", colour="blue"))
    store.put("pods", "n", "c", obj("c"))
    store.remove("pods", "n", "b", obj("b"))

    assert [(record.name, record.labels) for record in store.records_at("pods", then, None, None)] == [
        ("a", {"colour": "red"}),
        ("b", {}),
    ]
    assert names(store.records_at("pods", then, None, ("n", "a"))) == ["b"]


def test_what_is_written_is_there_after_a_restart(tmp_path: Path) -> None:
    store = Store(SqliteLog(tmp_path / "cluster.db"))
    store.put("pods", "n", "a", obj("a"))
    store.put("pods", "n", "b", obj("b"))
    store.remove("pods", "n", "a", obj("a"))
    store.close()

    again = Store(SqliteLog(tmp_path / "cluster.db"))

    assert [(record.name, record.revision) for record in again.records("pods")] == [("b", 3)]
    assert again.revision == 4
    with pytest.raises(ApiError, match="too old resource version"):
        again.watch("pods", None, 2)
    again.close()


def test_a_file_in_use_is_refused_in_one_line(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "cluster.db")

    with pytest.raises(ConfigError, match="another process has open"):
        SqliteLog(tmp_path / "cluster.db")
    log.close()


def test_a_file_that_is_no_database_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("these are notes, " * 100)

    with pytest.raises(ConfigError, match="not a database"):
        SqliteLog(tmp_path / "notes.txt")
