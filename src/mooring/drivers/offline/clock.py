"""What happens to pods by itself as time passes: some end when they said that they would, taints drive others away."""

import math
from collections.abc import Iterable, Iterator, Sequence

from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.nodes import Node, Taint
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.model.values.durations import DURATION, duration_seconds
from mooring.model.values.tolerations import tolerates

NO_EXECUTE = "NoExecute"
TOLERATED_FOR_A_WHILE = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
DEFAULT_TOLERATION_SECONDS = 300.0
"""For how long the API server lets every pod tolerate these two, unless it says otherwise itself."""


class KnownEnds:
    """When pods that run are over, as far as they say how long they run."""

    def __init__(self) -> None:
        self._ends: dict[str, tuple[float, str]] = {}
        """By pod: when, and the phase that it then has."""

    def start(self, pod: Pod, at: float) -> None:
        """A pod runs since then."""
        seconds = duration_seconds(pod)
        if seconds is not None:
            phase = "Succeeded" if DURATION in (pod.metadata.annotations or {}) else "Failed"
            self._ends[pod.key] = (at + seconds, phase)

    def watch(self, pod: Pod, now: float) -> None:
        """A pod was seen as it is: if it runs, it may say since when."""
        if pod.spec.node_name and not pod.is_terminal:
            started = timestamp_seconds(pod.status.start_time)
            self.start(pod, now if started is None else started)

    def forget(self, key: str) -> None:
        self._ends.pop(key, None)

    @property
    def next(self) -> float:
        return min((end for end, _ in self._ends.values()), default=math.inf)

    def due(self, now: float) -> Iterator[tuple[str, str]]:
        """Take out the pods that are over by now, the first to end first, each with its last phase."""
        for key, (end, phase) in sorted(self._ends.items(), key=lambda item: item[1]):
            if end > now:
                break
            del self._ends[key]
            yield key, phase


class TaintEvictions:
    """When pods have to leave nodes whose taints they do not tolerate, or no longer: the effect is NoExecute."""

    def __init__(self) -> None:
        self.taints: dict[str, tuple[Taint, ...]] = {}
        """By node that has such."""
        self._since: dict[tuple[PodKey, str, tuple[Taint, ...]], float] = {}

    def watch(self, node: Node) -> None:
        taints = tuple(taint for taint in node.spec.taints or () if taint.effect == NO_EXECUTE)
        self.taints[node.metadata.name] = taints
        if not taints:
            del self.taints[node.metadata.name]

    def forget(self, node: str) -> None:
        self.taints.pop(node, None)

    def deadlines(self, pods: Iterable[tuple[Pod, str]], now: float) -> dict[PodKey, tuple[float, Taint]]:
        """Of those pods that must leave their nodes: when, and for which taint. The time counts since first asked."""
        since, found = self._since, {}
        self._since = {}
        for pod, node in pods:
            taints = self.taints.get(node, ())
            seconds, taint = tolerated_seconds(pod, taints)
            if taint is not None:
                one = (pod.key, pod.metadata.uid, taints)
                self._since[one] = since.get(one, now)
                found[pod.key] = (self._since[one] + seconds, taint)
        return found


def tolerated_seconds(pod: Pod, taints: Sequence[Taint]) -> tuple[float, Taint | None]:
    """For how long a pod stays with these taints, and the taint that ends it; endlessly, if none does.

    As Kubernetes has it: one taint that nothing tolerates is enough to go at once, else the shortest tolerationSeconds
    of all tolerations that are needed counts.
    """
    least: tuple[float, Taint | None] = (math.inf, None)
    for taint in taints:
        used = [found for found in pod.spec.tolerations or () if tolerates(found, taint)]
        if not used:
            seconds = DEFAULT_TOLERATION_SECONDS if taint.key in TOLERATED_FOR_A_WHILE else 0.0
        else:
            limits = [float(found.toleration_seconds) for found in used if found.toleration_seconds is not None]
            seconds = max(0.0, min(limits)) if limits else math.inf
        if seconds < least[0]:
            least = (seconds, taint)
    return least
