"""What a path of the API names: a resource, an object, a part of one, or a document about the API itself."""

from typing import NamedTuple
from urllib.parse import unquote

from mooring.kubeapi.registry import Registry, Resource

_ABOUT_NAMESPACES = ("finalize", "status")


class Target(NamedTuple):
    """What a request is about; `resource` is None where the path names nothing that is served."""

    group: str
    version: str
    plural: str
    namespace: str | None
    """None where the path names no namespace."""
    name: str
    subresource: str
    resource: Resource | None
    rest: str = ""
    """What follows the subresource: the path that a proxy is asked for."""
    is_watch: bool = False
    """Whether the path begins with the old `watch/`."""


def parse_target(registry: Registry, path: str) -> Target | None:
    """Read /api/VERSION/... and /apis/GROUP/VERSION/...; None for paths that are shorter or are no resource's."""
    parts = [unquote(part) if "%" in part else part for part in path.split("/")[1:]]
    if parts and not parts[-1]:
        parts.pop()
    if not parts or parts[0] not in ("api", "apis"):
        return None
    if parts[0] == "api":
        group, rest = "", parts[1:]
    else:
        group, rest = (parts[1] if len(parts) > 1 else ""), parts[2:]
    if len(rest) < 2:
        return None
    version, *rest = rest
    is_watch = rest[0] == "watch"
    if is_watch:
        rest = rest[1:]
    namespace = None
    if rest and rest[0] == "namespaces" and len(rest) >= 3 and not (group == "" and rest[2] in _ABOUT_NAMESPACES):
        namespace, rest = rest[1], rest[2:]
    if not rest:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    resource = registry.at(group, version, plural)
    return Target(group, version, plural, namespace, name, subresource, resource, "/".join(rest[3:]), is_watch)
