"""The file of a cluster: nobody else reads it, damage is said in one line, and a full disk loses nothing."""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running import Client, running

from mooring.errors import ConfigError
from mooring.kubeapi.clock import SteadyClock
from mooring.kubeapi.store.log import SqliteLog

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir() if path.name.startswith("c.db")}


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_only_the_owner_reads_the_file_and_its_log(tmp_path: Path) -> None:
    data = tmp_path / "c.db"
    before = os.umask(0o000)
    try:
        with running(data) as server:
            server.client().ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
            assert set(modes(tmp_path).values()) == {"0o600"}
            assert "c.db-wal" in modes(tmp_path)
        data.chmod(0o644)  # as an older version left it
        with running(data):
            assert set(modes(tmp_path).values()) == {"0o600"}
    finally:
        os.umask(before)


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_folder_that_everybody_can_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)

    with pytest.raises(ConfigError, match=r"expected a folder that not everybody can write to, found .*0777"):
        SqliteLog(folder / "c.db")
    folder.chmod(0o1777)  # as /tmp: what is there stays its owner's
    SqliteLog(folder / "c.db").close()


def noise(data: Path, at: float, count: int) -> None:
    size = data.stat().st_size
    with data.open("r+b") as file:
        file.seek(int(size * at))
        file.write(os.urandom(count))


def execute(statement: str) -> Callable[[Path], None]:
    def damage(data: Path) -> None:
        with sqlite3.connect(data) as connection:
            connection.execute(statement)
        connection.close()

    return damage


def _write(data: Path, text: str) -> None:
    data.write_text(text)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "noise": lambda data: noise(data, 0.25, int(data.stat().st_size * 0.5)),
    "head": lambda data: noise(data, 0, 100),
    "truncated": lambda data: os.truncate(data, data.stat().st_size // 2),
    "text": lambda data: _write(data, "hello\n" * 1000),
    "object": execute("UPDATE objects SET data = x'00ff' WHERE resource = 'namespaces' AND name = 'default'"),
    "number": execute("UPDATE objects SET data = 7 WHERE resource = 'namespaces' AND name = 'default'"),
    "other object": execute("UPDATE objects SET data = '{}' WHERE resource = 'namespaces' AND name = 'default'"),
    "key": execute("UPDATE kept SET value = x'00ff' WHERE key = 'authority'"),
    "signing key": execute("UPDATE kept SET value = 'abc' WHERE key = 'signing-key'"),
    "revision": execute("UPDATE kept SET value = 'abc' WHERE key = 'revision'"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_is_one_clear_line(tmp_path: Path, kind: str) -> None:
    data = tmp_path / "c.db"
    with running(data):
        pass
    DAMAGES[kind](data)

    command = [sys.executable, "-m", "mooring", "up", "--no-scheduler", "--nodes", "0", "--port", "0"]
    ended = subprocess.run([*command, "--data", str(data)], capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert str(data) in ended.stderr
    assert "expected" in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a folder to keep the file in"):
        SqliteLog(tmp_path / "nowhere" / "c.db")


def test_a_full_disk_is_said_and_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    data = tmp_path / "c.db"
    with running(data) as server:
        client, log = server.client(), server.cluster.store._log
        assert log is not None
        pages = log._connection.execute("PRAGMA page_count").fetchone()[0]
        log._connection.execute(f"PRAGMA max_page_count={pages + 20}")  # SQLite says the same as of a full disk
        acknowledged, refused = fill(client, 0)

        assert (refused["code"], refused["reason"]) == (500, "InternalError")
        assert refused["message"].endswith("the store cannot be written to: database or disk is full")
        assert client.get("/readyz")[0] == 500
        assert "database or disk is full" in client.get("/readyz")[1]
        assert client.get("/livez")[0] == 200
        assert client.get(f"{CONFIG_MAPS}/c0")[0] == 200

        log._connection.execute("PRAGMA max_page_count=1000000")  # room is made
        until = time.monotonic() + 20
        while client.get("/readyz")[0] != 200:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "after"}})[0] == 201
    with running(data) as server:
        there = {each["metadata"]["name"] for each in server.client().get(CONFIG_MAPS)[1]["items"]}
    assert {f"c{number}" for number in range(acknowledged)} | {"after"} <= there


def fill(client: Client, number: int) -> tuple[int, Any]:
    """Write until a write is refused; how many were acknowledged, and the refusal."""
    while True:
        body = {"metadata": {"name": f"c{number}"}, "data": {"a": "x" * 20_000}}
        code, answer = client.ask("POST", CONFIG_MAPS, body)
        if code != 201:
            return number, answer
        number += 1
        assert number < 1000


def test_the_clock_goes_on_where_the_wall_clock_is_set_back() -> None:
    wall, monotonic = [1000.0], [5.0]
    clock = SteadyClock(lambda: wall[0], lambda: monotonic[0])

    def later(seconds: float, jump: float = 0.0) -> float:
        wall[0] += seconds + jump
        monotonic[0] += seconds
        return clock()

    assert [later(1), later(1, -500), later(1), later(1, 900), later(1)] == [1001, 1002, 1003, 1404, 1405]
