"""What is written of Workloads and of their jobs: admissions, conditions, suspensions. Nothing here is sent."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from mooring.model.api.kueue_workload import Workload
from mooring.model.api.meta import timestamp_text
from mooring.model.api.pods import Pod
from mooring.model.decisions import PodSetFlavors
from mooring.model.values.requests import pod_requests

_MILLI = 10**6
"""Requests are counted in billionths."""
PODS = "pods"


def suspension(
    job: dict[str, Any], fields: Sequence[str], value: bool, node_selector: Mapping[str, str]
) -> dict[str, Any]:
    """What makes a job suspended or not, with the nodes that its pods are to go to; nothing if it is already."""
    inside = job
    for field in fields[:-1]:
        inside = inside.get(field) or {}
    if bool(inside.get(fields[-1])) == value:
        return {}
    change: dict[str, Any] = {}
    here = change
    for field in fields[:-1]:
        here = here.setdefault(field, {})
    here[fields[-1]] = value
    if job.get("kind") == "Job" and not value and node_selector and not (job.get("status") or {}).get("startTime"):
        change["spec"]["template"] = {"spec": {"nodeSelector": dict(node_selector)}}
    return change


def assignment(given: PodSetFlavors, workload: Workload) -> dict[str, Any]:
    """What a pod set was given, as the status of its Workload says it."""
    found: dict[str, Any] = {
        "name": given.name,
        "count": given.count,
        "flavors": dict(given.flavors),
        "resourceUsage": _usage(given, workload),
    }
    topology = given.topology
    if topology is not None:
        if workload.api_version.endswith("v1beta1"):
            domains = [{"values": list(each.values), "count": each.count} for each in topology.domains]
            found["topologyAssignment"] = {"levels": list(topology.levels), "domains": domains}
        else:
            columns = [
                {"individual": {"roots": [each.values[level] for each in topology.domains]}}
                for level in range(len(topology.levels))
            ]
            counts = {"individual": [each.count for each in topology.domains]}
            part = {"domainCount": len(topology.domains), "valuesPerLevel": columns, "podCounts": counts}
            found["topologyAssignment"] = {"levels": list(topology.levels), "slices": [part]}
    return found


def _usage(given: PodSetFlavors, workload: Workload) -> dict[str, str]:
    """What the pods of a set take of their quota: after a restart, this is what they are known to have."""
    pod_set = next((found for found in workload.spec.pod_sets if found.name == given.name), None)
    if pod_set is None:
        return {}
    needs = pod_requests(Pod(spec=pod_set.template.spec))
    millis = {name: -(-needs.get(name, 0) * given.count // _MILLI) for name in given.flavors}
    return {
        name: str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
        for name, amount in millis.items()
        if name != PODS
    } | ({PODS: str(given.count)} if PODS in given.flavors else {})


def condition(type_: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp_text(time.time()),
    }
