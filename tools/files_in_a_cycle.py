"""Which files of Mooring run for one decision: four walks through the code.

    python tools/files_in_a_cycle.py [--list]

What one has to have open to follow such a walk; plugins, of which each is asked the same, are counted apart. A pod, a
job or a gang comes after one like it: what is read and compiled once is not part of every cycle.

1. One pod on a cluster, from the line of a watch to the request that binds it.
2. The cycle that admits a queued job and places its pods.
3. The cycle that evicts pods for an urgent gang, and the one that binds the gang when they are gone.
4. The cycle that places a gang which asks for a rack.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, cast

import msgspec

import mooring
from mooring.assembly import assemble
from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.driver import Live
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.watching.informer import Informer
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.events import PodLost
from mooring.model.loading.manifests import build_manifests
from mooring.model.objects.kinds import kind_of_type
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import TenantWorld, make_job

SOURCES = Path(mooring.__file__).parent


def files_of(run: Callable[[], object]) -> list[str]:
    """The files of the package in which a call executes anything."""
    found = set[str]()

    def note(frame: FrameType, *_: Any) -> None:
        found.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return _ours(found)


def _ours(files: set[str]) -> list[str]:
    names = (Path(name).relative_to(SOURCES).as_posix() for name in files if name.startswith(str(SOURCES)))
    return sorted(name for name in names if not name.startswith("testing/"))


def queued_job() -> list[str]:
    world = TenantWorld([make_queue("queue", make_group(cpu=make_quota(10)))])
    world.submit(make_job("first", pods=2, cpu=1))
    world.cycle()
    world.cycle()
    world.submit(make_job("job", pods=2, cpu=1))
    return files_of(world.cycle)


class Server:
    """Answers every request at once, and tells what was bound."""

    server = "https://server"

    def __init__(self) -> None:
        self.bound: list[str] = []

    def post_at_once(self, path: str, body: bytes, told: Callable[[None], None]) -> bool:
        self.bound.append(path.split("/")[-2])
        asyncio.get_running_loop().call_soon(told, None)
        return True

    async def request(self, method: str, path: str, *more: object) -> bytes:
        return b"{}"


def live_pod() -> list[str]:
    async def walk() -> list[str]:
        server, mirror, dispatcher = Server(), ObjectCache(), Dispatcher()
        client = cast(Any, server)
        live = Live(assemble().new_scheduler(), mirror, client, dispatcher)
        nodes, pods = (_informer(client, mirror, live, type_) for type_ in (Node, Pod))
        for number in range(4):
            nodes._take(_line(_node(number), number))
        live.begin()

        async def bind(number: int) -> None:
            pods._take(_line(_pod(f"pod-{number}"), number))
            live._take_in()
            live._turn(0.0)
            while len(dispatcher):
                await asyncio.sleep(0)

        await bind(100)
        files = set[str]()
        sys.setprofile(lambda frame, *_: files.add(frame.f_code.co_filename))
        try:
            await bind(101)
        finally:
            sys.setprofile(None)
        assert server.bound == ["pod-100", "pod-101"]
        return _ours(files)

    return asyncio.run(walk())


def _informer(client: Any, mirror: ObjectCache, live: Live, type_: type) -> Informer:
    kind = kind_of_type(type_)
    assert kind is not None
    return Informer(client, Resource(kind, "v1", f"{kind.name.lower()}s", type_ is Pod), mirror, live.wake)


def _line(document: dict[str, Any], version: int) -> bytes:
    metadata = {"uid": f"uid-{version}", "resourceVersion": str(version), **document["metadata"]}
    return msgspec.json.encode({"type": "ADDED", "object": document | {"metadata": metadata}})


def _node(number: int) -> dict[str, Any]:
    labels = {"rack": f"rack-{number // 2}", "kubernetes.io/hostname": f"node-{number}"}
    metadata = {"name": f"node-{number}", "labels": labels}
    return {"kind": "Node", "metadata": metadata, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": "default-scheduler", "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def gang_preemption() -> tuple[list[str], list[str]]:
    """The cycle that evicts, and the one that binds."""
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "gang"}}
    members = [_pod(f"member-{number}", priority=100) for number in range(2)]
    for member in members:
        member["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "gang"}
        member["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4"
    victims = [_pod(f"victim-{number}", nodeName=f"node-{number % 4}") for number in range(16)]
    documents = [*(_node(number) for number in range(4)), *victims, {**group, "spec": {"minMember": 2}}, *members]
    scheduler = assemble().new_scheduler()
    scheduler.load(build_manifests(documents), 0.0)
    decisions: list[Any] = []
    evicting = files_of(lambda: decisions.extend(scheduler.cycle(1.0)))
    scheduler.handle(*(PodLost(decision.pod) for decision in decisions if type(decision).__name__ == "Evict"))
    binding = files_of(lambda: decisions.extend(scheduler.cycle(2.0)))
    assert {type(decision).__name__ for decision in decisions} >= {"Evict", "Bind"}
    return evicting, binding


def gang_in_a_rack() -> list[str]:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    job = {"parallelism": 4, "completions": 4, "template": template}
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    topology = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology", "metadata": {"name": "racks"}}
    documents = [
        *(_node(number) for number in range(4)),
        {**topology, "spec": {"levels": levels}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": job},
    ]
    scheduler = assemble().new_scheduler()
    scheduler.load(build_manifests(documents), 0.0)
    return files_of(lambda: scheduler.cycle(1.0))


def main() -> None:
    evicting, binding = gang_preemption()
    walks = (
        ("a pod on a cluster", live_pod()),
        ("a queued job", queued_job()),
        ("a gang that preempts", evicting),
        ("a gang whose victims are gone", binding),
        ("a gang in a rack", gang_in_a_rack()),
    )
    for title, files in walks:
        others = [name for name in files if not name.startswith("plugins/")]
        print(f"{title}: {len(others)} files, and {len(files) - len(others)} of plugins")
        if "--list" in sys.argv:
            print("".join(f"  {name}\n" for name in others), end="")


if __name__ == "__main__":
    main()
