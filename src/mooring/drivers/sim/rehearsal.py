"""A rehearsal: the objects of a scenario are put once, in the order of their times, and nothing is decided.

Runs put the same objects in the same way, so that what is wrong with one is said once, before anything runs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from mooring.drivers.sim.runs import PolicyInput, Prepared, put_cluster
from mooring.drivers.sim.submissions import Submissions
from mooring.model.events import Event, NodeSeen
from mooring.model.loading.catalog import Catalog


@dataclass
class Rehearsal:
    """What a scenario is seen to have under one policy."""

    nodes: set[str] = field(default_factory=set)
    """All that are there at some time."""
    missing: set[tuple[int, str]] = field(default_factory=set)
    """By index of a change, nodes that it names and that were never there until then."""

    def see(self, events: Iterable[Event]) -> None:
        self.nodes.update(event.node.metadata.name for event in events if isinstance(event, NodeSeen))


def rehearse(prepared: Prepared, policy: PolicyInput) -> Rehearsal:
    """Put the cluster, what changes it, and the first job of all work; what cannot be put is raised."""
    found, catalog = Rehearsal(), Catalog()
    found.see(put_cluster(catalog, (*prepared.documents, *policy.documents)))
    submissions = Submissions(catalog, prepared.timings)

    def change(index: int) -> None:
        found.see(prepared.changes[index].apply(catalog))
        submissions.forget()
        found.missing.update((index, name) for name in prepared.changes[index].names - found.nodes)

    steps: list[tuple[float, Callable[[], object]]] = [
        (prepared.start + each.at, partial(change, index)) for index, each in enumerate(prepared.changes)
    ]
    for plan in prepared.work:
        steps += islice(plan.works(submissions, prepared.start, prepared.seeds[0], prepared.horizon), 1)
    for _, step in sorted(steps, key=lambda step: step[0]):  # as in runs, changes before the work of the same moment
        step()
    return found
