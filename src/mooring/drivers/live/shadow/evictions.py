"""Our evictions, and those of the present scheduler: which of the two evicts a pod, or would have."""

from collections.abc import Callable

from mooring.model.api.pods import Pod
from mooring.model.decisions import Evict
from mooring.model.events import Event, Failed
from mooring.model.keys import PodKey
from mooring.observe.shadow_log import ComparedPreemption, Side

DISRUPTED, PREEMPTED = "DisruptionTarget", "PreemptionByScheduler"
"""The condition, and its reason, that kube-scheduler writes to a pod which it preempts."""
NOT_EVICTED = "the present scheduler has not evicted it"


class EvictionComparison:
    """Evictions that we decided on and that have not been seen to happen, by victim."""

    def __init__(self, tell: Callable[[Event], None], note: Callable[[ComparedPreemption], None]) -> None:
        self._tell, self._note = tell, note
        self._decided: dict[PodKey, tuple[Evict, float]] = {}
        self._noted: dict[PodKey, str] = {}
        """Pods that a line was written about, with our preemptor: a decision that is taken again is not a new one."""

    def __len__(self) -> int:
        return len(self._decided)

    def evict(self, decision: Evict, now: float) -> None:
        self._decided[PodKey(decision.pod)] = decision, now

    def node_for(self, preemptor: PodKey) -> str:
        """The node on which pods are to leave for this one; empty if none are."""
        return next((each.node for each, _ in self._decided.values() if each.preemptor == preemptor), "")

    def seen(self, pod: Pod, now: float) -> None:
        """Take note of a pod that may be leaving."""
        if pod.metadata.deletion_timestamp is not None:
            self.left(pod.key, now, is_gone=False)
        conditions = pod.status.conditions or ()
        is_theirs = any(each.type == DISRUPTED and each.reason == PREEMPTED for each in conditions)
        if is_theirs and pod.key not in self._decided and pod.key not in self._noted:
            self._noted[pod.key] = ""
            self._note(ComparedPreemption(time=now, victim=pod.key, side=Side.THEIRS, node=pod.spec.node_name))

    def left(self, key: PodKey, now: float, *, is_gone: bool = True) -> None:
        """A pod is gone, or leaves: if we had decided so, both schedulers did."""
        decision, _ = self._decided.pop(key, (None, 0.0))
        if decision is not None:
            self._say(decision, Side.BOTH, now)
        if is_gone:
            self._noted.pop(key, None)

    def bound(self, preemptor: PodKey, now: float) -> None:
        """The present scheduler found a node for a pod without our evictions: its victims stay."""
        for victim in [key for key, (each, _) in self._decided.items() if each.preemptor == preemptor]:
            self._drop(victim, now)

    def drop_unconfirmed(self, now: float, timeout_seconds: float) -> None:
        for victim in [key for key, (_, at) in self._decided.items() if now >= at + timeout_seconds]:
            self._drop(victim, now)

    def _drop(self, victim: PodKey, now: float) -> None:
        decision, _ = self._decided.pop(victim)
        self._tell(Failed(decision, NOT_EVICTED))
        self._say(decision, Side.OURS, now)

    def _say(self, decision: Evict, side: Side, now: float) -> None:
        victim = PodKey(decision.pod)
        if side is Side.OURS and self._noted.get(victim) == decision.preemptor:
            return
        self._noted[victim] = decision.preemptor
        self._note(
            ComparedPreemption(time=now, victim=victim, side=side, preemptor=decision.preemptor, node=decision.node)
        )
