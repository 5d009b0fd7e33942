"""POST, PUT, PATCH and DELETE: from a body to the pipeline, and its answer back."""

import asyncio
import copy
import time
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from mooring.kubeapi.admission.service_account import wait_for_account
from mooring.kubeapi.api import Api, Options
from mooring.kubeapi.conversion import from_storage, to_storage
from mooring.kubeapi.http.bodies import Shape, answer
from mooring.kubeapi.http.decoding import FIELD_VALIDATION, decode_as, parse_body, repeated_yaml_keys
from mooring.kubeapi.http.exchange import Exchange, encode
from mooring.kubeapi.http.negotiation import body_type, check_dry_run, patch_type
from mooring.kubeapi.http.offloading import SMALL_BYTES, offload
from mooring.kubeapi.http.paths import Target
from mooring.kubeapi.metadata import metadata_of, timestamp
from mooring.kubeapi.nodes.registration import free_addresses, register, register_node
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.schemas.book import IGNORE, STRICT, WARN
from mooring.kubeapi.status import ApiError, FieldError, Object, bad_request, invalid, too_large
from mooring.kubeapi.store.store import LARGEST_OBJECT
from mooring.kubeapi.templates import TemplateError, expand, is_template

T = TypeVar("T")
LONGEST_MANAGER = 128
MOST_VALUES = 50_000
"""Of one object: fields, keys and items. Each is looked at many times, by whom it is owned for example."""


def write_options(exchange: Exchange) -> Options:
    """Who writes, in whose name, and whether for real."""
    manager = exchange.query("fieldManager") or exchange.header("user-agent").partition("/")[0]
    if len(manager) > LONGEST_MANAGER:
        if exchange.query("fieldManager"):
            error = FieldError("FieldValueTooLong", "fieldManager", f"may not be more than {LONGEST_MANAGER} bytes")
            raise invalid("meta.k8s.io", "CreateOptions", "", [error])
        manager = manager[:LONGEST_MANAGER]
    return {
        "user": exchange.user,
        "dry_run": check_dry_run(exchange.query_all("dryRun")),
        "manager": manager or "unknown",
        "warnings": exchange.warnings,
    }


def field_validation(exchange: Exchange) -> str:
    asked = exchange.query("fieldValidation") or WARN
    if asked not in FIELD_VALIDATION:
        detail = 'supported values: "Ignore", "Strict", "Warn"'
        error = FieldError("FieldValueNotSupported", "fieldValidation", detail, asked)
        raise invalid("meta.k8s.io", "CreateOptions", "", [error])
    return asked


async def _read_object(exchange: Exchange, api: Api, shape: Shape) -> Object:
    """The body as an object of the resource, in storage version."""
    media_type, validation = body_type(exchange.header("content-type")), field_validation(exchange)
    body = await exchange.body()

    def read() -> Object:
        value = parse_body(body, media_type)
        _check_kind(value, shape.resource, shape.version)
        decoded = api.schemas.read(shape.resource, value, shape.version, validation, exchange.warnings)
        obj = to_storage(shape.resource, shape.version, decoded)
        _check_size(api, shape.resource, body, obj)
        return obj

    return await offload(len(body), read)


def _check_size(api: Api, resource: Resource, body: bytes, obj: Any) -> None:
    """Refuse an object, or a patch that is one in part, that would be too large with its defaults, before more is done
    with it."""
    if len(body) <= SMALL_BYTES:
        return
    if _values_in(obj) > MOST_VALUES:
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MOST_VALUES} values")
    if not isinstance(obj, dict):
        return
    filled = {**copy.deepcopy(obj), "kind": resource.kind, "apiVersion": resource.api_version()}
    filled["metadata"] = {**(filled.get("metadata") or {})} if isinstance(filled.get("metadata") or {}, dict) else {}
    with suppress(AttributeError, KeyError, TypeError, ValueError):  # a patch may be no whole object
        api.strategy_of(resource).default(filled)
    if len(encode(filled)) > LARGEST_OBJECT:
        raise too_large(LARGEST_OBJECT)


def _check_kind(value: Any, resource: Resource, version: str) -> None:
    if not isinstance(value, dict):
        raise bad_request("the object provided is unrecognized: expected a JSON object")
    api_version, kind = value.get("apiVersion"), value.get("kind")
    expected = resource.api_version(version)
    if api_version is not None and kind is not None and (api_version, kind) == (expected, resource.kind):
        return
    if api_version and api_version != expected:
        message = f"the API version in the data ({api_version}) does not match the expected API version ({expected})"
        raise bad_request(message)
    if kind and kind != resource.kind:
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {resource.kind}')
    value["apiVersion"], value["kind"] = expected, resource.kind


def _values_in(obj: Any) -> int:
    count, pending = 0, [obj]
    while pending:
        value = pending.pop()
        count += 1
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return count


