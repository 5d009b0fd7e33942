"""Queues of Volcano and gangs on a node that is too small for them, by chance, as manifests."""

from collections.abc import Iterator
from random import Random
from typing import Any

from plain_volcano import Session, read_world

Manifest = dict[str, Any]
Kind = tuple[int, int]
"""What a pod asks for: CPUs, MiB."""
BEST_EFFORT = (0, 0)


def random_world(random: Random, *, shapes: int, with_roles: bool, by_weight: bool) -> list[Manifest]:
    """Some pods ask for nothing, some run; those of one role that ask for anything ask for the same."""
    amounts = {"cpu": str(random.randint(6, 20)), "memory": f"{random.randint(8, 40)}Mi", "pods": "110"}
    world: list[Manifest] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": amounts}}
    ]
    for value in (0, 10):
        api = "scheduling.k8s.io/v1"
        world.append({"apiVersion": api, "kind": "PriorityClass", "metadata": {"name": f"p{value}"}, "value": value})
    queues = [f"q{number}" for number in range(random.randint(1, 3))]
    world += [_random_queue(random, number, by_weight) for number in range(len(queues))]
    for number in range(random.randint(1, 6)):
        job = list(_random_job(random, number, random.choice(queues), shapes, with_roles))
        if random.random() < 0.3:
            _let_run(random, world, job)
        world += job
    return world


TEAMS = ("ada", "bob", "cam", "dan", "eve", "fay", "gus")
GPU = "nvidia.com/gpu"
Size = tuple[int, int, int]
"""What a pod asks for: thousandths of a CPU, GiB, GPUs."""


