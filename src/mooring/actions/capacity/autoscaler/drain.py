"""Which pods keep a node, and which would have to move: pod by pod, by the first rule that has something to say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from mooring.actions.capacity.autoscaler.situation import ControllerKey, controller_of, is_daemon, is_mirror
from mooring.actions.capacity.autoscaler.utilization import is_long_terminating
from mooring.config.autoscaler import ScaleDownSettings
from mooring.model.api.meta import OwnerReference, timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget
from mooring.model.values.selectors import Selector, compile_label_selector
from mooring.state.remembered import Derived

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
KUBE_SYSTEM = "kube-system"
REPLICATED_KINDS = frozenset(("ReplicationController", "Job", "ReplicaSet", "StatefulSet"))

CONTROLLER_NOT_FOUND = "ControllerNotFound"
MIN_REPLICAS_REACHED = "MinReplicasReached"
NOT_REPLICATED = "NotReplicated"
UNMOVABLE_SYSTEM_POD = "UnmovableKubeSystemPod"
NOT_SAFE_TO_EVICT = "NotSafeToEvictAnnotation"
LOCAL_STORAGE = "LocalStorageRequested"
NOT_ENOUGH_BUDGET = "NotEnoughPdb"


class Fate(Enum):
    """What becomes of a pod whose node is drained."""

    LEFT_ALONE = auto()
    MOVES = auto()
    WAITS = auto()
    """It runs to its end first."""


class Budgets:
    """What is left of disruption budgets, in one look at the cluster."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget] = ()) -> None:
        self._selectors: dict[str, list[tuple[int, Selector]]] = {}
        self._left: list[int] = []
        self._known: Derived[tuple[str, tuple[tuple[str, str], ...]], tuple[int, ...]] = Derived()
        for index, budget in enumerate(budgets):
            selector = compile_label_selector(budget.spec.selector)
            self._selectors.setdefault(budget.metadata.namespace, []).append((index, selector))
            self._left.append(budget.status.disruptions_allowed if budget.status is not None else 0)

    def concern(self, pod: Pod) -> bool:
        """Whether any budget selects a pod."""
        return bool(self._of(pod))

    def allow(self, pod: Pod) -> bool:
        """Whether every budget that selects a pod has something left."""
        return all(self._left[index] >= 1 for index in self._of(pod))

    def allow_together(self, pods: Sequence[Pod]) -> bool:
        """Whether all of these pods may go at the same time."""
        counts: dict[int, int] = {}
        for pod in pods:
            for index in self._of(pod):
                counts[index] = counts.get(index, 0) + 1
        return all(self._left[index] >= count for index, count in counts.items())

    def spend(self, pods: Iterable[Pod]) -> None:
        """Let each pod take one from every budget that selects it."""
        for pod in pods:
            for index in self._of(pod):
                self._left[index] -= 1

    def _of(self, pod: Pod) -> tuple[int, ...]:
        found = self._selectors.get(pod.metadata.namespace)
        if not found:
            return ()
        labels = pod.metadata.labels or {}
        key = (pod.metadata.namespace, tuple(sorted(labels.items())))
        known = self._known.get(key)
        if known is None:
            known = self._known.put(key, tuple(index for index, selector in found if selector.matches(labels)))
        return known


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pod that keeps its node, and why."""

    pod: Pod
    reason: str


@dataclass(frozen=True, slots=True)
class ToMove:
    """The pods that have to go elsewhere, and those that are waited for."""

    moving: tuple[Pod, ...]
    waiting: tuple[Pod, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Drainer:
    """Judges pods at one moment."""

    settings: ScaleDownSettings
    now: float
    budgets: Budgets
    controllers: Mapping[ControllerKey, int | None] | None
    """The workloads that exist, with their replicas; None: nobody asks whether they do."""

    def pods_to_move(self, pods: Iterable[Pod]) -> ToMove | Blocked:
        """Judge the pods of a node; the first that blocks decides."""
        moving, waiting = list[Pod](), list[Pod]()
        for pod in pods:
            fate = self.judge(pod)
            if isinstance(fate, str):
                return Blocked(pod, fate)
            if fate is Fate.WAITS:
                waiting.append(pod)
            elif fate is Fate.MOVES:
                moving.append(pod)
        return ToMove(tuple(moving), tuple(waiting))

    def judge(self, pod: Pod) -> Fate | str:
        """What becomes of a pod, or why it keeps its node."""
        settings = self.settings
        if is_mirror(pod) or is_long_terminating(pod, self.now):
            return Fate.LEFT_ALONE
        controller = controller_of(pod)
        skips_custom = settings.skip_nodes_with_custom_controller_pods
        if skips_custom and controller is not None:
            missing = self._missing(pod, controller)
            if missing:
                return missing
        if is_daemon(pod):
            return Fate.LEFT_ALONE
        annotation = (pod.metadata.annotations or {}).get(SAFE_TO_EVICT)
        if annotation == "true" or _is_over(pod):
            return Fate.MOVES
        if annotation == "on-completion":
            return Fate.WAITS
        if controller is None or (skips_custom and controller.kind not in REPLICATED_KINDS):
            return NOT_REPLICATED
        is_system = pod.metadata.namespace == KUBE_SYSTEM and not self.budgets.concern(pod)
        if settings.skip_nodes_with_system_pods and is_system:
            return Fate.MOVES if self._is_long_there(pod) else UNMOVABLE_SYSTEM_POD
        if annotation == "false":
            return NOT_SAFE_TO_EVICT
        if settings.skip_nodes_with_local_storage and _has_local_storage(pod):
            return LOCAL_STORAGE
        return Fate.MOVES if self.budgets.allow(pod) else NOT_ENOUGH_BUDGET

    def _missing(self, pod: Pod, controller: OwnerReference) -> str:
        """Why nobody would make a pod again, or not soon enough."""
        if self.controllers is None:
            return ""
        kind, is_apps = controller.kind, controller.api_version.partition("/")[0] == "apps"
        if is_daemon(pod) and kind != "ReplicationController":
            is_known = kind == "DaemonSet" and is_apps
        else:
            is_known = kind in REPLICATED_KINDS and (kind != "StatefulSet" or is_apps)
        if not is_known:
            return ""
        key = ControllerKey(kind, pod.metadata.namespace, controller.name)
        if key not in self.controllers:
            return CONTROLLER_NOT_FOUND
        replicas = self.controllers[key] if kind in ("ReplicaSet", "ReplicationController") else None
        is_too_few = replicas is not None and replicas < self.settings.min_replica_count
        return MIN_REPLICAS_REACHED if is_too_few else ""

    def _is_long_there(self, pod: Pod) -> bool:
        created = timestamp_seconds(pod.metadata.creation_timestamp)
        return created is not None and self.now > created + self.settings.blocking_system_pod_disruption_seconds


def _is_over(pod: Pod) -> bool:
    """Whether a pod has ended and is not started again."""
    phase = pod.status.phase
    return phase == "Failed" or (phase == "Succeeded" and pod.spec.restart_policy in ("Never", "OnFailure"))


def _has_local_storage(pod: Pod) -> bool:
    """Whether data on the node's disks would be lost that the pod does not say it can do without."""
    named = (pod.metadata.annotations or {}).get(SAFE_LOCAL_VOLUMES, "").split(",")
    for volume in pod.spec.volumes or ():
        is_on_disk = volume.empty_dir is not None and volume.empty_dir.medium != "Memory"
        if (volume.host_path is not None or is_on_disk) and volume.name not in named:
            return True
    return False
