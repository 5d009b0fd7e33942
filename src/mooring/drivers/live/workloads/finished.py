"""How the job of a Workload ended, as the job and its pods say: what Kueue writes as its Finished condition."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from mooring.model.api.kueue_workload import Workload
from mooring.model.api.pods import Pod
from mooring.model.objects.job_kinds import JOB_KINDS

SUCCEEDED, FAILED = "Succeeded", "Failed"
_STATES = ("job_status", "job_deployment_status", "application_state", "state", "phase")
"""Where kinds that have no condition for it say how they ended."""


class FinishedCondition(NamedTuple):
    """The reason and message of the condition."""

    reason: str
    message: str


class _List(msgspec.Struct):
    items: list[msgspec.Raw] = []


def workloads_in(content: bytes) -> list[tuple[Workload, msgspec.Raw]]:
    """The Workloads of a list, as the API server answers; each also as it was sent."""
    found = msgspec.json.decode(content, type=_List).items
    return [(_decode(raw), raw.copy()) for raw in found]


_decode = msgspec.json.Decoder(Workload).decode


def finished_condition(
    workload: Workload, find_job: Callable[[str, str, str], Any], find_pod: Callable[[str], Pod | None]
) -> FinishedCondition | None:
    """None if it has not ended, or whoever could tell is gone."""
    namespace, owners = workload.metadata.namespace, workload.metadata.owner_references or []
    if not owners:
        return None
    if owners[0].kind == "Pod":
        found = (find_pod(f"{namespace}/{owner.name}") for owner in owners)
        uids = {owner.uid for owner in owners}
        return _ending_of_pods([pod for pod in found if pod is not None and pod.metadata.uid in uids], len(owners))
    job = find_job(owners[0].kind, namespace, owners[0].name)
    if job is None or (owners[0].uid and job.metadata.uid != owners[0].uid):
        return None
    kind = next((kind for kind in JOB_KINDS if isinstance(job, kind.type)), None)
    return _ending_of_job(job) if kind is not None and kind.is_over(job) else None


def _ending_of_pods(pods: list[Pod], count: int) -> FinishedCondition | None:
    if not pods or not all(pod.is_terminal for pod in pods):
        return None
    succeeded = sum(1 for pod in pods if pod.status.phase == SUCCEEDED)
    return FinishedCondition(SUCCEEDED if succeeded == count else FAILED, f"Pods succeeded: {succeeded}/{count}.")


def _ending_of_job(job: Any) -> FinishedCondition:
    status = job.status
    conditions = [found for found in getattr(status, "conditions", None) or () if found.status == "True"]
    failed = next((found for found in conditions if found.type == FAILED), None)
    if failed is not None:
        return FinishedCondition(FAILED, getattr(failed, "message", "") or "Job failed")
    states = [getattr(status, name, None) for name in _STATES]
    texts = [str(getattr(state, "state", None) or getattr(state, "phase", None) or state) for state in states if state]
    if any(text.lower().startswith(("fail", "abort", "terminated", "submission_failed")) for text in texts):
        return FinishedCondition(FAILED, "Job failed")
    complete = next((found for found in conditions if found.type.startswith(("Complete", SUCCEEDED))), None)
    return FinishedCondition(SUCCEEDED, getattr(complete, "message", "") or "Job finished successfully")
