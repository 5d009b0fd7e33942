"""One queue of all: `--queue NAME`."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from msgspec.structs import replace

from mooring.errors import InputError
from mooring.report.queues.data import QueuesResult

MOST_NAMED = 8
"""Names that an error lists before it only counts them."""


def check_queue_name(results: Sequence[QueuesResult], name: str) -> None:
    """Refuse a name that is no queue's at any step."""
    known = sorted({found for result in results for found in _names(result)})
    if name not in known:
        raise InputError(f'--queue: expected {_expected(known, name)}, found "{name}"')


def _names(result: QueuesResult) -> Iterable[str]:
    yield from (queue.name for queue in result.queues)
    yield from (f"{queue.namespace}/{queue.name}" for queue in result.local_queues)
    yield from (queue.name for queue in result.volcano_queues)
    yield from (queue.name for queue in result.shared_queues)


def _expected(known: Sequence[str], name: str) -> str:
    if not known:
        return "the name of a queue (there are none)"
    near = get_close_matches(name, known, n=1)
    listed = ", ".join(known) if len(known) <= MOST_NAMED else f"{', '.join(known[:MOST_NAMED])} or another"
    return f"the name of a queue ({near[0]}?)" if near else f"the name of a queue ({listed})"


def narrow(result: QueuesResult, name: str) -> QueuesResult:
    """What concerns one queue: itself, the cohorts above it, its LocalQueues, what was decided on its workloads.

    The name may be that of a ClusterQueue, of a LocalQueue with its namespace, or of a queue that shares the cluster.
    """
    locals_named = [found for found in result.local_queues if f"{found.namespace}/{found.name}" == name]
    wanted = {name, *(found.cluster_queue for found in locals_named)}
    queues = [queue for queue in result.queues if queue.name in wanted]
    parent_of = {cohort.name: cohort.parent for cohort in result.cohorts}
    above: set[str] = set()
    for queue in queues:
        cohort = queue.cohort
        while cohort and cohort not in above:
            above.add(cohort)
            cohort = parent_of.get(cohort, "")
    held = {f"{found.namespace}/{found.workload}" for queue in queues for found in queue.holding_workloads}
    return replace(
        result,
        notices=[found for found in result.notices if f"{found.namespace}/{found.workload}" in held],
        admitted=[found for found in result.admitted if found.cluster_queue in wanted],
        suspended=[found for found in result.suspended if found.cluster_queue in wanted],
        cohorts=[cohort for cohort in result.cohorts if cohort.name in above],
        queues=queues,
        local_queues=locals_named or [found for found in result.local_queues if found.cluster_queue in wanted],
        without_queue=[],
        volcano_queues=[queue for queue in result.volcano_queues if queue.name == name],
        shared_queues=[queue for queue in result.shared_queues if queue.name == name],
    )
