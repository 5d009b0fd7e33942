"""What goes wrong before or beside scheduling: each time a clear line, or service that says what it lacks."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from control_plane import ADMIN, NOBODY, ControlPlane, free_port, until
from kube import Kube, condition, node, pod

pytestmark = pytest.mark.live


def run(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "mooring", "run", "--leader-elect=false", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=180)


def get(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except (urllib.error.URLError, OSError):
        return 0, ""


def test_a_user_without_rights_is_told_which_right_is_missing(plane: ControlPlane) -> None:
    found = run(f"--kubeconfig={plane.nobody}")
    assert found.returncode == 1
    last = found.stderr.splitlines()[-1]
    assert last.startswith("error: ") and 'User "nobody" cannot list resource' in last
    assert NOBODY not in found.stderr


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "expected a kubeconfig, found no such file"),
        ("not: [a, kubeconfig", "expected a kubeconfig, found one that cannot be used"),
        ("apiVersion: v1\nkind: Config\n", "expected a kubeconfig, found one that cannot be used"),
    ],
)
def test_a_bad_kubeconfig_is_one_line(tmp_path: Path, content: str | None, expected: str) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    found = run(f"--kubeconfig={path}")
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert found.stderr.startswith(f"error: {path}: {expected}")


def test_a_server_that_nobody_answers_at_ends_it(plane: ControlPlane) -> None:
    server = f"https://127.0.0.1:{free_port()}"
    found = run(f"--kubeconfig={plane.kubeconfig}", f"--master={server}")
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1].startswith(f"error: {server}: ")
    assert ADMIN not in found.stderr


def test_a_cluster_without_kueue_says_so_and_is_ready_all_the_same(kube: Kube) -> None:
    address = f"127.0.0.1:{free_port()}"
    kube.create(node("n0"))
    scheduler = kube.run(f"--health-address={address}")
    until(lambda: get(f"{address}/readyz")[0] == 200, 30, scheduler.tail)
    assert "[~]kinds this cluster does not have ClusterQueue.kueue.x-k8s.io" in get(f"{address}/readyz")[1]
    assert get(f"{address}/livez") == (200, "ok")
    kube.create(*(pod(f"p{i}") for i in range(5)), pod("large", cpu="100"))
    kube.wait_until_bound(f"p{i}" for i in range(5))

    def measured(line: str) -> bool:
        return line in get(f"{address}/metrics")[1].splitlines()

    until(lambda: measured('scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 5.0'), 10)
    until(lambda: measured('scheduler_pending_pods{queue="unschedulable"} 1.0'), 10)
    assert measured('scheduler_cache_size{type="nodes"} 1.0')
    assert measured('mooring_binds_total{outcome="bound"} 5.0')


def test_the_second_of_two_waits_until_the_first_is_gone(kube: Kube) -> None:
    kube.create(node("n0"))
    quick = (
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=500ms",
    )
    first = kube.run(*quick, name="first", leads=True)
    kube.create(pod("one"))
    kube.wait_until_bound(["one"])
    second = kube.run(*quick, name="second", leads=True)
    until(lambda: "waiting for the lease" in second.tail(), 30)
    kube.create(pod("two"))
    kube.wait_until_bound(["two"])
    assert "leading as" not in second.tail()
    first.kill()
    killed = time.monotonic()
    kube.create(pod("three"))
    kube.wait_until_bound(["three"])
    assert time.monotonic() - killed >= 1.0  # not before the lease of the dead one is over
    assert second.stop() == 0
    lease = kube.call("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
    assert lease["spec"]["holderIdentity"] == ""
    assert lease["spec"]["leaseTransitions"] == 1


def test_a_configuration_that_changes_is_taken_on_and_a_bad_one_is_not(kube: Kube, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    good = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    config.write_text(good)
    kube.create(node("n0", cpu=2))
    scheduler = kube.run(f"--config={config}")
    kube.create(pod("one", cpu="1"), pod("two", cpu="1"), pod("three", cpu="1"))
    until(lambda: kube.by_node() == {"n0": 2, "": 1}, 30)
    config.write_text("kind: Nonsense\n")
    scheduler.send(1)
    until(lambda: "the configuration stays as it was" in scheduler.tail(), 20)
    config.write_text(f"{good}profiles:\n- schedulerName: default-scheduler\n- schedulerName: other\n")
    scheduler.send(1)
    until(lambda: "scheduling for default-scheduler, other" in scheduler.tail(), 20)
    kube.create(node("n1", cpu=2), pod("four", cpu="1", schedulerName="other"))
    kube.wait_until_bound(["one", "two", "three", "four"])


def test_a_node_that_refuses_binds_is_left_out_and_pods_say_why_they_were_refused(cluster: Kube) -> None:
    """A policy denies every bind to one node, and the binds of one pod to any."""
    policies = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    expression = "object.target.name != 'bad' && object.metadata.name != 'cursed'"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": "not here"}],
    }
    bound = {"policyName": "binds", "validationActions": ["Deny"]}
    cluster.call("POST", f"{policies}/validatingadmissionpolicies", {"metadata": {"name": "binds"}, "spec": spec})
    cluster.call(
        "POST", f"{policies}/validatingadmissionpolicybindings", {"metadata": {"name": "binds"}, "spec": bound}
    )
    try:
        time.sleep(2.0)
        cluster.create(node("bad", cpu=64), node("good", cpu=8))
        scheduler = cluster.run()
        names = [f"p{at}" for at in range(8)]
        cluster.create(pod("cursed"), *(pod(name) for name in names))
        assert set(cluster.wait_until_bound(names).values()) == {"good"}
        until(lambda: (condition(cluster.pods()["cursed"], "PodScheduled") or {}).get("reason") == "SchedulerError", 30)
        found = condition(cluster.pods()["cursed"], "PodScheduled")
        assert found is not None
        assert found["message"].startswith("binding rejected: ")
        assert "node bad refuses binds and is left out" in scheduler.log.read_text()
        assert "node good refuses binds" not in scheduler.log.read_text()
    finally:
        for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            cluster.call("DELETE", f"{policies}/{plural}/binds")
