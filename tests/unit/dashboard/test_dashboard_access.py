"""Who may open the pages, and what a browser may do with them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from mooring.dashboard.access import Access, ByOneToken, everybody, hosts_of, is_loopback
from mooring.dashboard.app import LARGEST_FORM, make_app
from mooring.dashboard.picture import Picture, take_picture, what_if
from mooring.dashboard.watching import Watching
from mooring.drivers.live.dashboard_process import listen, parse_address
from mooring.drivers.offline.reading import Inputs, read
from mooring.errors import InputError
from mooring.observe.progress import Progress

CLUSTER = """
{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]}
"""
Connect = Callable[..., TestClient]


@pytest.fixture
def picture(tmp_path: Path) -> Picture:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    return take_picture(1, str(file), read(Inputs([str(file)]), Progress()))


@pytest.fixture
def connect(picture: Picture) -> Connect:
    def make(host: str = "127.0.0.1", token: str = "", name: str = "localhost") -> TestClient:
        app = make_app(Watching(picture), Access(hosts_of(host), ByOneToken(token) if token else everybody))
        return TestClient(app, base_url=f"http://{name}")

    return make


def test_pages_on_this_machine_answer_to_its_names_only(connect: Connect) -> None:
    assert connect().get("/").status_code == 200
    assert connect(name="127.0.0.1:8010").get("/").status_code == 200
    assert connect(name="[::1]:8010").get("/").status_code == 200
    assert connect(name="evil.example").get("/").status_code == 421


def test_elsewhere_nothing_is_shown_without_the_token(connect: Connect) -> None:
    client = connect("0.0.0.0", "secret", "cluster.example")

    for path in ("/", "/data/nodes.json", "/pods/default/p", "/static/look.css", "/events", "/what-if"):
        assert client.get(path).status_code == 401, path
    assert client.get("/", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/?token=wrong").status_code == 401
    assert client.get("/", headers={"Authorization": "Bearer secret"}).status_code == 200


def test_the_link_leaves_the_token_with_the_browser_and_out_of_the_address(connect: Connect) -> None:
    client = connect("0.0.0.0", "secret", "cluster.example")

    answer = client.get("/pods?token=secret&search=p", follow_redirects=False)

    assert (answer.status_code, answer.headers["location"]) == (303, "/pods?search=p")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert client.get("/pods").status_code == 200


def test_every_answer_keeps_scripts_and_frames_of_others_away(connect: Connect) -> None:
    client = connect()
    for path in ("/", "/nodes/none", "/static/node-map.js", "/data/nodes.json"):
        headers = client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_nothing_can_be_changed(connect: Connect) -> None:
    client = connect()
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("/", "/nodes/n", "/pods/default/p", "/queues", "/data/nodes.json"):
            assert client.request(method, path).status_code == 405, (method, path)


def test_a_form_that_is_too_large_is_refused(connect: Connect) -> None:
    answer = connect().post("/what-if", data={"manifests": "x" * (LARGEST_FORM + 1)})
    assert answer.status_code == 413


def test_what_if_leaves_the_picture_as_it_is(picture: Picture) -> None:
    before = picture.nodes.allocated

    outcome = what_if(picture, CLUSTER.replace("{name: p}", "{name: q}").replace("cpu: 1}", "cpu: 2}"))

    assert [(each.pod, each.node) for each in outcome.result.placements] == [("q", "n")]
    assert picture.nodes.allocated == before == {"cpu": [25.0], "memory": [0.0]}
    assert picture.explain("default/p").state == "placed"


@pytest.mark.parametrize(
    "manifests", ["", "   ", "kind: [", "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: 5}"]
)
def test_bad_manifests_are_told_in_one_line_that_names_no_file_of_ours(picture: Picture, manifests: str) -> None:
    with pytest.raises(InputError, match="what-if") as told:
        what_if(picture, manifests)
    assert "/tmp" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:9", ("::1", 9)), (":8010", ("0.0.0.0", 8010))],
)
def test_an_address_is_read(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text, "--address") == expected


@pytest.mark.parametrize("text", ["8010", "localhost", "localhost:http", "localhost:70000", ""])
def test_a_bad_address_is_told(text: str) -> None:
    with pytest.raises(InputError, match="--address: expected HOST:PORT"):
        parse_address(text, "--address")


def test_only_this_machines_addresses_are_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.com")))


def test_a_socket_can_be_inherited_by_its_number() -> None:
    with listen("127.0.0.1:0", "--address") as first:
        other = listen(f"fd:{first.fileno()}", "--address")
        assert other.getsockname() == first.getsockname()
        other.detach()
    with pytest.raises(InputError, match="--address: expected the number of an open socket, found 'fd:x'"):
        listen("fd:x", "--address")
