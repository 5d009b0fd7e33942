"""Bad days: whatever the API server and the network do, and whenever the scheduler dies, the end is a sound one."""

import random
import signal
import time

import pytest
from control_plane import ControlPlane, until
from faulty_proxy import Faults, behind_proxy
from judge import Judge
from kube import Kube, Object, node, pod

pytestmark = pytest.mark.live

NODES, CPU = 20, 8


def gang(name: str, size: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }


def members(name: str, size: int, cpu: str = "2") -> list[Object]:
    return [pod(f"{name}-{i}", cpu=cpu, schedulingGroup={"podGroupName": name}) for i in range(size)]


def make_work(kube: Kube, wave: int) -> dict[str, int]:
    """A wave of pods and gangs that more than fills the nodes with those before."""
    sizes = {f"gang-{wave}-{i}": 4 for i in range(4)}
    for name, size in sizes.items():
        kube.create(gang(name, size))
    kube.create(*(each for name, size in sizes.items() for each in members(name, size)))
    kube.create(*(pod(f"web-{wave}-{i}", cpu=("500m", "1", "2")[i % 3]) for i in range(24)))
    return sizes


@pytest.mark.parametrize(
    "faults",
    [
        Faults(conflict=0.1, error=0.05, lost_answer=0.1),
        Faults(too_many=0.1, slow=0.1, dropped_watch=0.05),
    ],
    ids=["refusals", "slowness"],
)
def test_answers_that_fail_lose_nothing(kube: Kube, faults: Faults) -> None:
    with behind_proxy(kube) as proxy:
        kube.create(*(node(f"n{i:02}", cpu=CPU) for i in range(NODES)))
        scheduler = kube.run()
        scheduler.wait_until_it_says("scheduling for")
        proxy.faults = faults
        sizes: dict[str, int] = {}
        for wave in range(3):
            sizes |= make_work(kube, wave)
            time.sleep(2)
        kube.delete(*(pod(f"web-0-{i}") for i in range(0, 24, 2)))
        time.sleep(3)
        assert sum(faults.counted.values()) > 10, faults.counted
        proxy.faults = Faults()
        Judge(kube, sizes, proxy).wait_until_sound()
        assert scheduler.is_running


def test_a_server_that_hangs_and_one_that_restarts_are_outlived(plane: ControlPlane, kube: Kube) -> None:
    with behind_proxy(kube) as proxy:
        kube.create(*(node(f"n{i:02}", cpu=CPU) for i in range(NODES)))
        scheduler = kube.run()
        sizes = make_work(kube, 0)
        proxy.faults.is_hanging = True
        sizes |= make_work(kube, 1)
        time.sleep(3)
        proxy.faults.is_hanging = False
        time.sleep(1)
        sizes |= make_work(kube, 2)
        server = plane.programs["kube-apiserver"]
        server.kill()
        time.sleep(3)
        server.start()
        plane.wait_until_ready()
        Judge(kube, sizes, proxy).wait_until_sound()
        assert scheduler.is_running


def test_a_scheduler_that_is_killed_again_and_again_finishes_what_it_began(kube: Kube) -> None:
    kube.create(*(node(f"n{i:02}", cpu=CPU) for i in range(NODES)))
    drawn = random.Random(11)
    sizes: dict[str, int] = {}
    for wave in range(4):
        scheduler = kube.run(name=f"scheduler-{wave}")
        scheduler.wait_until_it_says("scheduling for")
        sizes |= make_work(kube, wave)
        time.sleep(drawn.uniform(0.0, 0.5))
        scheduler.send(signal.SIGKILL)
    kube.run(name="last")
    Judge(kube, sizes).wait_until_sound()


def test_nodes_that_go_while_pods_are_bound_to_them_leave_no_gang_in_part(kube: Kube) -> None:
    nodes = [node(f"n{i:02}", cpu=CPU) for i in range(NODES)]
    gone = {found["metadata"]["name"] for found in nodes[:5]}
    kube.create(*nodes)
    scheduler = kube.run()
    sizes = make_work(kube, 0)
    until(lambda: any(kube.by_node()[name] for name in gone), 60, scheduler.tail)
    kube.delete(*nodes[:5])
    sizes |= make_work(kube, 1)

    def lost() -> list[Object]:
        return [pod(name) for name, found in kube.pods().items() if found["spec"].get("nodeName") in gone]

    def are_noticed() -> list[str]:
        kube.delete(*lost())  # nobody else here sees to the pods of nodes that are gone
        return [found["metadata"]["name"] for found in lost()]

    # Binds that were under way may come to such a node a moment later.
    judge = Judge(kube, {})
    judge.wait_until_sound(are_noticed)
    there = kube.pods()
    judge.sizes = {name: size for name, size in sizes.items() if all(f"{name}-{i}" in there for i in range(size))}
    judge.wait_until_sound(are_noticed)
