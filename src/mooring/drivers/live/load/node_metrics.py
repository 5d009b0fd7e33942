"""Koordinator's NodeMetric objects, watched as koordlet writes them."""

from collections.abc import Callable

import msgspec

from mooring.drivers.live.api.client import Client
from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.watching.informer import Informer, Name, decode_head
from mooring.model.api.koordinator import SLO_GROUP, NodeMetric
from mooring.model.api.meta import ObjectMeta
from mooring.model.load.koordinator import from_node_metric
from mooring.model.load.reports import NodeReport
from mooring.model.objects.kinds import Kind
from mooring.model.values.quantity import QuantityError

RESOURCE = Resource(Kind(SLO_GROUP, "NodeMetric", NodeMetric), "v1alpha1", "nodemetrics", namespaced=False)
_decode = msgspec.json.Decoder(NodeMetric).decode


class NodeMetricSource:
    """Follows NodeMetric; what is new since the last look is kept until it is asked for."""

    name = "nodeMetric"

    def __init__(self, client: Client, on_change: Callable[[], None]) -> None:
        self.address = f"{client.server}{RESOURCE.path()}"
        self.informer = Informer(client, RESOURCE, self, on_change)
        self._seen: dict[str, NodeReport] = {}
        self._lost: set[str] = set()
        self._unread: dict[str, str] = {}
        """Objects that could not be read, and why."""

    @property
    def problem(self) -> str:
        """Why NodeMetrics are not followed, or which of them cannot be read."""
        unread = next((f"{name}: {why}" for name, why in self._unread.items()), "")
        return self.informer.problem or unread

    def put(self, resource: Resource, raw: msgspec.Raw) -> ObjectMeta:
        """Take in an object; one that cannot be read leaves the report before it as it is."""
        try:
            found = _decode(raw)
            self._seen[found.metadata.name] = from_node_metric(found)
        except (msgspec.MsgspecError, QuantityError) as error:
            metadata = decode_head(raw).metadata
            self._unread[metadata.name] = " ".join(str(error).split())
            return metadata
        self._lost.discard(found.metadata.name)
        self._unread.pop(found.metadata.name, None)
        return found.metadata

    def remove(self, resource: Resource, name: Name) -> None:
        self._seen.pop(name[1], None)
        self._unread.pop(name[1], None)
        self._lost.add(name[1])

    def take(self) -> tuple[list[NodeReport], set[str]]:
        """What came since this was last asked, and the nodes whose objects are gone."""
        seen, self._seen = list(self._seen.values()), {}
        lost, self._lost = self._lost, set()
        return seen, lost
