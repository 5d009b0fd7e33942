"""Bad days: whatever the API server and the network do, and whenever the scheduler dies, the end is a sound one."""

import random
import signal
import time
from collections import defaultdict
from pathlib import Path

import pytest
from control_plane import ADMIN, ControlPlane, until
from faulty_proxy import Faults, FaultyProxy
from kube import Kube, Object, node, pod

pytestmark = pytest.mark.live

NODES, CPU = 20, 8
SETTLED_SECONDS = 120.0


def gang(name: str, size: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }


def members(name: str, size: int, cpu: str = "2") -> list[Object]:
    return [pod(f"{name}-{i}", cpu=cpu, schedulingGroup={"podGroupName": name}) for i in range(size)]


def millis(found: Object) -> int:
    text = found["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


class Judge:
    """Looks at a cluster, and says what is not as it should be."""

    def __init__(self, kube: Kube, sizes: dict[str, int]) -> None:
        self._kube, self._sizes = kube, sizes

    def complaints(self) -> list[str]:
        pods = self._kube.pods().values()
        capacity = {
            found["metadata"]["name"]: int(found["status"]["allocatable"]["cpu"]) * 1000
            for found in self._kube.objects("/api/v1/nodes")
        }
        free = dict(capacity)
        gangs: defaultdict[str, int] = defaultdict(int)
        waiting: list[Object] = []
        for found in pods:
            place = found["spec"].get("nodeName")
            group = found["spec"].get("schedulingGroup", {}).get("podGroupName", "")
            if not place:
                waiting.append(found)
            elif place in free:
                free[place] -= millis(found)
                gangs[group] += 1
        said = [f"{name} is over-allocated by {-left}m" for name, left in free.items() if left < 0]
        for group, size in self._sizes.items():
            if 0 < gangs[group] < size:
                said.append(f"gang {group} runs with {gangs[group]} of {size}")
        for found in waiting:
            group = found["spec"].get("schedulingGroup", {}).get("podGroupName", "")
            if not group and any(left >= millis(found) for left in free.values()):
                said.append(f"{found['metadata']['name']} waits and would fit")
        for group, size in self._sizes.items():
            wanted = [
                found for found in waiting if found["spec"].get("schedulingGroup", {}).get("podGroupName") == group
            ]
            room = sum(left // 2000 for left in free.values() if left > 0)
            if len(wanted) == size and room >= size:
                said.append(f"gang {group} waits and would fit")
        return said

    def wait_until_sound(self) -> None:
        complaints: list[str] = ["not looked at"]

        def sound() -> bool:
            complaints[:] = self.complaints()
            time.sleep(0.3)
            return not complaints

        until(sound, SETTLED_SECONDS, lambda: "\n".join(complaints[:20]))


@pytest.fixture
def proxied(plane: ControlPlane, kube: Kube, tmp_path: Path) -> "tuple[FaultyProxy, Path]":
    proxy = FaultyProxy(plane.server, seed=7)
    path = tmp_path / "proxied.kubeconfig"
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        f"clusters: [{{name: c, cluster: {{server: '{proxy.url}'}}}}]\n"
        f"users: [{{name: c, user: {{token: {ADMIN}}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: c}}}}]\n"
    )
    return proxy, path


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
def test_answers_that_fail_lose_nothing(kube: Kube, proxied: tuple[FaultyProxy, Path], faults: Faults) -> None:
    proxy, path = proxied
    with proxy:
        kube.create(*(node(f"n{i:02}", cpu=CPU) for i in range(NODES)))
        kube.kubeconfig = path
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
        Judge(kube, sizes).wait_until_sound()
        assert scheduler.is_running


def test_a_server_that_hangs_and_one_that_restarts_are_outlived(
    plane: ControlPlane, kube: Kube, proxied: tuple[FaultyProxy, Path]
) -> None:
    proxy, path = proxied
    with proxy:
        kube.create(*(node(f"n{i:02}", cpu=CPU) for i in range(NODES)))
        kube.kubeconfig = path
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
        Judge(kube, sizes).wait_until_sound()
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
    kube.create(*nodes)
    kube.run()
    sizes = make_work(kube, 0)
    kube.delete(*nodes[:5])
    sizes |= make_work(kube, 1)
    # Nobody else here sees to the pods of nodes that are gone.
    time.sleep(2)
    gone = {found["metadata"]["name"] for found in nodes[:5]}
    kube.delete(*(found for found in kube.pods().values() if found["spec"].get("nodeName") in gone))
    sizes = {name: size for name, size in sizes.items() if all(f"{name}-{i}" in kube.pods() for i in range(size))}
    Judge(kube, sizes).wait_until_sound()