def crowded_world(random: Random, mode: str) -> list[Manifest]:
    """Jobs of pods of mixed sizes that ask for more than a node has, so that the last places have to be decided on.

    Names and ages are what Volcano orders pods by: some end in an index, some only look so, some are older than others.
    """
    ages = [f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z" for second in random.sample(range(3600), 400)]
    total = (
        random.choice((7000, 10000, 16000, 24000, 32000)),
        random.choice((20, 32, 64)),
        random.choice((0, 0, 3, 8)),
    )
    world: list[Manifest] = [_node(total)]
    for value in (10, 20):
        api = "scheduling.k8s.io/v1"
        world.append({"apiVersion": api, "kind": "PriorityClass", "metadata": {"name": f"p{value}"}, "value": value})
    queues = list(_queues_in_tree(random, total) if mode == "capacity-tree" else _queues_beside(random, mode, total))
    parents = {queue["spec"].get("parent") for queue in queues}
    leaves = [queue["metadata"]["name"] for queue in queues if queue["metadata"]["name"] not in {*parents, "root"}]
    for queue in queues:
        queue["metadata"]["creationTimestamp"] = ages.pop()
    sizes = [_random_size(random, total) for _ in range(4)]
    free = list(total)
    for number in range(random.randint(2, 8)):
        job = _crowding_job(random, f"j{number:02}", random.choice(leaves), sizes, ages)
        if random.random() < 0.25:
            _start_some(random, job, free)
        queues += job
    return world + queues


def _node(total: Size) -> Manifest:
    amounts = {"cpu": f"{total[0]}m", "memory": f"{total[1]}Gi", "pods": "10000", GPU: str(total[2])}
    allocatable = {name: amount for name, amount in amounts.items() if amount != "0"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": allocatable}}


def _random_size(random: Random, total: Size) -> Size:
    cpu = random.choice((100, 250, 300, 500, 700, 1000, 1500, 2000, 3000))
    return cpu, random.choice((1, 1, 2, 3, 4, 6)), random.choice((0, 0, 1, 2)) if total[2] else 0


def _queues_beside(random: Random, mode: str, total: Size) -> Iterator[Manifest]:
    for team in random.sample(TEAMS, random.randint(1, 4)):
        spec = _random_limits(random, random.randint(1, 16), random.randint(1, 16), total, mode == "capacity")
        if random.random() < 0.15:
            spec["guarantee"] = {"resource": {"cpu": "500m", "memory": "1Gi"}}
        yield _volcano("Queue", team, 0, spec)


def _queues_in_tree(random: Random, total: Size) -> Iterator[Manifest]:
    yield _volcano("Queue", "root", 0, {"weight": 1})
    departments = random.sample(("research", "product", "infra", "ops"), random.randint(2, 4))
    for department in departments:
        halves, gibibytes = random.randint(8, 28), random.randint(9, 30)
        deserved = {"cpu": f"{halves * 500}m", "memory": f"{gibibytes}Gi"} | ({GPU: "3"} if total[2] else {})
        yield _volcano("Queue", department, 0, {"weight": 1, "deserved": deserved, "parent": "root"})
        # Without any team it would be no tree, and what a queue deserves at most what it can reach.
        teams = random.sample(TEAMS, random.choice((2, 3) if department == departments[0] else (0, 2, 2, 3)))
        for team in teams:
            parts = random.randint(1, halves // len(teams)), random.randint(1, gibibytes // len(teams))
            spec = {**_random_limits(random, *parts, total, True), "parent": department}
            yield _volcano("Queue", f"{department}-{team}", 0, spec)


def _random_limits(random: Random, halves: int, gibibytes: int, total: Size, has_deserved: bool) -> Manifest:
    """A queue's weight, and what it may have of CPU (in halves), memory and GPUs."""
    spec: Manifest = {"weight": random.randint(1, 5)}
    if random.random() < 0.15:
        spec["priority"] = random.choice((1, 2))
    if has_deserved and random.random() < 0.85:
        spec["deserved"] = {"cpu": f"{halves * 500}m", "memory": f"{gibibytes}Gi"}
        if total[2] and random.random() < 0.5:
            spec["deserved"][GPU] = "1"
    if random.random() < 0.3:
        spec["capability"] = {"cpu": f"{(halves + random.randint(0, 16)) * 500}m"}
        if random.random() < 0.5:
            spec["capability"]["memory"] = f"{gibibytes + random.randint(0, 16)}Gi"
        if total[2] and random.random() < 0.3:
            spec["capability"][GPU] = "2"
        if random.random() < 0.3:
            spec["capability"]["pods"] = str(random.randint(2, 8))
    return spec


def _crowding_job(random: Random, name: str, queue: str, sizes: list[Size], ages: list[str]) -> list[Manifest]:
    count = random.randint(1, 8) if random.random() < 0.7 else random.randint(8, 24)
    minimum = min(count, random.choice((1, 1, 2, 3, count)))
    priority = random.choice(("p10", "p10", "p10", "p20"))
    group = _volcano("PodGroup", name, 0, {"minMember": minimum, "queue": queue, "priorityClassName": priority})
    group["metadata"]["creationTimestamp"] = age = ages.pop()
    one, are_mixed, differ, has_ages = random.choice(sizes), *(random.random() < part for part in (0.7, 0.3, 0.3))
    middle = "-w" if random.random() < 0.4 else ""
    job = [group]
    for index in range(count):
        cpu, memory, gpus = random.choice(sizes) if are_mixed else one
        requests = {"cpu": f"{cpu}m", "memory": f"{memory}Gi"} | ({GPU: str(gpus)} if gpus else {})
        requests = {} if random.random() < 0.05 else requests
        pod_name = f"{name}{middle}-{index}"
        pod: Manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod_name,
                "uid": f"u{random.random()}" if has_ages else pod_name,
                "creationTimestamp": random.choice(ages) if has_ages else age,
                "annotations": {"scheduling.k8s.io/group-name": name},
            },
            "spec": {"containers": [{"name": "main", "image": "main:1", "resources": {"requests": requests}}]},
        }
        if gpus and requests:
            pod["spec"]["containers"][0]["resources"]["limits"] = {GPU: str(gpus)}
        pod["spec"]["priorityClassName"] = random.choice(("p10", "p20")) if differ else "p10"
        job.append(pod)
    return job


def _start_some(random: Random, job: list[Manifest], free: list[int]) -> None:
    """Let the first pods of a job run, as many as there is room for, if that is enough for the job."""
    group, *pods = job
    running = pods[: random.randint(group["spec"]["minMember"], len(pods))]
    asked = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in running]
    used = [sum(int(found.get(name, "0").rstrip("mGi")) for found in asked) for name in ("cpu", "memory", GPU)]
    if all(more <= left for more, left in zip(used, free, strict=True)):
        free[:] = [left - more for more, left in zip(used, free, strict=True)]
        for pod in running:
            pod["spec"]["nodeName"] = "n"


