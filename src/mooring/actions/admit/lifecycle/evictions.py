"""What is said to a workload whose quota another one takes, in Kueue's words."""

from mooring.actions.admit.cycle.cycle import Admission, Preempted
from mooring.actions.admit.preemption.targets import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    IN_COHORT_RECLAMATION,
)
from mooring.model.api.kueue import Workload
from mooring.model.queued.building import MADE_UID

CLUSTER_QUEUE_STOPPED, LOCAL_QUEUE_STOPPED = "ClusterQueueStopped", "LocalQueueStopped"
DEACTIVATED = "Deactivated"
JOB_UID = "kueue.x-k8s.io/job-uid"
UNKNOWN = "UNKNOWN"

_WHY = {
    IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    IN_COHORT_RECLAMATION: "reclamation within the cohort",
    IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}


def preemption_message(preemptor: Workload, found: Preempted, admission: Admission) -> str:
    """For whom, why, and where the two stand in the tree of cohorts."""
    uid = preemptor.metadata.uid
    if not uid or uid.startswith(MADE_UID):  # nobody else knows it by that
        uid = UNKNOWN
    pending = admission.pending.find(found.preemptor)
    ours = _path(admission, pending.queue_name) if pending is not None else UNKNOWN
    return (
        f"Preempted to accommodate a workload (UID: {uid}, JobUID: {_job_uid(preemptor)}) due to {_WHY[found.reason]}; "
        f"preemptor path: {ours}; preemptee path: {_path(admission, found.queue)}"
    )


def _job_uid(workload: Workload) -> str:
    labelled = (workload.metadata.labels or {}).get(JOB_UID)
    owners = workload.metadata.owner_references or []
    return labelled or (owners[0].uid if owners else "") or UNKNOWN


def _path(admission: Admission, queue: str) -> str:
    """From the root cohort down to the queue."""
    structure = admission.structure
    names = [structure.tree.nodes[node].name for node in structure.tree.paths[structure.queues[queue].node]]
    return "/" + "/".join(reversed(names))
