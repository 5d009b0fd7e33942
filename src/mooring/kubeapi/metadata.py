"""What the server itself writes into an object's metadata, and what it keeps of it over an update."""

import random
import time
import uuid
from datetime import UTC, datetime
from functools import lru_cache

from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import MODIFIED, Object, bad_request, conflict

_SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
"""Kept over an update, whatever the client sends."""
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
LONGEST_GENERATED = 63


def timestamp(seconds: float | None = None) -> str:
    """A moment as the API writes it; now if none is given."""
    return _timestamp(int(time.time() if seconds is None else seconds))


@lru_cache(maxsize=256)
def _timestamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00") + "Z"


def generate_name(prefix: str) -> str:
    suffix = "".join(random.choices(_SUFFIX_LETTERS, k=5))
    return prefix[: LONGEST_GENERATED - len(suffix)] + suffix


def metadata_of(obj: Object) -> Object:
    """The metadata, made where it is missing."""
    metadata = obj.setdefault("metadata", {})
    if metadata is None:
        metadata = obj["metadata"] = {}
    if not isinstance(metadata, dict):
        raise bad_request("metadata: expected an object")
    return metadata


def set_kind(resource: Resource, obj: Object, version: str = "") -> None:
    """Say what it is; refuse an object of another kind."""
    api_version = resource.api_version(version)
    if resource.key == "events.events.k8s.io" and not version:
        api_version = "v1"  # they are stored as those of the core group
    for field, expected in (("apiVersion", api_version), ("kind", resource.kind)):
        found = obj.get(field) or expected
        if found != expected:
            what = "API version" if field == "apiVersion" else "kind"
            message = (
                f"the {what} in the data ({found}) does not match the expected {what} ({expected})"
                if field == "apiVersion"
                else f'{found} in version "{api_version.rpartition("/")[2]}" cannot be handled as a {expected}'
            )
            raise bad_request(message)
        obj[field] = expected


def begin(resource: Resource, obj: Object, namespace: str, now: float) -> str:
    """Complete the metadata of an object that is to be created; return its name."""
    metadata = metadata_of(obj)
    set_namespace(resource, metadata, namespace)
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
        metadata.pop(field, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generate_name(metadata["generateName"])
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = timestamp(now)
    name: str = metadata.get("name") or ""
    return name


def set_namespace(resource: Resource, metadata: Object, namespace: str) -> None:
    """Put the namespace of the request; a cluster-wide object that names one is written without it, as by the API
    server."""
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return
    found = metadata.get("namespace") or ""
    if found and found != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace


def carry_over(resource: Resource, new: Object, old: Object) -> None:
    """Keep of an object's metadata what only the server writes, and refuse a change made to an older state."""
    metadata, before = metadata_of(new), old["metadata"]
    name = before["name"]
    if (uid := metadata.get("uid")) and uid != before["uid"]:
        raise conflict(
            resource.group,
            resource.plural,
            name,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}",
        )
    if (revision := metadata.get("resourceVersion")) and revision != before["resourceVersion"]:
        raise conflict(resource.group, resource.plural, name, MODIFIED)
    if not metadata.get("name"):
        metadata["name"] = name
    elif metadata["name"] != name:
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    set_namespace(resource, metadata, before.get("namespace", ""))
    metadata.pop("selfLink", None)
    metadata["resourceVersion"] = before["resourceVersion"]
    for field in _SYSTEM_FIELDS:
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)
    if not metadata.get("managedFields") and "managedFields" in before:
        metadata["managedFields"] = before["managedFields"]
    if "generateName" in before:
        metadata["generateName"] = before["generateName"]
