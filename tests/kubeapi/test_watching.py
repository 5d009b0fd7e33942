"""A watch sees every change once and in order, however many there are, and recovers from a past that is forgotten."""

import threading
from typing import Any

from running import Client, Running, WatchStream

PATH = "/api/v1/namespaces/default/configmaps"
CHANGES = 20_000
OBJECTS = 500


def config_map(name: str, number: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"suite": "changes"}}, "data": {"number": str(number)}}


def change_all(server: Running, changes: int) -> None:
    """Create, change and delete objects, many in one turn of the loop, as many clients at once do."""
    api = server.cluster.api

    def some(numbers: range) -> None:
        for number in numbers:
            name, turn = f"c-{number % OBJECTS}", number // OBJECTS
            if turn % 8 == 0:
                api.create("configmaps", config_map(name, number), "default")
            elif turn % 8 == 7:
                api.delete("configmaps", "default", name)
            else:
                found = api.get("configmaps", "default", name)
                api.update("configmaps", {**found, "data": {"number": str(number)}})

    for start in range(0, changes, 100):
        server.call(some, range(start, min(changes, start + 100)))


def test_a_watch_sees_20_000_changes_once_and_in_order(server: Running, client: Client) -> None:
    _, listed = client.get(f"{PATH}?limit=1")
    version = listed["metadata"]["resourceVersion"]
    streams = [
        WatchStream(client, f"{PATH}?watch=1&resourceVersion={version}&labelSelector=suite%3Dchanges"),
        WatchStream(client, f"{PATH}?watch=1&resourceVersion={version}&allowWatchBookmarks=true"),
    ]
    seen: list[list[tuple[str, int, str]]] = [[], []]

    def read(index: int) -> None:
        for event in streams[index]:
            if event["type"] == "BOOKMARK" or not event["object"]["metadata"]["name"].startswith("c-"):
                continue
            about = event["object"]["metadata"]
            number = event["object"]["data"]["number"] if event["type"] != "DELETED" else ""
            seen[index].append((event["type"], int(about["resourceVersion"]), number))
            if len(seen[index]) == CHANGES:
                return

    readers = [threading.Thread(target=read, args=(index,)) for index in range(2)]
    for reader in readers:
        reader.start()
    change_all(server, CHANGES)
    for reader in readers:
        reader.join(120)
    for stream in streams:
        stream.close()

    kinds = ["ADDED", *["MODIFIED"] * 6, "DELETED"]
    expected = [
        (kinds[number // OBJECTS % 8], "" if number // OBJECTS % 8 == 7 else str(number)) for number in range(CHANGES)
    ]
    for each in seen:
        assert [(type_, number) for type_, _, number in each] == expected
        versions = [version for _, version, _ in each]
        assert versions == sorted(set(versions))


def test_concurrent_updates_lose_none(server: Running, client: Client) -> None:
    client.ask("POST", PATH, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "counter"}})
    conflicts = []

    def count() -> None:
        own = Client(server.cluster)
        done = 0
        while done < 50:
            _, found = own.get(f"{PATH}/counter")
            number = int((found.get("data") or {}).get("number", "0"))
            code, _ = own.ask("PUT", f"{PATH}/counter", {**found, "data": {"number": str(number + 1)}})
            if code == 200:
                done += 1
            else:
                assert code == 409
                conflicts.append(code)
        own.close()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert client.get(f"{PATH}/counter")[1]["data"] == {"number": "200"}


def test_a_client_recovers_from_a_forgotten_past(server: Running, client: Client) -> None:
    _, created = client.ask("POST", PATH, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}})
    for number in range(3):
        client.ask("PATCH", f"{PATH}/kept", {"data": {"n": str(number)}}, content_type="application/merge-patch+json")
    server.call(server.cluster.store.compact)

    late = WatchStream(client, f"{PATH}?watch=1&resourceVersion={created['metadata']['resourceVersion']}")
    stale = late.next()
    late.close()
    _, listed = client.get(PATH)
    stream = WatchStream(client, f"{PATH}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}")
    client.ask("DELETE", f"{PATH}/kept")
    event = stream.next()
    stream.close()

    assert (stale["type"], stale["object"]["code"]) == ("ERROR", 410)
    assert (event["type"], event["object"]["data"]) == ("DELETED", {"n": "2"})


def test_a_client_that_does_not_read_holds_up_nobody(server: Running, client: Client) -> None:
    """A watch whose reader sleeps: the server goes on, and so does the reader when it wakes."""
    _, listed = client.get(f"{PATH}?limit=1")
    stream = WatchStream(client, f"{PATH}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}")
    change_all(server, 4_000)

    assert client.get("/readyz") == (200, "ok")
    versions = []
    for event in stream:
        versions.append(int(event["object"]["metadata"]["resourceVersion"]))
        if len(versions) == 4_000:
            break
    stream.close()
    assert versions == sorted(set(versions))
