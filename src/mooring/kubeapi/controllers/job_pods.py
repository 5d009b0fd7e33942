"""The pods of a Job: how they are made, which index they have, and when the next may come after one has failed."""

from typing import Any

from mooring.kubeapi.controllers.pods import PodView, make_pod
from mooring.model.api.meta import timestamp_seconds

Object = dict[str, Any]
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
TRACKING = "batch.kubernetes.io/job-tracking"


def index_of(pod: PodView) -> int | None:
    text = pod.metadata.annotations.get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() else None


def failures_of(pod: PodView) -> int:
    """How often the index of a pod had failed before."""
    text = pod.metadata.annotations.get(INDEX_FAILURES, "0")
    return int(text) if text.isdecimal() else 0


def finished_at(pod: PodView) -> float:
    """When a pod ended, as far as it is known."""
    times = [
        timestamp_seconds((one.state.get("terminated") or {}).get("finishedAt"))
        for one in pod.status.container_statuses
    ]
    known = [time for time in times if time is not None]
    if known:
        return max(known)
    if (leaves := timestamp_seconds(pod.metadata.deletion_timestamp)) is not None:
        return leaves - (pod.metadata.deletion_grace_period_seconds or 0)
    return timestamp_seconds(pod.metadata.creation_timestamp) or 0.0


def make_job_pod(job: Object, index: int | None, failures: int | None, group: str = "") -> Object:
    """A pod of a Job, with its index and its PodGroup where it has them."""
    metadata = job["metadata"]
    pod = make_pod(job["spec"]["template"], job, metadata["namespace"])
    if group:
        pod["spec"]["schedulingGroup"] = {"podGroupName": group}
    made = pod["metadata"]
    made["finalizers"] = [*made.get("finalizers", ()), TRACKING]
    if index is None:
        return pod
    made["generateName"] = f"{metadata['name']}-{index}-"
    made["annotations"] = {**made.get("annotations", {}), COMPLETION_INDEX: str(index)}
    made["labels"] = {**made.get("labels", {}), COMPLETION_INDEX: str(index)}
    if failures is not None:
        made["annotations"][INDEX_FAILURES] = str(failures)
    spec = pod["spec"]
    # The name of a host has at most 63 letters.
    spec.setdefault("hostname", f"{metadata['name'][: 62 - len(str(index))]}-{index}")
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        given = container.setdefault("env", [])
        if all(one["name"] != "JOB_COMPLETION_INDEX" for one in given):
            given.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
    return pod
