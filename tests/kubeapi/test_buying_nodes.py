"""NodePools on `mooring up`, with a real kubectl: nodes come for pods that wait, and go when they are not needed."""

import json
from collections.abc import Iterator

import pytest
from with_kubectl import KUBECTL, Kubectl, Refused, cluster_up, eventually

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl here")

POOLS = """
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: default}
spec:
  requirements:
    - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
  limits: {resources: {cpu: 1000}}
  labels: {team: old}
  ttlSecondsAfterEmpty: 1
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  limits: {cpu: 1000}
  disruption: {consolidationPolicy: WhenUnderutilized, consolidateAfter: 0s}
"""
WORK = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: %(name)s}
spec:
  replicas: %(replicas)d
  selector: {matchLabels: {app: %(name)s}}
  template:
    metadata: {labels: {app: %(name)s}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {%(selector)s}
      containers:
        - {name: main, image: "registry.example.com/app:v1", resources: {requests: {cpu: "1"}}}
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
---
apiVersion: config.mooring.dev/v1alpha1
kind: CapacityPolicy
consolidationIntervalSeconds: 1
quietSeconds: 0
"""


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("node-pools")
    config = folder / "config.yaml"
    config.write_text(CONFIG)
    with cluster_up(folder, "--nodes", "0", "--config", str(config)) as run:
        yield run


def claims(kubectl: Kubectl, pool: str) -> list[dict[str, str]]:
    found = json.loads(kubectl(f"get nodeclaims -l karpenter.sh/nodepool={pool} -o json"))["items"]
    return [each["metadata"]["labels"] | {"name": each["metadata"]["name"]} for each in found]


def running(kubectl: Kubectl, name: str) -> int:
    return len(kubectl(f"get pods -l app={name} --field-selector=status.phase=Running -o name").split())


def test_provisioners_and_node_pools_run_as_written(kubectl: Kubectl) -> None:
    kubectl("apply -f -", WORK % {"name": "web", "replicas": 6, "selector": "karpenter.sh/nodepool: general"})
    kubectl("apply -f -", WORK % {"name": "old", "replicas": 2, "selector": "team: old"})
    # All pods wait before anything can be bought: what is bought for them does not depend on how fast they come.
    waiting = "get pods --field-selector=status.phase=Pending -o jsonpath={.items[*].status.conditions[*].reason}"
    eventually(lambda: kubectl(waiting).count("Unschedulable") == 8, lambda: kubectl("get pods -A"))
    kubectl("apply -f -", POOLS)
    eventually(lambda: running(kubectl, "web") == 6 and running(kubectl, "old") == 2, lambda: kubectl("get pods -A"))

    pools = kubectl("get nodepools").splitlines()
    assert pools[0].split() == ["NAME", "NODECLASS", "NODES", "READY", "AGE"]
    assert pools[1].split()[:4] == ["general", "default", "1", "True"]
    table = [line.split() for line in kubectl("get nodeclaims").splitlines()]
    assert table[0] == ["NAME", "TYPE", "CAPACITY", "ZONE", "NODE", "READY", "AGE"]
    rows = {row[0].rpartition("-")[0]: row for row in table[1:]}
    assert rows["general"][1:3] == ["compute-8", "on-demand"]
    assert rows["default"][2] == "spot"
    assert all(row[0] == row[4] and row[5] == "True" for row in rows.values())

    # What is not needed goes: the empty node of the Provisioner, and six eighths of the other one.
    kubectl("scale deployment/old --replicas=0")
    kubectl("scale deployment/web --replicas=1")
    eventually(lambda: not claims(kubectl, "default"), lambda: kubectl("get nodeclaims"))
    small = "node.kubernetes.io/instance-type"
    eventually(
        lambda: (
            [each.get(small) for each in claims(kubectl, "general")] == ["compute-2"]
            and running(kubectl, "web") == 1
            and len(kubectl("get nodes -o name").split()) == 1
        ),
        lambda: kubectl("get nodeclaims,nodes,pods -o wide"),
    )


def test_a_pool_that_contradicts_itself_is_refused(kubectl: Kubectl) -> None:
    bad = POOLS.replace("limits: {cpu: 1000}", "limits: {cpu: -1}")
    with pytest.raises(Refused, match=r"spec\.limits"):
        kubectl("apply -f -", bad)


QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu]
      flavors:
        - {name: any, resources: [{name: cpu, nominalQuota: %(quota)d}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: default}
spec: {clusterQueue: team}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  namespace: default
  labels: {kueue.x-k8s.io/queue-name: team}
spec:
  suspend: true
  parallelism: 4
  completions: 4
  template:
    metadata: {labels: {app: train}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      nodeSelector: {karpenter.sh/nodepool: general}
      containers:
        - name: main
          image: registry.example.com/train:v1
          command: [sleep, "3600"]
          resources: {requests: {cpu: "12"}}
"""


def test_work_that_queues_is_bought_for_once_it_has_quota(kubectl: Kubectl) -> None:
    kubectl("apply -f -", POOLS)
    kubectl("apply -f -", QUEUES % {"quota": 40})
    kubectl("apply -f -", JOB)
    waits = "get workloads.kueue.x-k8s.io -o jsonpath={..conditions[?(@.type=='QuotaReserved')].status}"
    eventually(lambda: kubectl(waits).strip("'") == "False", lambda: kubectl("get workloads.kueue.x-k8s.io -o yaml"))
    kubectl("apply -f -", WORK % {"name": "other", "replicas": 3, "selector": "karpenter.sh/nodepool: general"})
    eventually(lambda: running(kubectl, "other") == 3, lambda: kubectl("get nodeclaims,nodes,pods -o wide"))
    # Meanwhile nodes were bought, and none for the job: it would take one of sixteen CPUs or more.
    sizes = {each["node.kubernetes.io/instance-type"] for each in claims(kubectl, "general")}
    assert sizes <= {"compute-2", "compute-4", "compute-8"}

    kubectl("apply -f -", QUEUES % {"quota": 48})
    eventually(lambda: running(kubectl, "train") == 4, lambda: kubectl("get nodeclaims,nodes,pods -o wide"))
