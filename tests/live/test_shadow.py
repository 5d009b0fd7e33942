"""A shadow beside another scheduler: it decides, compares, and changes nothing."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from binaries import binary
from control_plane import ControlPlane, EmbeddedPlane, Program, is_available, until
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
    assert report["sameStateAgreement"] >= 0.8, report
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
