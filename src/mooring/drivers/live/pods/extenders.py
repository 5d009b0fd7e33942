"""Extenders, asked over HTTP: which nodes they let a pod have, what they think of them, whom to evict, and to bind it.

A pod that some extender has a say in is kept back until they have answered; one such pod at a time, since what they
answer depends on those before. While it waits, they are asked again from time to time.
"""

import asyncio
import contextlib
import logging
import ssl
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from mooring.config.extenders import Extender, ExtenderTls, pem
from mooring.drivers.live.api.connection import without_userinfo
from mooring.drivers.live.api.requests import encode
from mooring.drivers.live.pods.binder import BOUND, Answer, Outcome
from mooring.model.api.pods import Pod
from mooring.model.events import Event, PodLost, PodSeen
from mooring.model.values.requests import pod_requests
from mooring.plugins.extenders import ANSWER, ExtenderAnswer

if TYPE_CHECKING:
    import aiohttp

AGAIN_SECONDS = 5.0
"""How soon they are asked again about a pod that waits."""
REFUSED_SECONDS = 30.0
"""How long a node is left out on which an extender did not let anybody be evicted."""
MOST_SCORE = 10
"""What an extender gives its best node."""
_log = logging.getLogger(__name__)
Found = TypeVar("Found")


class ExtenderFailed(Exception):
    """An extender that may not be ignored did not answer as it should."""


class _Asked:
    """A pod that they are asked about, as it was last seen, and what they said of it."""

    def __init__(self, pod: Pod) -> None:
        self.pod, self.answer = pod, ""
        self.again = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def seen(self) -> PodSeen:
        """The pod as the scheduler is told of it: with their answer."""
        metadata = self.pod.metadata
        annotations = {**(metadata.annotations or {}), ANSWER: self.answer}
        return PodSeen(replace(self.pod, metadata=replace(metadata, annotations=annotations)))


