"""Several active schedulers on the same nodes: what each is about to bind is written down before it does.

The API server lets anybody bind any pod to any node, full or not. So schedulers that share nodes keep one ConfigMap:
each writes there which pods it is about to put where, and only onto the version that it has read. Who finds that others
have written meanwhile reads that first, and looks again whether there is room. One write covers whole cycles.

A claim counts until it is taken out of the ConfigMap:

- by its owner when the pod was seen bound: from then on whoever claims must have seen the pods as they were at that
  version (`horizon`), so that everybody knows of every pod, from its claim or from the pod itself;
- by its owner when the pod is known not to be bound;
- by anybody when its owner has not been heard of for long. Owners count on that: they send no bind (`may_bind`) unless
  they have written shortly before.

Why this never fills a node twice is argued in docs/decisions/0019-live-driver.md.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mooring.drivers.live.api.backoff import Backoff
from mooring.drivers.live.api.client import JSON, ApiError, Client
from mooring.drivers.live.api.requests import encode

NAME = "mooring-node-claims"
HORIZON = "horizon"
ALIVE = "alive"
"""The last part of the key under which an owner of claims says that it is there: another number in each write."""
KEPT_SECONDS = 0.5
"""How long claims stay written after their pods were seen bound: others see them a little later than we do."""
WATCH_SECONDS = 0.1
"""How long the watch may take to bring what we are known not to have read: asking costs the server more."""
STRAGGLING_SECONDS = 20.0
"""How long one that is not bound keeps those written that were claimed together with it and are."""
FENCE_SECONDS = 20.0
"""How long after a write of ours binds may be sent: later, others may soon count us among the gone."""
FORGOTTEN_SECONDS = 120.0
"""A scheduler that was not heard of for so long is gone, and so is every bind that it sent: it sent none later than
the fence, gave each up after 15 seconds, and API servers give requests up after 60."""
HEARD_SECONDS = 2 * KEPT_SECONDS
"""Who has claims is heard of more often than that."""
LARGE = 400_000
"""Bytes of claims from which on nothing is kept any longer than it must be: an object may have about 1.5 million."""
_log = logging.getLogger(__name__)
_ONLY_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


@dataclass(frozen=True, slots=True)
class Claim:
    """A pod that some scheduler is about to bind."""

    pod: str
    uid: str
    node: str
    seen: int = field(default=0, compare=False)
    """The version of the pod that its scheduler saw: who has followed pods that far and sees none knows it is gone."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str
    uid: str = ""


class _ConfigMap(msgspec.Struct):
    metadata: dict[str, Any]
    """All of it, also what others have put there: it is written as a whole."""
    data: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def version(self) -> int:
        return int(self.metadata["resourceVersion"])


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decode = msgspec.json.Decoder(_ConfigMap).decode
_decode_pod = msgspec.json.Decoder(_Pod).decode
_decode_line = msgspec.json.Decoder(_WatchEvent).decode


class _Batch:
    """Claims that were written in one go, as they are written now."""

    def __init__(self, claims: Iterable[Claim], text: str, version: int = 0) -> None:
        self.claims, self.text = frozenset(claims), text
        self.version = version
        """As of which version of the ConfigMap it is there, if it is ours; 0 while that is not known."""
        self.written = self.since = _now()
        """`since`: if it is ours, when it was last not all seen bound."""
        self.bound: dict[Claim, int] = {}
        """Those that were seen bound, and at which version; of the gone, also those that never will be, at 0."""


