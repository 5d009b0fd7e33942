"""Subresources over HTTP: status and other parts of an object, scale, binding, eviction, token; and what nodes that
are simulated cannot do."""

from mooring.kubeapi.api import Api
from mooring.kubeapi.http import reading, writing
from mooring.kubeapi.http.bodies import Shape, answer
from mooring.kubeapi.http.decoding import decode_as, parse_body
from mooring.kubeapi.http.exchange import Exchange, encode
from mooring.kubeapi.http.negotiation import body_type, patch_type
from mooring.kubeapi.http.paths import Target
from mooring.kubeapi.http.writing import field_validation, write_options
from mooring.kubeapi.patch import json_patch, merge_patch
from mooring.kubeapi.status import ApiError, Object, bad_request, verb_not_allowed

_SIMULATED = {
    "log": "has no logs: its containers do not run, nodes are simulated",
    "exec": "cannot be entered: its containers do not run, nodes are simulated",
    "attach": "cannot be attached to: its containers do not run, nodes are simulated",
    "portforward": "has no ports to forward to: its containers do not run, nodes are simulated",
    "proxy": "cannot be reached: nothing runs behind it, nodes are simulated",
}
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


async def handle(exchange: Exchange, api: Api, target: Target, shape: Shape) -> None:
    """Answer a request for a subresource."""
    name = target.subresource
    known = shape.resource.subresources[name]
    if name in _SIMULATED:
        api.record(shape.resource, target.namespace, target.name)
        what = f"{shape.resource.kind.lower()} {target.name}"
        raise ApiError(501, "NotImplemented", f"{what} {_SIMULATED[name]}")
    verb = _VERBS.get(exchange.method, "")
    if verb not in known.verbs:
        raise verb_not_allowed()
    if known.kind == shape.resource.kind:
        match verb:
            case "get":
                await reading.get(exchange, api, target, shape)
            case "update":
                await writing.update(exchange, api, target, shape)
            case _:
                await writing.patch(exchange, api, target, shape)
    elif verb == "create":
        await _create(exchange, api, target, shape)
    else:
        await _scale(exchange, api, target, shape, verb)


async def _read(exchange: Exchange, kind: str, group: str, version: str) -> Object:
    """The body as an object of another kind than the resource's."""
    value = parse_body(await exchange.body(), body_type(exchange.header("content-type")))
    return decode_as(group, version, kind, value, field_validation(exchange), exchange.warnings)


async def _create(exchange: Exchange, api: Api, target: Target, shape: Shape) -> None:
    known = shape.resource.subresources[target.subresource]
    group = shape.resource.group if known.group is None else known.group
    body = await _read(exchange, known.kind, group, known.version or shape.version)
    named = (body.get("metadata") or {}).get("name")
    if named not in (None, "", target.name):
        raise bad_request(f"the name of the object ({named}) does not match the name on the URL ({target.name})")
    options = write_options(exchange)
    done = api.create_sub(shape.resource, target.namespace, target.name, target.subresource, body, **options)
    await api.store.committed(api.store.revision)
    await exchange.answer_object(201, done)


async def _scale(exchange: Exchange, api: Api, target: Target, shape: Shape, verb: str) -> None:
    scale = api.get_sub(shape.resource, target.namespace, target.name, target.subresource)
    if verb != "get":
        options = write_options(exchange)
        if verb == "update":
            scale = await _read(exchange, "Scale", "autoscaling", "v1")
        else:
            scale = await _patched_scale(exchange, scale)
        scale = api.update_sub(shape.resource, target.namespace, target.name, target.subresource, scale, **options)
    await api.store.committed(api.store.revision)
    await answer(exchange, 200, encode(scale), shape.form)


async def _patched_scale(exchange: Exchange, scale: Object) -> Object:
    kind = patch_type(exchange.header("content-type"), is_custom=False)
    patch = parse_body(await exchange.body(), "yaml" if kind == "apply" else "json")
    try:
        patched = json_patch(scale, patch) if kind == "json" else merge_patch(scale, patch)
    except ValueError as error:
        raise bad_request(f"error applying patch: {error}") from error
    return decode_as("autoscaling", "v1", "Scale", patched)


async def bind(exchange: Exchange, api: Api, target: Target) -> None:
    """POST of a Binding to its own collection, as old schedulers do it."""
    body = await _read(exchange, "Binding", "", "v1")
    name = (body.get("metadata") or {}).get("name") or ""
    done = api.create_sub("pods", target.namespace, name, "binding", body, **write_options(exchange))
    await api.store.committed(api.store.revision)
    await exchange.answer_object(201, done)
