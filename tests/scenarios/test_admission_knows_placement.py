"""Quota and place are one decision: a job that has quota, and whose gang no rack holds, is not started in vain."""

from typing import Any

import yaml

from mooring.assembly import assemble
from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Admit, Bind, Wait
from mooring.model.events import PodLost
from mooring.model.loading.manifests import build_manifests

CLUSTER = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: gpus}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors: [{name: gpus, resources: [{name: nvidia.com/gpu, nominalQuota: 16}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: default}
spec: {clusterQueue: team}
---
apiVersion: v1
kind: Node
metadata:
  name: "n-{i}"
  labels: {example.com/rack: "rack-{i//2}"}
  annotations: {mooring.dev/replicas: "4"}
status: {allocatable: {cpu: "32", memory: 64Gi, pods: "110", nvidia.com/gpu: "4"}}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec:
  nodeName: n-0
  containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: "1"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: another}
spec:
  nodeName: n-2
  containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: "1"}}}]
---
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  labels: {kueue.x-k8s.io/queue-name: team}
  annotations: {mooring.dev/gang: "true", mooring.dev/check-placement: "true"}
spec:
  parallelism: 8
  completions: 8
  suspend: true
  template:
    metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: example.com/rack}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: "1"}}}]
"""


def start(text: str) -> Scheduler:
    scheduler = assemble().new_scheduler()
    scheduler.load(build_manifests(yaml.safe_load_all(text)), 0.0)
    return scheduler


def of_kind(decisions: list[Any], kind: type) -> list[Any]:
    return [found for found in decisions if isinstance(found, kind)]


def test_a_gang_that_no_rack_holds_is_not_admitted_until_one_does() -> None:
    scheduler = start(CLUSTER)

    decisions = scheduler.cycle(1.0)

    assert not of_kind(decisions, Admit)
    assert {found.message for found in of_kind(decisions, Wait)} == {
        "gang default/train cannot be placed: largest rack holds 7 of 8 members"
    }

    scheduler.handle(PodLost("default/another"))
    decisions = scheduler.cycle(2.0)

    assert len(of_kind(decisions, Admit)) == 1
    assert {found.node for found in of_kind(decisions, Bind)} == {"n-2", "n-3"}


def test_without_asking_it_is_admitted_and_waits_for_a_rack() -> None:
    decisions = start(CLUSTER.replace('mooring.dev/check-placement: "true"', 'mooring.dev/x: "y"')).cycle(1.0)

    assert len(of_kind(decisions, Admit)) == 1
    assert not of_kind(decisions, Bind)
