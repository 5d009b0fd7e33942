"""YuniKorn's queues from its queues.yaml: what `Sharing` is given. Queues are called by their paths."""

from mooring.actions.volcano.demands import QueueSpec
from mooring.actions.volcano.queues import column_amounts
from mooring.model.api import volcano_queue
from mooring.model.api.yunikorn_queues import ROOT, YuniKornQueue, YuniKornQueues
from mooring.model.values.requests import CPU

VCORE = "vcore"


def compile_yunikorn_queues(given: YuniKornQueues) -> list[QueueSpec]:
    """Queues that passed validation, in column units."""
    return [_compile(path, queue) for path, queue in given.paths().items()]


def _compile(path: str, queue: YuniKornQueue) -> QueueSpec:
    resources = queue.resources
    above = path.rpartition(".")[0]
    return QueueSpec(
        name=volcano_queue.ROOT if path == ROOT else path,
        parent="" if above == ROOT else above,
        max_applications=queue.maxapplications,
        sorts_fairly=queue.sorts_fairly,
        capability=_amounts(resources.max if resources is not None else None),
        deserved=_amounts(resources.guaranteed if resources is not None else None),
    )


def _amounts(given: dict[str, str | int] | None) -> dict[str, int]:
    return column_amounts({CPU if name == VCORE else name: str(value) for name, value in (given or {}).items()})
