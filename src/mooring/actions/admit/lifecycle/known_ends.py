"""How long a workload runs, as far as it says so, and whether it minds being stopped."""

from math import ceil

from mooring.model.api.pods import Pod
from mooring.model.values.durations import DURATION, duration_seconds, parse_duration
from mooring.state.workloads import Stage, WorkloadRecord

PREEMPTIBLE = "mooring.dev/preemptible"
"""The annotation by which a job says that it may be stopped at any time: it takes quota that it will lose soon."""


def known_seconds(workload: WorkloadRecord) -> float | None:
    """How long a workload runs at most once it is admitted; None if nobody says.

    What the job says of itself comes first; else its pods are asked, as many rounds of them as there are. In any case
    it is stopped when its maximum execution time is over.
    """
    said = (workload.workload.metadata.annotations or {}).get(DURATION)
    seconds = parse_duration(said) if said is not None else None
    if seconds is None:
        seconds = _seconds_of_pods(workload)
    most = workload.workload.spec.maximum_execution_time_seconds
    if most is None:
        return seconds
    left = max(0.0, most - workload.past_seconds)
    return left if seconds is None else min(seconds, left)


def known_end(workload: WorkloadRecord) -> float | None:
    """When a workload that runs is over at the latest, if that is known."""
    seconds = known_seconds(workload) if workload.stage is Stage.ADMITTED else None
    return None if seconds is None else workload.admitted_at + seconds


def is_preemptible(workload: WorkloadRecord) -> bool:
    return (workload.workload.metadata.annotations or {}).get(PREEMPTIBLE) == "true"


def _seconds_of_pods(workload: WorkloadRecord) -> float | None:
    longest = 0.0
    for pod_set in workload.workload.spec.pod_sets:
        seconds = duration_seconds(Pod(metadata=pod_set.template.metadata, spec=pod_set.template.spec))
        if seconds is None:
            return None
        pods = len(workload.queued.pods.get(pod_set.name, ()))
        longest = max(longest, seconds * max(1, ceil(pods / max(1, pod_set.count))))
    return longest
