"""The status of a pod as a kubelet writes it, made of its life and its document when somebody wants it."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mooring.model.api.meta import timestamp_text
from mooring.model.kubelet.commands import image_name
from mooring.model.kubelet.containers import RUNNING, TERMINATED, ContainerLife, Termination
from mooring.model.kubelet.life import FAILED, SUCCEEDED, PodLife
from mooring.model.kubelet.qos import qos_class

OWNED_CONDITIONS = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "AllContainersRestarting",
    "PodResizePending",
    "PodResizeInProgress",
)
"""Conditions that the kubelet writes; it leaves all others as they are."""

Document = Mapping[str, Any]
Status = dict[str, Any]


def status_of(
    life: PodLife,
    pod: Document,
    at: float,
    *,
    host_ip: str,
    pod_ip: str,
    allocated: Mapping[str, Document] | None = None,
    actual: Mapping[str, Document] | None = None,
    resize: Sequence[Document] = (),
) -> Status:
    """The status at a moment. `allocated` has the resources of containers that the node granted, where they are not
    those of the spec; `actual` those that they run with, where these are others again; `resize` are the conditions
    that say why."""
    spec, old = pod["spec"], pod.get("status") or {}
    generation = pod["metadata"].get("generation") or 0
    if life.is_rejected:
        return _rejected(life, spec, old, generation)
    status: Status = {"phase": life.phase}
    if generation:
        status["observedGeneration"] = generation
    containers = [_container_status(one, pod, allocated, actual) for one in life.containers]
    init = [_container_status(one, pod, allocated, actual) for one in life.init]
    kept = [dict(one) for one in old.get("conditions") or () if one["type"] not in OWNED_CONDITIONS]
    owned = [dict(one) for one in resize]
    owned += _conditions(life, spec, kept, old)
    status["conditions"] = kept + [_stamped(one, old, generation, at) for one in owned]
    for key in ("reason", "message"):
        if text := getattr(life, key) or (old.get(key) if old.get("phase") == life.phase else ""):
            status[key] = text
    status |= {
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": old.get("startTime") or timestamp_text(life.started_at),
    }
    if init:
        status["initContainerStatuses"] = init
    status["containerStatuses"] = sorted(containers, key=lambda one: str(one["name"]))
    status["qosClass"] = old.get("qosClass") or qos_class(spec)
    for key in (
        "resourceClaimStatuses",
        "extendedResourceClaimStatus",
        "nominatedNodeName",
    ):
        if key in old:
            status[key] = old[key]
    if ephemeral := [_ephemeral_status(one, life, pod, at) for one in spec.get("ephemeralContainers") or ()]:
        status["ephemeralContainerStatuses"] = ephemeral
    return status


def _ephemeral_status(container: Document, life: PodLife, pod: Document, at: float) -> Status:
    """An ephemeral container starts at once, and ends with its pod: it has no part in the pod's life."""
    known = (pod.get("status") or {}).get("ephemeralContainerStatuses") or ()
    before: Status = next((one["state"] for one in known if one["name"] == container["name"]), {})
    words = f"{pod['metadata'].get('uid')}/{container['name']}"
    container_id = f"containerd://{hashlib.sha256(words.encode()).hexdigest()}"
    since = (before.get("running") or {}).get("startedAt") or timestamp_text(at)
    state: Status = {"running": {"startedAt": since}}
    if "terminated" in before:
        state = before
    elif life.is_over:
        ended = {"exitCode": 137, "reason": "Error", "startedAt": since, "finishedAt": timestamp_text(at)}
        state = {"terminated": {**ended, "containerID": container_id}}
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": _image_id(container["image"]),
        "containerID": container_id,
        "ready": False,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }


def _rejected(life: PodLife, spec: Document, old: Document, generation: int) -> Status:
    status: Status = {
        **old,
        "phase": FAILED,
        "reason": life.reason,
        "message": f"Pod was rejected: {life.message}",
        "startTime": timestamp_text(life.started_at),
        "qosClass": old.get("qosClass") or qos_class(spec),
    }
    if generation:
        status["observedGeneration"] = generation
    return status


def _conditions(life: PodLife, spec: Document, kept: Iterable[Document], old: Document) -> list[Status]:
    containers_ready = _containers_ready(life)
    found = [
        {"type": "PodReadyToStartContainers", "status": "False" if life.is_over else "True"},
        {"type": "Initialized", **_initialized(life, old)},
        {"type": "Ready", **_ready(containers_ready, spec, kept)},
        {"type": "ContainersReady", **containers_ready},
        {"type": "PodScheduled", "status": "True"},
    ]
    if life.plan.can_restart_all:
        ended = {SUCCEEDED: {"reason": "PodCompleted"}, FAILED: {"reason": "PodFailed"}}
        found.append({"type": "AllContainersRestarting", "status": "False", **ended.get(life.phase, {})})
    return found


