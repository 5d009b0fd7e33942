"""Commands that ask a cluster and change nothing, and what a scheduler has written down of its decisions."""

import json
import subprocess
import sys
from pathlib import Path

from kube import Kube, node, pod


def mooring(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "mooring", *arguments], capture_output=True, text=True, timeout=60)


def test_what_would_be_decided_on_a_cluster_is_shown_and_nothing_is_done(cluster: Kube) -> None:
    cluster.create(node("n0", cpu=2), node("n1", cpu=4))
    cluster.create(pod("fits", cpu="3"), pod("large", cpu="9"))
    kubeconfig = f"--kubeconfig={cluster.kubeconfig}"
    shown = json.loads(mooring("schedule", kubeconfig, "--dry-run", "-o", "json").stdout)
    assert [(each["pod"], each["node"]) for each in shown["placements"]] == [("fits", "n1")]
    assert [each["pod"] for each in shown["waiting"]] == ["large"]
    explained = json.loads(mooring("explain", "large", kubeconfig, "-o", "json").stdout)
    assert "2 Insufficient cpu" in explained["message"]
    assert cluster.by_node() == {"": 2}
    refused = mooring("schedule", kubeconfig)
    assert refused.returncode == 2
    assert "expected --dry-run" in refused.stderr


def test_a_decision_log_tells_what_happened_to_a_pod(cluster: Kube, tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    cluster.create(node("n0", cpu=2))
    scheduler = cluster.run(f"--decision-log={log}")
    cluster.create(pod("late", cpu="3"))
    scheduler.wait_until_it_says("scheduling for")
    cluster.create(pod("probe", cpu="1"))
    cluster.wait_until_bound(["probe"])
    cluster.create(node("n1", cpu=4))
    cluster.wait_until_bound(["late"])
    assert scheduler.stop() == 0
    lines = json.loads(mooring("explain", "late", f"--log={log}", "-o", "json").stdout)
    kinds = [line["kind"] for line in lines]
    assert kinds[0] == "Wait" and kinds[-2:] == ["Bind", "Bound"]
    assert lines[0]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert lines[-1]["node"] == "n1"
    assert "Insufficient cpu" in mooring("explain", "late", f"--log={log}").stdout
    missing = mooring("explain", "nobody", f"--log={log}")
    assert (missing.returncode, missing.stderr) == (2, f"error: {log}: expected decisions about nobody, found none\n")