class ExtenderClient:
    """Asks the extenders of a configuration."""

    def __init__(
        self, extenders: Sequence[Extender], nodes: Callable[[], Iterable[Any]], is_ours: Callable[[Pod], bool]
    ) -> None:
        """`nodes` gives the nodes as they were last seen; `is_ours` says whether a pod waits for this scheduler."""
        self._extenders, self._nodes, self._is_ours = extenders, nodes, is_ours
        self._session: aiohttp.ClientSession | None = None
        self._asked: dict[str, _Asked] = {}
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
        if pod.spec.node_name or pod.is_terminal or not self._is_ours(pod) or not self.concerned(pod):
            self._forget(pod.key)
            return event
        asked = self._asked.get(pod.key)
        if asked is not None and asked.pod.metadata.uid == pod.metadata.uid:
            if not _is_same_question(asked.pod, pod):
                asked.again.set()
            asked.pod = pod
            return asked.seen() if asked.answer else None
        self._forget(pod.key)
        asked = self._asked[pod.key] = _Asked(pod)
        asked.task = asyncio.ensure_future(self._follow(asked))
        return None

    def _forget(self, key: str) -> None:
        asked = self._asked.pop(key, None)
        if asked is not None and asked.task is not None:
            asked.task.cancel()

    async def close(self) -> None:
        for key in list(self._asked):
            self._forget(key)
        if self._session is not None:
            await self._session.close()

    async def _follow(self, asked: _Asked) -> None:
        """Ask about one pod, until it is bound or gone."""
        while True:
            asked.again.clear()
            try:
                async with self._turn:
                    answer = await self._ask(asked.pod)
            except ExtenderFailed as error:
                _log.warning("pod %s: %s", asked.pod.key, error)
                answer = ExtenderAnswer([])
            text = encode(answer).decode()
            if text != asked.answer:
                asked.answer = text
                self.tell(asked.seen())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS):
                    await asked.again.wait()

    async def _ask(self, pod: Pod) -> ExtenderAnswer:
        nodes = {node.metadata.name: node for node in self._nodes()}
        now = time.monotonic()
        self._refused = {found: until for found, until in self._refused.items() if until > now}
        left = [name for name in nodes if (pod.key, name) not in self._refused]
        totals: dict[str, int] = {}
        weights = 0
        for extender in self.concerned(pod):
            if extender.filter_verb and left:
                body = _args(extender, pod, left, nodes)
                kept = await self._send(extender, extender.filter_verb, body, partial(_kept, names=left))
                left = left if kept is None else kept
            if extender.prioritize_verb and left:
                body = _args(extender, pod, left, nodes)
                scores = await self._send(extender, extender.prioritize_verb, body, _priorities) or {}
                weights += extender.weight
                for name, score in scores.items():
                    totals[name] = totals.get(name, 0) + score * extender.weight
        scale = 100 // MOST_SCORE
        return ExtenderAnswer(left, {name: min(100, total * scale // weights) for name, total in totals.items()})

    # Evicting.

    def preempts(self, pod: Pod) -> list[Extender]:
        """Those that have a say in who is evicted for a pod."""
        return [found for found in self.concerned(pod) if found.preempt_verb]

    async def may_evict(self, pod: Pod, victims: Mapping[str, list[Pod]]) -> bool:
        """Whether these pods, by node, may be evicted for that one; nodes that are refused are left out for a while.

        A node is refused by one that does not name it, and by one that would spare one of its victims.
        """
        refused: set[str] = set()
        for extender in self.preempts(pod):
            try:
                agreed = await self._send(
                    extender,
                    extender.preempt_verb,
                    _preemption(extender, pod, victims),
                    partial(_agreed, victims=victims),
                )
            except ExtenderFailed as error:
                _log.warning("pod %s: %s", pod.key, error)
                return False
            if agreed is not None:
                refused |= victims.keys() - agreed
        until = time.monotonic() + REFUSED_SECONDS
        self._refused |= {(pod.key, node): until for node in refused}
        if refused and pod.key in self._asked:
            self._asked[pod.key].again.set()
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
                said = await self._send(extender, extender.bind_verb, body, lambda found: _field(found, "Error") or "")
                problem = problem if said is None and extender.ignorable else said or ""
            except ExtenderFailed as error:
                problem = str(error)
            if not problem:
                return BOUND
            if not extender.ignorable:
                return Answer(Outcome.REFUSED, str(problem))
            _log.warning(
                "pod %s: extender %s did not bind it: %s", pod.key, without_userinfo(extender.url_prefix), problem
            )
        return None

    def _verified(self, extender: Extender) -> ssl.SSLContext | bool:
        found = self._tls.get(extender.url_prefix)
        if found is None:
            found = self._tls[extender.url_prefix] = _tls_of(extender)
        return found

    async def _send(self, extender: Extender, verb: str, body: Any, read: Callable[[Any], Found]) -> Found | None:
        """Ask one, and read its answer; None for none, and from one that may be ignored and did not answer well."""
        import aiohttp  # few have extenders, and it takes long to import

        if self._session is None:
            self._session = aiohttp.ClientSession()
        url = f"{extender.url_prefix.rstrip('/')}/{verb}"
        shown = without_userinfo(url)
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
                    raise ExtenderFailed(f"extender {shown} answered {answer.status}")
                found = msgspec.json.decode(content) if content else None
            problem = _field(found, "Error") if isinstance(found, dict) and verb == extender.filter_verb else ""
            if problem:
                raise ExtenderFailed(f"extender {shown}: {problem}")
            return None if found is None else read(found)
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.MsgspecError) as error:
            if extender.ignorable:
                return None
            raise ExtenderFailed(f"extender {shown}: {type(error).__name__}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if extender.ignorable:
                return None
            raise ExtenderFailed(f"extender {shown}: its answer is not of the form that is expected") from error
        except ExtenderFailed:
            if extender.ignorable:
                return None
            raise


def _tls_of(extender: Extender) -> ssl.SSLContext | bool:
    """How an extender is verified, and we by it.

    Without a CA of its own it is verified by the system's. kube-scheduler does not verify it then at all: whoever is in
    between decides where pods go. Who wants that says `insecure`.
    """
    given = extender.tls_config or ExtenderTls()
    if not extender.url_prefix.startswith("https") or not (extender.enable_https or extender.tls_config):
        return True
    authority = pem(given.ca_data)
    context = ssl.create_default_context(cafile=None if authority else given.ca_file or None, cadata=authority or None)
    if given.cert_file or given.cert_data:
        with tempfile.TemporaryDirectory() as directory:  # certificates are loaded from files alone
            certificate = _file(directory, "tls.crt", given.cert_data) or given.cert_file
            context.load_cert_chain(certificate, _file(directory, "tls.key", given.key_data) or given.key_file or None)
    if given.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _file(directory: str, name: str, data: str) -> str:
    """A file for nobody but us with what base64 stands for; none without that."""
    if not data:
        return ""
    path = Path(directory) / name
    path.touch(mode=0o600)
    path.write_text(pem(data))
    return str(path)


def _preemption(extender: Extender, pod: Pod, victims: Mapping[str, list[Pod]]) -> dict[str, Any]:
    if extender.node_cache_capable:
        named = {node: {"Pods": [{"UID": each.metadata.uid} for each in pods]} for node, pods in victims.items()}
        return {"Pod": pod, "NodeNameToMetaVictims": named}
    return {"Pod": pod, "NodeNameToVictims": {node: {"Pods": pods} for node, pods in victims.items()}}


def _agreed(found: Any, victims: Mapping[str, list[Pod]]) -> set[str]:
    """The nodes on which an extender lets all of these go."""
    named = {
        node: {_field(each, "UID") or _field(each, "Uid") for each in _field(given or {}, "Pods") or ()}
        for node, given in (_field(found, "NodeNameToMetaVictims") or {}).items()
    }
    return {node for node, pods in victims.items() if {pod.metadata.uid for pod in pods} <= named.get(node, set())}


def _args(extender: Extender, pod: Pod, names: list[str], nodes: dict[str, Any]) -> dict[str, Any]:
    if extender.node_cache_capable:
        return {"Pod": pod, "NodeNames": names}
    return {"Pod": pod, "Nodes": {"items": [nodes[name] for name in names]}}


def _kept(found: Any, names: list[str]) -> list[str]:
    """The nodes that an extender did not refuse, in our order."""
    listed = _field(found, "NodeNames")
    if listed is None:
        nodes = _field(found, "Nodes") or {}
        listed = [each["metadata"]["name"] for each in _field(nodes, "items") or ()]
    allowed = set(listed)
    return [name for name in names if name in allowed]


def _priorities(found: Any) -> dict[str, int]:
    """What an extender thinks of nodes."""
    return {str(_field(each, "Host")): int(_field(each, "Score") or 0) for each in found}


def _is_same_question(one: Pod, other: Pod) -> bool:
    """Whether a pod has not changed in what is asked about it."""
    before, now = one.metadata, other.metadata
    return (one.spec, before.labels, before.annotations) == (other.spec, now.labels, now.annotations)


def _field(found: Any, name: str) -> Any:
    """A field by Go's name, however its first letter is written."""
    if name in found:
        return found[name]
    return found.get(name[0].lower() + name[1:])
