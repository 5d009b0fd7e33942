"""Nodes by NodeClaims: Karpenter's own provider, or that of the embedded control plane, launches what they ask for."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mooring.drivers.live.api.client import STRATEGIC_PATCH, ApiError, Client
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.api.requests import encode
from mooring.model.api.karpenter import NodeClaim
from mooring.model.capacity.labels import DISRUPTED
from mooring.model.decisions import Decision, Launch, Terminate

PATH = "/apis/karpenter.sh/v1/nodeclaims"
LAUNCH = "mooring.dev/launch"
"""An annotation that tells one attempt to launch a node from all others: a claim is not asked for twice by one."""
MOST_TRIES, FIRST_PAUSE_SECONDS = 6, 0.2
CONFLICT, GONE = 409, 404
_log = logging.getLogger(__name__)


class NodeClaimProvider:
    """Creates and deletes NodeClaims."""

    def __init__(
        self,
        client: Client,
        dispatcher: Dispatcher,
        claims: Callable[[], Mapping[str, NodeClaim]],
        *,
        failed: Callable[[Decision, str], None],
    ) -> None:
        """`claims` are those that exist, by name; `failed` is told of every decision that the world refused."""
        self._client, self._dispatcher = client, dispatcher
        self._claims, self._failed = claims, failed

    def launch(self, decision: Launch) -> str:
        """Create the claim of a node."""
        if decision.offer.claim is None:
            return "the offer says nothing of a NodeClaim: the node is not launched"
        self._dispatcher.submit(Lane.EVICT, lambda: self._answered_for(decision, self._launch))
        return ""

    def terminate(self, decision: Terminate) -> str:
        """Let no more pods come to a node, and delete its claim."""
        if self._claim_of(decision.node) is None:
            return f"node {decision.node} has no NodeClaim: it is not terminated"
        self._dispatcher.submit(Lane.EVICT, lambda: self._answered_for(decision, self._terminate))
        return ""

    def _claim_of(self, node: str) -> NodeClaim | None:
        return next((each for each in self._claims().values() if node in (each.name, each.status.node_name)), None)

    async def _answered_for(self, decision: Any, work: Any) -> None:
        """A fault of ours must not leave the scheduler to wait for something that nobody does."""
        try:
            await work(decision)
        except ApiError as error:
            _log.warning("%s of node %s: %s", type(decision).__name__, decision.node, error.message)
            self._failed(decision, error.message)
        except Exception as error:
            _log.exception("%s of node %s was given up", type(decision).__name__, decision.node)
            self._failed(decision, f"error: {type(error).__name__}: {error}")

    async def _launch(self, decision: Launch) -> None:
        mark = secrets.token_hex(8)
        body = claim_body(decision, mark)
        try:
            await self._insist("POST", PATH, body)
        except ApiError as error:
            # An answer that got lost: the claim may be there all the same.
            if error.code != CONFLICT or await self._mark_of(decision.node) != mark:
                raise

    async def _mark_of(self, name: str) -> str:
        found = msgspec.json.decode(await self._client.get(f"{PATH}/{name}"))
        return str((found["metadata"].get("annotations") or {}).get(LAUNCH, ""))

    async def _terminate(self, decision: Terminate) -> None:
        claim = self._claim_of(decision.node)
        if claim is None:
            return  # it has gone meanwhile
        if claim.status.node_name:
            await self._bar(claim.status.node_name)
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": claim.metadata.uid}}
        try:
            await self._insist("DELETE", f"{PATH}/{claim.name}", encode(options))
        except ApiError as error:
            if error.code not in (GONE, CONFLICT):
                raise

    async def _bar(self, node: str) -> None:
        """Let no more pods come to a node, whoever schedules them."""
        taint = {"key": DISRUPTED.key, "effect": DISRUPTED.effect}
        try:
            await self._insist("PATCH", f"/api/v1/nodes/{node}", encode({"spec": {"taints": [taint]}}), STRATEGIC_PATCH)
        except ApiError as error:
            if error.code != GONE:
                raise

    async def _insist(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> None:
        """Send a request, again if what is wrong may pass."""
        pause = FIRST_PAUSE_SECONDS
        for _ in range(MOST_TRIES):
            try:
                await self._client.request(method, path, body, content_type)
            except ApiError as error:
                if not error.is_passing:
                    raise
                last = error
            else:
                return
            async with self._dispatcher.aside():
                await asyncio.sleep(pause)
            pause *= 2
        raise last


def claim_body(decision: Launch, mark: str) -> bytes:
    """A NodeClaim as it is created."""
    claim = decision.offer.claim
    assert claim is not None
    made = msgspec.to_builtins(claim)
    metadata = made.setdefault("metadata", {})
    metadata["name"] = decision.node
    metadata["annotations"] = {**(metadata.get("annotations") or {}), LAUNCH: mark}
    spec = made.setdefault("spec", {})
    spec.setdefault("requirements", [])
    reference = {"group": "karpenter.mooring.dev", "kind": "NodeClass", "name": "default"}
    spec["nodeClassRef"] = spec.get("nodeClassRef") or reference
    return encode({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec})