class NodeClaims:
    """The claims of all schedulers, as one of them reads and writes them."""

    def __init__(
        self,
        client: Client,
        identity: str,
        namespace: str,
        *,
        bound_at: Callable[[Claim], int | None],
        pods_version: Callable[[], int],
        kept_seconds: float = KEPT_SECONDS,
    ) -> None:
        """`bound_at` is the version at which a claimed pod was seen on a node, 0 if it is on none, None if there is no
        such pod; `pods_version` is how far pods have been followed."""
        self._client, self._identity = client, identity
        self._bound_at, self._pods_version, self._kept = bound_at, pods_version, kept_seconds
        self._root, self._namespace = f"/api/v1/namespaces/{namespace}/configmaps", namespace
        self._version = 0
        self._found = _ConfigMap({})
        """As it is at this version."""
        self._came = asyncio.Event()
        """Set when something is read."""
        self._written = 0
        self._renewed = float("-inf")
        """When the last write began that others have heard of us by."""
        self._mine: dict[str, _Batch] = {}
        self._theirs: dict[str, _Batch] = {}
        self._alive: dict[str, str] = {}
        self._heard: dict[str, float] = {}
        """What others said last, and when we heard that."""
        self._withdrawn: set[Claim] = set()
        self._vanished: dict[Claim, int] = {}
        """Claims of others that are not written any more, and as of which version they have come true if they have."""
        self._touched: set[str] = set()
        """Pods of others' claims of which something may have become."""
        self.horizon = 0
        self.foreign: dict[str, Claim] = {}
        """What others are about to bind and was not seen bound yet, by pod."""
        self.news: list[Claim] = []
        self.forgotten_news = 0
        """All claims of others as they came, but for the first ones, which nobody asks for any more."""
        self.on_foreign: Callable[[list[Claim], list[Claim]], None] = lambda new, failed: None
        """Told of claims of others that came, and of those that came to nothing."""
        self.on_vanished: Callable[[], None] = lambda: None
        """Told when it is time to tidy up."""

    # Reading.

    async def watch(self) -> None:
        """Keep up with the others between our own writes."""
        backoff = Backoff()
        while True:
            try:
                if not self._version:
                    await self.read()
                path = (
                    f"{self._root}?watch=true&fieldSelector=metadata.name%3D{NAME}"
                    f"&resourceVersion={self._version}&timeoutSeconds=300"
                )
                async with self._client.stream(path) as chunks:
                    rest = b""
                    async for chunk in chunks:
                        *lines, rest = (rest + chunk).split(b"\n")
                        for line in filter(None, lines):
                            found = _decode_line(line)
                            if found.type == "ERROR":
                                raise ApiError(410, "Watch", "the watch of claims ended")
                            if found.type in ("ADDED", "MODIFIED"):
                                self._take(_decode(found.object))
                        backoff.reset()
            except ApiError as error:
                if error.code == 410:
                    with contextlib.suppress(ApiError):
                        await self.read()
            await asyncio.sleep(backoff.next())

    async def read(self) -> None:
        """Take in what everybody has written."""
        path = f"{self._root}/{NAME}"
        try:
            found = _decode(await self._client.get(path))
        except ApiError as error:
            if error.code != 404:
                raise
            metadata = {"name": NAME, "namespace": self._namespace}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            with contextlib.suppress(ApiError):  # somebody else was faster
                await self._client.post(self._root, encode(body))
            found = _decode(await self._client.get(path))
        self._take(found)

    async def _read_after(self, version: int) -> None:
        """Take in what was written after a version: the watch brings it, most often; if not, it is asked for."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WATCH_SECONDS):
                while self._version <= version:
                    self._came.clear()
                    await self._came.wait()
                return
        await self.read()

    def _take(self, found: _ConfigMap) -> None:
        version = found.version
        if version <= self._version:
            return  # a watch is behind our own writes
        self._found, self._version = found, version
        self._came.set()
        written = found.data.get(HORIZON, "")
        self.horizon = max(self.horizon, int(written) if written.isdecimal() else 0)
        self._hear({_owner(key): text for key, text in found.data.items() if _is_alive(key)})
        theirs = {key: text for key, text in found.data.items() if self._is_batch_of_others(key)}
        coming: list[Claim] = []
        for key in [key for key in self._theirs if key not in theirs]:
            self._vanish(self._theirs.pop(key).claims)
        for key, text in theirs.items():
            known = self._theirs.get(key)
            if known is not None and known.text == text:
                continue
            self._heard.setdefault(_owner(key), _now())
            batch = self._theirs[key] = _Batch(_claims(text), text)
            before = known.claims if known is not None else frozenset()
            self._vanish(before - batch.claims)
            coming += sorted(batch.claims - before, key=lambda claim: claim.pod)
        for key, batch in list(self._mine.items()):
            if 0 < batch.version <= version and key not in found.data:
                del self._mine[key]  # others counted us among the gone: nothing of it may be bound any more
        self._come(coming)

    def _is_batch_of_others(self, key: str) -> bool:
        return key != HORIZON and not _is_alive(key) and _owner(key) != self._identity

    def _hear(self, alive: dict[str, str]) -> None:
        for owner, text in alive.items():
            if self._alive.get(owner) != text:
                self._heard[owner] = _now()
                for key, batch in self._theirs.items():
                    if _owner(key) == owner:
                        batch.bound.clear()  # what was found out about one that is gone says nothing about who is not
        self._alive = alive
        owners = {_owner(key) for key in self._theirs}
        self._heard = {owner: when for owner, when in self._heard.items() if owner in alive or owner in owners}

    def _come(self, claims: list[Claim]) -> None:
        # A pod that we see bound already may have been bound after we decided: its node is not what it was, either.
        self.news += claims
        waiting = [claim for claim in claims if not self._bound_at(claim)]
        self.foreign.update((claim.pod, claim) for claim in waiting)
        self._touched.update(claim.pod for claim in waiting)
        for claim in claims:
            self._vanished.pop(claim, None)
        if waiting:
            self.on_foreign(waiting, [])

    def _vanish(self, claims: Iterable[Claim]) -> None:
        vanished = dict.fromkeys(claims, self.horizon)
        self._vanished.update(vanished)
        if vanished:
            self.on_vanished()

    def tidy(self, is_counted: Callable[[Claim], bool], changed: Iterable[str] = ()) -> None:
        """Forget claims of others that have come true, when whoever decides counts them, or to nothing.

        `changed` are the pods that were seen to change: only those are looked at, not all claims each time.
        """
        self._touched.update(pod for pod in changed if pod in self.foreign)
        seen = self._pods_version()
        failed: list[Claim] = []
        for claim, horizon in list(self._vanished.items()):
            if seen >= horizon:
                del self._vanished[claim]
                self._touched.add(claim.pod)
                if not self._bound_at(claim) and self.foreign.get(claim.pod) == claim:
                    failed.append(claim)
        for claim in failed:
            del self.foreign[claim.pod]
        touched, self._touched = self._touched, set()
        for claim in [self.foreign[pod] for pod in touched if pod in self.foreign]:
            version = self._bound_at(claim)
            if (version and is_counted(claim)) or self.is_gone(claim):
                del self.foreign[claim.pod]
            elif version != 0:  # it is bound, or not there as far as we have looked: neither is told again
                self._touched.add(claim.pod)
        if failed:
            self.on_foreign([], failed)

    def is_gone(self, claim: Claim) -> bool:
        """Whether there is no such pod any more."""
        return self._bound_at(claim) is None and self._pods_version() >= claim.seen

    @property
    def others(self) -> int:
        """How many other schedulers have claims."""
        return len(self._alive.keys() - {self._identity})

    @property
    def others_write(self) -> bool:
        """Whether another scheduler that has claims was heard of just now: it is about to bind something."""
        now = _now()
        return any(now - self._heard[_owner(key)] < HEARD_SECONDS for key in self._theirs)

    @property
    def needed_version(self) -> int:
        """How far whoever decides must have followed pods, so that it knows all that are claimed, or were."""
        return max((self.horizon, *(claim.seen for claim in self.foreign.values())))

    def news_since(self, number: int) -> Iterator[tuple[int, Claim]]:
        """Claims of others that came after so many, each with how many had come then."""
        return enumerate(self.news[number - self.forgotten_news :], number + 1)

    @property
    def news_count(self) -> int:
        return self.forgotten_news + len(self.news)

    def forget_news(self, number: int) -> None:
        """Nobody asks for the first ones any more."""
        del self.news[: number - self.forgotten_news]
        self.forgotten_news = number

    # Writing.

    def withdraw(self, claim: Claim) -> None:
        """A pod is known not to be bound; others learn of it with our next claims."""
        self._withdrawn.add(claim)

    def may_bind(self, claim: Claim) -> bool | None:
        """Whether a bind may be sent: None if not now, False if not any more, because its claim was taken out."""
        if not any(claim in batch.claims for batch in reversed(self._mine.values())):  # most often the last
            return False
        return _now() < self._renewed + FENCE_SECONDS or None

    async def write(self, claims: Sequence[Claim]) -> bool:
        """Claim all these, if nothing was written since we last read; False if something was, and has been read."""
        began, withdrawn = _now(), set(self._withdrawn)
        key = f"{self._identity}.{self._written}"
        left = {**self._settled(), **self._abandoned()}
        if claims:
            left[key] = frozenset(claims)
        changes: dict[str, str | None] = {name: _text(each) if each else None for name, each in left.items()}
        changes[HORIZON] = str(self._horizon_with(left))
        changes[f"{self._identity}.{ALIVE}"] = str(self._written) if claims or self._is_owner_with(left) else None
        self._written += 1
        # Should it be cut short, or not be answered, it may have been carried out: then this is to be taken out again.
        self._mine[key] = _Batch((), "")
        onto, found = self._version, self._with(changes)
        try:
            # As a whole: to merge a few lines into a large object costs the server more than to read a large one.
            answer = await self._client.request("PUT", f"{self._root}/{NAME}", encode(found), JSON, _ONLY_METADATA)
        except ApiError as error:
            if not error.is_unsettled:
                del self._mine[key]
            if error.code not in (404, 409) and not error.is_passing:
                raise
            if error.is_passing:
                await asyncio.sleep(error.retry_after or 0.2)
            with contextlib.suppress(ApiError):
                await self._read_after(onto)
            return False
        del self._mine[key]
        self._withdrawn -= withdrawn
        self._renewed = began
        found.metadata = _decode(answer).metadata
        self._wrote(left, changes, found)
        return True

    def _with(self, changes: dict[str, str | None]) -> _ConfigMap:
        """As it is when these are written; without what the server keeps about who wrote what, and adds by itself."""
        metadata = {name: value for name, value in self._found.metadata.items() if name != "managedFields"}
        data = {**self._found.data, **changes}
        return _ConfigMap(metadata, {name: text for name, text in data.items() if text is not None})

    def _wrote(self, left: dict[str, frozenset[Claim]], changes: dict[str, str | None], found: _ConfigMap) -> None:
        version = found.version
        if version > self._version:  # else the watch has brought it already, and what others have written since
            self._found, self._version = found, version
        self.horizon = max(self.horizon, int(changes[HORIZON] or 0))
        for name, claims in left.items():
            is_mine = _owner(name) == self._identity
            batches = self._mine if is_mine else self._theirs
            if claims:
                known, text = batches.get(name), changes[name] or ""
                batch = batches[name] = _Batch(claims, text, version)
                if known is not None:
                    batch.written, batch.since, batch.bound = known.written, known.since, known.bound
            elif (gone := batches.pop(name, None)) is not None and not is_mine:
                self._vanish(gone.claims)

    def _horizon_with(self, left: dict[str, frozenset[Claim]]) -> int:
        """What everybody must have seen when only this is left of these batches."""
        versions = [self.horizon]
        for name, claims in left.items():
            batch = self._mine.get(name) or self._theirs.get(name)
            if batch is not None:
                versions += [version for claim, version in batch.bound.items() if claim not in claims]
        return max(versions)

    def _is_owner_with(self, left: dict[str, frozenset[Claim]]) -> bool:
        """Whether some claims of ours are written when only this is left of these batches."""
        return any(left.get(name, batch.claims) for name, batch in self._mine.items())

    def _settled(self) -> dict[str, frozenset[Claim]]:
        """What is left of our batches that others need not read any more as they are; most often nothing."""
        now = _now()
        size = sum(len(batch.text) for batch in (*self._mine.values(), *self._theirs.values()))
        kept = self._kept if size < LARGE else 0.0
        found: dict[str, frozenset[Claim]] = {}
        for name, batch in self._mine.items():
            waiting = set[Claim]()
            for claim in batch.claims - batch.bound.keys() - self._withdrawn:
                version = self._bound_at(claim)
                if version:
                    batch.bound[claim] = version
                elif version is not None:  # else the pod is gone
                    waiting.add(claim)
            if waiting:
                batch.since = now
            is_straggling = now - batch.written > STRAGGLING_SECONDS or not kept
            bound = batch.claims & batch.bound.keys()
            left = frozenset(waiting if is_straggling or now - batch.since > kept else waiting | bound)
            if left != batch.claims or not left:
                found[name] = left
        return found

    # Schedulers that are gone.

    def _is_gone(self, key: str) -> bool:
        return _now() - self._heard[_owner(key)] > FORGOTTEN_SECONDS

    def _abandoned(self) -> dict[str, frozenset[Claim]]:
        """Batches of schedulers that are gone, of which it is known what became of them: nothing is left of those."""
        gone = [name for name, batch in self._theirs.items() if self._is_gone(name)]
        done = {name for name in gone if self._theirs[name].claims <= self._theirs[name].bound.keys()}
        owners = {_owner(name) for name in done} - {_owner(name) for name in gone if name not in done}
        found: dict[str, frozenset[Claim]] = dict.fromkeys(done, frozenset())
        return found | {f"{owner}.{ALIVE}": frozenset[Claim]() for owner in owners if owner in self._alive}

    async def look_after_the_gone(self) -> None:
        """Find out what became of the binds of schedulers that are gone: from now on nothing does."""
        for key, batch in list(self._theirs.items()):
            if key in self._theirs and self._is_gone(key):
                for claim in sorted(batch.claims - batch.bound.keys(), key=lambda claim: claim.pod):
                    version = self._bound_at(claim) or await self._look_up(claim)
                    if self._theirs.get(key) is not batch or not self._is_gone(key):
                        break  # others were faster, or it is there after all
                    batch.bound[claim] = version

    async def _look_up(self, claim: Claim) -> int:
        """At which version a pod is bound, as the API server has it now; 0 if it is not."""
        namespace, _, name = claim.pod.partition("/")
        try:
            found = _decode_pod(await self._client.get(f"/api/v1/namespaces/{namespace}/pods/{name}"))
        except ApiError as error:
            if error.code != 404:
                raise
            return 0
        is_bound = found.metadata.uid == claim.uid and found.spec.node_name
        return int(found.metadata.resource_version) if is_bound else 0

    @property
    def has_something_to_write(self) -> bool:
        """Whether some of what is written is ours, or nobody's any more."""
        return bool(self._mine) or bool(self._abandoned())

    async def leave(self, seconds: float = 5.0) -> None:
        """We bind nothing any more: take out what we have claimed, as it is seen to have come true."""
        deadline = _now() + seconds
        while self._mine and _now() < deadline:
            with contextlib.suppress(ApiError):
                await self.write([])
            await asyncio.sleep(0.2)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _owner(key: str) -> str:
    return key.rpartition(".")[0]


def _is_alive(key: str) -> bool:
    return key.endswith(f".{ALIVE}")


def _text(claims: Iterable[Claim]) -> str:
    return "\n".join(sorted(f"{claim.pod} {claim.uid} {claim.node} {claim.seen}" for claim in claims))


def _claims(text: str) -> Iterator[Claim]:
    for line in text.splitlines():
        match line.split():
            case [pod, uid, node, seen] if seen.isdecimal():
                yield Claim(pod, uid, node, int(seen))
            case _:  # not of any scheduler's
                _log.warning("in the ConfigMap %s, expected a claim, found %r", NAME, line)
