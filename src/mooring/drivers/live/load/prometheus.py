"""Instant queries of Prometheus: figures of nodes, and DCGM exporter's metrics of GPUs."""

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping

import msgspec

from mooring.config.load_sources import USAGE, LoadQuery, Prometheus
from mooring.drivers.live.api.connection import without_userinfo
from mooring.drivers.live.load.http import Http
from mooring.drivers.live.load.source import PolledSource, SourceFailed
from mooring.drivers.load.dcgm import CardSamples, node_label
from mooring.errors import InputError
from mooring.model.load.reports import Level, LoadReport, NodeReport
from mooring.model.values.requests import CPU

FindNode = Callable[[str], str]
"""The name of the node that a label means, which may have a port."""


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: list[_Series] = []


class _Kind(msgspec.Struct, rename="camel"):
    result_type: str = ""


class _Head(msgspec.Struct):
    data: _Kind = msgspec.field(default_factory=_Kind)
    status: str = ""
    error: str = ""


class _Answer(msgspec.Struct):
    data: _Data


class PrometheusSource(PolledSource):
    """Asks all queries at once; what they say of a node is one report."""

    def __init__(self, settings: Prometheus, find_node: FindNode) -> None:
        address = without_userinfo(settings.address)
        super().__init__("prometheus", address, settings.interval_seconds, settings.timeout_seconds)
        self._settings, self._find_node = settings, find_node
        self._http = Http(settings.token_file, settings.ca_file)

    async def read(self) -> list[LoadReport]:
        queries = self._settings.queries
        asked = [f"queries[{index}]" for index in range(len(queries))]
        texts = [query.query for query in queries]
        if self._settings.gpu_query:
            asked.append("gpuQuery")
            texts.append(self._settings.gpu_query)
        answers = await asyncio.gather(*map(self._ask, asked, texts))
        found: list[LoadReport] = [*self._of_nodes(zip(queries, answers, strict=False))]
        if self._settings.gpu_query:
            found += self._of_gpus(answers[-1])
        return found

    async def close(self) -> None:
        await self._http.close()

    async def _ask(self, name: str, query: str) -> list[_Series]:
        url = f"{self._settings.address.rstrip('/')}/api/v1/query"
        try:
            body = await self._http.get(url, {"query": query})
        except SourceFailed as error:
            raise SourceFailed(f"{name}: {error}") from error
        return await asyncio.to_thread(_decode, name, body)

    def _node_of(self, series: _Series) -> str:
        label = self._settings.node_label
        name = series.metric.get(label, "")
        if not name:
            raise SourceFailed(f"expected series with the label {label}, found {series.metric}")
        return self._find_node(name)

    def _of_nodes(self, answers: Iterable[tuple[LoadQuery, list[_Series]]]) -> list[NodeReport]:
        levels: dict[str, list[Level]] = {}
        usage: dict[str, dict[str, int]] = {}
        times: dict[str, float] = {}
        for query, result in answers:
            for series in result:
                value = _number(series.value[1])
                if value is None:  # a division of nothing by nothing says nothing of the node
                    continue
                node = self._node_of(series)
                # A report is as old as the oldest figure in it.
                times[node] = min(times.get(node, math.inf), series.value[0])
                levels.setdefault(node, [])
                if query.statistic == USAGE:
                    amount = round(value * 1000) if query.resource == CPU else round(value)
                    usage.setdefault(node, {})[query.resource] = amount
                else:
                    levels[node].append(Level(query.resource, query.statistic, value))
        return [
            NodeReport(node, at, self.interval_seconds, levels=tuple(levels[node]), usage=usage.get(node))
            for node, at in times.items()
        ]

    def _of_gpus(self, result: Iterable[_Series]) -> list[LoadReport]:
        samples = CardSamples()
        try:
            for series in result:
                value = _number(series.value[1])
                if value is None:
                    continue
                labels: Mapping[str, str] = series.metric
                node = labels.get(self._settings.node_label) or node_label(labels) or ""
                named = {**labels, "node": self._find_node(node)} if node else labels
                samples.add(named.get("__name__", ""), named, value, series.value[0], prefers="node")
        except InputError as error:
            raise SourceFailed(f"gpuQuery: {error}") from error
        return list(samples.reports(None))


def _decode(name: str, body: bytes) -> list[_Series]:
    try:
        head = msgspec.json.decode(body, type=_Head)
        if head.status != "success":
            raise SourceFailed(f"{name}: expected an answer, found {head.error or 'something else'}")
        if head.data.result_type != "vector":
            found = head.data.result_type or "none"
            raise SourceFailed(f"{name}: expected a query that returns a vector, found a result of the type {found}")
        return msgspec.json.decode(body, type=_Answer).data.result
    except msgspec.MsgspecError as error:
        raise SourceFailed(f"{name}: expected an answer of Prometheus, found {error}") from error


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError as error:
        raise SourceFailed(f"expected a number, found {text!r}") from error
    return value if math.isfinite(value) else None
