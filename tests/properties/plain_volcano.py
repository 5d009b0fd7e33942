"""One scheduling session of Volcano's, written again in the plainest way: allocate by turns, then backfill.

One node, queues side by side, shares by weight (proportion) or by spec (capacity). Nothing of the product is used, so
that what the two decide can be compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CPU, MEMORY, PODS = "cpu", "memory", "pods"
Amounts = dict[str, float]
TOLERANCE = 0.01
"""By so little of a unit nobody is beyond a share: shares are fractions."""


@dataclass
class Task:
    """One pod."""

    name: str
    request: Amounts
    role: str
    priority: int
    has_place: bool

    @property
    def is_best_effort(self) -> bool:
        return not any(amount for name, amount in self.request.items() if name != PODS)


@dataclass
class Job:
    """One PodGroup, its pods in the order in which they came."""

    name: str
    queue: str
    minimum: int
    created: str
    priority: int
    role_minimums: Mapping[str, int]
    tasks: list[Task]
    refused_roles: set[str] = field(default_factory=set)
    """Whose pods found no room: nobody else of that role is tried in this session."""

    def counted(self) -> list[Task]:
        """Who counts for the minimum: whoever has a place, and best-effort pods, which will be backfilled."""
        return [task for task in self.tasks if task.has_place or task.is_best_effort]

    @property
    def looks_at_roles(self) -> bool:
        return self.minimum >= sum(self.role_minimums.values())

    @property
    def has_enough(self) -> bool:
        return len(self.counted()) >= self.minimum

    @property
    def is_ready(self) -> bool:
        return self.has_enough and (not self.looks_at_roles or _has_roles(self.counted(), self.role_minimums))

    @property
    def is_valid(self) -> bool:
        """Whether there are pods enough for it to start at all."""
        has_roles = not self.looks_at_roles or _has_roles(self.tasks, self.role_minimums)
        return len(self.tasks) >= self.minimum and has_roles

    @property
    def goes_on(self) -> bool:
        """Whether others are tried after somebody found no room."""
        if self.minimum == len(self.tasks):
            return False
        if not self.looks_at_roles:
            others = [task for task in self.tasks if not task.has_place and task.role not in self.refused_roles]
            return sum(task.has_place for task in self.tasks) + len(others) >= self.minimum
        refused = {role: self.role_minimums.get(role, 0) for role in self.refused_roles}
        return _has_roles(self.counted(), refused)

    def to_allocate(self) -> list[Task]:
        """Those that wait and ask for something, the more important first."""
        waiting = [task for task in self.tasks if not task.has_place and not task.is_best_effort]
        return sorted(waiting, key=lambda task: -task.priority)


@dataclass
class Queue:
    name: str
    created: str
    weight: int
    priority: int
    deserved: Amounts
    capability: Amounts
    guarantee: Amounts


@dataclass
class World:
    total: Amounts
    queues: list[Queue]
    jobs: list[Job]
    by_weight: bool


class Session:
    """What is held while one session goes on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.names = list(world.total)
        self.node = dict.fromkeys(self.names, 0.0)
        self.held = {queue.name: dict.fromkeys(self.names, 0.0) for queue in world.queues}
        self.bound: set[str] = set()
        for job in world.jobs:
            for task in job.tasks:
                if task.has_place:
                    self._count(job, task, 1)
        self.limits = {queue.name: self._limit(queue) for queue in world.queues}
        self.deserved = self._by_weight() if world.by_weight else self._by_spec()

    def run(self) -> set[str]:
        """The names of the pods that are bound."""
        self._allocate()
        self._backfill()
        return self.bound

    # What queues deserve

    def _limit(self, queue: Queue) -> Amounts:
        """What the guarantees of others leave, within its capability."""
        limit = dict[str, float]()
        for name in self.names:
            kept = sum(other.guarantee.get(name, 0.0) for other in self.world.queues)
            free = max(0.0, self.world.total[name] - kept) + queue.guarantee.get(name, 0.0)
            limit[name] = min(free, queue.capability.get(name, free))
        return limit

    def _by_spec(self) -> dict[str, Amounts]:
        return {
            queue.name: {
                name: max(min(amount, self.limits[queue.name][name]), queue.guarantee.get(name, 0.0))
                for name, amount in {**dict.fromkeys(queue.guarantee, 0.0), **queue.deserved}.items()
            }
            for queue in self.world.queues
        }

    def _by_weight(self) -> dict[str, Amounts]:
        """In rounds: the rest by weight, to each no more than it asks for and may have."""
        world, names = self.world, self.names
        asked = {queue.name: dict.fromkeys(names, 0.0) for queue in world.queues}
        for job in world.jobs:
            for task in job.tasks:
                for name, value in task.request.items():
                    asked[job.queue][name] += value
        deserved = {queue.name: dict.fromkeys(names, 0.0) for queue in world.queues}
        taking_part = [queue for queue in world.queues if any(job.queue == queue.name for job in world.jobs)]
        rest = dict(world.total)
        while taking_part:
            weights, offered, next_round = sum(queue.weight for queue in taking_part), dict(rest), []
            for queue in taking_part:
                mine, before = deserved[queue.name], dict(deserved[queue.name])
                for name in names:
                    more = offered[name] * (queue.weight / weights)
                    most = min(mine[name] + more, self.limits[queue.name][name], asked[queue.name][name])
                    mine[name] = max(most, queue.guarantee.get(name, 0.0))
                    rest[name] -= mine[name] - before[name]
                is_met = all(asked[queue.name][name] < mine[name] + 0.1 for name in names)
                if not is_met and mine != before:
                    next_round.append(queue)
            rest = {name: max(0.0, value) for name, value in rest.items()}
            if rest == offered or all(value < 0.1 for name, value in rest.items() if name != PODS):
                break
            taking_part = next_round
        return deserved

    # Whose turn it is

    def best_queue(self, queues: list[Queue]) -> Queue:
        return min(queues, key=self._queue_key)

    def _queue_key(self, queue: Queue) -> tuple[int, float, bool, str]:
        deserved, held = self.deserved[queue.name], self.held[queue.name]
        shares = [_share(held[name], amount) for name, amount in deserved.items()]
        has_deserved = self.world.by_weight or any(amount for name, amount in deserved.items() if name != PODS)
        share = max(shares, default=0.0) if has_deserved else 1.0
        return (-queue.priority, share, not has_deserved, queue.created)

    def _job_key(self, job: Job) -> tuple[int, bool, float, str]:
        placed = [task for task in job.tasks if task.has_place]
        share = max(sum(task.request.get(name, 0) for task in placed) / self.world.total[name] for name in self.names)
        return (-job.priority, job.has_enough, share, job.created)

    def _allocate(self) -> None:
        waiting = {job.name: job.to_allocate() for job in self.world.jobs if job.is_valid}
        jobs = {
            queue.name: [job for job in self.world.jobs if job.queue == queue.name and waiting.get(job.name)]
            for queue in self.world.queues
        }
        queues = [queue for queue in self.world.queues if jobs[queue.name]]
        while queues:
            queue = self.best_queue(queues)
            if self._is_overused(queue) or not jobs[queue.name]:
                queues.remove(queue)
                continue
            job = min(jobs[queue.name], key=self._job_key)
            if not self._take_turn(queue, job, waiting[job.name]) or not waiting[job.name]:
                jobs[queue.name].remove(job)

    def _is_overused(self, queue: Queue) -> bool:
        deserved, held = self.deserved[queue.name], self.held[queue.name]
        return self.world.by_weight and all(deserved[name] <= held[name] + TOLERANCE for name in self.names)

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


