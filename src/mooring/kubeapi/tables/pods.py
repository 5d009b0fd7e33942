"""The row of a pod: readiness, status and restarts, as people know them from kubectl."""

from typing import Any

from mooring.kubeapi.status import Object
from mooring.kubeapi.tables.ages import age

_SUCCEEDED = [
    {"type": "Completed", "status": "True", "reason": "Succeeded", "message": "The pod has completed successfully."}
]
_FAILED = [{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}]


def row_conditions(pod: Object) -> list[Object]:
    return {"Succeeded": _SUCCEEDED, "Failed": _FAILED}.get((pod.get("status") or {}).get("phase", ""), [])


class PodRow:
    """What the containers' states come to."""

    def __init__(self, pod: Object, now: float) -> None:
        self._pod, self._now = pod, now
        self._spec, self._status = pod.get("spec") or {}, pod.get("status") or {}
        sidecars = [each for each in self._spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
        self._sidecars = {each["name"] for each in sidecars}
        self._total = len(self._spec.get("containers") or ()) + len(sidecars)
        self._ready = 0
        self._restarts = 0
        self._last_restart = ""
        self.reason = self._begin()
        is_initializing = self._init_containers()
        if not is_initializing or self._condition("Initialized") == "True":
            self._containers()
        self._end()

    def _begin(self) -> str:
        reason: str = self._status.get("reason") or self._status.get("phase", "")
        gated = any(
            each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated"
            for each in self._status.get("conditions") or ()
        )
        return "SchedulingGated" if gated else reason

    def _condition(self, type_: str) -> str:
        conditions = self._status.get("conditions") or ()
        return next((each.get("status", "") for each in conditions if each.get("type") == type_), "")

    def _count_restarts(self, status: Object) -> None:
        self._restarts += status.get("restartCount", 0)
        ended = ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt", "")
        self._last_restart = max(self._last_restart, ended)

    def _init_containers(self) -> bool:
        """Whether the pod is still being initialized; restarts of containers that are done do not count."""
        total = len(self._spec.get("initContainers") or ())
        of_sidecars = (0, "")
        for index, status in enumerate(self._status.get("initContainerStatuses") or ()):
            state, is_sidecar = status.get("state") or {}, status.get("name") in self._sidecars
            self._count_restarts(status)
            if is_sidecar:
                of_sidecars = (of_sidecars[0] + status.get("restartCount", 0), self._last_restart)
            ended, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason", "")
            if ended is not None and ended.get("exitCode", 0) == 0:
                continue
            if is_sidecar and status.get("started"):
                self._ready += bool(status.get("ready"))
                continue
            if ended is not None:
                self.reason = f"Init:{_end_reason(ended)}"
            elif waiting and waiting != "PodInitializing":
                self.reason = f"Init:{waiting}"
            else:
                self.reason = f"Init:{index}/{total}"
            return True
        self._restarts, self._last_restart = of_sidecars
        return False

    def _containers(self) -> None:
        is_running, error = False, ""
        for status in reversed(self._status.get("containerStatuses") or ()):
            self._count_restarts(status)
            state = status.get("state") or {}
            ended = state.get("terminated")
            if waiting := (state.get("waiting") or {}).get("reason"):
                self.reason = waiting
            elif ended is not None:
                self.reason = _end_reason(ended)
                if ended.get("exitCode", 0):
                    error = self.reason
            elif status.get("ready") and "running" in state:
                is_running = True
                self._ready += 1
        if self.reason == "Completed":
            if is_running and self._condition("Ready") == "True":
                self.reason = "Running"
            elif error or is_running:
                self.reason = error or "NotReady"

    def _end(self) -> None:
        if not self._pod["metadata"].get("deletionTimestamp"):
            return
        if self._status.get("reason") == "NodeLost":
            self.reason = "Unknown"
        elif self._status.get("phase") not in ("Succeeded", "Failed"):
            self.reason = "Terminating"

    @property
    def ready(self) -> str:
        return f"{self._ready}/{self._total}"

    @property
    def restarts(self) -> str:
        if self._restarts and self._last_restart:
            return f"{self._restarts} ({age(self._last_restart, self._now)} ago)"
        return str(self._restarts)


def _end_reason(ended: Object) -> str:
    if reason := ended.get("reason"):
        return str(reason)
    if signal := ended.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def pod_cells(pod: Object, now: float) -> list[Any]:
    spec, status, row = pod.get("spec") or {}, pod.get("status") or {}, PodRow(pod, now)
    addresses = status.get("podIPs") or [{}]
    gates = spec.get("readinessGates") or ()
    conditions = {each.get("type"): each.get("status") for each in status.get("conditions") or ()}
    met = sum(conditions.get(gate.get("conditionType")) == "True" for gate in gates)
    return [
        pod["metadata"].get("name"),
        row.ready,
        row.reason,
        row.restarts,
        age(pod["metadata"].get("creationTimestamp"), now),
        addresses[0].get("ip") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        f"{met}/{len(gates)}" if gates else "<none>",
    ]
