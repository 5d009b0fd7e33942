"""Nothing that asks for a revision of the future holds up anyone else."""

import base64
import json
from urllib.parse import quote

import pytest
from running import Client, Running, WatchStream, rule

CONFIG_MAPS = "/api/v1/namespaces/ten/configmaps"
FUTURE = {"v": "meta.k8s.io/v1", "rv": 99_999_999_999, "start": ["a", "b"]}


@pytest.fixture(scope="module")
def reader(server: Running) -> Client:
    return server.account("ten", "reader", [rule("configmaps", "list watch")])


def token(value: object) -> str:
    return quote(base64.urlsafe_b64encode(json.dumps(value).encode()).decode())


@pytest.mark.parametrize(
    "query",
    [
        "resourceVersion=999999",
        "resourceVersion=999999&resourceVersionMatch=Exact",
        "resourceVersion=999999&resourceVersionMatch=NotOlderThan&limit=1",
        f"limit=1&continue={token(FUTURE)}",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=999999",
    ],
)
def test_a_future_revision_is_refused_and_writes_go_on(client: Client, reader: Client, query: str) -> None:
    code, answer = reader.get(f"{CONFIG_MAPS}?{query}")
    status = answer.get("object", answer)

    assert (status["code"], status["reason"]) == (504, "Timeout")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert code in (200, 504)
    for name in ("a", "b"):
        assert client.ask("POST", CONFIG_MAPS, {"metadata": {"name": name}})[0] == 201
        assert client.ask("DELETE", f"{CONFIG_MAPS}/{name}")[0] == 200


@pytest.mark.parametrize(
    "query",
    [
        f"resourceVersion={quote('²')}",
        "resourceVersion=%D9%A1",
        "continue=" + quote(base64.urlsafe_b64encode(b'{"rv":1e400,"start":["a","b"]}').decode()),
        "continue=" + quote(base64.urlsafe_b64encode(b"[" * 3000).decode()),
        "labelSelector=" + quote("a>x"),
        "labelSelector=" + quote("a>" + "9" * 30),
    ],
)
def test_an_odd_query_is_a_bad_request(client: Client, query: str) -> None:
    assert client.get(f"{CONFIG_MAPS}?{query}")[0] in (400, 422)


def test_a_watch_from_a_future_revision_says_nothing_until_then(client: Client, reader: Client) -> None:
    stream = WatchStream(reader, f"{CONFIG_MAPS}?watch=1&resourceVersion=999999&timeoutSeconds=1")
    assert client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "meanwhile"}})[0] == 201

    assert list(stream) == []
    stream.close()
