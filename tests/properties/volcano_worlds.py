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
