"""Taints with the effect NoExecute: when pods that do not tolerate them have to leave."""

from collections.abc import Iterable

from mooring.model.api.nodes import Node, Taint
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.model.values.tolerations import tolerated_seconds

NO_EXECUTE = "NoExecute"


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
            seconds, taint = tolerated_seconds(pod.spec.tolerations or (), taints)
            if taint is not None:
                one = (pod.key, pod.metadata.uid, taints)
                self._since[one] = since.get(one, now)
                found[pod.key] = (self._since[one] + seconds, taint)
        return found
