"""Checks of an object's metadata: names, labels, annotations, owners, finalizers."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from mooring.kubeapi.kinds.field_errors import IMMUTABLE, forbidden, invalid, required
from mooring.kubeapi.status import FieldError, Object

MOST_ANNOTATION_BYTES = 256 * 1024
LONGEST_SUBDOMAIN, LONGEST_LABEL = 253, 63

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"

_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_QUALIFIED_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_LABEL_KEY_WORDS = (
    f"{_QUALIFIED_WORDS.replace('name part', 'a valid label key')} with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_LABEL_VALUE}')"
)
_MATCHES = {text: re.compile(text, re.ASCII).fullmatch for text in (
    _LABEL, _SUBDOMAIN, _QUALIFIED, _LABEL_VALUE
)}  # fmt: skip
NameCheck = Callable[[str], str]
"""What is wrong with a name; empty if nothing is."""


def _check(value: str, form: str, longest: int, words: str) -> str:
    if len(value) > longest:
        return f"must be no more than {longest} characters"
    return "" if _MATCHES[form](value) else words


def subdomain(name: str) -> str:
    return _check(name, _SUBDOMAIN, LONGEST_SUBDOMAIN, _SUBDOMAIN_WORDS)


def dns_label(name: str) -> str:
    return _check(name, _LABEL, LONGEST_LABEL, _LABEL_WORDS)


def path_segment(name: str) -> str:
    """Names that only have to fit a URL: those of roles and bindings."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    return next((f"may not contain '{letter}'" for letter in "/%" if letter in name), "")


def label_value(value: str) -> str:
    return _check(value, _LABEL_VALUE, LONGEST_LABEL, _VALUE_WORDS)


def qualified_name(name: str) -> str:
    """What is wrong with a key of a label or annotation, or with a resource's name."""
    if name.count("/") > 1:
        return _LABEL_KEY_WORDS
    prefix, slash, short = name.rpartition("/")
    if slash and not prefix:
        return "prefix part must be non-empty"
    if slash and (wrong := subdomain(prefix)):
        return f"prefix part {wrong}"
    if not short:
        return "name part must be non-empty"
    if len(short) > LONGEST_LABEL:
        return f"name part must be no more than {LONGEST_LABEL} characters"
    return "" if _MATCHES[_QUALIFIED](short) else _QUALIFIED_WORDS


def check_labels(labels: Mapping[str, str] | None, field: str) -> list[FieldError]:
    found = []
    for key, value in (labels or {}).items():
        if wrong := qualified_name(key):
            found.append(invalid(field, key, wrong))
        if wrong := label_value(value):
            found.append(invalid(field, value, wrong))
    return found


def check_annotations(annotations: Mapping[str, str] | None, field: str) -> list[FieldError]:
    found = []
    size = 0
    for key, value in (annotations or {}).items():
        if wrong := qualified_name(key.lower()):
            found.append(invalid(field, key, wrong))
        size += len(key) + len(value)
    if size > MOST_ANNOTATION_BYTES:
        found.append(FieldError("FieldValueTooLong", field, f"may not be more than {MOST_ANNOTATION_BYTES} bytes"))
    return found


def check_metadata(obj: Object, name_check: NameCheck = subdomain, field: str = "metadata") -> list[FieldError]:
    """Check the metadata of an object that is created, or of a template."""
    metadata = obj.get("metadata") or {}
    found = []
    generate_name = metadata.get("generateName")
    if generate_name and (wrong := name_check(f"{generate_name[:58].rstrip('-.')}x")):
        found.append(invalid(f"{field}.generateName", generate_name, wrong))
    if name := metadata.get("name"):
        if wrong := name_check(name):
            found.append(invalid(f"{field}.name", name, wrong))
    else:
        found.append(required(f"{field}.name", "name or generateName is required"))
    return found + _check_rest(metadata, field)


def check_metadata_update(new: Object, old: Object, field: str = "metadata") -> list[FieldError]:
    """Check the metadata of an object that is changed: who it is never changes."""
    metadata, before = new["metadata"], old["metadata"]
    found = _check_rest(metadata, field)
    for name in ("name", "namespace", "uid", "creationTimestamp"):
        if metadata.get(name) != before.get(name):
            found.append(invalid(f"{field}.{name}", metadata.get(name), IMMUTABLE))
    if before.get("deletionTimestamp"):
        added = [each for each in metadata.get("finalizers") or () if each not in (before.get("finalizers") or ())]
        if added:
            detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {_go(added)}"
            found.append(forbidden(f"{field}.finalizers", detail))
    return found


def _go(values: list[str]) -> str:
    return "[]string{" + ", ".join(f'"{value}"' for value in values) + "}"


def _check_rest(metadata: Mapping[str, Any], field: str) -> list[FieldError]:
    found = check_labels(metadata.get("labels"), f"{field}.labels")
    found += check_annotations(metadata.get("annotations"), f"{field}.annotations")
    found += _check_owners(metadata.get("ownerReferences") or (), f"{field}.ownerReferences")
    for finalizer in metadata.get("finalizers") or ():
        if wrong := qualified_name(finalizer):
            found.append(invalid(f"{field}.finalizers", finalizer, wrong))
    return found


def _check_owners(owners: Any, field: str) -> list[FieldError]:
    found = []
    controllers = []
    for index, owner in enumerate(owners):
        for name, words in (
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ):
            if not owner.get(name):
                found.append(invalid(f"{field}[{index}].{name}", owner.get(name) or "", words))
        if owner.get("controller"):
            controllers.append(owner)
    if len(controllers) > 1:
        first, second = (f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers[:2])
        detail = (
            f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'
        )
        found.append(invalid(field, owners, detail))
    return found
