"""One scheduling session of Volcano's, written again in the plainest way: allocate by turns, then backfill.

One node, queues side by side by weight (proportion) or by spec (capacity). Nothing of the product is used, so that what
the two decide can be compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

CPU, MEMORY, PODS = "cpu", "memory", "pods"
RESOURCES = (CPU, MEMORY, PODS)
MI = 2**20
Amounts = dict[str, float]
TOLERANCE = 0.01
"""By so little of a unit nobody is beyond a share: shares are fractions."""


@dataclass
class Task:
    """One pod, in thousandths of a CPU and MiB. Without either it is best effort."""

    name: str
    cpu: int = 0
    memory: int = 0
    role: str = ""
    priority: int = 0
    runs: bool = False
    has_place: bool = False

    def __post_init__(self) -> None:
        self.has_place = self.runs

    @property
    def is_best_effort(self) -> bool:
        return not (self.cpu or self.memory)

    @property
    def request(self) -> Amounts:
        return {CPU: self.cpu, MEMORY: self.memory * MI, PODS: 1}


@dataclass
class Job:
    """One PodGroup, its pods in the order in which they are tried."""

    name: str
    queue: str
    minimum: int
    created: int
    tasks: list[Task]
    priority: int = 0
    role_minimums: dict[str, int] = field(default_factory=dict)
    refused_roles: set[str] = field(default_factory=set)
    """Whose pods found no room: nobody else of that role is tried in this session."""

    def counted(self) -> list[Task]:
        """Who counts for the minimum: whoever has a place, and best-effort pods, which will be backfilled."""
        return [task for task in self.tasks if task.has_place or task.is_best_effort]

    @property
    def has_enough(self) -> bool:
        return len(self.counted()) >= self.minimum

    @property
    def is_ready(self) -> bool:
        if not self.has_enough:
            return False
        if self.minimum < sum(self.role_minimums.values()):
            return True
        have = [task.role for task in self.counted()]
        return all(have.count(role) >= least for role, least in self.role_minimums.items())

    @property
    def goes_on(self) -> bool:
        """Whether others are tried after somebody found no room."""
        if self.minimum == len(self.tasks):
            return False
        if self.minimum < sum(self.role_minimums.values()):
            others = [task for task in self.tasks if not task.has_place and task.role not in self.refused_roles]
            return sum(task.has_place for task in self.tasks) + len(others) >= self.minimum
        have = [task.role for task in self.counted()]
        return all(have.count(role) >= self.role_minimums.get(role, 0) for role in self.refused_roles)

    @property
    def is_valid(self) -> bool:
        """Whether there are pods enough for it to start at all."""
        roles = [task.role for task in self.tasks]
        are_covered = self.minimum >= sum(self.role_minimums.values())
        short = are_covered and any(roles.count(role) < least for role, least in self.role_minimums.items())
        return len(self.tasks) >= self.minimum and not short


@dataclass
class Queue:
    name: str
    created: int
    weight: int = 1
    deserved: Amounts = field(default_factory=dict)
    capability: Amounts = field(default_factory=dict)


@dataclass
class World:
    total: Amounts
    queues: list[Queue]
    jobs: list[Job]
    by_weight: bool = True


class Session:
    """What is held while one session goes on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.node = dict.fromkeys(RESOURCES, 0.0)
        self.held = {queue.name: dict.fromkeys(RESOURCES, 0.0) for queue in world.queues}
        self.bound: set[str] = set()
        for job in world.jobs:
            for task in job.tasks:
                if task.runs:
                    self._count(job, task, 1)
        self.limits = {
            queue.name: {
                name: min(world.total[name], queue.capability.get(name, world.total[name])) for name in RESOURCES
            }
            for queue in world.queues
        }
        self.deserved = self._divide() if world.by_weight else {queue.name: queue.deserved for queue in world.queues}

    def run(self) -> set[str]:
        """The names of the pods that are bound."""
        self._allocate()
        self._backfill()
        return self.bound

    # What queues deserve

    def _divide(self) -> dict[str, Amounts]:
        """In rounds: the rest by weight, to each no more than it asks for and may have."""
        world = self.world
        asked = {queue.name: dict.fromkeys(RESOURCES, 0.0) for queue in world.queues}
        for job in world.jobs:
            for task in job.tasks:
                for name, value in task.request.items():
                    asked[job.queue][name] += value
        deserved = {queue.name: dict.fromkeys(RESOURCES, 0.0) for queue in world.queues}
        open_queues = [queue for queue in world.queues if any(job.queue == queue.name for job in world.jobs)]
        rest = dict(world.total)
        while open_queues:
            weights, before_round, still_open = sum(queue.weight for queue in open_queues), dict(rest), []
            for queue in open_queues:
                mine, before = deserved[queue.name], dict(deserved[queue.name])
                for name in RESOURCES:
                    more = before_round[name] * (queue.weight / weights)
                    mine[name] = min(mine[name] + more, self.limits[queue.name][name], asked[queue.name][name])
                    rest[name] -= mine[name] - before[name]
                is_met = all(asked[queue.name][name] <= mine[name] + 0.1 for name in RESOURCES)
                if not is_met and mine != before:
                    still_open.append(queue)
            rest = {name: max(0.0, value) for name, value in rest.items()}
            if rest == before_round or not any(value >= 0.1 for name, value in rest.items() if name != PODS):
                break
            open_queues = still_open
        return deserved

    # Whose turn it is

    def _queue_key(self, queue: Queue) -> tuple[float, bool, int]:
        deserved, held = self.deserved[queue.name], self.held[queue.name]
        shares = [_share(held[name], amount) for name, amount in deserved.items()]
        has_deserved = any(amount >= 0.1 for name, amount in deserved.items() if name != PODS)
        if self.world.by_weight:
            return (max(shares, default=0.0), False, queue.created)
        return (max(shares) if has_deserved else 1.0, not has_deserved, queue.created)

    def _job_key(self, job: Job) -> tuple[int, bool, float, int]:
        held = [task for task in job.tasks if task.has_place]
        share = max(sum(task.request[name] for task in held) / self.world.total[name] for name in RESOURCES)
        return (-job.priority, job.has_enough, share, job.created)

    def _allocate(self) -> None:
        waiting = {job.name: _to_allocate(job) for job in self.world.jobs}
        jobs = {
            queue.name: [job for job in self.world.jobs if job.queue == queue.name and job.is_valid and waiting[job.name]]
            for queue in self.world.queues
        }
        queues = [queue for queue in self.world.queues if jobs[queue.name]]
        while queues:
            queue = min(queues, key=self._queue_key)
            if self._is_overused(queue) or not jobs[queue.name]:
                queues.remove(queue)
                continue
            job = min(jobs[queue.name], key=self._job_key)
            if not self._take_turn(queue, job, waiting[job.name]) or not waiting[job.name]:
                jobs[queue.name].remove(job)

    def _is_overused(self, queue: Queue) -> bool:
        deserved, held = self.deserved[queue.name], self.held[queue.name]
        return self.world.by_weight and all(deserved[name] <= held[name] + TOLERANCE for name in RESOURCES)

    def _take_turn(self, queue: Queue, job: Job, waiting: list[Task]) -> bool:
        """Give places to pods one after another until the job is ready; whoever finds none is out for the session."""
        given: list[Task] = []
        while waiting:
            task = waiting.pop(0)
            if not self._may_have(queue, task) or task.role in job.refused_roles:
                continue
            if not self._has_room(task):
                job.refused_roles |= {task.role} - {""}
                if not job.goes_on:
                    break
                continue
            self._place(job, task)
            given.append(task)
            if job.is_ready:
                break
        if job.is_ready:
            self.bound.update(task.name for task in given)
            return True
        for task in given:
            task.has_place = False
            self._count(job, task, -1)
        return False

    def _may_have(self, queue: Queue, task: Task) -> bool:
        limits = (self.deserved if self.world.by_weight else self.limits)[queue.name]
        held = self.held[queue.name]
        asked = {name: amount for name, amount in task.request.items() if amount and name != PODS}
        return all(held[name] + amount <= limits[name] + TOLERANCE for name, amount in asked.items())

    def _has_room(self, task: Task) -> bool:
        return all(self.node[name] + amount <= self.world.total[name] for name, amount in task.request.items())

    def _backfill(self) -> None:
        """Whoever asks for nothing gets a place; it is bound if its job is ready."""
        for job in self.world.jobs:
            for task in job.tasks if job.is_valid else ():
                if task.is_best_effort and not task.has_place and self._has_room(task):
                    self._place(job, task)
                    if job.is_ready:
                        self.bound.add(task.name)

    def _place(self, job: Job, task: Task) -> None:
        task.has_place = True
        self._count(job, task, 1)

    def _count(self, job: Job, task: Task, sign: int) -> None:
        for name, amount in task.request.items():
            self.node[name] += sign * amount
            self.held[job.queue][name] += sign * amount


