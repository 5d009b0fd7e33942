"""Make src/mooring/kubeapi/http/protobuf.json: the numbers of fields in Kubernetes' protobuf messages.

    python tools/protobuf_fields.py PATH_TO_MODULES > src/mooring/kubeapi/http/protobuf.json

PATH_TO_MODULES holds the Go modules k8s.io/api, k8s.io/apimachinery and k8s.io/apiextensions-apiserver, whose
`generated.proto` files are read. Only numbers and names are taken; types are known from the API's schemas. A field
that JSON does not have is a struct whose fields stand beside the others: it is written as `number:=type`.
"""

import json
import re
import sys
from pathlib import Path

from mooring.kubeapi.schemas.notation import kinds, type_of_kind
from mooring.kubeapi.schemas.types import Type

FIELD = re.compile(r"^\s+(?:optional|repeated)?\s*(map<[^>]+>|[\w.]+)\s+(\w+)\s*=\s*(\d+);", re.MULTILINE)
MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)


def short(package: str) -> str:
    """k8s.io.api.core.v1 is core/v1."""
    group, _, version = package.rpartition(".")
    return f"{group.rpartition('.')[2]}/{version}"


def messages(folder: Path) -> dict[str, list[tuple[str, str, str]]]:
    found = {}
    for file in sorted(folder.glob("*/**/generated.proto")):
        text = re.sub(r"//.*", "", file.read_text())
        declared = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
        if declared is None:
            continue
        package = declared[1]
        for name, body in MESSAGE.findall(text):
            fields = []
            for type_, field, number in FIELD.findall(body):
                full = type_.lstrip(".")
                where = full.rpartition(".")
                named = f"{short(where[0])}.{where[2]}" if where[0] else f"{short(package)}.{full}"
                fields.append((number, field, named))
            found[f"{short(package)}.{name}"] = fields
    return found


def reachable() -> dict[str, Type]:
    found: dict[str, Type] = {}

    def walk(type_: Type) -> None:
        if type_.form == "struct" and type_.name and type_.name not in found:
            found[type_.name] = type_
            for field in type_.fields.values():
                walk(field.type)
        if type_.item is not None:
            walk(type_.item)

    for api_version, kind in kinds():
        declared = type_of_kind(api_version, kind)
        if declared is not None:
            walk(declared)
    return found


def _plain(field: str) -> str:
    """JSON schemas write x-kubernetes-list-type and $ref, protobuf xKubernetesListType and ref."""
    return field.replace("-", "").replace("$", "").lower()


def main() -> None:
    known = messages(Path(sys.argv[1]))
    wanted = dict(reachable())
    lines: dict[str, str] = {}

    def write(name: str, type_: Type) -> None:
        words = []
        in_json = {_plain(field): field for field in type_.fields}
        for number, field, named in known.get(name, ()):
            if _plain(field) in in_json:
                words.append(f"{number}:{in_json[_plain(field)]}")
            elif named in known:
                words.append(f"{number}:={named}")
                if named not in lines:
                    lines[named] = ""
                    write(named, type_)
        lines[name] = " ".join(words)

    for name, type_ in wanted.items():
        write(name, type_)
    written = ",\n".join(f"{json.dumps(name)}: {json.dumps(line)}" for name, line in sorted(lines.items()) if line)
    print("{\n" + written + "\n}")


main()
