"""What is filled in where nothing was said, by the type of each part: a probe is the same wherever it stands.

Tables have one entry a type; objects are walked along their types, into those parts only that can lead to one of them.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from mooring.kubeapi.schemas.notation import type_of_kind
from mooring.kubeapi.schemas.types import Type
from mooring.kubeapi.status import Object
from mooring.model.values.quantity import format_quantity, parse_quantity

Default = Mapping[str, Any] | Callable[[Object], None]
_MILLI = 10**6


def _image_pull_policy(image: str) -> str:
    _, _, tag = image.rpartition("/")[2].partition(":")
    has_digest = "@" in image
    return "Always" if tag == "latest" or (not tag and not has_digest) else "IfNotPresent"


def _container(container: Object) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _image_pull_policy(container.get("image", ""))
    fill(container, {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"})


def _pod_spec(spec: Object) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    fill(
        spec,
        {
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
        },
    )
    _set_missing(spec, {"containers": [], "securityContext": {}, "terminationGracePeriodSeconds": 30})


def _pod(pod: Object) -> None:
    spec = part(pod, "spec")
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        resources = container.get("resources", {})
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **resources.get("requests", {})}
        if spec.get("hostNetwork"):
            for port in container.get("ports", ()):
                port["hostPort"] = port.get("hostPort") or port.get("containerPort", 0)
    _set_missing(spec, {"enableServiceLinks": True})


def _pod_status(status: Object) -> None:
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and not address:
        status["podIP"] = addresses[0].get("ip", "")


def _volume(volume: Object) -> None:
    if not any(name != "name" for name in volume):
        volume["emptyDir"] = {}
    if image := volume.get("image"):
        fill(image, {"pullPolicy": _image_pull_policy(image.get("reference", ""))})


def _service(service: Object) -> None:
    spec = part(service, "spec")
    fill(spec, {"sessionAffinity": "None", "type": "ClusterIP"})
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {}).setdefault("timeoutSeconds", 10800)
    for port in spec.get("ports", ()):
        fill(port, {"protocol": "TCP", "targetPort": port.get("port", 0)})
    if spec["type"] in ("NodePort", "LoadBalancer") or spec.get("externalIPs"):
        fill(spec, {"externalTrafficPolicy": "Cluster"})
    if spec["type"] != "ExternalName":
        fill(spec, {"internalTrafficPolicy": "Cluster"})
    if spec["type"] == "LoadBalancer" and "allocateLoadBalancerNodePorts" not in spec:
        spec["allocateLoadBalancerNodePorts"] = True


def _namespace(namespace: Object) -> None:
    if name := namespace["metadata"].get("name"):
        namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _node_status(status: Object) -> None:
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


def _limit_range_item(item: Object) -> None:
    if item.get("type") != "Container":
        return
    limits = {**item.get("max", {}), **item.get("default", {})}
    requests = {**item.get("min", {}), **limits, **item.get("defaultRequest", {})}
    item |= {name: amounts for name, amounts in (("default", limits), ("defaultRequest", requests)) if amounts}


def _replication_controller(controller: Object) -> None:
    spec = part(controller, "spec")
    labels = (spec.get("template") or {}).get("metadata", {}).get("labels")
    if labels:
        spec["selector"] = spec.get("selector") or dict(labels)
        controller["metadata"]["labels"] = controller["metadata"].get("labels") or dict(labels)
    if "replicas" not in spec:
        spec["replicas"] = 1


def _deployment(deployment: Object) -> None:
    spec = part(deployment, "spec")
    strategy = part(spec, "strategy")
    fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        _set_missing(strategy.setdefault("rollingUpdate", {}), {"maxUnavailable": "25%", "maxSurge": "25%"})
    _set_missing(spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})


def _daemon_set(daemon_set: Object) -> None:
    spec = part(daemon_set, "spec")
    strategy = part(spec, "updateStrategy")
    fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        _set_missing(strategy.setdefault("rollingUpdate", {}), {"maxUnavailable": 1, "maxSurge": 0})
    _set_missing(spec, {"revisionHistoryLimit": 10})


def _stateful_set(stateful_set: Object) -> None:
    spec = part(stateful_set, "spec")
    fill(spec, {"podManagementPolicy": "OrderedReady"})
    strategy = part(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        _set_missing(strategy["rollingUpdate"], {"partition": 0, "maxUnavailable": 1})
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    fill(policy, {"whenDeleted": "Retain", "whenScaled": "Retain"})
    _set_missing(spec, {"replicas": 1, "revisionHistoryLimit": 10})


def _job(job: Object) -> None:
    spec = part(job, "spec")
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    labels = part(part(spec, "template"), "metadata").get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)
    _set_missing(
        spec,
        {
            "parallelism": 1,
            "backoffLimit": 2**31 - 1 if "backoffLimitPerIndex" in spec else 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
            "manualSelector": False,
        },
    )


def _cron_job(cron_job: Object) -> None:
    spec = part(cron_job, "spec")
    fill(spec, {"concurrencyPolicy": "Allow"})
    _set_missing(spec, {"suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1})


def _csi_driver(driver: Object) -> None:
    spec = part(driver, "spec")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]
    _set_missing(
        spec,
        {
            "attachRequired": True,
            "podInfoOnMount": False,
            "storageCapacity": False,
            "fsGroupPolicy": "ReadWriteOnceWithFSType",
            "requiresRepublish": False,
            "seLinuxMount": False,
        },
    )


def _subject(subject: Object) -> None:
    if subject.get("kind") in ("User", "Group"):
        fill(subject, {"apiGroup": "rbac.authorization.k8s.io"})


def _network_policy(policy: Object) -> None:
    spec = part(policy, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _device_request(request: Object) -> None:
    fill(request, {"allocationMode": "ExactCount"})
    if request["allocationMode"] == "ExactCount":
        fill(request, {"count": 1})


def _autoscaler(autoscaler: Object) -> None:
    spec = part(autoscaler, "spec")
    _set_missing(spec, {"minReplicas": 1})
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if (behavior := spec.get("behavior")) is not None:
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        up = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}
        policies = [{"type": "Pods", "value": 4, "periodSeconds": 15}, percent]
        behavior["scaleUp"] = {**up, "policies": policies, **behavior.get("scaleUp", {})}
        behavior["scaleDown"] = {"selectPolicy": "Max", "policies": [percent], **behavior.get("scaleDown", {})}


def _webhook(webhook: Object) -> None:
    fill(webhook, {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10})
    _set_missing(webhook, {"namespaceSelector": {}, "objectSelector": {}})


def _mutating_webhook(webhook: Object) -> None:
    _webhook(webhook)
    fill(webhook, {"reinvocationPolicy": "Never"})


_MODE = {"defaultMode": 0o644}
_PROTOCOL = {"protocol": "TCP"}
_ROLE = {"apiGroup": "rbac.authorization.k8s.io"}
_PREEMPTION = {"preemptionPolicy": "PreemptLowerPriority"}

DEFAULTS: dict[str, Default] = {
    "core/v1.Pod": _pod,
    "core/v1.PodSpec": _pod_spec,
    "core/v1.PodStatus": _pod_status,
    "core/v1.Container": _container,
    "core/v1.EphemeralContainer": _container,
    "core/v1.ContainerPort": _PROTOCOL,
    "core/v1.Volume": _volume,
    "core/v1.Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "core/v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core/v1.SecretVolumeSource": _MODE,
    "core/v1.ConfigMapVolumeSource": _MODE,
    "core/v1.DownwardAPIVolumeSource": _MODE,
    "core/v1.ProjectedVolumeSource": _MODE,
    "core/v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core/v1.HostPathVolumeSource": lambda source: _set_missing(source, {"type": ""}),
    "core/v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core/v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core/v1.RBDVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "core/v1.Service": _service,
    "core/v1.Secret": {"type": "Opaque"},
    "core/v1.Namespace": _namespace,
    "core/v1.NamespaceStatus": {"phase": "Active"},
    "core/v1.NodeStatus": _node_status,
    "core/v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core/v1.PersistentVolumeStatus": {"phase": "Pending"},
    "core/v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core/v1.PersistentVolumeClaim": lambda claim: fill(part(claim, "status"), {"phase": "Pending"}),
    "core/v1.EndpointPort": _PROTOCOL,
    "core/v1.LimitRangeItem": _limit_range_item,
    "core/v1.ReplicationController": _replication_controller,
    "apps/v1.Deployment": _deployment,
    "apps/v1.DaemonSet": _daemon_set,
    "apps/v1.StatefulSet": _stateful_set,
    "apps/v1.ReplicaSet": lambda replica_set: _set_missing(part(replica_set, "spec"), {"replicas": 1}),
    "batch/v1.Job": _job,
    "batch/v1.CronJob": _cron_job,
    "batch/v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "scheduling/v1.PriorityClass": _PREEMPTION,
    "resource/v1.ExactDeviceRequest": _device_request,
    "resource/v1.DeviceSubRequest": _device_request,
    "resource/v1beta2.ExactDeviceRequest": _device_request,
    "resource/v1beta2.DeviceSubRequest": _device_request,
    "resource/v1beta1.DeviceSubRequest": _device_request,
    "storage/v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "storage/v1.CSIDriver": _csi_driver,
    "rbac/v1.RoleRef": _ROLE,
    "rbac/v1.Subject": _subject,
    "networking/v1.NetworkPolicyPort": _PROTOCOL,
    "networking/v1.NetworkPolicy": _network_policy,
    "discovery/v1.EndpointPort": lambda port: _set_missing(port, {"name": "", "protocol": "TCP"}),
    "autoscaling/v2.HorizontalPodAutoscaler": _autoscaler,
    "admissionregistration/v1.ValidatingWebhook": _webhook,
    "admissionregistration/v1.MutatingWebhook": _mutating_webhook,
    "admissionregistration/v1.ServiceReference": {"port": 443},
    "admissionregistration/v1.RuleWithOperations": {"scope": "*"},
}


def part(value: Object, name: str) -> Object:
    """An object within an object, made where it is missing."""
    found: Object | None = value.get(name)
    if found is None:
        found = value[name] = {}
    return found


def fill(value: Object, defaults: Mapping[str, Any]) -> None:
    """Set what is missing or empty."""
    for name, default in defaults.items():
        if not value.get(name):
            value[name] = dict(default) if isinstance(default, dict) else default


def _fill_struct(value: Object, defaults: Mapping[str, Any], type_: Type) -> None:
    """Set what is missing; where Go has no pointer, a zero says nothing either."""
    for name, default in defaults.items():
        if name not in value or (not value[name] and not type_.fields[name].is_pointer):
            value[name] = default


def _set_missing(value: Object, defaults: Mapping[str, Any]) -> None:
    """Set what is missing; a zero that was said stays."""
    for name, default in defaults.items():
        if name not in value:
            value[name] = default.copy() if isinstance(default, dict | list) else default


def apply_defaults(obj: Object, api_version: str, kind: str) -> None:
    """Fill in an object of a built-in kind, in place; twice does no harm."""
    type_ = type_of_kind(api_version, kind)
    if type_ is not None:
        _walk(obj, type_)


def _walk(value: Any, type_: Type) -> None:
    match type_.form:
        case "struct":
            if not isinstance(value, dict):
                return
            default = DEFAULTS.get(type_.name)
            if callable(default):
                default(value)
            elif default is not None:
                _fill_struct(value, default, type_)
            for name, inner, declared in _ways(type_):
                if declared is not None and name not in value:
                    value[name] = copy.deepcopy(declared)
                if name in value:
                    _walk(value[name], inner)
        case "list" | "map":
            assert type_.item is not None
            if type_.item.name == "quantity" and isinstance(value, dict):
                _round_up(value)
            for inner_value in value.values() if isinstance(value, dict) else value:
                _walk(inner_value, type_.item)


def _round_up(amounts: dict[str, str]) -> None:
    """The API keeps thousandths of resources, and rounds anything finer up."""
    for name, text in amounts.items():
        if text.endswith(("n", "u")):
            nanos = parse_quantity(text)
            amounts[name] = format_quantity(-(-nanos // _MILLI) * _MILLI)


_WAYS: dict[Type, list[tuple[str, Type, Any]]] = {}


def _ways(type_: Type) -> list[tuple[str, Type, Any]]:
    """The fields of a struct that have a default of their own in the API's schema, or lead to something with one."""
    if type_ not in _WAYS:
        _WAYS[type_] = [
            (name, field.type, field.default)
            for name, field in type_.fields.items()
            if field.default is not None or _leads_somewhere(field.type, set())
        ]
    return _WAYS[type_]


def _leads_somewhere(type_: Type, seen: set[str]) -> bool:
    if type_.form in ("list", "map"):
        assert type_.item is not None
        return type_.item.name == "quantity" or _leads_somewhere(type_.item, seen)
    if type_.form != "struct" or type_.name in seen:
        return False
    seen.add(type_.name)
    return type_.name in DEFAULTS or any(
        field.default is not None or _leads_somewhere(field.type, seen) for field in type_.fields.values()
    )