def _share(held: float, deserved: float) -> float:
    return held / deserved if deserved else float(held > 0)


def _to_allocate(job: Job) -> list[Task]:
    """Those that wait and ask for something, the more important first."""
    waiting = [task for task in job.tasks if not task.has_place and not task.is_best_effort]
    return sorted(waiting, key=lambda task: -task.priority)


# Worlds by chance, and as manifests


def random_world(random: Random, *, shapes: int = 1, with_roles: bool = False, by_weight: bool = True) -> World:
    """Queues and gangs on a node that is too small for them; some pods ask for nothing, some run."""
    total = {CPU: 1000.0 * random.randint(6, 20), MEMORY: float(MI * random.randint(8, 40)), PODS: 110.0}
    queues = [Queue(f"q{number}", number, random.randint(1, 3)) for number in range(random.randint(1, 3))]
    for queue in queues:
        if not by_weight and random.random() < 0.8:
            queue.deserved = {CPU: 1000.0 * random.randint(1, 8), MEMORY: float(MI * random.randint(2, 16))}
        if random.random() < 0.3:
            queue.capability = {CPU: queue.deserved.get(CPU, 0.0) + 1000.0 * random.randint(2, 6)}
    jobs = [
        _random_job(random, number, random.choice(queues).name, shapes, with_roles)
        for number in range(random.randint(1, 6))
    ]
    world = World(total, queues, jobs, by_weight)
    for job in jobs:
        if random.random() < 0.3:
            _let_run(world, job, random.randint(job.minimum, len(job.tasks)))
    return world


