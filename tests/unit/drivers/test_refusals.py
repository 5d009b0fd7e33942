"""The world refuses what was decided: the scheduler learns of it, and goes on from what is so."""

import re
from typing import Any

import yaml

from mooring.assembly import assemble
from mooring.drivers.offline.driver import Offline
from mooring.model.decisions import Admit, Bind, Decision, Evict, Suspend
from mooring.model.loading.manifests import build_manifests
from mooring.observe.progress import Progress

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 4, memory: 16Gi, pods: 20}}
"""
POD = """
---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {priority: %s, %scontainers: [{name: w, image: x, resources: {requests: {cpu: 3}}}]}
"""
QUEUE = """
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: f}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 2}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: q, namespace: default}
spec: {clusterQueue: q}
"""
JOB = """
---
apiVersion: batch/v1
kind: Job
metadata: {name: %s, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      priority: %s
      restartPolicy: Never
      containers: [{name: w, image: x, resources: {requests: {cpu: 1}}}]
"""


class Refusing(Offline):
    """A world that refuses the first decision of one kind, and does all others."""

    def __init__(self, text: str, kind: type[Decision]) -> None:
        documents: list[Any] = list(yaml.safe_load_all(text))
        scheduler, manifests = assemble().new_scheduler(), build_manifests(documents)
        scheduler.load(manifests, 0.0)
        super().__init__(scheduler, 0.0, manifests)
        self.kind: type[Decision] | None = kind
        self.story: list[str] = []

    def carry_out(self, decision: Decision) -> str:
        name = getattr(decision, "pod", "") or getattr(decision, "workload", "")
        owner = re.sub(r"default/(job-)?|-[0-9a-f]{5}$", "", name)
        what = f"{type(decision).__name__} {owner}"
        if self.kind is not None and isinstance(decision, self.kind):
            self.kind = None
            self.story.append(f"no: {what}")
            return "not now"
        if isinstance(decision, Bind | Evict | Admit | Suspend):
            self.story.append(what)
        return super().carry_out(decision)

    def run(self, seconds: float = 0.0) -> list[str]:
        """What was done, in order, those refused included; some are tried again only after a while."""
        self.decide(Progress())
        self.decide(Progress())
        if seconds:
            self.pass_time(seconds, Progress())
        return self.story

    def nodes(self) -> dict[str, str]:
        return {record.pod.metadata.name: record.node_name for record in self.scheduler.cluster.pods.records.values()}


def test_a_pod_that_could_not_be_bound_waits_again_and_is_bound() -> None:
    world = Refusing(NODE + POD % ("p", 0, ""), Bind)

    assert world.run(60) == ["no: Bind p", "Bind p"]
    assert world.nodes() == {"p": "n"}


def test_a_pod_that_could_not_be_evicted_runs_on_and_its_preemptor_looks_again() -> None:
    world = Refusing(NODE + POD % ("old", 0, "nodeName: n, ") + POD % ("urgent", 9, ""), Evict)

    assert world.run(60) == ["no: Evict old", "Evict old", "Bind urgent"]
    assert world.nodes() == {"urgent": "n"}


def test_a_workload_that_could_not_be_admitted_is_pending_again_and_its_pods_do_not_start() -> None:
    world = Refusing(NODE + QUEUE + JOB % ("train", 0), Admit)

    story = world.run(60)

    again = story.index("Admit train")
    assert story[0] == "no: Admit train"
    assert not [what for what in story[:again] if what.startswith(("Bind", "Evict"))]
    assert len([what for what in story[again:] if what.startswith("Bind train")]) == 2
    assert set(world.nodes().values()) == {"n"}


def test_a_workload_that_could_not_be_suspended_is_told_again() -> None:
    world = Refusing(NODE + QUEUE + JOB % ("train", 0), Suspend)
    world.run(60)
    assert set(world.nodes().values()) == {"n"}

    jobs = NODE + QUEUE + JOB % ("train", 0)
    world.change(*(build_manifests(list(yaml.safe_load_all(text))) for text in (jobs, jobs + JOB % ("vital", 9))))
    story = world.run(60)

    assert [what for what in story if "Suspend" in what] == ["no: Suspend train", "Suspend train"]
    assert {node for name, node in world.nodes().items() if name.startswith("vital")} == {"n"}
