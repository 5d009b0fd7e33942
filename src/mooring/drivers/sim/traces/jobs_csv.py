"""Our own form of trace, for anyone's jobs: a line each, in the order in which they were submitted.

`submit_time` and `duration` are seconds, `pods` is how many equal pods there are, and resources are what each of them
asks for, as Kubernetes writes it: `cpu`, `memory`, and whatever has a slash in its name, such as `nvidia.com/gpu`.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from mooring.config.scheduler import convert
from mooring.drivers.sim.arrival import Arrival, Options, TraceFormat
from mooring.drivers.sim.traces.tables import Row, read_table

REQUIRED = ("submit_time", "duration")
RESOURCES = ("cpu", "memory", "ephemeral-storage")
KNOWN = (*REQUIRED, "pods", *RESOURCES, "name", "namespace", "queue", "priority")


class JobsOptions(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    speedup: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    """By what times and durations are divided."""


def read_jobs(path: Path, options: Options) -> Iterator[Arrival]:
    """A job a line; one without a name is called after its line. Without a duration it runs without end."""
    given = convert(options, JobsOptions, str(path), "options")
    above = 0.0
    names: set[tuple[str, str]] = set()
    for row in read_table(path, REQUIRED, KNOWN):
        above = row.time("submit_time", above)
        namespace, name = row.text("namespace") or "default", row.text("name") or f"job-{row.line}"
        if (namespace, name) in names:
            row.refuse("name", "each name once in a namespace", f'"{name}" again')
        names.add((namespace, name))
        yield Arrival(
            time=above / given.speedup,
            name=name,
            namespace=namespace,
            requests=_requests(row),
            pods=row.count("pods", 1, at_least=1),
            duration=row.seconds("duration", math.inf) / given.speedup,
            queue=row.text("queue"),
            priority=row.integer("priority", 0),
        )


def _requests(row: Row) -> dict[str, str]:
    resources = [name for name in row.values if "/" in name or name in RESOURCES]
    return {name: row.quantity(name) for name in resources if row.text(name)}


JOBS_CSV = TraceFormat(read_work=read_jobs)