def _let_run(world: World, job: Job, count: int) -> None:
    """Let the first pods of a job run, if it is whole with them and there is room for them."""
    running = job.tasks[:count]
    roles = [task.role for task in running]
    are_enough = all(roles.count(role) >= least for role, least in job.role_minimums.items())
    held = Session(world).node
    for task in running:
        held = {name: value + task.request[name] for name, value in held.items()}
    if are_enough and all(held[name] <= world.total[name] for name in RESOURCES):
        for task in running:
            task.runs = task.has_place = True


def _random_job(random: Random, number: int, queue: str, shapes: int, with_roles: bool) -> Job:
    kinds = [(1000 * random.randint(1, 4), random.randint(1, 6)) for _ in range(random.randint(1, shapes))]
    with_requests, best_effort = random.randint(0, 5), random.choice((0, 1, 2, 4))
    asking = [random.choice(kinds) for _ in range(with_requests)] + [(0, 0)] * best_effort or [kinds[0]]
    random.shuffle(asking)
    roles = dict(zip(kinds, "abc", strict=False)) if with_roles else {}
    tasks = [
        Task(f"j{number}-w-{index}", cpu, memory, roles.get((cpu, memory), random.choice([*roles.values(), ""])))
        for index, (cpu, memory) in enumerate(asking)
    ]
    minimum = random.randint(1, len(tasks))
    minimums: dict[str, int] = {}
    if with_roles and random.random() < 0.7:
        counts = {role: sum(task.role == role for task in tasks) for role in roles.values()}
        minimums = {role: random.randint(1, count) for role, count in counts.items() if count}
        minimum = max(minimum, random.choice((1, sum(minimums.values()))))
    if random.random() < 0.2:
        for task in tasks:
            task.priority = random.choice((0, 10))
    return Job(f"j{number}", queue, minimum, number, tasks, random.choice((0, 0, 0, 10)), minimums)


def manifests(world: World) -> Iterator[dict[str, Any]]:
    """The same world as people would write it."""
    allocatable = {CPU: f"{world.total[CPU]:.0f}m", MEMORY: f"{world.total[MEMORY]:.0f}", PODS: "110"}
    yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": allocatable}}
    for value in (0, 10):
        api = "scheduling.k8s.io/v1"
        yield {"apiVersion": api, "kind": "PriorityClass", "metadata": {"name": f"p{value}"}, "value": value}
    for queue in world.queues:
        spec = {"weight": queue.weight, "deserved": _quantities(queue.deserved)}
        yield _volcano("Queue", queue.name, queue.created, {**spec, "capability": _quantities(queue.capability)})
    for job in world.jobs:
        group = {"minMember": job.minimum, "queue": job.queue, "minTaskMember": job.role_minimums}
        yield _volcano("PodGroup", job.name, job.created, {**group, "priorityClassName": f"p{job.priority}"})
        for task in job.tasks:
            requests = {CPU: f"{task.cpu}m", MEMORY: f"{task.memory}Mi"} if not task.is_best_effort else {}
            main = {"name": "main", "image": "main:1", "resources": {"requests": requests}}
            annotations = {"scheduling.k8s.io/group-name": job.name}
            if task.role:
                annotations["volcano.sh/task-spec"] = task.role
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**_metadata(task.name, job.created), "annotations": annotations},
                "spec": {
                    "containers": [main],
                    "priorityClassName": f"p{task.priority}",
                    **({"nodeName": "n"} if task.runs else {}),
                },
            }


def _volcano(kind: str, name: str, created: int, spec: dict[str, Any]) -> dict[str, Any]:
    api = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": api, "kind": kind, "metadata": _metadata(name, created), "spec": spec}


def _metadata(name: str, created: int) -> dict[str, Any]:
    return {"name": name, "creationTimestamp": f"2026-01-01T00:00:{created:02}Z"}


def _quantities(amounts: Amounts) -> dict[str, str]:
    return {name: f"{amount:.0f}{'m' if name == CPU else ''}" for name, amount in amounts.items()}
