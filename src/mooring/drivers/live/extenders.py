"""Extenders, asked over HTTP: which nodes they let a pod have, what they think of them, whom to evict, and to bind it.

A pod that some extender has a say in is kept back until they have answered; one such pod at a time, since what they
answer depends on those before. While it waits, they are asked again from time to time.
"""

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import aiohttp
import msgspec
from msgspec.structs import replace

from mooring.config.extenders import Extender, ExtenderTls
from mooring.drivers.live.binder import BOUND, Answer, Outcome
from mooring.drivers.live.requests import encode
from mooring.model.api.pods import Pod
from mooring.model.events import Event, PodLost, PodSeen
from mooring.model.values.requests import pod_requests
from mooring.plugins.extenders import ANSWER, ExtenderAnswer

AGAIN_SECONDS = 5.0
"""How soon they are asked again about a pod that waits."""
REFUSED_SECONDS = 30.0
"""How long a node is left out on which an extender did not let anybody be evicted."""
MOST_SCORE = 10
"""What an extender gives its best node."""
_log = logging.getLogger(__name__)


class ExtenderFailed(Exception):
    """An extender that may not be ignored did not answer as it should."""


class ExtenderClient:
    """Asks the extenders of a configuration."""

    def __init__(self, extenders: Sequence[Extender], nodes: Callable[[], Iterable[Any]]) -> None:
        """`nodes` gives the nodes as they were last seen."""
        self._extenders, self._nodes = extenders, nodes
        self._session: aiohttp.ClientSession | None = None
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._again: dict[str, asyncio.Event] = {}
        self._refused: dict[tuple[str, str], float] = {}
        """Pods and nodes on which nobody may be evicted for them, and until when that counts."""
        self._tls: dict[str, ssl.SSLContext | bool] = {}
        self._turn = asyncio.Lock()
        self.tell: Callable[[Event], None] = lambda event: None
        """Told of a pod when they have answered."""

    def concerned(self, pod: Pod) -> list[Extender]:
        """Those that have a say in a pod: for what it asks for, or in everything."""
        wanted = {name for name, amount in pod_requests(pod).items() if amount}
        return [
            found
            for found in self._extenders
            if not found.managed_resources or any(each.name in wanted for each in found.managed_resources)
        ]

    def take(self, event: Event) -> Event | None:
        """Keep back a pod that they are to be asked about first; everything else goes on."""
        if isinstance(event, PodLost):
            self._forget(event.key)
        if not isinstance(event, PodSeen):
            return event
        pod = event.pod
        if pod.spec.node_name or pod.is_terminal or not self.concerned(pod):
            self._forget(pod.key)
            return event
        if pod.key not in self._asking:
            self._asking[pod.key] = asyncio.ensure_future(self._follow(pod))
        return None

    def _forget(self, key: str) -> None:
        task = self._asking.pop(key, None)
        self._again.pop(key, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        for task in self._asking.values():
            task.cancel()
        if self._session is not None:
            await self._session.close()

    async def _follow(self, pod: Pod) -> None:
        """Ask about one pod, until it is bound or gone."""
        said = ""
        again = self._again[pod.key] = asyncio.Event()
        while True:
            again.clear()
            try:
                async with self._turn:
                    answer = await self._ask(pod)
            except ExtenderFailed as error:
                _log.warning("pod %s: %s", pod.key, error)
                answer = ExtenderAnswer([])
            text = encode(answer).decode()
            if text != said:
                said = text
                annotations = {**(pod.metadata.annotations or {}), ANSWER: text}
                self.tell(PodSeen(replace(pod, metadata=replace(pod.metadata, annotations=annotations))))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS):
                    await again.wait()

    async def _ask(self, pod: Pod) -> ExtenderAnswer:
        nodes = {node.metadata.name: node for node in self._nodes()}
        now = time.monotonic()
        self._refused = {found: until for found, until in self._refused.items() if until > now}
        left = [name for name in nodes if (pod.key, name) not in self._refused]
        totals: dict[str, int] = {}
        weights = 0
        for extender in self.concerned(pod):
            if extender.filter_verb and left:
                found = await self._send(extender, extender.filter_verb, _args(extender, pod, left, nodes))
                left = _kept(found, left)
            if extender.prioritize_verb and left:
                found = await self._send(extender, extender.prioritize_verb, _args(extender, pod, left, nodes))
                weights += extender.weight
                for each in found or ():
                    score = each.get("Score", each.get("score", 0)) * extender.weight
                    name = each.get("Host", each.get("host", ""))
                    totals[name] = totals.get(name, 0) + score
        scale = 100 // MOST_SCORE
        scores = {name: min(100, total * scale // weights) for name, total in totals.items()} if weights else {}
        return ExtenderAnswer(left, scores)

    # Evicting.

    def preempts(self, pod: Pod) -> list[Extender]:
        """Those that have a say in who is evicted for a pod."""
        return [found for found in self.concerned(pod) if found.preempt_verb]

    async def may_evict(self, pod: Pod, victims: Mapping[str, list[Pod]]) -> bool:
        """Whether these pods, by node, may be evicted for that one; nodes that are refused are left out for a while."""
        refused: set[str] = set()
        for extender in self.preempts(pod):
            try:
                found = await self._send(extender, extender.preempt_verb, _preemption(extender, pod, victims))
            except ExtenderFailed as error:
                _log.warning("pod %s: %s", pod.key, error)
                return False
            if found is not None:
                refused |= victims.keys() - (_field(found, "NodeNameToMetaVictims") or {}).keys()
        until = time.monotonic() + REFUSED_SECONDS
        self._refused |= {(pod.key, node): until for node in refused}
        if refused and pod.key in self._again:
            self._again[pod.key].set()
        return not refused

    # Binding.

    async def bind(self, pod: Pod, node: str) -> Answer | None:
        """Have a pod bound by the extender that does it in our place; None if there is none, or only such as may be
        ignored and failed."""
        metadata = pod.metadata
        body = {"PodName": metadata.name, "PodNamespace": metadata.namespace, "PodUID": metadata.uid, "Node": node}
        for extender in self.concerned(pod):
            if not extender.bind_verb:
                continue
            problem = "it did not answer"
            try:
                found = await self._send(extender, extender.bind_verb, body)
                problem = problem if found is None and extender.ignorable else _field(found or {}, "Error")
            except ExtenderFailed as error:
                problem = str(error)
            if not problem:
                return BOUND
            if not extender.ignorable:
                return Answer(Outcome.REFUSED, str(problem))
            _log.warning("pod %s: extender %s did not bind it: %s", pod.key, extender.url_prefix, problem)
        return None

    def _verified(self, extender: Extender) -> ssl.SSLContext | bool:
        found = self._tls.get(extender.url_prefix)
        if found is None:
            found = self._tls[extender.url_prefix] = _tls_of(extender)
        return found

    async def _send(self, extender: Extender, verb: str, body: Any) -> Any:
        """Ask one; None from one that may be ignored and did not answer."""
        if self._session is None:
            self._session = aiohttp.ClientSession()
        url = f"{extender.url_prefix.rstrip('/')}/{verb}"
        try:
            async with self._session.post(
                url,
                data=encode(body),
                headers={"Content-Type": "application/json"},
                ssl=self._verified(extender),
                timeout=aiohttp.ClientTimeout(total=extender.seconds),
                server_hostname=extender.tls_config.server_name or None if extender.tls_config else None,
            ) as answer:
                content = await answer.read()
                if answer.status != 200:
                    raise ExtenderFailed(f"extender {url} answered {answer.status}")
                found = msgspec.json.decode(content) if content else None
            problem = _field(found, "Error") if isinstance(found, dict) and verb == extender.filter_verb else ""
            if problem:
                raise ExtenderFailed(f"extender {url}: {problem}")
            return found
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.MsgspecError) as error:
            if extender.ignorable:
                return None
            raise ExtenderFailed(f"extender {url}: {type(error).__name__}") from error
        except ExtenderFailed:
            if extender.ignorable:
                return None
            raise


def _tls_of(extender: Extender) -> ssl.SSLContext | bool:
    """How an extender is verified, and we by it; without a CA of its own it is not, as kube-scheduler has it."""
    given = extender.tls_config or ExtenderTls()
    if not extender.url_prefix.startswith("https") or not (extender.enable_https or extender.tls_config):
        return True
    context = ssl.create_default_context(cafile=given.ca_file or None)
    if given.cert_file:
        context.load_cert_chain(given.cert_file, given.key_file or None)
    if given.insecure or (extender.enable_https and not given.ca_file):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _preemption(extender: Extender, pod: Pod, victims: Mapping[str, list[Pod]]) -> dict[str, Any]:
    if extender.node_cache_capable:
        named = {node: {"Pods": [{"UID": each.metadata.uid} for each in pods]} for node, pods in victims.items()}
        return {"Pod": pod, "NodeNameToMetaVictims": named}
    return {"Pod": pod, "NodeNameToVictims": {node: {"Pods": pods} for node, pods in victims.items()}}


def _args(extender: Extender, pod: Pod, names: list[str], nodes: dict[str, Any]) -> dict[str, Any]:
    if extender.node_cache_capable:
        return {"Pod": pod, "NodeNames": names}
    return {"Pod": pod, "Nodes": {"items": [nodes[name] for name in names]}}


def _kept(found: Any, names: list[str]) -> list[str]:
    """The nodes that an extender did not refuse, in our order."""
    if found is None:  # it may be ignored
        return names
    listed = _field(found, "NodeNames")
    if listed is None:
        nodes = _field(found, "Nodes") or {}
        listed = [each["metadata"]["name"] for each in _field(nodes, "items") or ()]
    allowed = set(listed)
    return [name for name in names if name in allowed]


def _field(found: Any, name: str) -> Any:
    """A field by Go's name, however its first letter is written."""
    if name in found:
        return found[name]
    return found.get(name[0].lower() + name[1:])