def _has_roles(tasks: list[Task], minimums: Mapping[str, int]) -> bool:
    roles = [task.role for task in tasks]
    return all(roles.count(role) >= least for role, least in minimums.items())


# Manifests


def read_world(objects: list[dict[str, Any]], *, by_weight: bool) -> World:
    """What manifests of one Node, Queues, PodGroups, their Pods and PriorityClasses say."""
    of_kind: dict[str, list[dict[str, Any]]] = {}
    for found in objects:
        of_kind.setdefault(found["kind"], []).append(found)
    priorities = {found["metadata"]["name"]: found["value"] for found in of_kind.get("PriorityClass", [])}
    jobs = [_read_job(group, of_kind["Pod"], priorities) for group in of_kind["PodGroup"]]
    total = _amounts(of_kind["Node"][0]["status"]["allocatable"])
    return World(total, [_read_queue(found) for found in of_kind["Queue"]], jobs, by_weight)


def _read_queue(queue: dict[str, Any]) -> Queue:
    spec, metadata = queue["spec"], queue["metadata"]
    return Queue(
        metadata["name"],
        metadata["creationTimestamp"],
        spec.get("weight", 1),
        spec.get("priority", 0),
        _amounts(spec.get("deserved") or {}),
        _amounts(spec.get("capability") or {}),
        _amounts((spec.get("guarantee") or {}).get("resource") or {}),
    )


def _read_job(group: dict[str, Any], pods: list[dict[str, Any]], priorities: Mapping[str, int]) -> Job:
    spec, metadata = group["spec"], group["metadata"]
    tasks = []
    for pod in pods:
        annotations = pod["metadata"]["annotations"]
        if annotations["scheduling.k8s.io/group-name"] == metadata["name"]:
            request = {**_amounts(pod["spec"]["containers"][0]["resources"]["requests"]), PODS: 1}
            role, priority = annotations.get("volcano.sh/task-spec", ""), pod["spec"].get("priorityClassName")
            has_place = bool(pod["spec"].get("nodeName"))
            tasks.append(Task(pod["metadata"]["name"], request, role, priorities.get(priority, 0), has_place))
    priority = priorities.get(spec.get("priorityClassName"), 0)
    created, minimums = metadata["creationTimestamp"], spec.get("minTaskMember") or {}
    return Job(metadata["name"], spec["queue"], spec["minMember"], created, priority, minimums, tasks)


def _amounts(given: Mapping[str, str]) -> Amounts:
    return {name: _number(text) * (1000 if name == CPU else 1) for name, text in given.items()}


def _number(text: str) -> float:
    for suffix, factor in (("Gi", 2.0**30), ("Mi", 2.0**20), ("m", 0.001)):
        if text.endswith(suffix):
            return float(text.removesuffix(suffix)) * factor
    return float(text)
