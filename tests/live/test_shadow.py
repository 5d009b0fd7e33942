"""A shadow beside another scheduler: it decides, compares, and changes nothing."""

import json
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from binaries import binary
from control_plane import ControlPlane, Program, free_port, is_available, until
from kube import Kube, Object, node, pod

READING = {"get", "list", "watch"}
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
RIGHTS: tuple[Object, ...] = (
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "shadow"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "shadow"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "shadow"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
    },
)


def start_shadow(kube: Kube, kubeconfig: Path, log: Path, *options: str) -> Program:
    command = [sys.executable, "-m", "mooring", "run", f"--kubeconfig={kubeconfig}", "--shadow", f"--shadow-log={log}"]
    program = Program(kube.directory, "shadow", [*command, *options])
    program.start()
    kube._schedulers.append(program)
    program.wait_until_it_says("shadowing default-scheduler")
    return program


def read_report(log: Path, *options: str) -> str:
    command = [sys.executable, "-m", "mooring", "shadow", "report", str(log), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def compared(log: Path) -> dict[str, dict[str, Any]]:
    """The last line about each pod, by the pod's name."""
    lines = [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []
    return {line["pod"].partition("/")[2]: line for line in lines if line["kind"] == "Pod"}


# On a real API server, with kube-scheduler.


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[ControlPlane]:
    """An API server that logs every request, and a user who may read everything and change nothing."""
    if not is_available() or binary("kube-scheduler") is None:
        pytest.skip("kube-apiserver, etcd and kube-scheduler have not been built: python tests/live/binaries.py")
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={tmp_path / 'audit.log'}")
    with ControlPlane(tmp_path / "plane", api_flags=flags) as plane:
        yield plane


def verbs_of(audit: Path, user: str) -> Counter[str]:
    """How often a user sent each kind of request."""
    lines = [json.loads(line) for line in audit.read_bytes().splitlines()]
    return Counter(line["verb"] for line in lines if line["user"]["username"] == user)


def shadow_beside_kube_scheduler(plane: ControlPlane, directory: Path, nodes: int, pods: int) -> dict[str, Any]:
    """Let kube-scheduler bind pods of several kinds beside a shadow; the shadow's report."""
    log = directory / "shadow.jsonl"
    with Kube(plane.kubeconfig, directory) as kube:
        kube.create(*RIGHTS)
        kube.create(
            *(
                node(
                    f"n{number:05}", cpu=8 + 8 * (number % 4), labels={"topology.kubernetes.io/zone": f"z{number % 3}"}
                )
                for number in range(nodes)
            )
        )
        shadow = start_shadow(kube, plane.nobody, log)
        plane.start("kube-scheduler")
        spread = {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "spread"}},
        }
        kinds: list[dict[str, Any]] = [
            {"cpu": "100m"},
            {"cpu": "250m"},
            {"cpu": "500m"},
            {"cpu": "200m", "labels": {"app": "spread"}, "topologySpreadConstraints": [spread]},
        ]
        kube.create(*(pod(f"p{number}", **kinds[number % len(kinds)]) for number in range(pods)))
        names = {f"p{number}" for number in range(pods)}
        kube.wait_until_bound(names, 600)
        until(lambda: names <= compared(log).keys(), 120, shadow.tail)
        assert shadow.stop() == 0, shadow.tail()
    print(read_report(log, "--examples=5"))
    found: dict[str, Any] = json.loads(read_report(log, "-o", "json"))
    return found


def check_agreement(plane: ControlPlane, directory: Path, report: dict[str, Any], pods: int) -> None:
    assert report["pods"] == sum(report["outcomes"].values()) == pods
    assert report["outcomes"]["unconfirmed"] == report["outcomes"]["unschedulable-here"] == 0
    # Binds that are sent side by side arrive in another order than that of the decisions: less than all is expected.
    assert report["sameStateAgreement"] >= 0.5, report
    verbs = verbs_of(directory / "audit.log", "nobody")
    assert verbs["list"] and verbs["watch"] and verbs.keys() <= READING, verbs
    assert verbs_of(directory / "audit.log", "admin")["create"] >= pods


@pytest.mark.live
def test_a_shadow_agrees_with_kube_scheduler_and_sends_no_write_request(audited: ControlPlane, tmp_path: Path) -> None:
    report = shadow_beside_kube_scheduler(audited, tmp_path, nodes=40, pods=300)

    check_agreement(audited, tmp_path, report, 300)


@pytest.mark.live
@pytest.mark.long
def test_a_shadow_follows_five_thousand_pods(audited: ControlPlane, tmp_path: Path) -> None:
    report = shadow_beside_kube_scheduler(audited, tmp_path, nodes=500, pods=5000)

    check_agreement(audited, tmp_path, report, 5000)


# On any API server, where the test itself is the present scheduler.


