"""What a cluster cannot be told to do fails with one clear message, and the plan is given up."""

import asyncio
from typing import Any, cast

import pytest

from mooring.drivers.live.api.client import Client
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.driver import Live
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.model.decisions import Decision, Launch, Resize, Terminate
from mooring.model.node_offer import NodeOffer
from mooring.testing.builders import make_node, make_scheduler


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (Launch("large-0", NodeOffer(make_node("large"))), "nodes are launched by the scheduler that admits"),
        (Terminate("a", "consolidation"), "node a has no NodeClaim: it is not terminated"),
        (Resize("default/p", ()), "the pod is gone"),
    ],
)
def test_a_decision_that_is_not_supported_is_reported_as_failed(decision: Decision, message: str) -> None:
    async def story() -> str:
        nobody: Any = None
        return Live(make_scheduler(), ObjectCache(), cast(Client, nobody), Dispatcher()).carry_out(decision)

    assert asyncio.run(story()) == message
