"""Write down the field types of Kubernetes' kinds: its sources in, `src/mooring/kubeapi/schemas/kubernetes.json` out.

Structure, list types, merge keys and defaults come from the OpenAPI v3 documents; what Go leaves out of JSON when it is
empty (pointers, omitempty, omitzero) from the structs themselves. Descriptions stay where they are.

    go mod download k8s.io/kubernetes@v1.37.1       (likewise api, apimachinery and the others at v0.37.1)
    python tools/api_schemas.py GOPATH/pkg/mod/k8s.io v1.37.1 v0.37.1

The file has two parts. `kinds` names the type of each apiVersion and kind. `types` has for each type its fields, as a
form and flags, separated by spaces: see `src/mooring/kubeapi/schemas/notation.py`, which reads them.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

GROUPS = (
    "api__v1",
    "apps__v1",
    "autoscaling__v1",
    "autoscaling__v2",
    "batch__v1",
    "policy__v1",
    "node.k8s.io__v1",
    "events.k8s.io__v1",
    "discovery.k8s.io__v1",
    "networking.k8s.io__v1",
    "storage.k8s.io__v1",
    "rbac.authorization.k8s.io__v1",
    "coordination.k8s.io__v1",
    "authentication.k8s.io__v1",
    "authorization.k8s.io__v1",
    "certificates.k8s.io__v1",
    "apiextensions.k8s.io__v1",
    "apiregistration.k8s.io__v1",
    "admissionregistration.k8s.io__v1",
    "admissionregistration.k8s.io__v1beta1",
    "flowcontrol.apiserver.k8s.io__v1",
    "scheduling.k8s.io__v1",
    "scheduling.k8s.io__v1beta1",
    "scheduling.k8s.io__v1alpha3",
    "resource.k8s.io__v1",
    "resource.k8s.io__v1beta1",
    "resource.k8s.io__v1beta2",
    "resource.k8s.io__v1alpha3",
)

MACHINERY = "io.k8s.apimachinery.pkg."
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis."
PLAIN = {
    f"{MACHINERY}api.resource.Quantity": "quantity",
    f"{MACHINERY}apis.meta.v1.FieldsV1": "raw",
    f"{MACHINERY}apis.meta.v1.MicroTime": "microtime",
    f"{MACHINERY}apis.meta.v1.Time": "time",
    f"{MACHINERY}runtime.RawExtension": "raw",
    f"{MACHINERY}util.intstr.IntOrString": "int-or-string",
    **{
        f"{EXTENSIONS}apiextensions.v1.JSON{end}": "any"
        for end in ("", "SchemaPropsOrArray", "SchemaPropsOrBool", "SchemaPropsOrStringArray")
    },
}
MODULES = {
    "io.k8s.api.": "api",
    "io.k8s.apimachinery.pkg.apis.": "apimachinery",
    EXTENSIONS: "apiextensions-apiserver",
    "io.k8s.kube-aggregator.pkg.apis.": "kube-aggregator",
}

_FIELD = re.compile(r'^\t(?:(\w+)\s+)?([\w.*\[\]]+)\s+`[^`]*json:"([^"]*)"[^`]*`', re.MULTILINE)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^type (\w+) (\w+|map\[.*|\[\].*)$", re.MULTILINE)


class Structs:
    """Go structs by OpenAPI name: for each JSON field its Go type and the options of its tag."""

    def __init__(self, modules: Path, version: str) -> None:
        self._modules, self._version = modules, version
        self._read: dict[Path, dict[str, Any]] = {}

    def fields(self, openapi_name: str) -> dict[str, tuple[str, set[str]]]:
        folder, name = self._place(openapi_name)
        return self._struct(folder, name)

    def aliases(self, openapi_name: str) -> dict[str, str]:
        folder, _ = self._place(openapi_name)
        return self._package(folder)["named"]

    def _place(self, openapi_name: str) -> tuple[Path, str]:
        for prefix, module in MODULES.items():
            if openapi_name.startswith(prefix):
                package, _, name = openapi_name[len(prefix) :].rpartition(".")
                root = self._modules / f"{module}@{self._version}"
                inner = "" if module == "api" else "pkg/apis"
                return root / inner / package.replace(".", "/"), name
        raise KeyError(openapi_name)

    def _package(self, folder: Path) -> dict[str, Any]:
        if folder not in self._read:
            text = "\n".join(
                file.read_text() for file in sorted(folder.glob("*types*.go")) + sorted(folder.glob("meta.go"))
            )
            structs = dict(_STRUCT.findall(text))
            self._read[folder] = {"structs": structs, "named": dict(_NAMED.findall(text))}
        return self._read[folder]

    def _struct(self, folder: Path, name: str) -> dict[str, tuple[str, set[str]]]:
        body = self._package(folder)["structs"].get(name)
        if body is None:
            return {}
        found: dict[str, tuple[str, set[str]]] = {}
        for field, type_, tag in _FIELD.findall(body):
            json_name, *options = tag.split(",")
            if json_name:
                found[json_name] = (type_, set(options))
            elif "." not in type_ and (not field or "inline" in options):
                found |= self._struct(folder, type_)
        return found


class Types:
    """The types that kinds need, in the notation of the file."""

    def __init__(self, schemas: dict[str, Any], structs: Structs) -> None:
        self._schemas, self._structs = schemas, structs
        self.types: dict[str, dict[str, str]] = {}

    def keep(self, name: str) -> str:
        """Write a type down with all that it needs; return its short name."""
        if name in PLAIN:
            return PLAIN[name]
        short = short_name(name)
        if short not in self.types:
            written = self.types[short] = {}
            schema = self._schemas[name]
            if schema.get("x-kubernetes-map-type") == "atomic":
                written[""] = "atomic"
            go = self._structs.fields(name)
            aliases = self._structs.aliases(name)
            required = set(schema.get("required", ()))
            for field, inner in sorted(schema.get("properties", {}).items()):
                if field not in go and field not in ("apiVersion", "kind", "metadata"):
                    print(f"not found in Go: {name}.{field}", file=sys.stderr)
                type_, options = go.get(field, ("", {"omitempty"}))
                flags = _flags(inner, aliases.get(type_, type_), options, field in required)
                written[field] = " ".join([self._form(inner), *flags])
        return short

    def _form(self, schema: dict[str, Any]) -> str:
        if "allOf" in schema:
            return self.keep(schema["allOf"][0]["$ref"].rpartition("/")[2])
        if "$ref" in schema:
            return self.keep(schema["$ref"].rpartition("/")[2])
        match schema.get("type"):
            case "array":
                return "[]" + self._form(schema["items"])
            case "object":
                inner = schema.get("additionalProperties")
                return "{}" + self._form(inner) if inner else "raw"
            case "integer":
                return schema["format"]
            case "number":
                return "double"
            case "boolean":
                return "bool"
            case "string":
                return "bytes" if schema.get("format") == "byte" else "string"
        return "any"


def _flags(schema: dict[str, Any], go_type: str, options: set[str], is_required: bool) -> list[str]:
    flags = []
    if is_required:
        flags.append("required")
    if go_type.startswith("*"):
        flags.append("pointer")
    if "omitempty" not in options and "omitzero" not in options:
        flags.append("always")
    if "omitzero" in options:
        flags.append("omitzero")
    list_type = schema.get("x-kubernetes-list-type") or schema.get("x-kubernetes-map-type")
    if list_type == "map":
        flags.append("keys=" + ",".join(schema["x-kubernetes-list-map-keys"]))
    elif list_type in ("set", "atomic", "granular"):
        flags.append(list_type)
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    if "merge" in strategy:
        flags.append(
            "merge" + (f"={schema['x-kubernetes-patch-merge-key']}" if "x-kubernetes-patch-merge-key" in schema else "")
        )
    flags += [word for word in ("retainKeys", "replace") if word in strategy]
    default = schema.get("default")
    if default not in (None, {}, "", 0, False):
        flags.append("default=" + json.dumps(default, separators=(",", ":")))
    return flags


def short_name(name: str) -> str:
    """`core/v1.PodSpec`, as tools/api_fields.py calls types."""
    for prefix in MODULES:
        name = name.removeprefix(prefix)
    package, _, type_ = name.rpartition(".")
    return f"{package.replace('.', '/')}.{type_}"


def main(modules: Path, kubernetes: str, staging: str) -> None:
    folder = modules / f"kubernetes@{kubernetes}" / "api/openapi-spec/v3"
    schemas: dict[str, Any] = {}
    for group in GROUPS:
        name = group if group.startswith("api__") else f"apis__{group}"
        schemas |= json.loads((folder / f"{name}_openapi.json").read_text())["components"]["schemas"]
    types = Types(schemas, Structs(modules, staging))
    kinds: dict[str, str] = {}
    for name, schema in sorted(schemas.items()):
        named = schema.get("x-kubernetes-group-version-kind", ())
        if len(named) != 1 or (named[0]["kind"].endswith("List") and "items" in schema.get("properties", {})):
            continue
        group, version, kind = (named[0][part] for part in ("group", "version", "kind"))
        kinds[f"{group}/{version} {kind}".removeprefix("/")] = types.keep(name)
    for kind in ("DeleteOptions", "Status"):
        types.keep(f"{MACHINERY}apis.meta.v1.{kind}")
        kinds[f"v1 {kind}"] = f"meta/v1.{kind}"
    lines = [f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in sorted(types.types.items())]
    target = Path(__file__).parents[1] / "src/mooring/kubeapi/schemas/kubernetes.json"
    target.write_text(
        '{"kinds": '
        + json.dumps(dict(sorted(kinds.items())), indent=0)
        + ',\n"types": {\n'
        + ",\n".join(lines)
        + "\n}}\n"
    )
    print(f"{len(kinds)} kinds, {len(lines)} types, {target.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:4])
