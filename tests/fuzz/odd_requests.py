"""What the fuzzer sends: objects that are valid, mutated or made up from the schemas, by all verbs with odd queries."""

import base64
import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import yaml

Object = dict[str, Any]
Kind = tuple[str, str, str]
"""Group, version, kind."""
HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
MOST_SEEDS = 60
"""Objects of one kind that are kept to be mutated."""
MANY = 2**31 - 1
NAMESPACES = ("default", "quota", "plain")
ODD: tuple[Any, ...] = (
    None, 0, -1, 1, MANY, MANY + 1, 2**63, 1e308, 1.5, True, False, "", "a", "A" * 300, "-", "..", "a/b", "\u0000", "é",
    "\ud7ff", "{i}", "100%", "1e400", "9" * 40, "NaN", [], {}, [None], [[]], {"": ""}, {"a": None}, [{}], "*", "30%",
    "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-13-99T99:99:99Z", "::1",
    "1000000", "^(a+)+$", "\"a\".matches(\"^(a+)+$\")",
)  # fmt: skip
WORDS = (
    "a", "web", "node-0", "default", "Always", "Never", "OnFailure", "TCP", "None", "Exists", "In", "NotIn", "Equal",
    "NoSchedule", "NoExecute", "app", "kubernetes.io/hostname", "RollingUpdate", "Parallel", "true", "1", "100m", "1Gi",
    "50%", "Delete", "Allow", "Forbid", "*/5 * * * *", "x.y/z", "gpu", "nvidia.com/gpu", "Pod", "Job", "v1", "Deny",
    "Fail", "object.metadata.name != 'x'",
)  # fmt: skip


def _token(value: bytes) -> str:
    return quote(base64.urlsafe_b64encode(value).decode())