async def _answer(exchange: Exchange, api: Api, shape: Shape, code: int, obj: Object) -> None:
    """Send what a write came to, once it is on disk."""
    if obj.get("kind") == shape.resource.kind:
        obj = from_storage(shape.resource, shape.version, obj)
        obj = shape.object(obj)
    data = encode(obj)
    await api.store.committed(api.store.revision)
    await answer(exchange, code, data, shape.form)


async def create(exchange: Exchange, api: Api, target: Target, shape: Shape) -> None:
    options = write_options(exchange)
    obj = await _read_object(exchange, api, shape)
    if shape.resource.key == "pods":
        await wait_for_account(api, target.namespace, obj)
    if shape.resource.key in _MULTIPLIED and is_template(obj):
        done = await _create_many(api, shape.resource, obj, target.namespace, options)
    elif shape.resource.key == "nodes":
        done = _create_node(api, obj, target.namespace, options)
    else:
        done = api.create(shape.resource, obj, target.namespace, **options)
    await _answer(exchange, api, shape, 201, done)


def _create_node(api: Api, obj: Object, namespace: str | None, options: Options) -> Object:
    """A Node that says what it has is one of ours to simulate."""
    name, status = metadata_of(obj).get("name", ""), obj.get("status") or {}
    is_described = bool(status.get("allocatable") or status.get("capacity"))
    if not is_described or api.find("nodes", None, name) is not None:
        return api.create("nodes", obj, namespace, **options)
    if not options.get("dry_run"):
        register(api, [obj])
    return api.find("nodes", None, name) or _as_created(api, obj)


_MULTIPLIED = ("nodes", "pods")
MOST_COPIES = 100_000
"""Objects that one request may make."""


TURN_SECONDS = 0.01
"""How long a request works on such objects before others are answered."""


async def _create_many(api: Api, resource: Resource, obj: Object, namespace: str | None, options: Options) -> Object:
    """The objects that a template stands for."""
    addresses = free_addresses(api)
    async for each in _objects_of(obj):
        if resource.key == "pods":
            api.create("pods", each, namespace, **options)
        elif not options.get("dry_run"):
            register_node(api, each, addresses)
    return _as_created(api, obj)


async def _apply_many(
    exchange: Exchange, api: Api, target: Target, resource: Resource, obj: Object, options: Options
) -> Object:
    """As `_create_many`, by server-side apply: what is there already gets what the template says now. The user needs
    the right to patch each object that is written, not only the one that the path names."""
    force = exchange.query_flag("force")
    addresses = free_addresses(api)
    async for each in _objects_of(obj):
        name = metadata_of(each)["name"]
        exchange.authorise(name)
        if resource.key == "nodes" and api.find("nodes", None, name) is None:
            created: Options = {**options, "verb": "patch", "dry_run": True}
            api.create("nodes", each, **created)  # whether the user may
            if not options.get("dry_run"):
                register_node(api, each, addresses)
        else:
            api.patch(resource, target.namespace, name, each, "apply", force=force, **options)
    return _as_created(api, obj)


async def _objects_of(template: Object) -> AsyncIterator[Object]:
    try:
        async for each in _in_turns(expand(template, most=MOST_COPIES)):
            yield each
    except TemplateError as error:
        raise bad_request(str(error)) from error


async def _in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """The same items; the event loop has its turn now and then."""
    until = time.monotonic() + TURN_SECONDS
    for each in items:
        yield each
        if time.monotonic() > until:
            await asyncio.sleep(0)
            until = time.monotonic() + TURN_SECONDS


def _as_created(api: Api, obj: Object) -> Object:
    """The answer for a template, which itself is not stored."""
    about = {**metadata_of(obj), "uid": str(uuid.uuid4()), "creationTimestamp": timestamp(api.now())}
    return {**obj, "metadata": {**about, "resourceVersion": str(api.store.revision)}}


async def update(exchange: Exchange, api: Api, target: Target, shape: Shape) -> None:
    options = write_options(exchange)
    obj = await _read_object(exchange, api, shape)
    about = metadata_of(obj)
    name = about.setdefault("name", target.name) or target.name
    about["name"] = name
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if shape.resource.namespaced:
        namespace = about.setdefault("namespace", target.namespace) or target.namespace
        if namespace != target.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        about["namespace"] = target.namespace
    before = api.store.get(shape.resource.storage, target.namespace or "", target.name)
    done = api.update(shape.resource, obj, subresource=target.subresource, **options)
    await _answer(exchange, api, shape, 200 if before is not None else 201, done)


