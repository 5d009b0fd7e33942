"""Chaos on `mooring up`: a provider that fails, is late, launches the wrong type or nothing, and kills in between."""

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest
from with_kubectl import KUBECTL, Kubectl, cluster_up, eventually

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl here")

CATALOGUE = """
apiVersion: mooring.dev/v1alpha1
kind: InstanceTypeCatalogue
provider:
  launchSeconds: 0.2
  registerSeconds: 0.5
  registrationTimeoutSeconds: 6
  faults: {fail: 0.3, wrongType: 0.2, neverRegister: 0.2, late: 0.3, lateSeconds: 3, seed: 5}
instanceTypes:
- {name: c-2, capacity: {cpu: 2, memory: 8Gi}, offerings: [{zone: zone-a, price: 0.1}]}
- {name: c-4, capacity: {cpu: 4, memory: 16Gi}, offerings: [{zone: zone-a, price: 0.2}]}
- {name: c-8, capacity: {cpu: 8, memory: 32Gi}, offerings: [{zone: zone-a, price: 0.4}]}
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
---
apiVersion: config.mooring.dev/v1alpha1
kind: CapacityPolicy
provisionIntervalSeconds: 0.5
consolidationIntervalSeconds: 1
registrationTimeoutSeconds: 8
retrySeconds: 1
quietSeconds: 0
"""
WORLD = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template: {spec: {requirements: []}}
  disruption: {consolidateAfter: 0s, budgets: [{nodes: 100%}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - {name: main, image: "registry.example.com/app:v1", resources: {requests: {cpu: "1.5"}}}
"""


def kill_scheduler(kubeconfig: Path) -> None:
    """End the scheduler of `mooring up` at once; another one is started in its place."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"run" in words and str(kubeconfig).encode() in words:
                os.kill(int(process.name), signal.SIGKILL)


def names(kubectl: Kubectl, kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in json.loads(kubectl(f"get {kind} -o json"))["items"]}


def running(kubectl: Kubectl) -> int:
    return len(kubectl("get pods -l app=web --field-selector=status.phase=Running -o name").split())


def has_running(kubectl: Kubectl, wanted: int) -> bool:
    return running(kubectl) == wanted


def test_all_pods_run_and_every_node_is_known(tmp_path: Path) -> None:
    (tmp_path / "catalogue.yaml").write_text(CATALOGUE)
    (tmp_path / "config.yaml").write_text(CONFIG)
    options = (
        "--nodes",
        "0",
        "--catalogue",
        str(tmp_path / "catalogue.yaml"),
        "--config",
        str(tmp_path / "config.yaml"),
    )
    with cluster_up(tmp_path, "--nodes", "0", *options) as kubectl:
        kubectl("apply -f -", WORLD)
        for replicas in (5, 9, 2):
            kubectl(f"scale deployment/web --replicas={replicas}")
            kill_scheduler(tmp_path / "kubeconfig")
            eventually(partial(has_running, kubectl, replicas), lambda: kubectl("get nodeclaims,nodes,pods -o wide"))
        kubectl("scale deployment/web --replicas=0")
        eventually(
            lambda: not names(kubectl, "nodeclaims") and not names(kubectl, "nodes"),
            lambda: kubectl("get nodeclaims,nodes,pods -o wide"),
        )
