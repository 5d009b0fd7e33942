"""May this pod evict others at all, and on which nodes could that help?"""

import numpy as np
from numpy.typing import NDArray

from mooring.engine.asking import ask_rejection
from mooring.engine.evaluate import Evaluation
from mooring.model.api.pods import Pod
from mooring.state.pods import PodRecord

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NEVER = "not eligible due to preemptionPolicy=Never."
ALREADY = "not eligible due to a terminating pod on the nominated node."


def why_not(answer: Evaluation, pod: Pod) -> str | None:
    """Why a pod may not evict others now, if it may not."""
    if pod.spec.preemption_policy == "Never":
        return NEVER
    row = answer.cluster.nodes.row_of.get(pod.status.nominated_node_name)
    if row is None or answer.refused is not None:
        return None
    verdict = answer.verdict(int(np.searchsorted(answer.rows, row)))
    if verdict is not None and verdict.unresolvable:
        return None  # the room that was made there is of no use to it any more
    priority = pod.spec.priority or 0
    on_node = answer.cluster.pods.on(row)
    return ALREADY if any(other.priority < priority and is_making_room(other) for other in on_node) else None


def is_making_room(record: PodRecord) -> bool:
    """Whether a pod is on its way out because it was preempted."""
    return record.pod.metadata.deletion_timestamp is not None and any(
        condition.type == "DisruptionTarget"
        and condition.status == "True"
        and condition.reason == "PreemptionByScheduler"
        for condition in record.pod.status.conditions or ()
    )


def potential_rows(answer: Evaluation) -> NDArray[np.intp]:
    """The rows whose first refusal could be changed by evicting pods."""
    if answer.refused is not None:
        return answer.rows[:0]
    is_potential = np.zeros(len(answer.rows), np.bool_)
    for index in np.unique(answer.failed_by).tolist():
        if index < 0:
            continue  # the row took the pod, or was ruled out by name, before filtering
        plugin = answer.profile.filters[index]
        positions = np.flatnonzero(answer.failed_by == index)
        codes = answer.codes[positions]
        for code in np.unique(codes).tolist():
            if not ask_rejection(plugin, answer.shape, code).unresolvable:
                is_potential[positions[codes == code]] = True
    return answer.rows[is_potential]
