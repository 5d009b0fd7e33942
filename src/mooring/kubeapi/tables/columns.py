"""The columns of each kind of Kubernetes, as people know them from kubectl."""

from typing import Any

from mooring.kubeapi.status import Object
from mooring.kubeapi.tables import cells
from mooring.kubeapi.tables.cells import NONE, part
from mooring.kubeapi.tables.column import AGE, CREATED_AT, NAME, Cell, Column, at, column, since

UNSET = "<unset>"


def _containers(*path: str) -> tuple[Column, Column]:
    def cell(field: str) -> Cell:
        return lambda obj, _now: cells.containers(part(obj, *path), field)

    return column("Containers*", cell("name")), column("Images*", cell("image"))


def _selector(*path: str) -> Column:
    def cell(obj: Object, _now: float) -> str:
        parent = part(obj, *path[:-1])
        return cells.selector_text(parent.get(path[-1]))

    return column("Selector*", cell)


def _labels(*path: str) -> Cell:
    return lambda obj, _now: cells.labels_text(part(obj, *path))


def _count(*path: str) -> Cell:
    return lambda obj, _now: len(part(obj, *path))


def _out_of(ready: str, wanted: str) -> Cell:
    def cell(obj: Object, _now: float) -> str:
        return f"{part(obj, 'status').get(ready, 0)}/{part(obj, 'spec').get(wanted, 0)}"

    return cell


def _address(type_: str) -> Cell:
    return lambda obj, _now: cells.node_address(obj, type_)


def _subjects(kind: str) -> Cell:
    return lambda obj, _now: cells.subjects(obj, kind)


def _text(path: str, missing: str) -> Cell:
    found = at(path)
    return lambda obj, now: str(value) if (value := found(obj, now)) != "" else missing


_TEMPLATE = _containers("spec", "template")
_REPLICAS = (
    column("Desired", ".spec.replicas", "integer"),
    column("Current", ".status.replicas", "integer"),
    column("Ready", ".status.readyReplicas", "integer"),
    AGE,
    *_TEMPLATE,
)
_WIDE_SUBJECTS = (
    column("Users*", _subjects("User")),
    column("Groups*", _subjects("Group")),
    column("ServiceAccounts*", _subjects("ServiceAccount")),
)
_BINDING = (column("Role", cells.role), AGE, *_WIDE_SUBJECTS)
_EVENT = (
    column("Last Seen", cells.event_last_seen),
    column("Type", ".type"),
    column("Reason", ".reason"),
    column("Object", cells.event_object),
    column("Subobject*", ".involvedObject.fieldPath"),
    column("Source*", cells.event_source),
    column("Message", lambda event, _now: (event.get("message") or event.get("note") or "").strip()),
    column("First Seen*", cells.event_first_seen),
    column("Count*", cells.event_count),
    column("Name*", ".metadata.name"),
)
_POD_NAMES = ("Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*")
_POLICY = column("Policy", lambda group, _now: "Gang" if "gang" in part(group, "spec", "schedulingPolicy") else "Basic")
_WORKLOAD = column("Workload", ".spec.workloadRef.workloadName", missing=NONE)


def _pod_cell(_obj: Object, _now: float) -> Any:
    """A pod's cells are made in one go (`tables.pods`)."""
    raise NotImplementedError


COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": (NAME, *(column(name, _pod_cell) for name in _POD_NAMES)),
    "podtemplates": (
        NAME,
        *(Column(each.name, each.cell) for each in _containers("template")),
        column("Pod Labels", _labels("template", "metadata", "labels")),
    ),
    "poddisruptionbudgets.policy": (
        NAME,
        column("Min Available", _text(".spec.minAvailable", "N/A")),
        column("Max Unavailable", _text(".spec.maxUnavailable", "N/A")),
        column("Allowed Disruptions", ".status.disruptionsAllowed", "integer"),
        AGE,
    ),
    "replicationcontrollers": (NAME, *_REPLICAS, column("Selector*", _labels("spec", "selector"))),
    "replicasets.apps": (NAME, *_REPLICAS, _selector("spec", "selector")),
    "daemonsets.apps": (
        NAME,
        column("Desired", ".status.desiredNumberScheduled", "integer"),
        column("Current", ".status.currentNumberScheduled", "integer"),
        column("Ready", ".status.numberReady", "integer"),
        column("Up-to-date", ".status.updatedNumberScheduled", "integer"),
        column("Available", ".status.numberAvailable", "integer"),
        column("Node Selector", _labels("spec", "template", "spec", "nodeSelector")),
        AGE,
        *_TEMPLATE,
        _selector("spec", "selector"),
    ),
    "deployments.apps": (
        NAME,
        column("Ready", _out_of("readyReplicas", "replicas")),
        column("Up-to-date", ".status.updatedReplicas", missing=0),
        column("Available", ".status.availableReplicas", missing=0),
        AGE,
        *_TEMPLATE,
        _selector("spec", "selector"),
    ),
    "statefulsets.apps": (NAME, column("Ready", _out_of("readyReplicas", "replicas")), AGE, *_TEMPLATE),
    "jobs.batch": (
        NAME,
        column("Status", cells.job_status),
        column("Completions", cells.job_completions),
        column("Duration", cells.job_duration),
        AGE,
        *_TEMPLATE,
        _selector("spec", "selector"),
    ),
    "cronjobs.batch": (
        NAME,
        column("Schedule", ".spec.schedule"),
        column("Timezone", ".spec.timeZone", missing=NONE),
        column("Suspend", lambda job, _now: str(part(job, "spec").get("suspend") is True), "boolean"),
        column("Active", _count("status", "active"), "integer"),
        column("Last Schedule", since(".status.lastScheduleTime")),
        AGE,
        *_containers("spec", "jobTemplate", "spec", "template"),
        _selector("spec", "jobTemplate", "spec", "selector"),
    ),
    "services": (
        NAME,
        column("Type", ".spec.type"),
        column("Cluster-IP", cells.service_address),
        column("External-IP", cells.service_external),
        column("Port(s)", cells.service_ports),
        AGE,
        column("Selector*", _labels("spec", "selector")),
    ),
    "ingresses.networking.k8s.io": (
        NAME,
        column("Class", ".spec.ingressClassName", missing=NONE),
        column(
            "Hosts",
            lambda obj, _now: ",".join(each.get("host", "*") for each in part(obj, "spec").get("rules") or ()) or "*",
        ),
        column(
            "Address",
            lambda obj, _now: ",".join(
                each.get("ip", "") for each in part(obj, "status", "loadBalancer").get("ingress") or ()
            ),
        ),
        column("Ports", lambda obj, _now: "80, 443" if part(obj, "spec").get("tls") else "80"),
        AGE,
    ),
    "ingressclasses.networking.k8s.io": (
        NAME,
        column("Controller", ".spec.controller"),
        column("Parameters", ".spec.parameters.name", missing=NONE),
        AGE,
    ),
    "networkpolicies.networking.k8s.io": (
        NAME,
        column("Pod-Selector", lambda obj, _now: cells.selector_text(part(obj, "spec").get("podSelector"))),
        AGE,
    ),
    "endpoints": (NAME, column("Endpoints", cells.endpoints), AGE),
    "endpointslices.discovery.k8s.io": (
        NAME,
        column("AddressType", ".addressType"),
        column("Ports", cells.slice_ports),
        column("Endpoints", cells.slice_endpoints),
        AGE,
    ),
    "nodes": (
        NAME,
        column("Status", cells.node_status),
        column("Roles", cells.node_roles),
        AGE,
        column("Version", ".status.nodeInfo.kubeletVersion"),
        column("Internal-IP*", _address("InternalIP")),
        column("External-IP*", _address("ExternalIP")),
        column("OS-Image*", _text(".status.nodeInfo.osImage", "<unknown>")),
        column("Kernel-Version*", cells.kernel),
        column("Container-Runtime*", _text(".status.nodeInfo.containerRuntimeVersion", "<unknown>")),
    ),
    "events": _EVENT,
    "events.events.k8s.io": _EVENT,
    "namespaces": (NAME, column("Status", ".status.phase"), AGE),
    "secrets": (NAME, column("Type", ".type"), column("Data", _count("data")), AGE),
    "serviceaccounts": (NAME, AGE),
    "configmaps": (
        NAME,
        column("Data", lambda obj, _now: len(part(obj, "data")) + len(part(obj, "binaryData"))),
        AGE,
    ),
    "persistentvolumes": (
        NAME,
        column("Capacity", ".spec.capacity.storage", missing="0"),
        column("Access Modes", lambda obj, _now: cells.access_modes(part(obj, "spec").get("accessModes"))),
        column("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
        column("Status", cells.claim_status),
        column("Claim", cells.volume_claim),
        column("StorageClass", ".spec.storageClassName"),
        column("VolumeAttributesClass", ".spec.volumeAttributesClassName", missing=UNSET),
        column("Reason", ".status.reason"),
        AGE,
        column("VolumeMode*", ".spec.volumeMode", missing=UNSET),
    ),
    "persistentvolumeclaims": (
        NAME,
        column("Status", cells.claim_status),
        column("Volume", ".spec.volumeName"),
        column("Capacity", cells.claim_capacity),
        column("Access Modes", cells.claim_modes),
        column("StorageClass", ".spec.storageClassName"),
        column("VolumeAttributesClass", ".spec.volumeAttributesClassName", missing=UNSET),
        AGE,
        column("VolumeMode*", ".spec.volumeMode", missing=UNSET),
    ),
    "horizontalpodautoscalers.autoscaling": (
        NAME,
        column(
            "Reference",
            lambda obj, _now: "{kind}/{name}".format(**{"kind": "", "name": "", **part(obj, "spec", "scaleTargetRef")}),
        ),
        column("Targets", cells.autoscaler_targets),
        column("MinPods", _text(".spec.minReplicas", UNSET)),
        column("MaxPods", ".spec.maxReplicas", missing=0),
        column("Replicas", ".status.currentReplicas", missing=0),
        AGE,
    ),
    "rolebindings.rbac.authorization.k8s.io": (NAME, *_BINDING),
    "clusterrolebindings.rbac.authorization.k8s.io": (NAME, *_BINDING),
    "certificatesigningrequests.certificates.k8s.io": (
        NAME,
        AGE,
        column("SignerName", ".spec.signerName"),
        column("Requestor", ".spec.username"),
        column("RequestedDuration", ".spec.expirationSeconds", missing=NONE),
        column(
            "Condition",
            lambda obj, _now: (
                ",".join(each.get("type", "") for each in part(obj, "status").get("conditions") or ()) or "Pending"
            ),
        ),
    ),
    "leases.coordination.k8s.io": (NAME, column("Holder", ".spec.holderIdentity"), AGE),
    "storageclasses.storage.k8s.io": (
        Column("Name", lambda obj, _now: _class_name(obj), format="name"),
        column("Provisioner", ".provisioner"),
        column("ReclaimPolicy", ".reclaimPolicy", missing="Delete"),
        column("VolumeBindingMode", ".volumeBindingMode", missing=UNSET),
        column("AllowVolumeExpansion", ".allowVolumeExpansion", missing=False),
        AGE,
    ),
    "volumeattributesclasses.storage.k8s.io": (NAME, column("DriverName", ".driverName"), AGE),
    "controllerrevisions.apps": (
        NAME,
        column("Controller", lambda obj, _now: _controller(obj)),
        column("Revision", ".revision", missing=0),
        AGE,
    ),
    "resourcequotas": (
        NAME,
        column("Request", lambda obj, _now: cells.quota(obj, is_limit=False)),
        column("Limit", lambda obj, _now: cells.quota(obj, is_limit=True)),
        AGE,
    ),
    "componentstatuses": (
        NAME,
        column("Status", lambda obj, _now: cells.component_condition(obj)[0]),
        column("Message", lambda obj, _now: cells.component_condition(obj)[1]),
        column("Error", lambda obj, _now: cells.component_condition(obj)[2]),
    ),
    "limitranges": (NAME, CREATED_AT),
    "priorityclasses.scheduling.k8s.io": (
        NAME,
        column("Value", ".value", "integer"),
        column("Global-Default", ".globalDefault", "boolean"),
        AGE,
        column("PreemptionPolicy", ".preemptionPolicy"),
    ),
    "runtimeclasses.node.k8s.io": (NAME, column("Handler", ".handler"), AGE),
    "volumeattachments.storage.k8s.io": (
        NAME,
        column("Attacher", ".spec.attacher"),
        column("PV", ".spec.source.persistentVolumeName"),
        column("Node", ".spec.nodeName"),
        column("Attached", ".status.attached", "boolean"),
        AGE,
    ),
    "csinodes.storage.k8s.io": (NAME, column("Drivers", _count("spec", "drivers"), "integer"), AGE),
    "csidrivers.storage.k8s.io": (
        NAME,
        column("AttachRequired", ".spec.attachRequired", "boolean"),
        column("PodInfoOnMount", ".spec.podInfoOnMount", "boolean"),
        column("StorageCapacity", ".spec.storageCapacity", "boolean"),
        AGE,
    ),
    "csistoragecapacities.storage.k8s.io": (
        NAME,
        column("StorageClassName", ".storageClassName"),
        column("Capacity", ".capacity"),
        AGE,
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": (
        NAME,
        column("Webhooks", _count("webhooks"), "integer"),
        AGE,
    ),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": (
        NAME,
        column("Webhooks", _count("webhooks"), "integer"),
        AGE,
    ),
    "deviceclasses.resource.k8s.io": (NAME, AGE),
    "resourceclaims.resource.k8s.io": (NAME, column("State", cells.resource_claim_state), AGE),
    "resourceclaimtemplates.resource.k8s.io": (NAME, AGE),
    "resourceslices.resource.k8s.io": (
        NAME,
        column("Node", ".spec.nodeName"),
        column("Driver", ".spec.driver"),
        column("Pool", ".spec.pool.name"),
        AGE,
    ),
    "devicetaintrules.resource.k8s.io": (
        NAME,
        column("Key", ".spec.taint.key"),
        column("Value", ".spec.taint.value"),
        column("Effect", ".spec.taint.effect"),
        column("TimeAdded", since(".spec.taint.timeAdded")),
        AGE,
    ),
    "workloads.scheduling.k8s.io": (NAME, AGE),
    "podgroups.scheduling.k8s.io": (NAME, _POLICY, _WORKLOAD, column("Status", cells.pod_group_status), AGE),
    "compositepodgroups.scheduling.k8s.io": (NAME, _POLICY, _WORKLOAD, AGE),
}


def _class_name(obj: Object) -> str:
    annotations = part(obj, "metadata", "annotations")
    is_default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{obj['metadata']['name']} (default)" if is_default else str(obj["metadata"]["name"])


def _controller(obj: Object) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    if owner is None:
        return NONE
    group = owner.get("apiVersion", "").rpartition("/")[0]
    kind = owner.get("kind", "").lower()
    return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"
