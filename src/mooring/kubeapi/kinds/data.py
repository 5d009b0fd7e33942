"""ConfigMaps, Secrets and ServiceAccounts: data that pods read."""

import base64
import json
import re
from typing import ClassVar

from mooring.kubeapi.kinds.field_errors import forbidden, immutable, invalid, required
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.status import FieldError, Object

LARGEST = 1024 * 1024
_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_KEY_WORDS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_IMMUTABLE = "field is immutable when `immutable` is set"


def _check_key(key: str, field: str) -> list[FieldError]:
    if len(key) > 253:
        return [invalid(f"{field}[{key}]", key, "must be no more than 253 characters")]
    if key in (".", "..") or key.startswith(".."):
        return [invalid(f"{field}[{key}]", key, "must not be '.'" if key == "." else "must not start with '..'")]
    return [] if _KEY.fullmatch(key) else [invalid(f"{field}[{key}]", key, _KEY_WORDS)]


def _check_immutable(new: Object, old: Object, parts: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    found = []
    if not new.get("immutable"):
        found.append(forbidden("immutable", _IMMUTABLE))
    return found + [forbidden(part, _IMMUTABLE) for part in parts if (new.get(part) or {}) != (old.get(part) or {})]


class ConfigMaps(Standard):
    counts_generation = False

    def check(self, obj: Object) -> list[FieldError]:
        found = []
        text, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        for key in text:
            found += _check_key(key, "data")
            if key in binary:
                found.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        for key in binary:
            found += _check_key(key, "binaryData")
        size = sum(len(value.encode()) for value in text.values())
        size += sum(len(value or "") * 3 // 4 for value in binary.values())
        if size > LARGEST:
            found.append(FieldError("FieldValueTooLong", "", f"may not be more than {LARGEST} bytes"))
        return found

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        return _check_immutable(new, old, ("data", "binaryData"))


class Secrets(Standard):
    counts_generation = False
    fields_selectable: ClassVar[dict[str, tuple[str, ...]]] = {"type": ("type",)}

    def default(self, obj: Object) -> None:
        super().default(obj)
        if text := obj.pop("stringData", None):
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in text.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}

    def check(self, obj: Object) -> list[FieldError]:
        data = obj.get("data") or {}
        found = [error for key in data for error in _check_key(key, "data")]
        if sum(len(value) * 3 // 4 for value in data.values()) > LARGEST:
            found.append(FieldError("FieldValueTooLong", "data", f"may not be more than {LARGEST} bytes"))
        return found + _check_type(obj, data)

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("type", new.get("type"), old.get("type")) + _check_immutable(new, old, ("data",))


_NEEDS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def _check_type(obj: Object, data: dict[str, str]) -> list[FieldError]:
    kind = obj.get("type", "")
    found = [required(f"data[{key}]") for key in _NEEDS.get(kind, ()) if key not in data]
    if kind == "kubernetes.io/service-account-token":
        name = "kubernetes.io/service-account.name"
        if not (obj["metadata"].get("annotations") or {}).get(name):
            found.append(required(f"metadata.annotations[{name}]"))
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        found += [required("data[username]"), required("data[password]")]
    if kind.startswith("kubernetes.io/dockerc") and not found:
        key = _NEEDS[kind][0]
        try:
            json.loads(base64.b64decode(data[key]))
        except ValueError as error:
            found.append(invalid(f"data[{key}]", "<secret contents redacted>", str(error)))
    return found


class ServiceAccounts(Standard):
    counts_generation = False
    returns_deleted = True