def bind(kube: Kube, name: str, place: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": place}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    kube.call("POST", f"/api/v1/namespaces/default/pods/{name}/binding", body)


def everything(kube: Kube) -> dict[str, Any]:
    """All objects that a scheduler might write, as they are."""
    paths = (
        "/api/v1/pods",
        "/api/v1/nodes",
        "/api/v1/events",
        "/api/v1/configmaps",
        "/apis/coordination.k8s.io/v1/leases",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    )
    leases = {"kube-apiserver", "apiserver"}  # the server renews its own
    return {
        path: [each for each in kube.objects(path) if not each["metadata"]["name"].startswith(tuple(leases))]
        for path in paths
    }


def test_a_shadow_compares_what_it_would_do_and_changes_nothing(cluster: Kube, tmp_path: Path) -> None:
    log, decisions = tmp_path / "shadow.jsonl", tmp_path / "decisions.jsonl"
    cluster.create(node("large", cpu=16), node("small", cpu=4))
    cluster.create(pod("first", cpu="1"), pod("second", cpu="1"), pod("impossible", cpu="64"))
    before = everything(cluster)
    shadow = start_shadow(cluster, cluster.kubeconfig, log, f"--decision-log={decisions}")

    def decided() -> set[str]:
        lines = [json.loads(line) for line in decisions.read_bytes().splitlines()] if decisions.exists() else []
        return {line["pod"] for line in lines if line["kind"] in ("Bind", "Wait")}

    until(lambda: len(decided()) == 3, 60, shadow.tail)
    assert everything(cluster) == before

    bind(cluster, "first", "large")
    until(lambda: "first" in compared(log), 60, shadow.tail)
    bind(cluster, "second", "small")
    bind(cluster, "impossible", "large")
    until(lambda: len(compared(log)) == 3, 60, shadow.tail)
    assert shadow.stop() == 0, shadow.tail()

    lines = compared(log)
    assert (lines["first"]["outcome"], lines["first"]["node"]) == ("same", "large")
    assert (lines["second"]["outcome"], lines["second"]["bound"]) == ("other", "small")
    assert lines["second"]["difference"] == sum(lines["second"]["plugins"].values()) > 0
    assert lines["impossible"]["outcome"] == "unschedulable-here"
    assert "Insufficient cpu" in lines["impossible"]["message"]
    assert "pod default/second was bound to small; Mooring would choose large" in shadow.log.read_text()
    report = json.loads(read_report(log, "-o", "json"))
    assert (report["kind"], report["pods"], report["decided"], report["decidedAgreement"]) == (
        "ShadowReport",
        3,
        2,
        0.5,
    )
    assert "another node" in read_report(log)


def test_a_decision_is_dropped_after_the_time_that_the_user_gives(cluster: Kube, tmp_path: Path) -> None:
    log = tmp_path / "shadow.jsonl"
    cluster.create(node("n0", cpu=4))
    cluster.create(pod("left", cpu="1"))
    shadow = start_shadow(cluster, cluster.kubeconfig, log, "--shadow-timeout=0.5")

    until(lambda: "left" in compared(log), 60, shadow.tail)

    assert compared(log)["left"]["outcome"] == "unconfirmed"
    assert shadow.stop() == 0, shadow.tail()


def test_a_shadow_serves_its_metrics(cluster: Kube, tmp_path: Path) -> None:
    log, port = tmp_path / "shadow.jsonl", free_port()
    cluster.create(node("n0", cpu=4))
    cluster.create(pod("web", cpu="1"))
    shadow = start_shadow(cluster, cluster.kubeconfig, log, f"--health-address=127.0.0.1:{port}")

    def served(path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            text: str = answer.read().decode()
            return text

    until(lambda: "mooring_shadow_unconfirmed_decisions 1.0" in served("/metrics"), 60, shadow.tail)
    bind(cluster, "web", "n0")
    until(lambda: 'mooring_shadow_pods_total{outcome="same"} 1.0' in served("/metrics"), 60, shadow.tail)
    assert "mooring_shadow_unconfirmed_decisions 0.0" in served("/metrics")
    assert served("/livez").startswith("ok")
    assert shadow.stop() == 0, shadow.tail()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shadow", "--share-nodes"], "--share-nodes: expected to be left out with --shadow"),
        (["--shadow", "--leader-elect"], "--leader-elect: expected to be left out with --shadow"),
        (["--shadow", "--secure-address=127.0.0.1:0"], "--secure-address: expected to be left out with --shadow"),
        (["--shadow", "--remember-as=me"], "--remember-as: expected to be left out with --shadow"),
        (["--shadow", "--shadow-timeout=0"], "--shadow-timeout: expected more than 0 seconds, found 0"),
        (["--shadow", "--shadow-log=x", "--decision-log=x"], "--shadow-log: expected another file than --decision-log"),
        (["--shadow-log=x"], "--shadow-log: expected --shadow beside it, found none"),
    ],
)
def test_options_that_a_shadow_cannot_use_are_refused(options: list[str], message: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mooring", "run", f"--kubeconfig={tmp_path / 'none'}", *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: {message}") and ended.stderr.count("\n") == 1