def _containers_ready(life: PodLife) -> Status:
    if life.phase == SUCCEEDED:
        return {"status": "False", "reason": "PodCompleted"}
    if life.phase == FAILED:
        return {"status": "False", "reason": "PodFailed"}
    looked_at = [one for one in life.init if one.plan.is_sidecar] + life.containers
    unready = [one.plan.name for one in looked_at if not one.is_ready]
    if not unready:
        return {"status": "True"}
    message = f"containers with unready status: [{' '.join(unready)}]"
    return {"status": "False", "reason": "ContainersNotReady", "message": message}


def _ready(containers_ready: Status, spec: Document, kept: Iterable[Document]) -> Status:
    if containers_ready["status"] != "True":
        return containers_ready
    given = {one["type"]: one["status"] for one in kept}
    complaints = []
    for gate in spec.get("readinessGates") or ():
        name = gate["conditionType"]
        if name not in given:
            complaints.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif given[name] != "True":
            complaints.append(f'the status of pod readiness gate "{name}" is not "True", but {given[name]}')
    if complaints:
        return {"status": "False", "reason": "ReadinessGatesNotReady", "message": ", ".join(complaints)}
    return {"status": "True"}


def _initialized(life: PodLife, old: Document) -> Status:
    if life.phase == SUCCEEDED:
        return {"status": "True", "reason": "PodCompleted"}
    # What has been initialized once stays so, also while all containers are started again.
    if any(one["type"] == "Initialized" and one["status"] == "True" for one in old.get("conditions") or ()):
        return {"status": "True"}
    if any(one.state != "waiting" or one.last for one in life.containers):
        return {"status": "True"}
    incomplete = [one.plan.name for one in life.init if not (one.is_started if one.plan.is_sidecar else one.is_ready)]
    if not incomplete:
        return {"status": "True"}
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return {"status": "False", "reason": "ContainersNotInitialized", "message": message}


def _stamped(condition: Status, old: Document, generation: int, at: float) -> Status:
    """Give a condition its times: that of the last transition stays while its status does."""
    before = next((one for one in old.get("conditions") or () if one["type"] == condition["type"]), None)
    same = before is not None and before["status"] == condition["status"]
    moment = before.get("lastTransitionTime") if same and before else None
    stamped = {"lastProbeTime": None, "lastTransitionTime": moment or timestamp_text(at), **condition}
    if generation:
        stamped["observedGeneration"] = generation
    return stamped


def _container_status(
    life: ContainerLife,
    pod: Document,
    allocated: Mapping[str, Document] | None,
    actual: Mapping[str, Document] | None,
) -> Status:
    name, image = life.plan.name, life.plan.image
    spec = _container_spec(pod["spec"], name)
    granted = (allocated or {}).get(name) or spec.get("resources") or {}
    resources = (actual or {}).get(name) or granted
    status: Status = {
        "name": name,
        "image": image,
        "imageID": "",
        "ready": life.is_ready,
        "started": life.is_started,
        "restartCount": life.restart_count,
        "state": _state(life, pod),
        "lastState": {"terminated": _terminated(life.last, _container_id(life, pod, -1))} if life.last else {},
        "resources": {key: resources[key] for key in ("limits", "requests") if resources.get(key)},
    }
    if granted.get("requests"):
        status["allocatedResources"] = granted["requests"]
    if life.state == RUNNING or life.state == TERMINATED or life.last:
        status["imageID"] = _image_id(image)
        status["containerID"] = _container_id(life, pod, 0 if life.state != "waiting" else -1)
        if mounts := spec.get("volumeMounts"):
            status["volumeMounts"] = [_mount(one) for one in mounts]
    return status


def _container_spec(spec: Document, name: str) -> Document:
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        if container["name"] == name:
            return dict(container)
    return {}


def _state(life: ContainerLife, pod: Document) -> Status:
    if life.state == RUNNING:
        return {"running": {"startedAt": timestamp_text(life.started_at)}}
    if life.state == TERMINATED:
        return {"terminated": _terminated(life.termination(), _container_id(life, pod, 0))}
    return {"waiting": {"reason": life.reason, **({"message": life.message} if life.message else {})}}


def _terminated(ended: Termination, container_id: str) -> Status:
    return {
        "exitCode": ended.exit_code,
        "reason": ended.reason,
        "startedAt": timestamp_text(ended.started_at),
        "finishedAt": timestamp_text(ended.finished_at),
        "containerID": container_id,
    }


def _container_id(life: ContainerLife, pod: Document, back: int) -> str:
    """Who a container is: another with every start."""
    # While it waits to be started again, the count is still that of the run before.
    back = 0 if back and life.state == "waiting" else back
    words = f"{pod['metadata'].get('uid')}/{life.plan.name}/{life.restart_count + back}"
    return f"containerd://{hashlib.sha256(words.encode()).hexdigest()}"


def _image_id(image: str) -> str:
    return f"{_repository(image)}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _repository(image: str) -> str:
    path, separator, _ = image.rpartition("/")
    return f"{path}{separator}{image_name(image)}"


def _mount(mount: Document) -> Status:
    status: Status = {"mountPath": mount["mountPath"], "name": mount["name"]}
    if mount.get("readOnly"):
        status |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
    return status
