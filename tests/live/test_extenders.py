"""Extenders of a KubeSchedulerConfiguration, asked over HTTP as people have them."""

import base64
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from control_plane import until
from kube import Kube, node, pod

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: http://127.0.0.1:{port}/scheduler
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 5
  nodeCacheCapable: true
  httpTimeout: 5s
  {more}
"""


class ExtenderServer(ThreadingHTTPServer):
    """Lets pods have n1 and n2, and likes n2 best."""

    asked: list[str]
    spared: str = ""
    """The pod whose eviction it does not agree to, by its uid."""
    nonsense: Any = None
    """What to answer whatever is asked."""


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, ExtenderServer)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.rpartition("/")[2]
        server.asked.append(verb)
        answer: Any = None
        if verb == "filter":
            answer = {"NodeNames": [name for name in body["NodeNames"] if name != "n0"], "FailedNodes": {"n0": "no"}}
        elif verb == "prioritize":
            answer = [{"Host": name, "Score": 10 if name == "n2" else 0} for name in body["NodeNames"]]
        elif verb == "preempt":
            allowed = {name: found for name, found in body["NodeNameToMetaVictims"].items() if name != "n1"}
            for found in allowed.values():
                found["Pods"] = [each for each in found["Pods"] if each["UID"] != server.spared]
            answer = {"NodeNameToMetaVictims": allowed}
        content = json.dumps(server.nonsense or answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def extender() -> Iterator[ExtenderServer]:
    with ExtenderServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_extender_decides_with_us_on_the_pods_that_concern_it(
    cluster: Kube, extender: ExtenderServer, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    more = "managedResources: [{name: example.com/fpga}]"
    config.write_text(CONFIG.format(port=extender.server_port, more=more))
    amounts: dict[str, Any] = {"example.com/fpga": "4"}
    cluster.create(*(node(f"n{i}", **amounts) for i in range(3)))
    cluster.run(f"--config={config}")
    plain = pod("plain")
    concerned = pod("concerned")
    resources = {"requests": {"cpu": "1", "example.com/fpga": "1"}, "limits": {"example.com/fpga": "1"}}
    concerned["spec"]["containers"][0]["resources"] = resources
    cluster.create(plain)
    cluster.wait_until_bound(["plain"])
    assert extender.asked == []
    cluster.create(concerned)
    assert cluster.wait_until_bound(["concerned"]) == {"concerned": "n2"}
    assert extender.asked[:2] == ["filter", "prioritize"]


def test_one_that_may_be_ignored_and_does_not_answer_is(cluster: Kube, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(port=9, more="ignorable: true"))
    cluster.create(node("n0"))
    cluster.run(f"--config={config}")
    cluster.create(pod("one"))
    cluster.wait_until_bound(["one"])


def test_one_that_does_not_answer_keeps_its_pods_waiting(cluster: Kube, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(port=9, more=""))
    cluster.create(node("n0"))
    scheduler = cluster.run(f"--config={config}")
    cluster.create(pod("one"))
    until(lambda: "extender http://127.0.0.1:9/scheduler/filter" in scheduler.log.read_text(), 30, scheduler.tail)
    assert cluster.by_node() == {"": 1}


def test_one_that_binds_is_left_to_bind(cluster: Kube, extender: ExtenderServer, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(port=extender.server_port, more="bindVerb: bind"))
    cluster.create(*(node(f"n{i}") for i in range(3)))
    scheduler = cluster.run(f"--config={config}")
    cluster.create(pod("one"))
    until(lambda: "bind" in extender.asked, 30, scheduler.tail)
    assert cluster.by_node() == {"": 1}


def test_nobody_is_evicted_where_an_extender_does_not_let_it(
    cluster: Kube, extender: ExtenderServer, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(port=extender.server_port, more="preemptVerb: preempt"))
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 9}
    cluster.create(urgent, *(node(f"n{i}", cpu=2) for i in range(3)))
    cluster.create(*(pod(f"low-{i}", cpu="2", nodeName=f"n{i}") for i in range(3)))
    cluster.run(f"--config={config}")
    cluster.create(pod("high", cpu="2", priorityClassName="urgent"))
    # n0 is filtered out, on n1 nobody may be evicted.
    assert cluster.wait_until_bound(["high"]) == {"high": "n2"}
    assert set(cluster.pods()) == {"low-0", "low-1", "high"}
    assert "preempt" in extender.asked


def test_a_victim_that_an_extender_spares_is_not_evicted(
    cluster: Kube, extender: ExtenderServer, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(port=extender.server_port, more="preemptVerb: preempt"))
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 9}
    cluster.create(urgent, node("n2", cpu=2), node("n3", cpu=2))
    cluster.create(*(pod(f"low-{i}", cpu="1", nodeName="n2") for i in range(2)))
    cluster.create(*(pod(f"low-{i}", cpu="1", nodeName="n3") for i in range(2, 4)))
    extender.spared = cluster.pods()["low-1"]["metadata"]["uid"]
    cluster.run(f"--config={config}")
    cluster.create(pod("high", cpu="2", priorityClassName="urgent"))
    assert cluster.wait_until_bound(["high"]) == {"high": "n3"}
    assert set(cluster.pods()) == {"low-0", "low-1", "high"}


def test_what_an_extender_manages_alone_nodes_need_not_have(
    cluster: Kube, extender: ExtenderServer, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    more = "managedResources: [{name: example.com/fpga, ignoredByScheduler: %s}]"
    config.write_text(CONFIG.format(port=extender.server_port, more=more % "false"))
    cluster.create(*(node(f"n{i}") for i in range(3)))
    counting = cluster.run(f"--config={config}", name="counting")
    one = pod("one")
    resources = {"requests": {"cpu": "1", "example.com/fpga": "1"}, "limits": {"example.com/fpga": "1"}}
    one["spec"]["containers"][0]["resources"] = resources
    cluster.create(one)
    until(lambda: any("Insufficient example.com/fpga" in note for _, note in cluster.events("one")), 30)
    assert counting.stop() == 0
    config.write_text(CONFIG.format(port=extender.server_port, more=more % "true"))
    cluster.run(f"--config={config}", name="ignoring")
    assert cluster.wait_until_bound(["one"]) == {"one": "n2"}


@pytest.mark.parametrize("given", ["files", "data"])
def test_an_extender_is_asked_over_https_and_verified_by_its_ca(
    cluster: Kube, extender: ExtenderServer, tmp_path: Path, given: str
) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=extender -keyout {key} -out {certificate}"
    names = ("-addext", "subjectAltName=DNS:extender")
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.verify_mode = ssl.CERT_REQUIRED  # and it wants to know who asks
    context.load_verify_locations(certificate)
    extender.socket = context.wrap_socket(extender.socket, server_side=True)
    ours = f"{{caFile: {certificate}, certFile: {certificate}, keyFile: {key}, serverName: extender}}"
    if given == "data":
        crt, secret = (base64.b64encode(path.read_bytes()).decode() for path in (certificate, key))
        ours = f"{{caData: {crt}, certData: {crt}, keyData: {secret}, serverName: extender}}"
    text = CONFIG.format(port=extender.server_port, more=f"enableHTTPS: true\n  tlsConfig: {ours}")
    config = tmp_path / "config.yaml"
    config.write_text(text.replace("http://", "https://"))
    cluster.create(*(node(f"n{i}") for i in range(3)))
    cluster.run(f"--config={config}")
    cluster.create(pod("one"))
    assert cluster.wait_until_bound(["one"]) == {"one": "n2"}


def test_a_certificate_that_nobody_vouches_for_is_not_believed_unless_told_to(
    cluster: Kube, extender: ExtenderServer, tmp_path: Path
) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=extender -keyout {key} -out {certificate}"
    subprocess.run(command.split(), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    extender.socket = context.wrap_socket(extender.socket, server_side=True)
    config = tmp_path / "config.yaml"
    text = CONFIG.replace("http://", "https://")
    config.write_text(text.format(port=extender.server_port, more="tlsConfig: {insecure: false}"))
    cluster.create(*(node(f"n{i}") for i in range(3)))
    scheduler = cluster.run(f"--config={config}", name="wary")
    cluster.create(pod("one"))
    until(lambda: "ClientConnectorCertificateError" in scheduler.log.read_text(), 30, scheduler.tail)
    assert scheduler.stop() == 0
    config.write_text(text.format(port=extender.server_port, more="tlsConfig: {insecure: true}"))
    cluster.run(f"--config={config}", name="trusting")
    assert cluster.wait_until_bound(["one"]) == {"one": "n2"}


def test_they_are_asked_about_our_pods_when_their_gates_are_open(
    cluster: Kube, extender: ExtenderServer, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(port=extender.server_port, more=""))
    cluster.create(*(node(f"n{i}") for i in range(3)))
    scheduler = cluster.run(f"--config={config}")
    cluster.create(pod("foreign", schedulerName="another"), pod("held", schedulingGates=[{"name": "example.com/wait"}]))
    scheduler.wait_until_it_says("scheduling for")
    cluster.create(pod("free"))
    cluster.wait_until_bound(["free"])
    assert extender.asked == ["filter", "prioritize"]
    path, open_ = "/api/v1/namespaces/default/pods/held", {"spec": {"schedulingGates": None}}
    cluster.call("PATCH", path, open_, "application/merge-patch+json")
    assert cluster.wait_until_bound(["held"]) == {"held": "n2"}


def test_a_new_configuration_brings_its_own_extenders(cluster: Kube, extender: ExtenderServer, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(port=9, more=""))
    cluster.create(*(node(f"n{i}") for i in range(3)))
    scheduler = cluster.run(f"--config={config}")
    cluster.create(pod("one"))
    until(lambda: "extender http://127.0.0.1:9/scheduler/filter" in scheduler.log.read_text(), 30, scheduler.tail)
    cluster.create(node("n3"))
    config.write_text(CONFIG.format(port=extender.server_port, more=""))
    scheduler.send(1)
    assert cluster.wait_until_bound(["one"]) == {"one": "n2"}


@pytest.mark.parametrize("may_be_ignored", [True, False])
def test_an_answer_of_another_form_is_none(
    cluster: Kube, extender: ExtenderServer, tmp_path: Path, may_be_ignored: bool
) -> None:
    config = tmp_path / "config.yaml"
    extender.nonsense = ["not", {"what": "was asked for"}]
    config.write_text(CONFIG.format(port=extender.server_port, more="ignorable: true" if may_be_ignored else ""))
    cluster.create(node("n0"))
    scheduler = cluster.run(f"--config={config}")
    cluster.create(pod("one"))
    if may_be_ignored:
        cluster.wait_until_bound(["one"])
    else:
        until(lambda: "its answer is not of the form" in scheduler.log.read_text(), 30, scheduler.tail)
        assert cluster.by_node() == {"": 1}
        extender.nonsense = None
        extender.asked.clear()
        cluster.create(node("n1"))
        assert cluster.wait_until_bound(["one"]) == {"one": "n1"}
