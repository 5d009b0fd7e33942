"""Commands that ask a cluster and change nothing, and what a scheduler has written down of its decisions."""

import json
import os
import subprocess
import sys
from pathlib import Path

from control_plane import EmbeddedPlane, until
from kube import Kube, Object, node, pod
from test_live_queueing import job, queueing, suspended, workload_of

__all__ = ["queueing"]
PRIVATE = (("Secret", "stringData"), ("ConfigMap", "data"))


def mooring(*arguments: str, kubeconfig: Path | None = None) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | ({} if kubeconfig is None else {"KUBECONFIG": str(kubeconfig)})
    command = [sys.executable, "-m", "mooring", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


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


def test_why_a_queued_job_does_not_start_is_told(queueing: Kube) -> None:
    queueing.create(node("n0", cpu=16))
    scheduler = queueing.run()
    queueing.create(job("first", "3"))
    until(lambda: suspended(queueing) == {"first": False}, 30, scheduler.tail)
    queueing.create(job("second", "2"))
    until(lambda: bool(workload_of(queueing, "second")), 30, scheduler.tail)

    explained = mooring("explain", "job/second", "-o", "json", kubeconfig=queueing.kubeconfig)
    assert explained.returncode == 0, explained.stderr
    found = json.loads(explained.stdout)
    assert "insufficient unused quota for cpu in flavor default, 1 more needed" in found["message"]
    assert "give it by --config" in explained.stderr
    shown = mooring("schedule", "--dry-run", "-o", "json", kubeconfig=queueing.kubeconfig)
    result = json.loads(shown.stdout)
    assert result["summary"]["waitingForQuota"] == 1
    assert ["unused quota" in each["message"] for each in result["gated"]] == [True]
    assert "1 waits for quota" in mooring("schedule", "--dry-run", kubeconfig=queueing.kubeconfig).stdout
    assert suspended(queueing) == {"first": False, "second": True}


def test_a_deployment_that_a_quota_keeps_from_its_pods_is_shown(cluster: Kube) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"pods": "0"}},
    }
    container = {"name": "main", "image": "pause"}
    deployment: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }
    cluster.delete(quota, deployment)
    cluster.create(node("n0"), quota)
    cluster.create(deployment)
    try:
        shown = mooring("schedule", "--dry-run", "-o", "json", kubeconfig=cluster.kubeconfig)
        result = json.loads(shown.stdout)
        assert result["summary"]["forbidden"] == 3
        assert "exceeded quota: few" in result["forbidden"][0]["message"]
        assert "exceeded quota: few" in mooring("explain", "deploy/web", kubeconfig=cluster.kubeconfig).stdout
    finally:
        cluster.delete(quota, deployment)


def test_a_snapshot_stands_for_its_cluster(cluster: Kube, tmp_path: Path) -> None:
    cluster.create(node("n0", cpu=2), node("n1", cpu=4))
    private = pod("fits", cpu="3")
    private["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "do-not-tell"}]
    cluster.create(private, pod("large", cpu="9"))
    named = {"apiVersion": "v1", "metadata": {"name": "private", "namespace": "default"}}
    kept = [{**named, "kind": kind, field: {"key": "do-not-tell"}} for kind, field in PRIVATE]
    cluster.delete(*kept)
    cluster.create(*kept)

    taken = mooring("snapshot", kubeconfig=cluster.kubeconfig)
    cluster.delete(*kept)
    assert taken.returncode == 0, taken.stderr
    assert "do-not-tell" not in taken.stdout
    assert not {"Secret", "ConfigMap"} & {each["kind"] for each in json.loads(taken.stdout)["items"]}
    file = tmp_path / "cluster.json"
    file.write_text(taken.stdout)
    shown = json.loads(mooring("schedule", "-f", str(file), "-o", "json").stdout)
    assert [(each["pod"], each["node"]) for each in shown["placements"]] == [("fits", "n1")]
    explained = mooring("explain", "pod/large", "-n", "default", "-f", str(file))
    assert "2 Insufficient cpu" in " ".join(explained.stdout.split())
    elsewhere = mooring("explain", "pod/large", "-n", "elsewhere", "-f", str(file))
    assert elsewhere.returncode == 2
    hashed = mooring("snapshot", "--hash-names", kubeconfig=cluster.kubeconfig).stdout
    assert '"fits"' not in hashed and '"n1"' not in hashed
    file.write_text(hashed)
    assert len(json.loads(mooring("schedule", "-f", str(file), "-o", "json").stdout)["placements"]) == 1


def test_an_object_that_cannot_be_read_is_left_out_of_what_is_asked(embedded: EmbeddedPlane, tmp_path: Path) -> None:
    """A Job that queues for less than a second: nothing refuses it there, and it is no reason to say nothing."""
    with Kube(embedded.kubeconfig, tmp_path) as cluster:
        cluster.clean()
        cluster.create(node("n0", cpu=2), pod("large", cpu="9"))
        labels = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/max-exec-time-seconds": "0"}
        template = {"spec": {**pod("one")["spec"], "restartPolicy": "Never"}}
        cluster.create(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "kept", "namespace": "default", "labels": labels},
                "spec": {"suspend": True, "template": template},
            }
        )
        explained = mooring("explain", "large", kubeconfig=cluster.kubeconfig)
        cluster.call("DELETE", "/apis/batch/v1/namespaces/default/jobs/kept")

    assert "1 Insufficient cpu" in explained.stdout, explained.stderr
    assert "left out: Job default/kept" in explained.stderr