QUERIES = (
    "limit=1", "limit=-1", "limit=99999999999999999999", "continue=x", "resourceVersion=999999999", "resourceVersion=0",
    "resourceVersion=999999999&resourceVersionMatch=Exact", "resourceVersion=1&resourceVersionMatch=Exact",
    "resourceVersion=-1", "resourceVersion=%C2%B2", "continue=" + _token(b'{"rv":99999999999,"start":["a","b"]}'),
    "continue=" + _token(b'{"rv":1e400,"start":["a","b"]}'), "continue=" + _token(b"[" * 3000),
    "labelSelector=" + quote("a in (b,c),!d"), "labelSelector=" + quote("a>x"), "labelSelector=" + quote("((("),
    "fieldSelector=" + quote("metadata.name=a\\"), "fieldSelector=" + quote(" " * 4000 + "a"), "fieldSelector==",
    "watch=1&timeoutSeconds=1", "watch=1&timeoutSeconds=1&resourceVersion=999999999", "watch=maybe",
    "timeoutSeconds=-1",
    "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    "dryRun=All", "dryRun=x", "fieldManager=" + "m" * 200, "fieldManager=%00", "fieldValidation=Strict", "force=true",
    "gracePeriodSeconds=0", "gracePeriodSeconds=-5", "propagationPolicy=Orphan", "propagationPolicy=x", "a=%ff%fe", "%",
    "timeout=abc", "timeout=1s", "pretty=true", "includeObject=Object",
)  # fmt: skip
ACCEPTS = (
    "application/json", "application/yaml", "*/*", "application/json;as=Table;v=v1;g=meta.k8s.io", ";;;", "text/html",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf",
)  # fmt: skip
PATCHES = (
    "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)  # fmt: skip
BODIES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", "")
POINTERS = (
    "/metadata/labels",
    "/metadata/annotations/b",
    "/spec",
    "/spec/x",
    "",
    "/metadata/name",
    "/spec/containers/0",
)


class Api(Protocol):
    """What is known of a server: (method, path, kind) of each operation, schemas, and which is of which kind."""

    operations: list[tuple[str, str, Object]]
    schemas: dict[str, Object]
    kinds: dict[Kind, str]


class Seeds:
    """Objects of each kind that are valid: of the examples, made by hand, and what the server accepted."""

    def __init__(self) -> None:
        self._by_kind: dict[Kind, list[Object]] = {}
        for file in (HERE / "valid-objects.yaml", *sorted(EXAMPLES.rglob("*.yaml"))):
            for obj in yaml.load_all(file.read_bytes(), yaml.CSafeLoader):
                if (
                    isinstance(obj, dict)
                    and isinstance(obj.get("metadata"), dict)
                    and "replicas" not in str(obj["metadata"])
                ):
                    group, _, version = str(obj.get("apiVersion")).rpartition("/")
                    self.add((group, version, str(obj.get("kind"))), obj)

    def add(self, kind: Kind, obj: Object) -> None:
        known = self._by_kind.setdefault(kind, [])
        if len(known) < MOST_SEEDS:
            known.append(obj)

    def of(self, kind: Kind) -> list[Object]:
        return self._by_kind.get(kind, [])

    def kinds(self) -> list[Kind]:
        return list(self._by_kind)


class Requests:
    """Makes requests, each from the seed and its own number."""

    def __init__(self, server: Api, seeds: Seeds, seed: int) -> None:
        self._server, self._seeds, self._random = server, seeds, random.Random(seed)
        self._creating = [each for each in server.operations if each[0] == "POST"]

    def __iter__(self) -> Iterator[tuple[str, str, bytes | None, Object]]:
        while True:
            yield self._one()

    def _one(self) -> tuple[str, str, bytes | None, Object]:
        some, chance = self._random.choice, self._random.random
        method, path, kind = some(self._server.operations if chance() < 0.6 else self._creating)
        name = (
            f"{some(('a', 'web', 'x'))}-{self._random.randrange(40)}" if chance() < 0.9 else quote(str(some(ODD)), "")
        )
        if method == "DELETE" and "{name}" not in path and chance() < 0.95:
            method = "GET"
        if method == "DELETE" and path.startswith("/api/v1/namespaces/{name}"):
            method = "GET"  # the namespaces that the run writes to stay
        path = path.replace("{namespace}", some(NAMESPACES)).replace("{name}", name).replace("{path}", "x")
        headers: Object = {"Accept": some(ACCEPTS) if chance() < 0.3 else "application/json"}
        body = None
        if method in ("POST", "PUT", "PATCH"):
            body, headers["Content-Type"] = self._body(method, kind, name)
        queries = [some(QUERIES) for _ in range(self._random.choice((0, 0, 0, 1, 2)))]
        if method == "PATCH" and headers["Content-Type"].endswith("yaml"):
            queries.append("fieldManager=fuzz")
        return method, f"{path}?{'&'.join(queries)}" if queries else path, body, headers

    def _body(self, method: str, kind: Object, name: str) -> tuple[bytes, str]:
        some, chance = self._random.choice, self._random.random
        named = kind.get("group", ""), kind.get("version", ""), kind.get("kind", "")
        seeds = self._seeds.of(named)
        if seeds and chance() < 0.75:
            obj: Any = self._mutated(copy.deepcopy(some(seeds)))
        else:
            obj = self._value(self._server.schemas.get(self._server.kinds.get(named, ""), {}), 0)
        is_definition = named[2] == "CustomResourceDefinition" and chance() < 0.7  # it has to be called after its names
        if isinstance(obj, dict) and chance() < 0.95 and not is_definition:
            group, version = kind.get("group", ""), kind.get("version", "")
            obj |= {"apiVersion": f"{group}/{version}" if group else version, "kind": kind.get("kind", "")}
            about = obj.get("metadata") if isinstance(obj.get("metadata"), dict) and chance() < 0.3 else {}
            obj["metadata"] = {**(about or {}), "name": name}
            for field in ("namespace", "resourceVersion", "uid", "finalizers", "deletionTimestamp"):
                if chance() < 0.9:
                    obj["metadata"].pop(field, None)
            if chance() < 0.02:
                obj["metadata"]["annotations"] = {"mooring.dev/replicas": some(("3", "1000000", "x", "9" * 50))}
        media_type = some(PATCHES) if method == "PATCH" else some(BODIES) if chance() < 0.1 else BODIES[0]
        if media_type.endswith("json-patch+json"):
            obj = [
                {"op": some(("add", "remove", "replace", "copy", "move", "test", "x")), "path": some(POINTERS),
                 "from": some(POINTERS), "value": self._odd()}
                for _ in range(self._random.randrange(4))
            ]  # fmt: skip
        data = json.dumps(obj).encode()
        if chance() < 0.02:
            data = data[: self._random.randrange(len(data) + 1)] + self._random.randbytes(5)
        return data, media_type

    def _odd(self) -> Any:
        return copy.deepcopy(self._random.choice(ODD))

    def _mutated(self, obj: Any) -> Any:
        """The same object, or one with a few values changed, taken away or doubled."""
        some = self._random.choice
        for _ in range(some((0, 0, 0, 1, 1, 2, 4))):
            places = [place for place in _places(obj) if place[1] not in ("apiVersion", "kind")]
            if not places:
                break
            holder, key = some(places)
            value = holder[key]
            match some(("odd", "odd", "like", "like", "gone", "again")):
                case "odd":
                    holder[key] = self._odd()
                case "like" if isinstance(value, int):
                    holder[key] = some((0, 1, 2, 100, -1, 1_000_000, 5_000_000, MANY))
                case "like" if isinstance(value, str):
                    holder[key] = some(WORDS)
                case "gone":
                    del holder[key]
                case "again" if isinstance(holder, list):
                    holder.append(copy.deepcopy(value))
        return obj

    def _value(self, schema: Object, depth: int) -> Any:
        some, chance = self._random.choice, self._random.random
        if chance() < 0.04:
            return self._odd()
        if "$ref" in schema:
            schema = self._server.schemas.get(schema["$ref"].rpartition("/")[2], {})
        for name in ("allOf", "oneOf", "anyOf"):
            if name in schema:
                return self._value(some(schema[name]), depth)
        if depth > 8:
            return self._odd()
        match schema.get("type"):
            case "array":
                return [self._value(schema.get("items") or {}, depth + 1) for _ in range(some((0, 1, 1, 2)))]
            case "integer":
                return some((0, 1, 2, 3, 5, 10, 80, -1, MANY)) if chance() < 0.3 else some((0, 1, 2, 3))
            case "number":
                return some((0, 1, 0.5, -1))
            case "boolean":
                return chance() < 0.5
            case "string":
                return some(schema.get("enum") or WORDS)
        properties = schema.get("properties")
        if properties:
            wanted = set(schema.get("required") or ())
            share = max(0.1, min(0.8, 4 / len(properties))) if depth else 0.8
            return {
                name: self._value(inner, depth + 1)
                for name, inner in properties.items()
                if name != "managedFields" and chance() < (0.92 if name in wanted else share)
            }
        more = schema.get("additionalProperties")
        inner = more if isinstance(more, dict) else {}
        return {some(WORDS): self._value(inner, depth + 1) for _ in range(self._random.randrange(3))}


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Where each value below this one stands: its container and its key there."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        each = pending.pop()
        keys: Any = each.keys() if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        for key in keys:
            found.append((each, key))
            pending.append(each[key])
    return found
