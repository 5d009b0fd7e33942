"""One scheduling session of Volcano's, written again in the plainest way: allocate by turns, then backfill.

One node; queues side by side or in a tree, shares by weight (proportion) or by spec (capacity). Nothing of the
product is used, so that what the two decide can be compared. Amounts are floats in Volcano's units, and are added in
its order of steps, because rounding decides which queue gets the last place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, Protocol, TypeVar

CPU, MEMORY, PODS = "cpu", "memory", "pods"
ROOT = "root"
Amounts = dict[str, float]
NOTHING = 0.1
"""Less than this is nothing."""

Item = TypeVar("Item")


class Heap(Generic[Item]):
    """A binary heap as in Go's container/heap: of an order that runs in circles, it decides which item comes next."""

    def __init__(self, is_before: Callable[[Item, Item], bool]) -> None:
        self._items: list[Item] = []
        self._is_before = is_before

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: Item) -> None:
        items = self._items
        items.append(item)
        at = len(items) - 1
        while at and self._is_before(items[at], items[(at - 1) // 2]):
            items[at], items[(at - 1) // 2] = items[(at - 1) // 2], items[at]
            at = (at - 1) // 2

    def pop(self) -> Item:
        items = self._items
        items[0], items[-1] = items[-1], items[0]
        found = items.pop()
        at = 0
        while 2 * at + 1 < len(items):
            child = 2 * at + 1
            if child + 1 < len(items) and self._is_before(items[child + 1], items[child]):
                child += 1
            if not self._is_before(items[child], items[at]):
                break
            items[at], items[child] = items[child], items[at]
            at = child
        return found


class Waiting(Protocol):
    """The queues that wait for a turn."""

    def __len__(self) -> int: ...

    def push(self, item: "Queue", /) -> None: ...

    def pop(self) -> "Queue": ...


@dataclass
class Task:
    """One pod."""

    name: str
    request: Amounts
    role: str
    priority: int
    has_place: bool
    created: str = ""
    uid: str = ""

    @property
    def index(self) -> int | None:
        """What `job-task-index` ends with."""
        parts = self.name.split("-")
        return int(parts[-1]) if len(parts) >= 3 and parts[-1].isdecimal() else None

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
        heap = Heap(_task_comes_first)
        for task in self.tasks:
            if not task.has_place and not task.is_best_effort:
                heap.push(task)
        return [heap.pop() for _ in range(len(heap))]


def _task_comes_first(task: Task, other: Task) -> bool:
    if task.priority != other.priority:
        return task.priority > other.priority
    if task.index is None or other.index is None or task.index == other.index:
        return (task.created, task.uid) < (other.created, other.uid)
    return task.index < other.index


@dataclass
class Queue:
    name: str
    created: str
    weight: int
    priority: int
    deserved: Amounts
    capability: Amounts
    guarantee: Amounts
    parent: str = ""


@dataclass
class World:
    total: Amounts
    queues: list[Queue]
    jobs: list[Job]
    by_weight: bool

    @property
    def is_tree(self) -> bool:
        return any(queue.parent for queue in self.queues)


class Session:
    """What is held while one session goes on."""

    def __init__(self, world: World, random: Random | None = None) -> None:
        """`random` decides what Go's maps leave open: in which order jobs and queues are looked at."""
        self.world = world
        self._random = random
        self.names = list(world.total)
        self.node = dict.fromkeys(self.names, 0.0)
        self.queues = {queue.name: queue for queue in world.queues}
        if world.is_tree and ROOT not in self.queues:
            self.queues[ROOT] = Queue(ROOT, "", 1, 0, {}, {}, {})
        self.held = {name: dict.fromkeys(self.names, 0.0) for name in self.queues}
        self.bound: set[str] = set()
        for job in world.jobs:
            for task in job.tasks:
                if task.has_place:
                    self._count(job, task, 1)
        self.limits: dict[str, Amounts] = {}
        self._set_limits()
        self.deserved = self._by_weight() if world.by_weight else self._by_spec()
        parents = {queue.parent or ROOT for queue in world.queues} if world.is_tree else set[str]()
        self._shares_above = {name: self._share_of(name) for name in parents}
        """Of queues above others: as the session begins, and they stay so."""

    def run(self) -> set[str]:
        """The names of the pods that are bound."""
        self._allocate()
        self._backfill()
        return self.bound

    def _shuffled(self, items: list[Item]) -> list[Item]:
        if self._random is not None:
            self._random.shuffle(items)
        return items

    # What queues deserve

    def path(self, name: str) -> list[str]:
        """The names from the root down to a queue; without a tree only its own."""
        queue = self.queues[name]
        if not self.world.is_tree or name == ROOT:
            return [name]
        return [*self.path(queue.parent or ROOT), name]

    def _set_limits(self) -> None:
        """What the guarantees of siblings leave, within capabilities."""
        if not self.world.is_tree:
            for queue in self.queues.values():
                capability = {
                    name: most for name, most in queue.capability.items() if most or name not in (CPU, MEMORY)
                }
                self.limits[queue.name] = self._limit(queue, list(self.queues.values()), self.world.total, capability)
            return
        self.limits[ROOT] = dict(self.world.total)
        capabilities = {ROOT: {**self.world.total, **self.queues[ROOT].capability}}
        for name in sorted(self.queues, key=lambda name: len(self.path(name))):
            below = [queue for queue in self.queues.values() if queue.name != ROOT and (queue.parent or ROOT) == name]
            for queue in below:
                capabilities[queue.name] = {**capabilities[name], **queue.capability}
                self.limits[queue.name] = self._limit(queue, below, self.limits[name], capabilities[queue.name])

    def _limit(self, queue: Queue, siblings: list[Queue], above: Amounts, capability: Amounts) -> Amounts:
        limit = dict[str, float]()
        for name in self.names:
            kept = sum(other.guarantee.get(name, 0.0) for other in siblings)
            free = max(0.0, above[name] - kept) + queue.guarantee.get(name, 0.0)
            limit[name] = min(free, capability.get(name, free))
        return limit

    def _by_spec(self) -> dict[str, Amounts]:
        if self.world.is_tree:
            deserved = {name: dict(queue.deserved) for name, queue in self.queues.items()}
            deserved[ROOT] = deserved[ROOT] or dict(self.world.total)
            return deserved
        return {
            queue.name: {
                name: max(min(amount, self.limits[queue.name].get(name, amount)), queue.guarantee.get(name, 0.0))
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
                    asked[job.queue][name] = asked[job.queue].get(name, 0.0) + value
        deserved = {queue.name: dict.fromkeys(names, 0.0) for queue in world.queues}
        taking_part = [queue for queue in world.queues if any(job.queue == queue.name for job in world.jobs)]
        rest, is_first = dict(world.total), True
        while taking_part:
            weights, given, next_round = sum(queue.weight for queue in taking_part), dict.fromkeys(names, 0.0), []
            for queue in self._shuffled(taking_part):
                mine, before = deserved[queue.name], dict(deserved[queue.name])
                for name in names:
                    more = rest[name] * (queue.weight / weights)
                    most = min(mine[name] + more, self.limits[queue.name][name], asked[queue.name][name])
                    mine[name] = max(most, queue.guarantee.get(name, 0.0))
                    given[name] += mine[name] - before[name]
                is_met = all(_is_at_most(amount, mine.get(name, 0.0)) for name, amount in asked[queue.name].items())
                if not is_met and (is_first or mine != before):
                    next_round.append(queue)
            left = {name: max(0.0, value - given[name]) for name, value in rest.items()}
            if left == rest or all(value < NOTHING for name, value in left.items() if name != PODS):
                break
            rest, is_first, taking_part = left, False, next_round
        return deserved

    # Whose turn it is

    def waiting_queues(self) -> Waiting:
        return Heap(self._comes_first)

    def _comes_first(self, queue: Queue, other: Queue) -> bool:
        """By the shares where the paths to two queues part; queues that come out the same there, by age."""
        if queue.priority != other.priority:
            return queue.priority > other.priority
        paths = zip(self.path(queue.name), self.path(other.name), strict=False)
        one, two = next(pair for pair in paths if pair[0] != pair[1])
        mine, theirs = self._standing(one), self._standing(two)
        return mine < theirs if mine != theirs else queue.created < other.created

    def _standing(self, name: str) -> tuple[float, bool]:
        share = self._shares_above.get(name)
        return (self._share_of(name) if share is None else share, not self._deserves(name))

    def _deserves(self, name: str) -> bool:
        return self.world.by_weight or any(
            amount >= NOTHING for resource, amount in self.deserved[name].items() if resource != PODS
        )

    def _share_of(self, name: str) -> float:
        if not self._deserves(name):
            return 1.0
        deserved, held = self.deserved[name], self.held[name]
        parts = [held.get(name, 0.0) / amount for name, amount in deserved.items() if amount >= NOTHING]
        return max(parts, default=0.0)

    def _job_comes_first(self, job: Job, other: Job) -> bool:
        return self._job_key(job) < self._job_key(other)

    def _job_key(self, job: Job) -> tuple[int, bool, float, str]:
        placed = [task for task in job.tasks if task.has_place]
        share = max(sum(task.request.get(name, 0) for task in placed) / self.world.total[name] for name in self.names)
        return (-job.priority, job.has_enough, share, job.created)

    def _allocate(self) -> None:
        waiting = {job.name: job.to_allocate() for job in self.world.jobs if job.is_valid}
        jobs: dict[str, Heap[Job]] = {}
        queues = self.waiting_queues()
        for job in self._shuffled([job for job in self.world.jobs if waiting.get(job.name)]):
            if job.queue not in jobs:
                jobs[job.queue] = Heap(self._job_comes_first)
                queues.push(self.queues[job.queue])
            jobs[job.queue].push(job)
        while len(queues):
            queue = queues.pop()
            if self._is_overused(queue) or not len(jobs[queue.name]):
                continue
            job = jobs[queue.name].pop()
            if self._take_turn(queue, job, waiting[job.name]) and waiting[job.name]:
                jobs[queue.name].push(job)
            queues.push(queue)

    def _is_overused(self, queue: Queue) -> bool:
        held = self.held[queue.name]
        return self.world.by_weight and all(
            _is_at_most(amount, held[name]) for name, amount in self.deserved[queue.name].items()
        )

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
        asked = {name: amount for name, amount in task.request.items() if amount and name != PODS}
        limits = {queue.name: self.deserved[queue.name]} if self.world.by_weight else self.limits
        above = [queue.name] if self.world.by_weight else self.path(queue.name)
        return all(
            self.held[one].get(name, 0.0) + amount <= limits[one].get(name, 0.0)
            for one in above
            for name, amount in asked.items()
        )

    def _has_room(self, task: Task) -> bool:
        return all(
            _is_at_most(amount, self.world.total.get(name, 0.0) - self.node.get(name, 0.0))
            for name, amount in task.request.items()
        )

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
            for held in (self.node, *(self.held[above] for above in self.path(job.queue))):
                held[name] = held.get(name, 0.0) + sign * amount


def _is_at_most(amount: float, limit: float) -> bool:
    return amount < limit or abs(amount - limit) < NOTHING


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
        spec.get("parent", ""),
    )


def _read_job(group: dict[str, Any], pods: list[dict[str, Any]], priorities: Mapping[str, int]) -> Job:
    spec, metadata = group["spec"], group["metadata"]
    tasks = []
    for pod in pods:
        annotations = pod["metadata"]["annotations"]
        if annotations["scheduling.k8s.io/group-name"] == metadata["name"]:
            request = {**_amounts(pod["spec"]["containers"][0]["resources"]["requests"]), PODS: 1}
            role, priority = annotations.get("volcano.sh/task-spec", ""), pod["spec"].get("priorityClassName")
            has_place, name = bool(pod["spec"].get("nodeName")), pod["metadata"]["name"]
            created, uid = pod["metadata"].get("creationTimestamp", ""), pod["metadata"].get("uid", name)
            tasks.append(Task(name, request, role, priorities.get(priority, 0), has_place, created, uid))
    priority = priorities.get(spec.get("priorityClassName"), 0)
    created, minimums = metadata["creationTimestamp"], spec.get("minTaskMember") or {}
    return Job(metadata["name"], spec["queue"], spec["minMember"], created, priority, minimums, tasks)


def _amounts(given: Mapping[str, str]) -> Amounts:
    return {name: _amount(text, 1.0 if name in (MEMORY, PODS) else 1000.0) for name, text in given.items()}


def _amount(text: str, units: float) -> float:
    for suffix, factor in (("Gi", 2.0**30), ("Mi", 2.0**20)):
        if text.endswith(suffix):
            return float(text.removesuffix(suffix)) * factor * units
    return float(text[:-1]) * (units / 1000) if text.endswith("m") else float(text) * units
