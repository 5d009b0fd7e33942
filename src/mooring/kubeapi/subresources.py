"""Parts of objects that have verbs of their own: bindings, evictions, scales."""

from typing import TYPE_CHECKING, Any

from mooring.kubeapi.auth.user import SYSTEM
from mooring.kubeapi.metadata import metadata_of, timestamp
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.requests import CREATE, Request
from mooring.kubeapi.selectors import selects
from mooring.kubeapi.status import (
    ApiError,
    FieldError,
    Object,
    bad_request,
    conflict,
    internal,
    invalid,
    method_not_allowed,
    not_found,
    too_many_requests,
)
from mooring.kubeapi.store.records import Record

if TYPE_CHECKING:
    from mooring.kubeapi.api import Api, Options


def create(
    api: "Api",
    resource: Resource,
    namespace: str | None,
    name: str,
    subresource: str,
    body: Object,
    options: "Options",
) -> Object:
    match resource.key, subresource:
        case "pods", "binding":
            return bind(api, namespace or "default", name, body, options)
        case "pods", "eviction":
            return evict(api, namespace or "default", name, body, options)
        case "serviceaccounts", "token" if api.tokens is not None:
            dry_run = options.get("dry_run", False)
            return api.tokens.request(namespace or "default", name, body, dry_run=dry_run)
    raise method_not_allowed(resource.group, f"{resource.plural}/{subresource}", "create")


_SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bind(api: "Api", namespace: str, name: str, body: Object, options: "Options") -> Object:
    """Give a pod its node; 409 if it has one, or is going."""
    resource = api.registry.find("pods")
    target = body.get("target") or {}
    node = target.get("name") or ""
    if not node:
        raise invalid("", "Binding", name, [FieldError("FieldValueRequired", "target.name", "")])
    if (kind := target.get("kind") or "Node") != "Node":
        error = FieldError("FieldValueNotSupported", "target.kind", 'supported values: "Node"', kind)
        raise invalid("", "Binding", name, [error])
    record = api.record(resource, namespace, name)
    pod = record.decode()
    about, spec = pod["metadata"], pod["spec"]
    wanted = metadata_of(body)
    if (uid := wanted.get("uid")) and uid != about["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {about['uid']}"
        raise conflict("", "pods/binding", name, why)
    if about.get("deletionTimestamp"):
        raise conflict("", "pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if found := spec.get("nodeName"):
        raise conflict("", "pods/binding", name, f'pod {name} is already assigned to node "{found}"')
    if spec.get("schedulingGates"):
        raise conflict("", "pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")
    user, dry_run = options.get("user", SYSTEM), options.get("dry_run", False)
    request = Request(CREATE, resource, namespace, name, body, pod, "binding", user, dry_run)
    api.admission.mutate(request)
    api.admission.validate(request)
    spec["nodeName"] = node
    for field in ("annotations", "labels"):
        if wanted.get(field):
            about[field] = {**(about.get(field) or {}), **wanted[field]}
    _set_condition(pod, "PodScheduled", "True", timestamp(api.now()))
    if not dry_run:
        api.store.put(resource.storage, record.namespace, record.name, pod)
    return dict(_SUCCESS)


def _set_condition(pod: Object, type_: str, status: str, now: str, **more: str) -> None:
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    fresh: Object = {"type": type_, "status": status, "lastProbeTime": None, "lastTransitionTime": now, **more}
    if about := pod["metadata"].get("generation"):
        fresh["observedGeneration"] = about
    for index, condition in enumerate(conditions):
        if condition["type"] == type_:
            if condition["status"] == status:
                fresh["lastTransitionTime"] = condition.get("lastTransitionTime", now)
            conditions[index] = fresh
            return
    conditions.append(fresh)


# Eviction


def evict(api: "Api", namespace: str, name: str, body: Object, options: "Options") -> Object:
    """Delete a pod if the PodDisruptionBudgets that protect it allow one more disruption; else 429."""
    record = api.record("pods", namespace, name)
    pod = record.decode()
    how = body.get("deleteOptions") or {}
    conditions = how.get("preconditions") or {}
    dry_run = options.get("dry_run", False) or bool(how.get("dryRun"))
    if _needs_no_budget(pod):
        budget = None
    else:
        budget = _budget_of(api, namespace, pod)
    if budget is not None and not _spare_unready(pod, budget):
        _take_disruption(api, budget, name, dry_run)
    if not dry_run and budget is not None:
        _mark_disrupted(api, record, pod)
    api.delete(
        "pods",
        namespace,
        name,
        uid=conditions.get("uid"),
        resource_version=conditions.get("resourceVersion"),
        grace_period=how.get("gracePeriodSeconds"),
        propagation=how.get("propagationPolicy"),
        user=options.get("user", SYSTEM),
        dry_run=dry_run,
    )
    return dict(_SUCCESS)


def _needs_no_budget(pod: Object) -> bool:
    status = pod.get("status") or {}
    is_over = status.get("phase") in ("Succeeded", "Failed", "Pending")
    return is_over or bool(pod["metadata"].get("deletionTimestamp"))


def _budget_of(api: "Api", namespace: str, pod: Object) -> Object | None:
    labels = pod["metadata"].get("labels") or {}
    found = [
        budget
        for budget in api.list("poddisruptionbudgets.policy", namespace)
        if selects(budget["spec"].get("selector"), labels)
    ]
    if len(found) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise internal(message)
    return found[0] if found else None


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _spare_unready(pod: Object, budget: Object) -> bool:
    """Whether a pod that is not ready may go without counting as a disruption."""
    if _is_ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return bool(desired > 0 and healthy >= desired)


def _take_disruption(api: "Api", budget: Object, pod: str, dry_run: bool) -> None:
    about, status = budget["metadata"], budget.setdefault("status", {})
    if status.get("observedGeneration", 0) < about.get("generation", 0):
        raise _refused(about["name"], "is still being processed by the server.", 10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _refused(about["name"], f"needs {desired} healthy pods and has {healthy} currently", 0)
    if not dry_run:
        status["disruptionsAllowed"] = allowed - 1
        status.setdefault("disruptedPods", {})[pod] = timestamp(api.now())
        api.update("poddisruptionbudgets.policy", budget, subresource="status")


def _refused(budget: str, why: str, seconds: int) -> ApiError:
    cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {budget} {why}"}
    return too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", seconds, [cause])


def _mark_disrupted(api: "Api", record: Record, pod: Object) -> None:
    _set_condition(
        pod,
        "DisruptionTarget",
        "True",
        timestamp(api.now()),
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )
    api.write(api.registry.find("pods"), record, pod)


# Scale

_REPLICAS = (".spec.replicas", ".status.replicas", "")


def read(api: "Api", resource: Resource, namespace: str | None, name: str, subresource: str) -> Object:
    if subresource not in resource.subresources:
        raise not_found(resource.group, resource.plural, name)
    obj = api.get(resource, namespace, name)
    return scale_of(resource, obj) if subresource == "scale" else obj


def scale_of(resource: Resource, obj: Object) -> Object:
    spec_path, status_path, selector_path = resource.subresources["scale"].paths or _REPLICAS
    about = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": _at(obj, status_path) or 0}
    selector = _at(obj, selector_path) if selector_path else _selector_text(obj)
    if selector:
        status["selector"] = selector
    replicas = _at(obj, spec_path)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: about[key] for key in kept if key in about},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _selector_text(obj: Object) -> str:
    selector = (obj.get("spec") or {}).get("selector") or {}
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    words = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or ():
        values = ",".join(sorted(each.get("values") or ()))
        words.append(
            {
                "In": f"{each['key']} in ({values})",
                "NotIn": f"{each['key']} notin ({values})",
                "Exists": each["key"],
                "DoesNotExist": f"!{each['key']}",
            }[each["operator"]]
        )
    return ",".join(words)


def _at(obj: Any, path: str) -> Any:
    for part in path.strip(".").split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def update(
    api: "Api",
    resource: Resource,
    namespace: str | None,
    name: str,
    subresource: str,
    body: Object,
    options: "Options",
) -> Object:
    """Set the replicas of an object through its scale."""
    if subresource != "scale":
        raise method_not_allowed(resource.group, f"{resource.plural}/{subresource}", "update")
    obj = api.get(resource, namespace, name)
    wanted = metadata_of(body)
    if wanted.get("name") not in (None, "", name):
        raise bad_request(f"the name of the object ({wanted['name']}) does not match the name on the URL ({name})")
    replicas = (body.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request("spec.replicas: expected an integer")
    if replicas < 0:
        error = FieldError("FieldValueInvalid", "spec.replicas", "must be greater than or equal to 0", replicas)
        raise invalid("autoscaling", "Scale", name, [error])
    if wanted.get("resourceVersion"):
        obj["metadata"]["resourceVersion"] = wanted["resourceVersion"]
    spec_path = (resource.subresources["scale"].paths or _REPLICAS)[0].strip(".").split(".")
    place = obj
    for part in spec_path[:-1]:
        place = place.setdefault(part, {})
    place[spec_path[-1]] = replicas
    done = api.update(resource, obj, subresource="scale", **options)
    return scale_of(resource, done)
