"""Alibaba's GPU trace of 2023 (cluster-trace-gpu-v2023): nodes, and lists of pods that ask for shares of GPUs.

Pods come when they were created and run for as long as they ran there. With `order`, a file of names, they come in that
order instead, one a second, a name that is repeated as another copy, and stay: the experiment of "Beware of
Fragmentation" (USENIX ATC '23).
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from mooring.config.scheduler import convert
from mooring.drivers.sim.arrival import Arrival, Options, TraceFormat
from mooring.drivers.sim.traces.tables import Row, open_text, read_table
from mooring.errors import ConfigError
from mooring.model.devices.cards import WHOLE

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
TIMES = ("creation_time", "deletion_time")
GPU_COUNT, GPU_MILLI, GPU_MODEL = (f"alibabacloud.com/gpu-{name}" for name in ("count", "milli", "card-model"))
PODS_A_NODE = "1001"
"""As the paper's simulator has it: pods are never too many."""


class AlibabaOptions(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    order: str = ""
    """A file of names, one a line: what comes, in this order; found beside the trace."""
    speedup: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    """By what times and durations are divided: the trace keeps some twenty GPUs busy, a cluster of thousands hardly."""


def read_nodes(path: Path, options: Options) -> Iterator[dict[str, Any]]:
    given = convert(options, AlibabaOptions, str(path), "options")
    rows = {row.name("sn"): row for row in read_table(path, NODE_COLUMNS)}
    for name in _names(path.parent / given.order, path.name, rows) if given.order else rows:
        yield to_node(rows[name])


def to_node(row: Row) -> dict[str, Any]:
    gpus, model = row.count("gpu"), row.text("model")
    amounts = {"cpu": f"{row.count('cpu_milli')}m", "memory": f"{row.count('memory_mib')}Mi", "pods": PODS_A_NODE}
    if gpus:
        amounts[GPU_COUNT] = str(gpus)
    labels = {GPU_MODEL: model} if gpus and model else {}
    metadata = {"name": row.name("sn"), "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def read_pods(path: Path, options: Options) -> Iterator[Arrival]:
    given = convert(options, AlibabaOptions, str(path), "options")
    if given.order:
        rows = {row.name("name"): row for row in read_table(path, POD_COLUMNS)}
        yield from in_order(rows, _names(path.parent / given.order, path.name, rows))
        return
    above = 0.0
    for row in read_table(path, (*POD_COLUMNS, *TIMES)):
        above = row.time("creation_time", above)
        # Who was never scheduled would have run for as long as it waited, for all that is known.
        started = row.seconds("scheduled_time", above)
        ended = row.seconds("deletion_time")
        if ended < started:
            row.refuse("deletion_time", f"no time before it started, {started:.12g}", f"{ended:.12g}")
        yield _pod(row, row.name("name"), above / given.speedup, (ended - started) / given.speedup)


def in_order(rows: Mapping[str, Row], names: Iterable[str]) -> Iterator[Arrival]:
    """Pods one a second, a name that is repeated as another copy, all without end."""
    came: Counter[str] = Counter()
    for second, name in enumerate(names):
        came[name] += 1
        yield _pod(rows[name], name if came[name] == 1 else f"{name}-{came[name]}", float(second), math.inf)


def _names(order: Path, trace: str, rows: Mapping[str, Row]) -> Iterator[str]:
    with open_text(order) as file:
        for number, line in enumerate(file, start=1):
            name = line.strip()
            if name not in rows:
                where = f"{order}: line {number}"
                raise ConfigError(where, "", expected=f"a name that is in {trace}", found=f'"{name}"')
            yield name


def _pod(row: Row, name: str, time: float, duration: float) -> Arrival:
    gpus, milli = row.count("num_gpu"), row.count("gpu_milli")
    annotations: dict[str, str] = {}
    if gpus:
        if not 0 < milli <= WHOLE:
            row.refuse("gpu_milli", "from 1 to 1000, thousandths of each GPU", str(milli))
        annotations = {GPU_MILLI: str(milli), GPU_COUNT: str(gpus)}
        if row.text("gpu_spec"):
            annotations[GPU_MODEL] = row.text("gpu_spec")
    requests = {"cpu": f"{row.count('cpu_milli')}m", "memory": f"{row.count('memory_mib')}Mi"}
    return Arrival(time=time, name=name, requests=requests, duration=duration, annotations=annotations)


ALIBABA_GPU_2023 = TraceFormat(read_work=read_pods, read_nodes=read_nodes)
