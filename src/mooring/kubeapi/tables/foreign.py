"""The columns of kinds of other projects, as their own definitions have them."""

from functools import partial

from mooring.kubeapi.status import Object
from mooring.kubeapi.tables import cells
from mooring.kubeapi.tables.cells import part
from mooring.kubeapi.tables.column import AGE, NAME, Cell, Column, column


def _conditions(type_: str) -> Cell:
    return partial(_condition, type_)


def _condition(type_: str, obj: Object, _now: float) -> str:
    return cells.condition(obj, type_)


FOREIGN: dict[str, tuple[Column, ...]] = {
    "clusterqueues.kueue.x-k8s.io": (
        NAME,
        column(
            "Cohort", lambda obj, _now: part(obj, "spec").get("cohortName") or part(obj, "spec").get("cohort") or ""
        ),
        column("Strategy*", ".spec.queueingStrategy"),
        column("Pending Workloads", ".status.pendingWorkloads", "integer"),
        column("Admitted Workloads*", ".status.admittedWorkloads", "integer"),
    ),
    "localqueues.kueue.x-k8s.io": (
        NAME,
        column("ClusterQueue", ".spec.clusterQueue"),
        column("Pending Workloads", ".status.pendingWorkloads", "integer"),
        column("Admitted Workloads", ".status.admittedWorkloads", "integer"),
    ),
    "workloads.kueue.x-k8s.io": (
        NAME,
        column("Queue", ".spec.queueName"),
        column("Reserved in", ".status.admission.clusterQueue"),
        column("Admitted", _conditions("Admitted")),
        column("Finished", _conditions("Finished")),
        AGE,
    ),
    "jobs.batch.volcano.sh": (
        NAME,
        column("STATUS", ".status.state.phase"),
        column("minAvailable", ".status.minAvailable", "integer"),
        column("RUNNINGS", ".status.running", "integer"),
        AGE,
        column("QUEUE*", ".spec.queue"),
    ),
    "podgroups.scheduling.volcano.sh": (
        NAME,
        column("STATUS", ".status.phase"),
        column("minMember", ".spec.minMember", "integer"),
        column("RUNNINGS", ".status.running", "integer"),
        AGE,
        column("QUEUE*", ".spec.queue"),
    ),
    "queues.scheduling.volcano.sh": (NAME, column("PARENT", ".spec.parent"), column("STATE", ".status.state"), AGE),
    "podgroups.scheduling.x-k8s.io": (
        NAME,
        column("Phase", ".status.phase"),
        column("MinMember", ".spec.minMember", "integer"),
        column("Running", ".status.running", "integer"),
        AGE,
    ),
    "jobsets.jobset.x-k8s.io": (
        NAME,
        column("TerminalState", ".status.terminalState"),
        column("Restarts", ".status.restarts", "integer"),
        column("Completed", _conditions("Completed")),
        column("Suspended", ".spec.suspend", "boolean"),
        AGE,
    ),
    "trainjobs.trainer.kubeflow.org": (
        NAME,
        column("State", lambda obj, _now: (part(obj, "status").get("conditions") or [{}])[-1].get("type", "")),
        AGE,
    ),
    "appwrappers.workload.codeflare.dev": (
        NAME,
        column("Status", ".status.phase"),
        column("Quota Reserved", _conditions("QuotaReserved")),
        column("Resources Deployed", _conditions("ResourcesDeployed")),
        AGE,
    ),
    "leaderworkersets.leaderworkerset.x-k8s.io": (
        NAME,
        column("Ready", ".status.readyReplicas", "integer"),
        column("Desired", ".spec.replicas", "integer"),
        column("Up-to-date", ".status.updatedReplicas", "integer"),
        AGE,
    ),
    "nodepools.karpenter.sh": (
        NAME,
        column("NodeClass", ".spec.template.spec.nodeClassRef.name"),
        column("Nodes", ".status.nodes", missing="0"),
        column("Ready", _conditions("Ready")),
        AGE,
    ),
    "nodeclaims.karpenter.sh": (
        NAME,
        column("Type", r".metadata.labels.node\.kubernetes\.io/instance-type"),
        column("Capacity", r".metadata.labels.karpenter\.sh/capacity-type"),
        column("Zone", r".metadata.labels.topology\.kubernetes\.io/zone"),
        column("Node", ".status.nodeName"),
        column("Ready", _conditions("Ready")),
        AGE,
    ),
    "verticalpodautoscalers.autoscaling.k8s.io": (
        NAME,
        column("Mode", ".spec.updatePolicy.updateMode"),
        column("CPU", ".status.recommendation.containerRecommendations[0].target.cpu"),
        column("Mem", ".status.recommendation.containerRecommendations[0].target.memory"),
        column("Provided", _conditions("RecommendationProvided")),
        AGE,
    ),
}
