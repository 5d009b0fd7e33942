"""GET: one object, or a list, in chunks if the client wants."""

import base64
import json
from typing import NamedTuple

from mooring.kubeapi.api import Api
from mooring.kubeapi.http.bodies import Shape, answer
from mooring.kubeapi.http.exchange import Exchange
from mooring.kubeapi.http.offloading import offload
from mooring.kubeapi.http.paths import Target
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.selectors import make_selector
from mooring.kubeapi.status import ApiError, FieldError, Object, bad_request, expired, invalid, too_large_revision
from mooring.kubeapi.store.records import Record
from mooring.kubeapi.store.table import Key
from mooring.kubeapi.store.watch import Selects

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class ListOptions(NamedTuple):
    """What a list or a watch was asked for."""

    selects: Selects | None
    limit: int
    continued: str
    resource_version: str
    match: str

    @property
    def revision(self) -> int:
        """The resourceVersion as a number; 0 for none and for "0"."""
        text = self.resource_version or "0"
        if not (text.isascii() and text.isdigit()) or len(text) > 20:
            error = FieldError(
                "FieldValueInvalid", "resourceVersion", f'strconv.ParseUint: parsing "{text}": invalid syntax', text
            )
            raise invalid("meta.k8s.io", "ListOptions", "", [error])
        return int(text)


def list_options(exchange: Exchange, api: Api, resource: Resource, target: Target) -> ListOptions:
    labels, fields = exchange.query("labelSelector"), exchange.query("fieldSelector")
    selects = make_selector(resource, api.strategy_of(resource), labels, fields, name=target.name)
    limit = exchange.query_number("limit") or 0
    version, match = exchange.query("resourceVersion"), exchange.query("resourceVersionMatch")
    options = ListOptions(selects, max(0, limit), exchange.query("continue"), version, match)
    _check(options, exchange)
    return options


def _check(options: ListOptions, exchange: Exchange) -> None:
    """Refuse combinations that make no sense."""
    errors = []
    is_watch = exchange.query_flag("watch")
    if options.match:
        if options.match not in ("Exact", "NotOlderThan"):
            detail = 'supported values: "Exact", "NotOlderThan", ""'
            errors.append(FieldError("FieldValueNotSupported", "resourceVersionMatch", detail, options.match))
        elif not options.resource_version and not exchange.has_query("sendInitialEvents"):
            detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            errors.append(FieldError("FieldValueForbidden", "resourceVersionMatch", detail))
        elif options.continued:
            detail = "resourceVersionMatch is forbidden when continue is provided"
            errors.append(FieldError("FieldValueForbidden", "resourceVersionMatch", detail))
        elif options.match == "Exact" and options.resource_version == "0":
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(FieldError("FieldValueForbidden", "resourceVersionMatch", detail))
    if exchange.has_query("sendInitialEvents") and not is_watch:
        detail = "sendInitialEvents is forbidden for list"
        errors.append(FieldError("FieldValueForbidden", "sendInitialEvents", detail))
    if errors:
        raise invalid("meta.k8s.io", "ListOptions", "", errors)


async def get(exchange: Exchange, api: Api, target: Target, shape: Shape) -> None:
    record = api.record(shape.resource, target.namespace, target.name)
    data = shape.record(record)
    await api.store.committed(record.revision)
    await answer(exchange, 200, data, shape.form)


async def list_objects(exchange: Exchange, api: Api, target: Target, shape: Shape) -> None:
    options = list_options(exchange, api, shape.resource, target)
    if options.revision > api.store.revision:
        raise too_large_revision(options.revision, api.store.revision)
    revision, records, metadata = _chunk(api, shape.resource, target.namespace, options)
    size = sum(len(record.data) for record in records) if shape.needs_work else 0
    data = await offload(size, shape.list, records, metadata)
    await api.store.committed(revision)
    await answer(exchange, 200, data, shape.form)


def _chunk(
    api: Api, resource: Resource, namespace: str | None, options: ListOptions
) -> tuple[int, list[Record], Object]:
    """The records of one answer, and the metadata of the list."""
    store, revision, after = api.store, api.store.revision, None
    namespace = namespace if resource.namespaced else None
    if options.continued:
        revision, after = _read_token(options.continued)
        if revision < 0:
            revision = store.revision
        elif revision < store.compacted:
            raise _expired(after)
    elif options.match == "Exact" or (options.limit and options.revision and options.match != "NotOlderThan"):
        revision = options.revision
    if revision == store.revision:
        found = list(store.table(resource.storage).records(namespace, after))
    else:
        found = store.records_at(resource.storage, revision, namespace, after)
    if options.selects is not None:
        found = [record for record in found if options.selects(record)]
    metadata: Object = {"resourceVersion": str(revision)}
    if options.limit and len(found) > options.limit:
        last = found[options.limit - 1]
        metadata["continue"] = make_token(revision, last.key)
        if options.selects is None:
            metadata["remainingItemCount"] = len(found) - options.limit
        found = found[: options.limit]
    return revision, found, metadata


def make_token(revision: int, after: Key) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": list(after)}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, Key]:
    try:
        found = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = found["start"]
        return int(found["rv"]), (str(namespace), str(name))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise bad_request("continue key is not valid: it does not come from a list of this server") from error


def _expired(after: Key) -> ApiError:
    """410, with a token to go on from here all the same."""

    class Expired(ApiError):
        @property
        def status(self) -> Object:
            return {**super().status, "metadata": {"continue": make_token(-1, after)}}

    error = expired(_TOO_OLD)
    return Expired(error.code, error.reason, error.message)
