"""Leader election as a KubeSchedulerConfiguration has it: one schedules, the others wait for its Lease."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from control_plane import until
from kube import Kube, Refused, node, pod

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: {elects}
  resourceLock: leases
  resourceName: the-one
  resourceNamespace: default
  leaseDuration: 3s
  renewDeadline: {renew}
  retryPeriod: 500ms
"""


def write(path: Path, elects: str = "true", renew: str = "2s") -> str:
    path.write_text(CONFIG.format(elects=elects, renew=renew))
    return f"--config={path}"


def lease(cluster: Kube, namespace: str, name: str) -> Any:
    try:
        return cluster.call("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")["spec"]
    except Refused:
        return None


def forget(cluster: Kube) -> None:
    for namespace, name in (("default", "the-one"), ("default", "another")):
        made = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {}}
        cluster.delete({**made, "metadata": {"name": name, "namespace": namespace}})


def test_the_lease_and_its_timings_are_the_configured_ones(cluster: Kube, tmp_path: Path) -> None:
    forget(cluster)
    config = write(tmp_path / "config.yaml")
    cluster.create(node("n0"), pod("one"))
    first = cluster.run(config, name="first", leads=True)
    cluster.wait_until_bound(["one"])
    held = lease(cluster, "default", "the-one")
    assert held["leaseDurationSeconds"] == 3
    second = cluster.run(config, name="second", leads=True)
    until(lambda: "waiting for the lease default/the-one" in second.tail(), 30)
    cluster.create(pod("two"))
    cluster.wait_until_bound(["two"])
    assert "leading as" not in second.tail()
    first.kill()
    killed = time.monotonic()
    cluster.create(pod("three"))
    cluster.wait_until_bound(["three"])
    assert time.monotonic() - killed >= 1.0  # not before the lease of the dead one is over
    assert lease(cluster, "default", "the-one")["leaseTransitions"] == 1


def test_what_the_command_line_says_comes_before_the_file(cluster: Kube, tmp_path: Path) -> None:
    forget(cluster)
    config = write(tmp_path / "config.yaml")
    cluster.create(node("n0"), pod("one"))
    cluster.run(config, "--leader-elect-resource-name=another", "--leader-elect-lease-duration=4s", leads=True)
    cluster.wait_until_bound(["one"])
    assert lease(cluster, "default", "another")["leaseDurationSeconds"] == 4
    assert lease(cluster, "default", "the-one") is None


def test_without_election_nobody_is_waited_for(cluster: Kube, tmp_path: Path) -> None:
    forget(cluster)
    cluster.create(node("n0"), pod("one"))
    cluster.run(write(tmp_path / "config.yaml", elects="false"), leads=True)
    cluster.wait_until_bound(["one"])
    assert lease(cluster, "default", "the-one") is None


@pytest.mark.parametrize(
    ("renew", "said"),
    [
        (
            "9s",
            "leaderElection.leaseDuration: expected more than renewDeadline, and that more than 1.2 times retryPeriod,"
            " found 3s > 9s > 0.5s",
        ),
        ("soon", 'leaderElection.renewDeadline: expected a duration such as 15s, found "soon"'),
    ],
)
def test_timings_that_contradict_each_other_are_one_line(cluster: Kube, tmp_path: Path, renew: str, said: str) -> None:
    config = write(tmp_path / "config.yaml", renew=renew)
    command = [sys.executable, "-m", "mooring", "run", config, f"--kubeconfig={cluster.kubeconfig}"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)
    assert found.stderr.endswith(f"{said}\n")


FREEZES = int(os.environ.get("MOORING_FREEZES", "1"))
"""How often a leader is frozen: `MOORING_FREEZES=100` is the long run."""


@pytest.mark.parametrize("attempt", range(FREEZES))
def test_a_leader_that_was_frozen_sends_nothing_after_another_has_taken_over(
    cluster: Kube, tmp_path: Path, attempt: int
) -> None:
    """Nodes take one pod each. What the first has decided and not sent when it freezes must not be bound after the
    second has filled the nodes."""
    forget(cluster)
    config = write(tmp_path / "config.yaml")
    count = 60
    cluster.create(*(node(f"n{at:02}", cpu=4) for at in range(count)))
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    cluster.create({**high, "preemptionPolicy": "Never"})
    first = cluster.run(config, name="first", leads=True)
    until(lambda: "scheduling for" in first.tail(), 60)
    second = cluster.run(config, name="second", leads=True)
    until(lambda: "waiting for the lease" in second.tail(), 60)
    first.send(signal.SIGSTOP)
    cluster.create(*(pod(f"low-{at:02}", "4") for at in range(count)))
    first.send(signal.SIGCONT)
    time.sleep(random.Random(attempt).uniform(0.0, 0.15))
    first.send(signal.SIGSTOP)
    cluster.create(*(pod(f"high-{at:02}", "4", priorityClassName="high") for at in range(count)))
    until(lambda: "leading as" in second.tail() and len(set(cluster.by_node()) - {""}) == count, 60)
    first.send(signal.SIGCONT)
    until(lambda: not first.is_running, 30)
    time.sleep(0.5)
    found = cluster.by_node()
    found.pop("", None)
    assert [name for name, pods in found.items() if pods > 1] == []
