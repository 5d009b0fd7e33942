"""Binding pods: one request each, and an honest answer to what became of it.

A request that was not answered may have been carried out. Then the pod itself is asked, until the server answers: only
who is known not to be bound is given back to the scheduler. A pod that is not bound yet may be so a moment later, by a
request that is still under way: it is sent again, until there is an answer or none can be under way any more.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import msgspec

from mooring.drivers.live.api.backoff import Backoff
from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.api.requests import binding, pod_path
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind

MOST_TRIES = 6
"""How often a bind is sent that the server does not carry out and does not refuse."""
LATE_SECONDS = 90.0
"""How long a request that was not answered may still be carried out: it takes 15 seconds until we give it up at most,
and API servers end requests after 60."""
MaySend = Callable[[], Awaitable[bool]]
"""Waits until a bind may be sent; False if it may not any more."""


class Outcome(Enum):
    BOUND = "bound"
    CONFLICT = "conflict"
    """Somebody else has bound it, or another pod has its name."""
    GONE = "gone"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: Outcome
    message: str = ""


class _Meta(msgspec.Struct):
    uid: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


decode_pod = msgspec.json.Decoder(_Pod).decode
BOUND = Answer(Outcome.BOUND)


class Tried(NamedTuple):
    """A first try that failed, and when it was sent, as the loop has the time."""

    error: ApiError
    sent: float


async def bind(
    client: Client, dispatcher: Dispatcher, pod: Pod, decision: Bind, may_send: MaySend, tried: Tried | None = None
) -> Answer:
    """Bind a pod, or find out why it is not; go on from there if it was tried already."""
    path, body = pod_path(pod, "binding"), binding(pod, decision)
    backoff, now = Backoff(), asyncio.get_running_loop().time
    unanswered = float("-inf")
    """When the last try was sent of which nobody knows whether the server is still at it."""
    is_doubtful = False
    tries, message = 0, ""
    while tries < MOST_TRIES or now() < unanswered + LATE_SECONDS:
        if tried is None:
            if not await may_send():
                answer = await find_out(client, pod, decision.node, backoff) if is_doubtful else None
                return answer or Answer(Outcome.CONFLICT, "its node was given to others")
            sent = now()
            try:
                await client.post(path, body)
                return BOUND
            except ApiError as refused:
                tried = Tried(refused, sent)
        (error, sent), tried = tried, None
        tries += 1
        message = error.message
        if error.code == 429:
            dispatcher.pause(error)
            await asyncio.sleep(backoff.next(error.retry_after))
            continue
        if not error.is_unsettled and not (is_doubtful and error.code == 409):
            return Answer(_REFUSALS.get(error.code, Outcome.REFUSED), message)
        if error.code in _UNANSWERED:
            unanswered = sent
        is_doubtful = True
        answer = await find_out(client, pod, decision.node, backoff)
        if answer is not None:
            return answer
    return Answer(Outcome.REFUSED, message)


_REFUSALS = {404: Outcome.GONE, 409: Outcome.CONFLICT}
_UNANSWERED = frozenset((0, 502, 503, 504))
"""Not by whoever carries it out, who may be at it still."""


async def find_out(client: Client, pod: Pod, node: str, backoff: Backoff | None = None) -> Answer | None:
    """Whether a pod is bound after all; None if it is not, and may be tried again. Asked until somebody answers."""
    backoff = backoff or Backoff()
    while True:
        await asyncio.sleep(backoff.next())
        try:
            found = decode_pod(await client.get(pod_path(pod)))
        except ApiError as error:
            if error.code != 404:  # whatever else it says tells nothing about the pod
                continue
            return Answer(Outcome.GONE, error.message)
        if found.metadata.uid != pod.metadata.uid:
            return Answer(Outcome.GONE, "another pod has its name")
        if not found.spec.node_name:
            return None
        if found.spec.node_name == node:
            return BOUND
        return Answer(Outcome.CONFLICT, f"it is on {found.spec.node_name}")
