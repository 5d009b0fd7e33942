"""GET of metrics.k8s.io: what simulated nodes and their pods use at the moment."""

from mooring.kubeapi.api import Api
from mooring.kubeapi.http.bodies import Shape, answer
from mooring.kubeapi.http.exchange import Exchange, encode
from mooring.kubeapi.http.offloading import offload
from mooring.kubeapi.http.paths import Target
from mooring.kubeapi.http.reading import list_options
from mooring.kubeapi.nodes.measured import GROUP, Measured
from mooring.kubeapi.status import Object, not_found
from mooring.kubeapi.store.records import Record


class UsageReader:
    """Answers for the resources of metrics.k8s.io, whose objects are made when they are asked for."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._measured = Measured()

    def answers(self, target: Target) -> bool:
        return target.group == GROUP and target.resource is not None and not target.resource.definition

    async def answer(self, exchange: Exchange, target: Target, shape: Shape) -> None:
        """Answer a get or a list; the objects are those of nodes and pods with the same names."""
        if target.name:
            await self._get(exchange, target, shape)
        else:
            await self._list(exchange, target, shape)

    async def _get(self, exchange: Exchange, target: Target, shape: Shape) -> None:
        record = self._api.store.get(target.plural, target.namespace or "", target.name)
        found = await self._objects(target, [record] if record is not None else [])
        if not found:
            raise not_found(GROUP, target.plural, target.name)
        await answer(exchange, 200, encode(shape.object(found[0])), shape.form)

    async def _list(self, exchange: Exchange, target: Target, shape: Shape) -> None:
        options = list_options(exchange, self._api, shape.resource, target)
        records = list(self._api.store.table(target.plural).records(target.namespace, None))
        if options.selects is not None:
            records = [record for record in records if options.selects(record)]
        objects = await self._objects(target, records)
        await answer(exchange, 200, encode(_listed(shape, objects)), shape.form)

    async def _objects(self, target: Target, records: list[Record]) -> list[Object]:
        now, store = self._api.now(), self._api.store
        # Listed here: the store changes while a thread works.
        if target.plural == "nodes":
            pods = list(store.records("pods"))
            size = sum(len(record.data) for record in pods)
            return await offload(size, self._measured.nodes, records, pods, now)
        size = sum(len(record.data) for record in records)
        return await offload(size, self._measured.pods, records, list(store.records("nodes")), now)


def _listed(shape: Shape, objects: list[Object]) -> Object:
    if shape.form.kind == "Table":
        return {**shape.table(objects), "metadata": {}}
    if shape.form.kind:
        items = [shape.object(found) for found in objects]
        return {"kind": "PartialObjectMetadataList", "apiVersion": shape.form.api_version, "items": items}
    kind, version = shape.resource.list_kind, shape.resource.api_version(shape.version)
    return {"kind": kind, "apiVersion": version, "metadata": {}, "items": objects}
