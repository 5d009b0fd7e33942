"""One moment of a cluster, with everything that the pages draw of it."""

import math
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mooring.drivers.offline.explain import explain_pod
from mooring.drivers.offline.reading import Inputs, Loaded, Step, read
from mooring.drivers.offline.story import Moment, moments
from mooring.errors import InputError
from mooring.observe.progress import Progress
from mooring.report.explain.data import PodExplanation
from mooring.report.names import Workloads
from mooring.report.nodes import NodeDetail, NodeMap, node_detail, node_map
from mooring.report.pools import configured_pools, pool_names
from mooring.report.queues.data import QueuesResult
from mooring.report.queues.report import make_queues_result
from mooring.report.schedule import Result, make_result

MOST_EXPLANATIONS = 200
"""Explanations that are kept with a picture; each costs the decisions up to its pod."""


@dataclass
class Picture:
    """A cluster as it was read, and what Mooring decides on it. Nothing of it is carried out."""

    number: int
    taken_at: float
    source: str
    loaded: Loaded
    moment: Moment
    result: Result
    queues: QueuesResult
    nodes: NodeMap
    workloads: Workloads
    _explanations: dict[str, PodExplanation] = field(default_factory=dict)
    _deciding: threading.Lock = field(default_factory=threading.Lock)

    def explain(self, pod: str) -> PodExplanation:
        """What `mooring explain` says of a pod. Raises InputError if there is none of that name."""
        with self._deciding:
            if pod not in self._explanations:
                if len(self._explanations) >= MOST_EXPLANATIONS:
                    self._explanations.clear()
                self._explanations[pod] = explain_pod(self.loaded, pod, Progress())
            return self._explanations[pod]

    def node(self, name: str) -> NodeDetail | None:
        scheduler = self.moment.offline.scheduler
        pools = pool_names(scheduler.cluster, None, configured_pools(scheduler))
        return node_detail(scheduler, name, self.workloads, pools)


@dataclass(frozen=True)
class WhatIf:
    """What manifests would bring about if they were applied now."""

    result: Result
    queues_before: QueuesResult
    queues: QueuesResult


class Source:
    """Manifests, or a cluster, from which pictures are taken."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.name = ", ".join(inputs.files) if inputs.kubeconfig is None else "the cluster"
        self._taken = 0

    @property
    def is_a_cluster(self) -> bool:
        return self.inputs.kubeconfig is not None

    def take(self, progress: Progress | None = None) -> Picture:
        """Read everything and decide, as `mooring schedule` does."""
        progress = progress or Progress()
        inputs = replace(self.inputs, now=time.time()) if self.is_a_cluster else self.inputs
        loaded = read(inputs, progress)
        moment = list(moments(loaded, progress))[-1]
        self._taken += 1
        result, queues = _report(moment)
        scheduler = moment.offline.scheduler
        pools = pool_names(scheduler.cluster, None, configured_pools(scheduler))
        nodes = node_map(scheduler.cluster, pools)
        workloads = Workloads(moment.picture)
        return Picture(self._taken, time.time(), self.name, loaded, moment, result, queues, nodes, workloads)


def what_if(picture: Picture, manifests: str) -> WhatIf:
    """Decide on the picture again, then apply manifests to it and decide on those. The picture stays as it is."""
    inputs = picture.loaded.inputs
    if inputs.kubeconfig is not None:
        raise InputError("what-if: expected a dashboard over manifests or a snapshot (-f), found one over a cluster")
    if not manifests.strip():
        raise InputError("what-if: expected manifests, found nothing")
    with TemporaryDirectory(prefix="mooring-what-if-") as folder:
        file = Path(folder) / "what-if.yaml"
        file.write_text(manifests, encoding="utf-8")
        try:
            loaded = read(replace(inputs, then=(*inputs.then, Step(str(file), 0.0))), Progress())
            told = list(moments(loaded, Progress()))
        except InputError as error:
            raise InputError(str(error).replace(str(file), "what-if")) from error
    # The moments share one driver: only the last one still shows what it says, so what was before is the picture's.
    result, queues = _report(told[-1])
    return WhatIf(result, picture.queues, queues)


def _report(moment: Moment) -> tuple[Result, QueuesResult]:
    offline = moment.offline
    result = make_result(
        offline.scheduler,
        moment.picture,
        moment.decisions,
        ran=moment.ran,
        lost=offline.lost,
        ended=offline.ended,
        resized=offline.resized,
    )
    at = offline.now if math.isfinite(offline.now) else 0.0
    return result, make_queues_result(offline.scheduler, moment.decisions, at)
