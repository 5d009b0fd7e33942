"""metrics.k8s.io, as metrics-server or an adapter serves it through the API server."""

import asyncio

import msgspec

from mooring.config.load_sources import MetricsServer
from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.load.source import PolledSource, SourceFailed
from mooring.model.api.metrics import METRICS_GROUP, NodeMetrics, PodMetrics
from mooring.model.load.metrics_api import from_metrics_api
from mooring.model.load.reports import LoadReport
from mooring.model.values.quantity import QuantityError

ROOT = f"/apis/{METRICS_GROUP}/v1beta1"


class _Nodes(msgspec.Struct):
    items: list[NodeMetrics] | None = None


class _Pods(msgspec.Struct):
    items: list[PodMetrics] | None = None


class MetricsServerSource(PolledSource):
    """Lists NodeMetrics and PodMetrics."""

    def __init__(self, client: Client, settings: MetricsServer) -> None:
        """The client is one of its own: an answer that fails here must not slow down binds."""
        address = f"{client.server}{ROOT}"
        super().__init__("metricsServer", address, settings.interval_seconds, settings.timeout_seconds)
        self._client = client

    async def read(self) -> list[LoadReport]:
        try:
            nodes, pods = await asyncio.gather(self._client.get(f"{ROOT}/nodes"), self._client.get(f"{ROOT}/pods"))
        except ApiError as error:
            text = f"{error.code} {error.reason or 'Error'}: {error.message}" if error.code else error.message
            raise SourceFailed(text) from error
        # A list of all pods of a large cluster takes a while to read: meanwhile pods are bound.
        return await asyncio.to_thread(_read, nodes, pods)


def _read(nodes: bytes, pods: bytes) -> list[LoadReport]:
    try:
        measured = msgspec.json.decode(nodes, type=_Nodes).items or ()
        of_pods = msgspec.json.decode(pods, type=_Pods).items or ()
        return list(from_metrics_api(measured, of_pods))
    except (msgspec.MsgspecError, QuantityError) as error:
        raise SourceFailed(f"expected NodeMetrics and PodMetrics, found {error}") from error
