"""What is written of Workloads and of their jobs: admissions, conditions, suspensions. Nothing here is sent."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from mooring.model.api.kueue_workload import QUOTA_RESERVED, Workload
from mooring.model.api.meta import timestamp_seconds, timestamp_text
from mooring.model.api.pods import Pod
from mooring.model.decisions import PodSetFlavors
from mooring.model.queued.building import MADE_FROM, fingerprint
from mooring.model.values.requests import pod_requests

_MILLI = 10**6
"""Requests are counted in billionths."""
PODS = "pods"
JOB_UID = "kueue.x-k8s.io/job-uid"


def new_workload(workload: Workload, api_version: str) -> dict[str, Any]:
    """A Workload that is to be made, with what it is made from."""
    metadata = workload.metadata
    owners = metadata.owner_references or []
    labels = {JOB_UID: owners[0].uid} if owners and owners[0].controller else {}
    return {
        "apiVersion": api_version,
        "kind": "Workload",
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": labels,
            "annotations": {**(metadata.annotations or {}), MADE_FROM: fingerprint(workload.spec)},
            "ownerReferences": msgspec.to_builtins(owners),
        },
        "spec": msgspec.to_builtins(workload.spec),
    }


def is_outdated(workload: Workload) -> bool:
    """Whether a Workload that we made asks for something else than its job does now, as `gathering` found."""
    return (workload.metadata.annotations or {}).get(MADE_FROM) == ""


def respecified(workload: Workload) -> dict[str, Any]:
    """What makes a Workload ask for that; what its job no longer says is taken away."""
    none = dict.fromkeys(("priorityClassRef", "priority", "maximumExecutionTimeSeconds"))
    return {
        "metadata": {"annotations": {MADE_FROM: fingerprint(workload.spec)}},
        "spec": {**none, **msgspec.to_builtins(workload.spec)},
    }


def all_conditions(workload: Workload, new: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """The conditions of a Workload with some that are new: what nobody ever said need not be denied, but for quota.

    They have changed when their status has; another message alone is no transition.
    """
    known = {found.type: found for found in workload.status.conditions or ()}
    said: list[dict[str, Any]] = []
    for each in new:
        before = known.pop(each["type"], None)
        if before is None and each["status"] != "True" and each["type"] != QUOTA_RESERVED:
            continue
        if before is not None and before.status == each["status"] and before.last_transition_time:
            each = {**each, "lastTransitionTime": before.last_transition_time}
        said.append(each)
    return [*msgspec.to_builtins(list(known.values())), *said]


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
            shard = {"domainCount": len(topology.domains), "valuesPerLevel": columns, "podCounts": counts}
            found["topologyAssignment"] = {"levels": list(topology.levels), "slices": [shard]}
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


def waited_text(workload: Workload, evicted: str = "") -> str:
    """How long a workload has waited, in the words of Kueue's events: since it came or was evicted, as its conditions
    say; for its checks, since it had quota."""
    since: str | None = None
    if evicted:
        known = [found for found in workload.status.conditions or () if found.type == evicted]
        since = known[0].last_transition_time if known else workload.metadata.creation_timestamp
    elif (reserved := workload.condition(QUOTA_RESERVED)) is not None:
        since = reserved.last_transition_time
    began = timestamp_seconds(since)
    seconds = max(0.0, time.time() - began) if began is not None else 0.0
    return f"wait time since {'queued' if evicted else 'reservation'} was {seconds:.0f}s"


def condition(type_: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp_text(time.time()),
    }
