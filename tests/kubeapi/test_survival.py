"""`kill -9` in the middle of a load, and again: whatever was acknowledged is there after the restart."""

import http.client
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from running import start_server, tls_context

WRITERS = 4
PATH = "/api/v1/namespaces/default/configmaps"


class Load:
    """Writers that create, change and delete objects of their own, and note what was acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, int | None] = {}
        """The last number that an object is known to hold; None if it is known to be gone."""
        self.under_way: dict[str, int | None] = {}
        """What was asked for and not answered: it may have happened."""
        self._next = 0
        self._lock = threading.Lock()

    def run(self, config: dict[str, Any]) -> None:
        threads = [threading.Thread(target=self._write, args=(config,)) for _ in range(WRITERS)]
        for thread in threads:
            thread.start()
        self._threads = threads

    def wait(self) -> None:
        for thread in self._threads:
            thread.join()

    def _write(self, config: dict[str, Any]) -> None:
        port = int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2])
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=tls_context(config), timeout=10)
        try:
            while True:
                with self._lock:
                    name = f"object-{self._next}"
                    self._next += 1
                self._do(connection, "POST", PATH, name, 1)
                self._do(connection, "PUT", f"{PATH}/{name}", name, 2)
                if int(name.rpartition("-")[2]) % 3 == 0:
                    self._do(connection, "DELETE", f"{PATH}/{name}", name, None)
        except (OSError, http.client.HTTPException):
            pass  # the server was killed
        finally:
            connection.close()

    def _do(
        self, connection: http.client.HTTPSConnection, method: str, path: str, name: str, number: int | None
    ) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"number": str(number)}}
        self.under_way[name] = number
        connection.request(
            method, path, json.dumps(body) if number is not None else None, {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (200, 201), (method, path, answer.status)
        self.acknowledged[name] = number
        del self.under_way[name]


def held(config: dict[str, Any]) -> dict[str, int]:
    port = int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=tls_context(config), timeout=30)
    connection.request("GET", PATH)
    items = json.loads(connection.getresponse().read())["items"]
    connection.close()
    found = {item["metadata"]["name"]: item.get("data") or {} for item in items}
    return {name: int(data["number"]) for name, data in found.items() if name.startswith("object-")}


@pytest.mark.parametrize(
    "kills", [pytest.param(3, id="a few times"), pytest.param(100, id="a hundred times", marks=pytest.mark.long)]
)
def test_every_acknowledged_write_survives_kill_9(tmp_path: Path, kills: int) -> None:
    load = Load()
    server, config = start_server(tmp_path)
    for kill in range(kills):
        load.run(config)
        time.sleep(0.15 + 0.037 * (kill % 10))
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        load.wait()
        server, config = start_server(tmp_path)
        found = held(config)
        lost = {
            name: (number, found.get(name))
            for name, number in load.acknowledged.items()
            if found.get(name) != number and not (name in load.under_way and found.get(name) == load.under_way[name])
        }
        assert lost == {}, f"after kill {kill + 1}"
        load.acknowledged.update({name: found.get(name) for name in load.under_way})
        load.under_way.clear()
    server.terminate()

    assert server.wait(20) == 0
    assert len(load.acknowledged) > kills
