"""Whether pods could be placed as things stand: a what-if on the cluster, pod after pod, the plain way."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from mooring.engine.answers.answers import to_keys
from mooring.engine.evaluate import evaluate
from mooring.engine.profile import Profile
from mooring.model.api.pods import Pod
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND

CanPlace = Callable[[Sequence[Pod]], str | None]
"""Says None if all these pods can be placed together, else why not. Those to whom it said so keep their room."""

Rehearse = Callable[[Cluster], AbstractContextManager[CanPlace]]
"""Opens a what-if in which `CanPlace` may be asked again and again; when it is left, all is as it was."""


class Rehearsal:
    """The plain way: every pod is evaluated from nothing, and takes the best node there is."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._profiles = profiles

    @contextmanager
    def __call__(self, cluster: Cluster) -> Iterator[CanPlace]:
        with cluster.what_if():
            yield lambda pods: self._place_all(cluster, pods)

    def _place_all(self, cluster: Cluster, pods: Sequence[Pod]) -> str | None:
        with cluster.what_if() as trial:
            for pod in pods:
                problem = self._place(cluster, pod)
                if problem is not None:
                    return f"pod {pod.key} cannot be placed: {problem}"
            trial.keep()
        return None

    def _place(self, cluster: Cluster, pod: Pod) -> str | None:
        profile = self._profiles.get(pod.spec.scheduler_name)
        record = cluster.pods.records.get(pod.key)
        if profile is None or record is None or record.row != UNBOUND:
            return None  # another scheduler's, not there yet, or in its place: nothing to try
        evaluation = evaluate(profile, cluster, cluster.shape_for(pod))
        rows = evaluation.scored
        if not len(rows):
            return evaluation.message()
        best = to_keys(evaluation.totals, cluster.nodes.tie.values[rows]).argmax()
        cluster.assume(pod.key, int(rows[best]))
        return None