def organise(random: Random, world: list[Manifest]) -> dict[str, list[tuple[str, int]]]:
    """Put queues into departments, by annotations, and nothing else; returns the way to each. Some pods want GPUs."""
    ways = {}
    departments = {"sci": 3, "eng": 2}
    for found in world:
        if found["kind"] == "Queue":
            name, department = found["metadata"]["name"], random.choice(sorted(departments))
            way = ways[name] = [(department, departments[department]), (name, random.randint(1, 2))]
            found["spec"] = {"weight": 1}
            found["metadata"]["annotations"] = {
                "volcano.sh/hierarchy": "/".join(["root", *(part for part, _ in way)]),
                "volcano.sh/hierarchy-weights": "/".join(["1", *(str(weight) for _, weight in way)]),
            }
        elif found["kind"] == "Node":
            found["status"]["allocatable"]["nvidia.com/gpu"] = str(random.randint(2, 4))
        elif found["kind"] == "Pod" and "nodeName" not in found["spec"]:
            resources = found["spec"]["containers"][0]["resources"]
            if resources["requests"].get("memory") in ("1Mi", "3Mi"):
                resources["limits"] = {"nvidia.com/gpu": "1"}
                resources["requests"]["nvidia.com/gpu"] = "1"
    return ways


def _random_queue(random: Random, number: int, by_weight: bool) -> Manifest:
    spec: dict[str, Any] = {"weight": random.randint(1, 3), "priority": random.choice((0, 0, 0, 1))}
    cpus = 0
    if not by_weight and random.random() < 0.8:
        cpus = random.randint(1, 8)
        spec["deserved"] = {"cpu": str(cpus), "memory": f"{random.randint(2, 16)}Mi"}
    if random.random() < 0.3:
        spec["capability"] = {"cpu": str(cpus + random.randint(2, 6))}
    return _volcano("Queue", f"q{number}", number, spec)


def _random_job(random: Random, number: int, queue: str, shapes: int, with_roles: bool) -> Iterator[Manifest]:
    kinds = [(random.randint(1, 4), random.randint(1, 6)) for _ in range(random.randint(1, shapes))]
    asked = [random.choice(kinds) for _ in range(random.randint(0, 5))] + [BEST_EFFORT] * random.choice((0, 1, 2, 4))
    asked = asked or [kinds[0]]
    random.shuffle(asked)
    roles = dict(zip(kinds, "abc", strict=False)) if with_roles else {}
    role_of = [roles.get(kind, random.choice([*roles.values(), ""])) for kind in asked]
    minimum, minimums = random.randint(1, len(asked)), {}
    if with_roles and random.random() < 0.7:
        counts = {role: role_of.count(role) for role in roles.values()}
        minimums = {role: random.randint(1, count) for role, count in counts.items() if count}
        # Minimums of roles that that of all does not cover count for nothing. Where pods of them ask for nothing,
        # Volcano gives up too early (docs/fair-shares.md): that is not compared.
        are_covered = BEST_EFFORT in asked or random.random() < 0.5
        minimum = max(minimum, sum(minimums.values()) if are_covered else 1)
    spec = {"minMember": minimum, "queue": queue, "minTaskMember": minimums}
    priority = f"p{random.choice((0, 0, 0, 10))}"
    yield _volcano("PodGroup", f"j{number}", number, {**spec, "priorityClassName": priority})
    differ = random.random() < 0.2
    for index, (kind, role) in enumerate(zip(asked, role_of, strict=True)):
        pod = _pod(f"j{number}", index, kind, role)
        pod["spec"]["priorityClassName"] = random.choice(("p0", "p10")) if differ else "p0"
        yield pod


def _let_run(random: Random, world: list[Manifest], job: list[Manifest]) -> None:
    """Let the first pods of a job run, if it is whole with them and there is room for them."""
    group, *pods = job
    running = pods[: random.randint(group["spec"]["minMember"], max(len(pods), group["spec"]["minMember"]))]
    roles = [pod["metadata"]["annotations"].get("volcano.sh/task-spec", "") for pod in running]
    if any(roles.count(role) < least for role, least in group["spec"]["minTaskMember"].items()):
        return
    for pod in running:
        pod["spec"]["nodeName"] = "n"
    session = Session(read_world([*world, *job], by_weight=True))
    if any(held > session.world.total[name] for name, held in session.node.items()):
        for pod in running:
            del pod["spec"]["nodeName"]


def _pod(job: str, index: int, kind: Kind, role: str) -> Manifest:
    requests = {} if kind == BEST_EFFORT else {"cpu": str(kind[0]), "memory": f"{kind[1]}Mi"}
    annotations = {"scheduling.k8s.io/group-name": job} | ({"volcano.sh/task-spec": role} if role else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{job}-w-{index}", "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "main:1", "resources": {"requests": requests}}]},
    }


def _volcano(kind: str, name: str, age: int, spec: dict[str, Any]) -> Manifest:
    metadata = {"name": name, "creationTimestamp": f"2026-01-01T00:00:{age:02}Z"}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}
