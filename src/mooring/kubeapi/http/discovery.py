"""Which groups, versions and resources there are, as old clients and new ones ask for it."""

import base64
import hashlib

from mooring.kubeapi.http.exchange import Exchange
from mooring.kubeapi.registry import Registry, Resource, Subresource
from mooring.kubeapi.status import Object, no_such_path

AGGREGATED = "apidiscovery.k8s.io"
GIT_VERSION, MAJOR, MINOR = "v1.37.1", "1", "37"


def version_info() -> Object:
    """What /version says: the Kubernetes whose API this is."""
    import platform
    import sys

    return {
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": str(int(MINOR) - 1),
        "gitVersion": GIT_VERSION,
        "gitCommit": "mooring",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": sys.implementation.name,
        "platform": f"{sys.platform}/{platform.machine()}",
    }


def wanted_aggregated(exchange: Exchange) -> str:
    """The version of aggregated discovery that a client accepts first; "" for none."""
    for part in exchange.header("accept").split(","):
        words = [word.strip() for word in part.split(";")]
        if f"g={AGGREGATED}" in words and "as=APIGroupDiscoveryList" in words:
            for version in ("v2", "v2beta1"):
                if f"v={version}" in words:
                    return version
        elif words[0] in ("application/json", "*/*") and len(words) == 1:
            return ""
    return ""


class Discovery:
    """The documents of discovery, made again when the registry changes."""

    def __init__(self, registry: Registry, address: str) -> None:
        self._registry, self._address = registry, address

    def api(self) -> Object:
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}

    def groups(self) -> Object:
        found = [self._group(name, versions) for name, versions in self._named_groups()]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}

    def _named_groups(self) -> list[tuple[str, list[str]]]:
        return [(name, versions) for name, versions in self._registry.groups().items() if name]

    def group(self, name: str) -> Object:
        for group, versions in self._named_groups():
            if group == name:
                return {"kind": "APIGroup", "apiVersion": "v1", **self._group(name, versions)}
        raise no_such_path()

    def _group(self, name: str, versions: list[str]) -> Object:
        named = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
        return {"name": name, "versions": named, "preferredVersion": named[0]}

    def resources(self, group: str, version: str) -> Object:
        """The resources of one version of a group."""
        found = self._registry.in_version(group, version)
        if not found:
            raise no_such_path()
        lines = []
        for resource in found:
            lines.append(_line(resource))
            lines += [_part_line(resource, part) for _, part in sorted(resource.subresources.items())]
        group_version = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": lines}

    def aggregated(self, version: str, *, core: bool) -> Object:
        """All of /api or of /apis in one document."""
        groups = self._registry.groups()
        named = [("", groups[""])] if core else self._named_groups()
        items = [self._aggregated_group(name, versions) for name, versions in named]
        api_version = f"{AGGREGATED}/{version}"
        return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}

    def _aggregated_group(self, name: str, versions: list[str]) -> Object:
        return {
            "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
            "versions": [
                {
                    "version": version,
                    "resources": [
                        _aggregated_resource(each, version) for each in self._registry.in_version(name, version)
                    ],
                    "freshness": "Current",
                }
                for version in versions
            ],
        }


def _line(resource: Resource) -> Object:
    line: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        line["shortNames"] = list(resource.short_names)
    if resource.categories:
        line["categories"] = list(resource.categories)
    if "create" in resource.verbs and "get" in resource.verbs:
        line["storageVersionHash"] = _storage_version_hash(resource)
    return line


def _storage_version_hash(resource: Resource) -> str:
    """A word that changes when objects are stored in another version: the same as Kubernetes'."""
    text = f"{resource.group}/{resource.storage_version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _part_line(resource: Resource, part: Subresource) -> Object:
    line: Object = {"name": f"{resource.plural}/{part.name}", "singularName": "", "namespaced": resource.namespaced}
    if part.group is not None:
        line["group"], line["version"] = part.group, part.version
    return {**line, "kind": part.kind, "verbs": list(part.verbs)}


def _aggregated_resource(resource: Resource, version: str) -> Object:
    found: Object = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    if resource.subresources:
        found["subresources"] = [
            {
                "subresource": part.name,
                "responseKind": {
                    "group": resource.group if part.group is None else part.group,
                    "version": version if part.version is None else part.version,
                    "kind": part.kind,
                },
                "verbs": list(part.verbs),
            }
            for _, part in sorted(resource.subresources.items())
        ]
    return found
