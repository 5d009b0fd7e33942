"""Which of the kinds that scheduling reads a cluster has, and under which paths."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from mooring.drivers.live.api.client import ApiError, Client
from mooring.model.api.colocation_profile import ClusterColocationProfile
from mooring.model.objects.kinds import KINDS, Kind
from mooring.model.quotas.objects import CoreResourceQuota

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ACCEPTED = f"{AGGREGATED},application/json;q=0.5"
NOT_WATCHED = (CoreResourceQuota, ClusterColocationProfile)
"""What the API server itself holds pods to: those that exist have passed."""
REQUIRED = frozenset({("", "Node"), ("", "Pod")})
"""Without these there is nothing to do."""


@dataclass(frozen=True)
class Resource:
    """A kind as a cluster serves it."""

    kind: Kind
    version: str
    plural: str
    namespaced: bool

    @cached_property
    def api_version(self) -> str:
        return f"{self.kind.group}/{self.version}" if self.kind.group else self.version

    @cached_property
    def name(self) -> str:
        """As kubectl calls it: pods, jobs.batch."""
        return f"{self.plural}.{self.kind.group}" if self.kind.group else self.plural

    @property
    def root(self) -> str:
        return f"/apis/{self.kind.group}/{self.version}" if self.kind.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Where the collection is, or one object in it, or a part of that."""
        within = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return "/".join(filter(None, (f"{self.root}{within}/{self.plural}", name, subresource)))


Served = dict[tuple[str, str], Resource]
"""By group and kind."""


async def discover(client: Client, *, with_quotas: bool = False) -> Served:
    """Ask the cluster what it has; what it cannot say at the moment, it does not have.

    With quotas: also what the API server itself holds pods to, for those who ask why a pod is not there.
    """
    served: Served = {}
    for path in ("/api", "/apis"):
        found = msgspec.json.decode(await client.get(path, ACCEPTED))
        if found.get("kind") == "APIGroupDiscoveryList":
            for group in found.get("items", ()):
                _take_group(served, group)
        else:
            for group_version in _group_versions(found):
                await _ask_version(client, served, group_version)
    return {key: found for key, found in served.items() if with_quotas or found.kind.type not in NOT_WATCHED}


def missing(served: Served) -> list[str]:
    """The kinds that this cluster does not have, as kubectl would name them."""
    return sorted(f"{kind.name}.{kind.group}" if kind.group else kind.name for kind in _unserved(served))


def _unserved(served: Served) -> list[Kind]:
    wanted = (kind for kind in _WANTED.values() if kind.type not in NOT_WATCHED)
    return [kind for kind in wanted if (kind.group, kind.name) not in served]


_WANTED = {(kind.group, kind.name): kind for kind in KINDS}


def _take_group(served: Served, group: Any) -> None:
    """A group as aggregated discovery shows it: its versions come in the server's order of preference."""
    name = group.get("metadata", {}).get("name", "")
    for version in group.get("versions", ()):
        for found in version.get("resources", ()):
            kind = found.get("responseKind") or {}
            _take(
                served,
                kind.get("group") or name,
                kind.get("kind", ""),
                version["version"],
                found["resource"],
                found.get("scope") == "Namespaced",
                found.get("verbs", ()),
            )


def _group_versions(found: Any) -> list[tuple[str, str]]:
    if "groups" not in found:
        return [("", version) for version in found.get("versions", ())]
    return [
        (group["name"], version["version"])
        for group in found["groups"]
        for version in group["versions"]
        if any(group["name"] == wanted for wanted, _ in _WANTED)
    ]


async def _ask_version(client: Client, served: Served, group_version: tuple[str, str]) -> None:
    group, version = group_version
    try:
        found = msgspec.json.decode(await client.get(f"/apis/{group}/{version}" if group else f"/api/{version}"))
    except ApiError as error:
        if error.code in (404, 503):  # a group whose server is down
            return
        raise
    for each in found.get("resources", ()):
        if "/" not in each["name"]:
            _take(
                served,
                each.get("group") or group,
                each["kind"],
                version,
                each["name"],
                bool(each.get("namespaced")),
                each.get("verbs", ()),
            )


def _take(served: Served, group: str, kind: str, version: str, plural: str, namespaced: bool, verbs: list[str]) -> None:
    wanted = _WANTED.get((group, kind))
    if wanted is not None and "list" in verbs and "watch" in verbs:
        served.setdefault((group, kind), Resource(wanted, version, plural, namespaced))
