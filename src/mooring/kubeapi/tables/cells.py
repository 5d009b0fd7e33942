"""Cells that take more than a path: states, ports, selectors, claims."""

from typing import Any

from mooring.kubeapi.status import Object
from mooring.kubeapi.tables.ages import age, human_duration, moment

NONE = "<none>"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def part(obj: Object, *path: str) -> Any:
    for name in path:
        obj = (obj or {}).get(name) or {}
    return obj


def labels_text(labels: dict[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Object | None) -> str:
    """A label selector as one writes it after `-l`."""
    if selector is None:
        return NONE
    words = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or ():
        key, values = each.get("key"), ",".join(sorted(each.get("values") or ()))
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        words.append(forms.get(each.get("operator"), f"!{key}"))
    return ",".join(words) or NONE


def containers(template: Object, field: str) -> str:
    return ",".join(each.get(field, "") for each in part(template, "spec").get("containers") or ())


def condition(obj: Object, type_: str) -> str:
    conditions = part(obj, "status").get("conditions") or ()
    return next((each.get("status", "") for each in conditions if each.get("type") == type_), "")


def node_status(node: Object, _now: float) -> str:
    ready = condition(node, "Ready")
    words = [("Ready" if ready == "True" else "NotReady") if ready else "Unknown"]
    if part(node, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def node_roles(node: Object, _now: float) -> str:
    labels = part(node, "metadata", "labels")
    prefix = "node-role.kubernetes.io/"
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)} - {""}
    if role := labels.get("kubernetes.io/role"):
        roles.add(role)
    return ",".join(sorted(roles)) or NONE


def node_address(node: Object, type_: str) -> str:
    addresses = part(node, "status").get("addresses") or ()
    return next((each["address"] for each in addresses if each.get("type") == type_), NONE)


def kernel(node: Object, _now: float) -> str:
    info = part(node, "status", "nodeInfo")
    architecture = info.get("architecture")
    return (info.get("kernelVersion") or "<unknown>") + (f" ({architecture})" if architecture else "")


def job_status(job: Object, _now: float) -> str:
    for type_, word in (("Complete", "Complete"), ("Failed", "Failed")):
        if condition(job, type_) == "True":
            return word
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for type_ in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if condition(job, type_) == "True":
            return type_
    return "Running"


def job_completions(job: Object, _now: float) -> str:
    spec, succeeded = part(job, "spec"), part(job, "status").get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def job_duration(job: Object, now: float) -> str:
    status = part(job, "status")
    if not status.get("startTime"):
        return ""
    end = moment(status["completionTime"]) if status.get("completionTime") else now
    return human_duration(end - moment(status["startTime"]))


def service_address(service: Object, _now: float) -> str:
    return str((part(service, "spec").get("clusterIPs") or [NONE])[0])


