"""What changes nothing costs no cycle."""

import asyncio
import json

import msgspec

from mooring.assembly import assemble
from mooring.drivers.live.api.client import Client
from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.driver import Live
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.model.objects.kinds import find_kind


def raw_node(beat: int, cpu: str = "4") -> msgspec.Raw:
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:{beat:02d}:00Z"}
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "resourceVersion": str(beat)},
        "status": status,
    }
    return msgspec.Raw(json.dumps(node).encode())


def test_a_heartbeat_makes_no_cycle_and_a_larger_node_makes_one() -> None:
    kind = find_kind("v1", "Node")
    assert kind is not None
    nodes = Resource(kind, "v1", "nodes", namespaced=False)
    cycles: list[int] = []

    async def scenario() -> None:
        cache = ObjectCache()
        cache.put(nodes, raw_node(0))
        live = Live(assemble(None).new_scheduler(), cache, Client.__new__(Client), Dispatcher())
        live.begin()
        live.on_cycle = lambda steps, decisions: cycles.append(len(decisions))
        running = asyncio.ensure_future(live.run())
        await asyncio.sleep(0.05)
        cycles.clear()
        for beat in range(1, 5):
            cache.put(nodes, raw_node(beat))
            live.look()
            await asyncio.sleep(0.02)
        assert cycles == []
        cache.put(nodes, raw_node(5, cpu="8"))
        live.look()
        await asyncio.sleep(0.05)
        live.stop()
        await running

    asyncio.run(scenario())

    assert len(cycles) == 1
