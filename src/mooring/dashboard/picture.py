"""One moment of a cluster, with everything that the pages draw of it."""

import math
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from mooring.drivers.offline.explain import explain_pod
from mooring.drivers.offline.reading import Inputs, Loaded, Step, take_in
from mooring.drivers.offline.story import Moment, moments
from mooring.errors import InputError
from mooring.model.loading.fields import FieldChecks
from mooring.model.loading.steps import load_steps
from mooring.observe.progress import Progress
from mooring.report.explain.data import PodExplanation
from mooring.report.names import Workloads
from mooring.report.nodes import NodeDetail, NodeMap, node_detail, node_map
from mooring.report.plans import PlanRow, plan_rows
from mooring.report.pools import configured_pools, pool_names
from mooring.report.queues.data import QueuesResult
from mooring.report.queues.report import make_queues_result
from mooring.report.schedule import Result, make_result

IN_CLUSTER = Path()
"""In place of a kubeconfig: what a pod is given by its node."""
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
    plans: list[PlanRow]
    """What would be intended and could not be carried out at once."""
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


def take_picture(number: int, source: str, loaded: Loaded, progress: Progress | None = None) -> Picture:
    """Decide on what was read, as `mooring schedule` does."""
    moment = list(moments(loaded, progress or Progress()))[-1]
    result, queues = _report(moment)
    cluster = moment.offline.scheduler.cluster
    pools = pool_names(cluster, None, configured_pools(moment.offline.scheduler))
    return Picture(
        number=number,
        taken_at=loaded.inputs.now if loaded.inputs.kubeconfig is not None and loaded.inputs.now else time.time(),
        source=source,
        loaded=loaded,
        moment=moment,
        result=result,
        queues=queues,
        nodes=node_map(cluster, pools),
        workloads=Workloads(moment.picture),
        plans=plan_rows(cluster),
    )


def what_if(picture: Picture, manifests: str) -> WhatIf:
    """Decide on the picture again, then apply manifests to it and decide on those. The picture stays as it is.

    Of a cluster, a snapshot is taken for it.
    """
    if not manifests.strip():
        raise InputError("what-if: expected manifests, found nothing")
    inputs = picture.loaded.inputs
    with TemporaryDirectory(prefix="mooring-what-if-") as folder:
        file = Path(folder) / "what-if.yaml"
        file.write_text(manifests, encoding="utf-8")
        if inputs.kubeconfig is not None:
            inputs = _snapshot(inputs, Path(folder))
        try:
            given = replace(inputs, then=(*inputs.then, Step(str(file), 0.0)))
            checks = FieldChecks(inputs.validation)
            pictures = load_steps([given.files, *([step.file] for step in given.then)], checks)
            loaded = take_in(given, picture.loaded.assembly, pictures, checks.warnings)
            told = list(moments(loaded, Progress()))
        except InputError as error:
            raise InputError(str(error).replace(str(file), "what-if")) from error
    # The moments share one driver: only the last one still shows what it says, so what was before is the picture's.
    result, queues = _report(told[-1])
    return WhatIf(result, picture.queues, queues)


def _snapshot(inputs: Inputs, folder: Path) -> Inputs:
    """A cluster as `mooring snapshot` writes it, in place of the cluster."""
    from mooring.drivers.live.watching.snapshot import documents, take

    objects, _ = take(None if inputs.kubeconfig == IN_CLUSTER else inputs.kubeconfig, inputs.context)
    file = folder / "cluster.json"
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": documents(objects)}))
    return replace(inputs, files=[str(file)], kubeconfig=None, context=None, now=time.time(), validation="ignore")


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