def service_external(service: Object, _now: float) -> str:
    spec = part(service, "spec")
    addresses = list(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ExternalName":
            return str(spec.get("externalName") or NONE)
        case "LoadBalancer":
            ingress = part(service, "status", "loadBalancer").get("ingress") or ()
            addresses = [each.get("ip") or each.get("hostname", "") for each in ingress] + addresses
            return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or NONE


def service_ports(service: Object, _now: float) -> str:
    found = []
    for port in part(service, "spec").get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        found.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(found) or NONE


def endpoints(obj: Object, _now: float) -> str:
    found = []
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or [{}]:
            for address in subset.get("addresses") or ():
                found.append(f"{address['ip']}:{port['port']}" if port.get("port") else address["ip"])
    return _first_three(found)


def slice_endpoints(obj: Object, _now: float) -> str:
    found = [address for each in obj.get("endpoints") or () for address in each.get("addresses") or ()]
    return _first_three(found, "<unset>")


def _first_three(found: list[str], none: str = NONE) -> str:
    shown = ",".join(found[:3]) or none
    return f"{shown} + {len(found) - 3} more..." if len(found) > 3 else shown


def slice_ports(obj: Object, _now: float) -> str:
    return _first_three([str(port.get("port") or "*") for port in obj.get("ports") or ()], "<unset>")


def access_modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def claim_status(claim: Object, _now: float) -> str:
    return "Terminating" if claim["metadata"].get("deletionTimestamp") else part(claim, "status").get("phase", "")


def claim_capacity(claim: Object, _now: float) -> str:
    return part(claim, "status", "capacity").get("storage", "0") if part(claim, "spec").get("volumeName") else ""


def claim_modes(claim: Object, _now: float) -> str:
    modes = part(claim, "status").get("accessModes") if part(claim, "spec").get("volumeName") else None
    return access_modes(modes)


def volume_claim(volume: Object, _now: float) -> str:
    claim = part(volume, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def quota(obj: Object, *, is_limit: bool) -> str:
    status = part(obj, "status")
    hard, used = status.get("hard") or {}, status.get("used") or {}
    names = [name for name in sorted(hard) if name.startswith("limits.") == is_limit]
    return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)


def event_last_seen(event: Object, now: float) -> str:
    series = event.get("series")
    if series:
        return age(series.get("lastObservedTime"), now)
    return age(event.get("lastTimestamp"), now) if event.get("lastTimestamp") else event_first_seen(event, now)


def event_first_seen(event: Object, now: float) -> str:
    return age(event.get("firstTimestamp") or event.get("eventTime"), now)


def event_object(event: Object, _now: float) -> str:
    regarding = part(event, "involvedObject") or part(event, "regarding")
    kind = regarding.get("kind", "").lower()
    return f"{kind}/{regarding['name']}" if regarding.get("name") else kind


def event_source(event: Object, _now: float) -> str:
    source = part(event, "source") or part(event, "deprecatedSource")
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController", "")
    host = source.get("host") or event.get("reportingInstance")
    return f"{component}, {host}" if host else component


def event_count(event: Object, _now: float) -> int:
    return part(event, "series").get("count") or event.get("count") or event.get("deprecatedCount") or 1


def role(binding: Object, _now: float) -> str:
    found = part(binding, "roleRef")
    return f"{found.get('kind', '')}/{found.get('name', '')}"


def subjects(binding: Object, kind: str) -> str:
    found = [each for each in binding.get("subjects") or () if each.get("kind") == kind]
    prefixed = kind == "ServiceAccount"
    return ", ".join(f"{each.get('namespace')}/{each['name']}" if prefixed else each["name"] for each in found)


def autoscaler_targets(autoscaler: Object, _now: float) -> str:
    current = part(autoscaler, "status").get("currentMetrics") or ()
    used = {part(each, "resource").get("name"): part(each, "resource", "current") for each in current}
    found = []
    for metric in part(autoscaler, "spec").get("metrics") or ():
        name, target = part(metric, "resource").get("name", ""), part(metric, "resource", "target")
        value, wanted = (part(used, name).get("averageUtilization"), target.get("averageUtilization"))
        found.append(f"{name}: {f'{value}%' if value is not None else '<unknown>'}/{wanted}%")
    return ", ".join(found) or NONE


def resource_claim_state(claim: Object, _now: float) -> str:
    status = part(claim, "status")
    states = [word for word, is_so in (("deleted", claim["metadata"].get("deletionTimestamp")),) if is_so]
    if not status.get("allocation"):
        return ",".join([*states, "pending"])
    states.append("allocated")
    return ",".join([*states, "reserved"] if status.get("reservedFor") else states)


def pod_group_status(group: Object, _now: float) -> str:
    conditions = {each.get("type"): each for each in part(group, "status").get("conditions") or ()}
    if "DisruptionTarget" in conditions:
        return str(conditions["DisruptionTarget"].get("reason", ""))
    if "PodGroupInitiallyScheduled" in conditions:
        return "Scheduled" if conditions["PodGroupInitiallyScheduled"].get("status") == "True" else "Unschedulable"
    return "Pending"


def component_condition(obj: Object) -> tuple[str, str, str]:
    """How a component of the control plane is: status, message and error."""
    for condition in obj.get("conditions") or ():
        if condition.get("type") == "Healthy":
            status = {"True": "Healthy", "False": "Unhealthy"}.get(condition.get("status"), "Unknown")
            return status, condition.get("message", ""), condition.get("error", "")
    return "Unknown", "", ""
