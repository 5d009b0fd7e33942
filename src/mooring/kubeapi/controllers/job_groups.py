"""Jobs that are scheduled as a gang: the Workload and the PodGroup that stand for them."""

import hashlib
from typing import Any

from mooring.kubeapi.api import Api
from mooring.kubeapi.controllers.ownership import owner_reference

Object = dict[str, Any]
WORKLOADS, GROUPS = "workloads.scheduling.k8s.io", "podgroups.scheduling.k8s.io"
LONGEST_NAME = 63


def keep_group(api: Api, job: Object) -> str:
    """Make the Workload and PodGroup of a Job that asks for them, let them follow its minCount, and name the group.

    Nothing is made, and nothing named, for Jobs that are scheduled pod by pod.
    """
    scheduling = job["spec"].get("scheduling")
    if not scheduling:
        return ""
    metadata = job["metadata"]
    workload = _name(metadata["name"], metadata["uid"])
    template = f"{metadata['name']}-pgt-0"[:LONGEST_NAME]
    policy = _policy(job)
    body = {"schedulingPolicy": policy}
    body |= {
        field: scheduling[field]
        for field in ("schedulingConstraints", "disruptionMode", "resourceClaims")
        if field in scheduling
    }
    controller = {"apiGroup": "batch", "kind": "Job", "name": metadata["name"]}
    spec = {"controllerRef": controller, "podGroupTemplates": [{"name": template, **body}]}
    _keep(api, WORKLOADS, job, workload, spec, ("podGroupTemplates", 0))
    group = _name(workload, template)
    reference = {"workloadName": workload, "templateName": template}
    _keep(api, GROUPS, job, group, {"workloadRef": reference, **body}, ())
    return group


def _policy(job: Object) -> Object:
    policy: Object = dict(job["spec"]["scheduling"].get("schedulingPolicy") or {"basic": {}})
    if "gang" in policy and not (policy["gang"] or {}).get("minCount"):
        policy["gang"] = {**(policy["gang"] or {}), "minCount": job["spec"].get("parallelism", 1)}
    return policy


def _name(prefix: str, *words: str) -> str:
    mark = hashlib.sha256("/".join((prefix, *words)).encode()).hexdigest()[:5]
    return f"{prefix[: LONGEST_NAME - 6]}-{mark}"


def _keep(api: Api, resource: str, job: Object, name: str, spec: Object, path: tuple[str | int, ...]) -> None:
    """Create an object, or give it the policy of now; `path` leads to where the policy stands."""
    namespace = job["metadata"]["namespace"]
    found = api.find(resource, namespace, name)
    if found is None:
        api.create(
            resource, {"metadata": {"name": name, "ownerReferences": [owner_reference(job)]}, "spec": spec}, namespace
        )
        return
    held: Any = found["spec"]
    wanted: Any = spec
    for step in path:
        held, wanted = held[step], wanted[step]
    if held["schedulingPolicy"] != wanted["schedulingPolicy"]:
        held["schedulingPolicy"] = wanted["schedulingPolicy"]
        api.update(resource, found)