async def patch(exchange: Exchange, api: Api, target: Target, shape: Shape) -> None:
    options = write_options(exchange)
    kind = patch_type(exchange.header("content-type"), is_custom=shape.resource.custom)
    force = exchange.query_flag("force")
    data = await exchange.body()
    checked = field_validation(exchange)

    def read() -> Any:
        body = parse_body(data, "yaml" if kind == "apply" else "json")
        if kind == "apply":
            _check_yaml_keys(exchange, data, checked)
        _check_size(api, shape.resource, data, body)
        return body

    if kind == "apply" and not exchange.query("fieldManager"):
        error = FieldError("FieldValueRequired", "fieldManager", "is required for apply patch")
        raise invalid("meta.k8s.io", "PatchOptions", "", [error])
    body = await offload(len(data), read)
    if kind == "apply":
        body = _applied_body(shape, target, body)
    elif exchange.has_query("force"):
        error = FieldError("FieldValueForbidden", "force", "may not be specified for non-apply patch")
        raise invalid("meta.k8s.io", "PatchOptions", "", [error])
    before = api.store.get(shape.resource.storage, target.namespace or "", target.name)
    if kind == "apply" and before is None and not body["metadata"].get("name"):
        message = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(message)
    if shape.resource.key == "pods" and kind == "apply" and before is None:
        await wait_for_account(api, target.namespace, body)
    if shape.resource.key in _MULTIPLIED and kind == "apply" and not target.subresource and is_template(body):
        done = await _apply_many(exchange, api, target, shape.resource, body, options)
        await _answer(exchange, api, shape, 201, done)
        return
    done = api.patch(
        shape.resource,
        target.namespace,
        target.name,
        body,
        kind,
        subresource=target.subresource,
        force=force,
        version=shape.version,
        validation=checked,
        **options,
    )
    await _answer(exchange, api, shape, 200 if before is not None else 201, done)


def _check_yaml_keys(exchange: Exchange, data: bytes, validation: str) -> None:
    problem = repeated_yaml_keys(data) if validation != IGNORE else ""
    if problem and validation == STRICT:
        raise bad_request(f"error strict decoding patch: {problem}")
    if problem:
        exchange.warnings.append(problem)


def _applied_body(shape: Shape, target: Target, body: Any) -> Object:
    """What is applied has to say what it is, and nothing that is not of its type."""
    if not isinstance(body, dict):
        raise bad_request("error decoding YAML: expected an object")
    for field, expected in (("apiVersion", shape.resource.api_version(shape.version)), ("kind", shape.resource.kind)):
        if body.get(field) != expected:
            group, _, version = str(body.get("apiVersion") or "").rpartition("/")
            raise bad_request(f"invalid object type: {group}/{version}, Kind={body.get('kind') or ''}")
    about = metadata_of(body)
    if about.get("name") not in (None, "", target.name):
        raise bad_request(
            f"the name of the object ({about['name']}) does not match the name on the URL ({target.name})"
        )
    if about.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    return body


async def _delete_options(exchange: Exchange) -> dict[str, Any]:
    """DeleteOptions, from the body or from the query."""
    body = await exchange.body()
    options: Object = {}
    if body.strip():
        value = parse_body(body, body_type(exchange.header("content-type")))
        options = decode_as("", "v1", "DeleteOptions", value)
    grace, propagation = exchange.query_number("gracePeriodSeconds"), exchange.query("propagationPolicy")
    preconditions = options.get("preconditions") or {}
    if options.get("orphanDependents") is not None:
        propagation = "Orphan" if options["orphanDependents"] else "Background"
    grace = options.get("gracePeriodSeconds", grace)
    if grace is not None and grace < 0:
        grace = 1
    check_dry_run(options.get("dryRun") or [])
    return {
        "dry_run": check_dry_run(exchange.query_all("dryRun")) or bool(options.get("dryRun")),
        "grace_period": grace,
        "propagation": options.get("propagationPolicy") or propagation or None,
        "uid": preconditions.get("uid"),
        "resource_version": preconditions.get("resourceVersion"),
    }


async def delete(exchange: Exchange, api: Api, target: Target, shape: Shape) -> None:
    options = await _delete_options(exchange)
    done = api.delete(
        shape.resource, target.namespace, target.name, user=exchange.user, warnings=exchange.warnings, **options
    )
    await _answer(exchange, api, shape, 200, done)


async def delete_collection(exchange: Exchange, api: Api, target: Target, shape: Shape) -> None:
    options = await _delete_options(exchange)
    options.pop("uid")
    options.pop("resource_version")
    labels, fields = exchange.query("labelSelector"), exchange.query("fieldSelector")
    records = api.records(shape.resource, target.namespace, labels, fields)
    async for record in _in_turns(records):
        try:
            api.delete(shape.resource, record.namespace, record.name, user=exchange.user, **options)
        except ApiError as error:
            if error.code != 404:
                raise
    size = sum(len(record.data) for record in records) if shape.needs_work else 0
    data = await offload(size, shape.list, records, {"resourceVersion": str(api.store.revision)})
    await api.store.committed(api.store.revision)
    await answer(exchange, 200, data, shape.form)
