"""Trees of queues, jobs and what happens to them, drawn by hypothesis."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from mooring.actions.shares import division
from mooring.actions.shares.demands import JobDemand, QueueSpec, Role
from mooring.actions.shares.division import BY_SPEC
from mooring.actions.shares.reclaim_victims import Reclamation
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.sharing import Sharing
from mooring.state.undo import UndoLog
from mooring.testing.share_builders import our_settings

CPU, GPU = "cpu", "nvidia.com/gpu"
RESOURCES = (CPU, GPU)
TOTAL = {CPU: 24, GPU: 16}

PROPORTION = our_settings(division.WEIGHTED)
LOOSE = our_settings(division.WEIGHTED, stays_within_deserved=False)
CAPACITY = our_settings(BY_SPEC)
HIERARCHICAL = our_settings(BY_SPEC, is_hierarchical=True)
WEIGHTED = our_settings(BY_SPEC, resource_weights={CPU: 0.5, GPU: 2.0})
AGING = our_settings(division.WEIGHTED, half_life_seconds=5.0, k_value=0.7, minimum_runtime_seconds=2.0)
EVERY = (PROPORTION, LOOSE, CAPACITY, HIERARCHICAL, WEIGHTED, AGING)


@dataclass(frozen=True)
class Story:
    """Queues, jobs that come one after another, and choices for everything else that happens."""

    queues: list[QueueSpec]
    jobs: list[JobDemand]
    settings: ShareSettings
    choices: list[int] = field(default_factory=list)

    def sharing(self) -> Sharing:
        return Sharing(self.queues, TOTAL, self.settings, log=UndoLog())

    def play(self, sharing: Sharing) -> Iterator[float]:
        """Let it happen, yielding the time after every single change."""
        choices = iter(self.choices)

        def choose(below: int) -> int:
            return next(choices, 0) % below

        waiting = self.jobs[::-1]
        for cycle in range(6):
            now = float(cycle)
            for _ in range(choose(5) + 2):
                if waiting:
                    sharing.add(waiting.pop())
                    yield now
            sharing.start_cycle(now)
            yield now
            for _ in range(12):
                offer = sharing.next_job()
                if offer is None:
                    break
                if choose(6) == 5:
                    sharing.refuse(offer.job, "no node")
                else:
                    sharing.allocate(offer.job, offer.members, now)
                yield now
            for key in [job.key for job in sharing.cache.jobs.values() if job.wants_more][: choose(4)]:
                carry_out(sharing, key, now)
                yield now
            holders = sorted(job.key for job in sharing.cache.jobs.values() if job.held_members)
            for _ in range(choose(3)):
                if holders:
                    key = holders.pop(choose(len(holders)))
                    (sharing.remove if choose(2) else sharing.release)(key)
                    yield now


def carry_out(sharing: Sharing, key: str, now: float) -> Reclamation | None:
    """Reclaim for a job, if that is possible."""
    found = sharing.find_victims(key, now)
    if not isinstance(found, Reclamation):
        return None
    for victim in found.victims:
        sharing.release(victim.job, victim.members)
    sharing.allocate(found.job, found.members, now)
    return found


small = st.integers(0, 3)


@st.composite
def amounts(draw: st.DrawFn, most: int) -> dict[str, int]:
    return {name: draw(st.integers(0, most)) for name in RESOURCES if draw(st.booleans())}


@st.composite
def queue_lists(draw: st.DrawFn, *, depth: int = 3) -> list[QueueSpec]:
    """Trees in which guarantees fit: small ones at the leaves, and capabilities no smaller than the sums below."""
    parents = [""]
    names: list[tuple[str, str]] = []
    for number in range(draw(st.integers(2, 7))):
        parent = draw(st.sampled_from(parents))
        name = f"queue-{number}"
        names.append((name, parent))
        if parent.count("/") < depth - 1 and draw(st.booleans()):
            parents.append(name)
    inner = {parent for _, parent in names}
    guarantees: dict[str, dict[str, int]] = {
        name: {} if name in inner else {resource: draw(small) for resource in RESOURCES if draw(st.booleans())}
        for name, _ in names
    }
    sums = {name: dict(found) for name, found in guarantees.items()}
    for name, parent in reversed(names):  # children come after their parents
        for resource, amount in sums[name].items() if parent else ():
            sums[parent][resource] = sums[parent].get(resource, 0) + amount
    return [
        QueueSpec(
            name,
            parent=parent,
            weight=float(draw(st.integers(1, 4))),
            priority=draw(st.sampled_from((0, 0, 0, 1))),
            capability={
                resource: draw(st.integers(max(1, sums[name].get(resource, 0)), 24))
                for resource in RESOURCES
                if draw(st.integers(0, 3)) == 0
            },
            deserved=draw(amounts(8)),
            guarantee=guarantees[name],
            is_reclaimable=draw(st.integers(0, 4)) > 0,
        )
        for name, parent in names
    ]


@st.composite
def roles(draw: st.DrawFn) -> Role:
    members = draw(st.integers(1, 4))
    request = {resource: draw(st.integers(1, 3)) for resource in draw(st.sampled_from(((CPU,), (GPU,), RESOURCES)))}
    return Role(request, members, minimum=draw(st.integers(0, members)))


@st.composite
def job_lists(draw: st.DrawFn, queues: list[QueueSpec], *, most: int = 14) -> list[JobDemand]:
    parents = {queue.parent for queue in queues}
    leaves = [queue.name for queue in queues if queue.name not in parents]
    jobs = []
    for number in range(draw(st.integers(3, most))):
        parts = tuple(draw(st.lists(roles(), min_size=1, max_size=2)))
        jobs.append(
            JobDemand(
                f"job-{number:02d}",
                draw(st.sampled_from(leaves)),
                parts,
                min_members=draw(st.integers(0, sum(part.members for part in parts))),
                priority=draw(st.integers(0, 2)),
                created=float(draw(st.integers(0, 3))),
                is_preemptible=draw(st.integers(0, 5)) > 0,
            )
        )
    return jobs


@st.composite
def stories(draw: st.DrawFn, *settings: ShareSettings) -> Story:
    queues = draw(queue_lists())
    jobs = draw(job_lists(queues))
    choices = draw(st.lists(st.integers(0, 59), max_size=120))
    return Story(queues, jobs, draw(st.sampled_from(settings or EVERY)), choices)


@st.composite
def crowds(draw: st.DrawFn, *settings: ShareSettings) -> Sharing:
    """A cluster that the first queues' jobs have filled up, before anybody else came."""
    queues = draw(queue_lists())
    free = dict(TOTAL)
    sharing = Sharing(queues, TOTAL, draw(st.sampled_from(settings or EVERY)), log=UndoLog())
    jobs = draw(job_lists(queues, most=24))
    latecomer = draw(st.sampled_from(sorted({job.queue for job in jobs})))
    for job in jobs:
        parts = []
        for role in job.roles:
            held = 0 if job.queue == latecomer else role.members
            while any(free[name] < amount * held for name, amount in role.request.items()):
                held -= 1
            for name, amount in role.request.items():
                free[name] -= amount * held
            parts.append(replace(role, held=held))
        started = draw(st.sampled_from((None, 0.0, 99.0)))
        sharing.add(replace(job, roles=tuple(parts), started=started))
    sharing.start_cycle(100.0)
    while (offer := sharing.next_job()) is not None:
        sharing.allocate(offer.job, offer.members, 100.0)
    return sharing
