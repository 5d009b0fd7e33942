"""The API server as an ASGI application: who asks, may they, what do they want."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from mooring.kubeapi.api import Api
from mooring.kubeapi.auth.authentication import Authentication
from mooring.kubeapi.auth.rbac import Attempt, Rbac
from mooring.kubeapi.auth.reviews import Reviews
from mooring.kubeapi.auth.tokens import ISSUER, Tokens
from mooring.kubeapi.http import parts, reading, watching, writing
from mooring.kubeapi.http.bodies import MakeTable, Shape, name_and_age
from mooring.kubeapi.http.decoding import decode_as, parse_body
from mooring.kubeapi.http.discovery import AGGREGATED, Discovery, version_info, wanted_aggregated
from mooring.kubeapi.http.exchange import Disconnected, Exchange, Receive, Scope, Send, encode
from mooring.kubeapi.http.metrics import Asked, Metrics
from mooring.kubeapi.http.negotiation import body_type, choose_form
from mooring.kubeapi.http.openapi import OpenApi
from mooring.kubeapi.http.paths import Target, parse_target
from mooring.kubeapi.http.usage import UsageReader
from mooring.kubeapi.status import (
    ApiError,
    Object,
    bad_request,
    internal,
    method_not_allowed,
    no_such_path,
    verb_not_allowed,
)

log = logging.getLogger(__name__)
_HEALTH = ("/healthz", "/livez", "/readyz")
_PATH_VERBS = {"GET": "get", "HEAD": "get", "POST": "post", "PUT": "put", "PATCH": "patch", "DELETE": "delete"}
_OBJECT_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_LIST_VERBS = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
_HANDLERS: dict[str, Callable[[Exchange, Api, Target, Shape], Awaitable[None]]] = {
    "get": reading.get,
    "list": reading.list_objects,
    "watch": watching.watch_objects,
    "create": writing.create,
    "update": writing.update,
    "patch": writing.patch,
    "delete": writing.delete,
    "deletecollection": writing.delete_collection,
}


def _asked(exchange: Exchange, target: Target) -> Asked:
    """A request by names that are served: what else stands in a path is no label of a metric."""
    verb, resource = exchange.verb or exchange.method, target.resource
    if resource is None:
        return Asked(verb, "", "", "", "", exchange.code)
    subresource = target.subresource if target.subresource in resource.subresources else ""
    return Asked(verb, target.group, target.version, target.plural, subresource, exchange.code)


class App:
    """Answers every request with what was asked for or with a Status; nothing else ever comes out."""

    def __init__(
        self, api: Api, rbac: Rbac, tokens: Tokens, address: str, make_table: MakeTable = name_and_age
    ) -> None:
        self._api, self._rbac, self._tokens = api, rbac, tokens
        self._authentication = Authentication(tokens, rbac)
        self._reviews = Reviews(rbac, tokens)
        self._usage = UsageReader(api)
        self._discovery = Discovery(api.registry, address)
        self._openapi = OpenApi(api)
        self._make_table = make_table
        self._metrics = Metrics(api.store)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send)
        try:
            await self._answer(exchange)
        except ApiError as error:
            await self._refuse(exchange, error)
        except (Disconnected, asyncio.CancelledError, ConnectionError):
            raise
        except (UnicodeDecodeError, UnicodeEncodeError) as error:
            await self._refuse(exchange, bad_request(f"the request is not valid UTF-8: {error.reason}"))
        except RecursionError:
            await self._refuse(exchange, bad_request("the object provided is nested too deeply"))
        except Exception as error:
            log.exception("%s %s", exchange.method, exchange.path)
            await self._refuse(exchange, internal(f"{type(error).__name__}: {error}"))

    async def _refuse(self, exchange: Exchange, error: ApiError) -> None:
        if exchange.has_started:
            return
        more = []
        if seconds := (error.details or {}).get("retryAfterSeconds"):
            more.append((b"retry-after", b"%d" % seconds))
        if error.code in (401, 408, 413):
            more.append((b"connection", b"close"))
        await exchange.answer(error.code, encode(error.status), b"application/json", more)

    async def _answer(self, exchange: Exchange) -> None:
        path = exchange.path
        exchange.check_timeout()
        if path.startswith(_HEALTH):
            await self._health(exchange)
            return
        if path == "/version" or path == "/version/":
            await exchange.answer_object(200, version_info())
            return
        exchange.user = self._authentication.user(exchange.headers, exchange.state.get("certificate"))
        target = parse_target(self._api.registry, path)
        if target is None:
            self._rbac.check(exchange.user, Attempt(_PATH_VERBS.get(exchange.method, ""), path=path))
            await self._document(exchange)
            return
        try:
            await self._resource(exchange, target)
        except ApiError as error:
            exchange.code = error.code
            raise
        finally:
            self._metrics.note(_asked(exchange, target))

    async def _health(self, exchange: Exchange) -> None:
        failure = self._api.store.failure if exchange.path.startswith(("/readyz", "/healthz")) else ""
        if failure:
            text = f"[-]storage failed: the store cannot be written to: {failure}\n"
            await exchange.answer(500, text.encode(), b"text/plain; charset=utf-8")
        else:
            await exchange.answer(200, b"ok", b"text/plain; charset=utf-8")

    # Resources

    async def _resource(self, exchange: Exchange, target: Target) -> None:
        verb = exchange.verb = self._verb(exchange, target)
        attempt = Attempt(verb, target.group, target.plural, target.subresource, self._namespace(target), target.name)
        self._rbac.check(exchange.user, attempt)
        exchange.authorise = lambda name: self._rbac.check(exchange.user, attempt._replace(name=name))
        resource = target.resource
        if resource is None or (target.namespace is not None and not resource.namespaced):
            raise no_such_path()
        if target.subresource and (target.subresource not in resource.subresources or target.is_watch):
            raise no_such_path()
        form = choose_form(exchange.header("accept"), as_tables=not self._reviews.answers(resource.key))
        include = exchange.query("includeObject")
        shape = Shape(resource, target.version, form, include, self._make_table)
        if self._reviews.answers(resource.key):
            await self._review(exchange, target, verb)
        elif target.subresource:
            await parts.handle(exchange, self._api, target, shape)
        elif resource.key == "bindings" and verb == "create":
            await parts.bind(exchange, self._api, target)
        elif verb not in resource.verbs:
            raise method_not_allowed(resource.group, resource.plural, verb) if verb else verb_not_allowed()
        elif resource.namespaced and target.namespace is None and verb not in ("list", "watch"):
            raise verb_not_allowed()
        elif self._usage.answers(target):
            await self._usage.answer(exchange, target, shape)
        else:
            await _HANDLERS[verb](exchange, self._api, target, shape)

    def _namespace(self, target: Target) -> str:
        if target.group == "" and target.plural == "namespaces":
            return target.name
        return target.namespace or ""

    def _verb(self, exchange: Exchange, target: Target) -> str:
        if target.is_watch and exchange.method != "GET":
            raise verb_not_allowed()
        if target.name and not target.is_watch:
            if target.subresource:
                return _OBJECT_VERBS.get(exchange.method, "")
            verb = _OBJECT_VERBS.get(exchange.method, "")
            if verb == "create":
                raise verb_not_allowed()
            return "watch" if verb == "get" and exchange.query("watch") in ("1", "true") else verb
        verb = _LIST_VERBS.get(exchange.method, "")
        if not verb:
            raise verb_not_allowed()
        if verb == "list" and (target.is_watch or exchange.query_flag("watch")):
            return "watch"
        return verb

    async def _review(self, exchange: Exchange, target: Target, verb: str) -> None:
        resource = target.resource
        assert resource is not None
        if verb != "create":
            raise method_not_allowed(resource.group, resource.plural, verb)
        value = parse_body(await exchange.body(), body_type(exchange.header("content-type")))
        obj = decode_as(resource.group, target.version, resource.kind, value)
        obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version(target.version)
        done = self._reviews.answer(resource.key, exchange.user, obj, target.namespace or "")
        await exchange.answer_object(201, done)

    # Documents about the API

    async def _document(self, exchange: Exchange) -> None:
        if exchange.method not in ("GET", "HEAD"):
            raise verb_not_allowed()
        path = exchange.path.rstrip("/") or "/"
        if path in ("/api", "/apis"):
            await self._groups(exchange, core=path == "/api")
            return
        if path in ("/metrics", "/metrics/slis"):
            text = self._metrics.text() if path == "/metrics" else self._metrics.health()
            await exchange.answer(200, text, b"text/plain; version=0.0.4; charset=utf-8")
            return
        if path.startswith("/openapi/"):
            await self._openapi.answer(exchange, path)
            return
        await exchange.answer_object(200, self._found(path))

    async def _groups(self, exchange: Exchange, *, core: bool) -> None:
        version = wanted_aggregated(exchange)
        if not version:
            await exchange.answer_object(200, self._discovery.api() if core else self._discovery.groups())
            return
        content_type = f"application/json;g={AGGREGATED};v={version};as=APIGroupDiscoveryList"
        found = self._discovery.aggregated(version, core=core)
        await exchange.answer(200, encode(found), content_type.encode(), [(b"vary", b"Accept")])

    def _found(self, path: str) -> Object:
        match path.split("/")[1:]:
            case [""]:
                return {"paths": ["/api", "/apis", *_HEALTH, "/openapi/v2", "/openapi/v3", "/version"]}
            case ["api", version]:
                return self._discovery.resources("", version)
            case ["apis", group]:
                return self._discovery.group(group)
            case ["apis", group, version]:
                return self._discovery.resources(group, version)
            case ["openid", "v1", "jwks"]:
                return self._tokens.keys()
            case [".well-known", "openid-configuration"]:
                return {
                    "issuer": ISSUER,
                    "jwks_uri": f"{ISSUER}/openid/v1/jwks",
                    "response_types_supported": ["id_token"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["RS256"],
                }
        raise no_such_path()
