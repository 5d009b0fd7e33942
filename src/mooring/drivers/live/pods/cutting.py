"""Before a pod is bound to an instance of a GPU that is to be cut for it: wait until the node has it.

A kubelet refuses a pod whose devices it does not know. An agent cuts the GPU as a `Partition` says, the device plugin
finds the new instances, and the kubelet lists them in the node's allocatable.
"""

import asyncio
import time

import msgspec

from mooring.drivers.live.api.client import ApiError, Client
from mooring.model.api.nodes import Node
from mooring.model.decisions import Bind
from mooring.model.values.quantity import parse_quantity, to_units

LOOK_SECONDS = 1.0
_decode = msgspec.json.Decoder(Node).decode


async def wait_for_instances(client: Client, decision: Bind, seconds: float) -> str:
    """Wait until the node of a pod offers its instances; return why that failed, or nothing."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            lacking = _lacking(_decode(await client.get(f"/api/v1/nodes/{decision.node}")), decision)
        except ApiError as error:
            if not error.is_passing:
                return error.message
            lacking = error.message
        if not lacking:
            return ""
        if time.monotonic() > deadline:
            return f"node {decision.node} was not cut within {seconds:g} s: {lacking}"
        await asyncio.sleep(LOOK_SECONDS)


def _lacking(node: Node, decision: Bind) -> str:
    names = [name for name, count in decision.instances if _offered(node, name) < count]
    return f"it has too few {', '.join(names)}" if names else ""


def _offered(node: Node, name: str) -> int:
    return to_units(parse_quantity((node.status.allocatable or {}).get(name, 0)))
