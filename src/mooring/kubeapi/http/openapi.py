"""OpenAPI: what kubectl explain and client-side checks read."""

import hashlib
from typing import Any

from mooring.kubeapi.api import Api
from mooring.kubeapi.http.discovery import GIT_VERSION
from mooring.kubeapi.http.exchange import Exchange, encode
from mooring.kubeapi.http.negotiation import JSON, PATCH_TYPES
from mooring.kubeapi.http.openapi_protobuf import MEDIA_TYPE, to_protobuf
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.schemas.openapi import COMPONENTS, DEFINITIONS, component_schemas
from mooring.kubeapi.status import Object, no_such_path

_GVK = "x-kubernetes-group-version-kind"


class OpenApi:
    """The documents, one for each version of each group, made when asked for and kept until the registry changes."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kept: dict[tuple[str, str], bytes] = {}
        self._generation = -1

    async def answer(self, exchange: Exchange, path: str) -> None:
        if self._generation != self._api.registry.generation:
            self._kept.clear()
            self._generation = self._api.registry.generation
        wanted = exchange.header("accept").partition(",")[0].strip()
        form = MEDIA_TYPE if wanted == MEDIA_TYPE and path == "/openapi/v2" else JSON
        if (path, form) not in self._kept:
            document = self._document(path)
            self._kept[path, form] = encode(document) if form == JSON else to_protobuf(document)
        await exchange.answer(200, self._kept[path, form], form.replace("@", ".").encode())

    def _document(self, path: str) -> Object:
        if path == "/openapi/v3":
            return {"paths": {where: {"serverRelativeURL": url} for where, url in self._index()}}
        if path == "/openapi/v2":
            return self._second()
        where = path.removeprefix("/openapi/v3/").split("/")
        match where:
            case ["api", version]:
                return self._third("", version)
            case ["apis", group, version]:
                return self._third(group, version)
        raise no_such_path()

    def _index(self) -> list[tuple[str, str]]:
        found = []
        for group, versions in self._api.registry.groups().items():
            for version in versions:
                where = f"apis/{group}/{version}" if group else f"api/{version}"
                stamp = hashlib.sha256(f"{where} {self._generation}".encode()).hexdigest()[:32].upper()
                found.append((where, f"/openapi/v3/{where}?hash={stamp}"))
        return found

    def _third(self, group: str, version: str) -> Object:
        resources = self._api.registry.in_version(group, version)
        if not resources:
            raise no_such_path()
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": GIT_VERSION},
            "paths": {
                path: item for resource in resources for path, item in _paths(resource, version, third=True).items()
            },
            "components": {"schemas": self._schemas(resources, version)},
        }

    def _second(self) -> Object:
        paths: Object = {}
        definitions: Object = {}
        for resource in self._api.registry:
            for version in resource.versions:
                paths |= _paths(resource, version, third=False)
                definitions |= self._schemas([resource], version, DEFINITIONS)
        info = {"title": "Kubernetes", "version": GIT_VERSION}
        return {"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions}

    def _schemas(self, resources: list[Resource], version: str, prefix: str = COMPONENTS) -> dict[str, Any]:
        found: dict[str, Any] = {}
        typed = []
        for resource in resources:
            gvk = {"group": resource.group, "version": version, "kind": resource.kind}
            type_ = self._api.schemas.type_of(resource, version)
            declared = self._api.schemas.declared(resource, version)
            if declared is not None:
                found[_schema_name(resource, version)] = {**declared.openapi, _GVK: [gvk]}
            elif type_.name:
                typed.append((type_, resource.group, version, resource.kind))
            else:
                found[_schema_name(resource, version)] = {"type": "object", _GVK: [gvk]}
        return found | component_schemas(typed, prefix)


def _schema_name(resource: Resource, version: str) -> str:
    reversed_group = ".".join(reversed(resource.group.split("."))) if resource.group else "core"
    return f"{reversed_group}.{version}.{resource.kind}"


def _paths(resource: Resource, version: str, *, third: bool) -> Object:
    """The paths of a resource; of PATCH that it takes fieldValidation, for kubectl looks for that."""
    root = f"/apis/{resource.group}/{version}" if resource.group else f"/api/{version}"
    where = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"
    gvk = {"group": resource.group, "version": version, "kind": resource.kind}
    one: Object = {}
    for verb, method in (("get", "get"), ("update", "put"), ("patch", "patch"), ("delete", "delete")):
        if verb in resource.verbs:
            one[method] = _operation(verb, gvk, third=third, is_custom=resource.custom or bool(resource.definition))
    many: Object = {}
    for verb, method in (("list", "get"), ("create", "post")):
        if verb in resource.verbs:
            many[method] = _operation(verb, gvk, third=third)
    return {path: item for path, item in ((where, many), (f"{where}/{{name}}", one)) if item}


def _operation(verb: str, gvk: Object, *, third: bool, is_custom: bool = False) -> Object:
    names = ("dryRun", "fieldManager", "fieldValidation") if verb in ("create", "update", "patch") else ()
    kind = {"schema": {"type": "string"}} if third else {"type": "string"}
    operation: Object = {
        "operationId": f"{verb}{gvk['group']}{gvk['version']}{gvk['kind']}",
        "parameters": [{"name": name, "in": "query", **kind} for name in names],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": verb if verb != "create" else "post",
        _GVK: gvk,
    }
    if third and verb == "patch":
        # kubectl apply sends a strategic merge patch if this says that it may.
        taken = [each for each, name in PATCH_TYPES.items() if not (is_custom and name == "strategic")]
        operation["requestBody"] = {"content": {media_type: {"schema": {"type": "object"}} for media_type in taken}}
    return operation
