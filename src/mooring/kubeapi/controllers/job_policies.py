"""What a Job's failure policy and success policy make of its pods."""

from dataclasses import dataclass
from typing import Any

from mooring.kubeapi.controllers.job_indexes import parse_indexes
from mooring.kubeapi.controllers.pods import ContainerStatusView, PodView

Object = dict[str, Any]
COUNT, IGNORE, FAIL_JOB, FAIL_INDEX = "Count", "Ignore", "FailJob", "FailIndex"


@dataclass(frozen=True, slots=True)
class Matched:
    """What becomes of a failed pod, and why, where a rule says so."""

    action: str = COUNT
    message: str = ""


def on_failure(policy: Object | None, pod: PodView) -> Matched:
    """The first rule of a pod failure policy that matches; a pod that none matches counts."""
    for index, rule in enumerate((policy or {}).get("rules") or ()):
        if (codes := rule.get("onExitCodes")) is not None:
            if pod.status.phase != "Failed":
                continue
            hit = _matching_container(codes, pod)
            if hit is not None:
                exit_code = hit.state["terminated"]["exitCode"]
                message = (
                    f"Container {hit.name} for pod {pod.metadata.namespace}/{pod.metadata.name} failed with exit code "
                    f"{exit_code} matching {rule['action']} rule at index {index}"
                )
                return Matched(rule["action"], message)
        for pattern in rule.get("onPodConditions") or ():
            condition = pod.condition(pattern["type"])
            if condition is not None and condition.status == pattern.get("status", "True"):
                message = (
                    f"Pod {pod.metadata.namespace}/{pod.metadata.name} has condition {condition.type} matching "
                    f"{rule['action']} rule at index {index}"
                )
                return Matched(rule["action"], message)
    return Matched()


def _matching_container(codes: Object, pod: PodView) -> ContainerStatusView | None:
    for container in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        if codes.get("containerName") not in (None, container.name):
            continue
        exit_code = (container.state.get("terminated") or {}).get("exitCode", 0)
        if exit_code == 0:
            continue
        if (exit_code in codes["values"]) == (codes["operator"] == "In"):
            return container
    return None


def success_message(policy: Object | None, succeeded: set[int], completions: int) -> str:
    """Why a success policy is met, or nothing."""
    for index, rule in enumerate((policy or {}).get("rules") or ()):
        wanted = rule.get("succeededIndexes")
        considered = succeeded if wanted is None else succeeded & parse_indexes(wanted, completions)
        count = rule.get("succeededCount")
        if count is None and wanted is not None:
            count = len(parse_indexes(wanted, completions))
        if count is not None and len(considered) >= count:
            return f"Matched rules at index {index}"
    return ""
