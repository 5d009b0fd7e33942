"""Which resources there are: those of Kubernetes and of the schedulers we know, and those that CRDs add at run time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mooring.kubeapi.builtin import CUSTOM, KUBERNETES
from mooring.kubeapi.status import ApiError, Object, no_such_path, qualified

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Subresource:
    """A part of an object that is read or written on its own: pods/binding, deployments/scale."""

    name: str
    kind: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    group: str | None = None
    """The group and version of its kind, where they differ from the resource's."""
    version: str | None = None
    paths: tuple[str, ...] = ()
    """Of a scale: where spec.replicas, status.replicas and the selector stand, if not where they usually do."""


SCALE = Subresource("scale", "Scale", group="autoscaling", version="v1")
_OF_THEIR_OWN = {
    "scale": SCALE,
    "binding": Subresource("binding", "Binding", ("create",)),
    "eviction": Subresource("eviction", "Eviction", ("create",), "policy", "v1"),
    "token": Subresource("token", "TokenRequest", ("create",), "authentication.k8s.io", "v1"),
    "log": Subresource("log", "Pod", ("get",)),
    "exec": Subresource("exec", "PodExecOptions", ("create", "get")),
    "attach": Subresource("attach", "PodAttachOptions", ("create", "get")),
    "portforward": Subresource("portforward", "PodPortForwardOptions", ("create", "get")),
}


@dataclass(frozen=True)
class Resource:
    """A kind as the API serves it, in one or several versions of its group.

    `key` names it everywhere in process ("pods", "deployments.apps"); `storage` is the table that holds its objects,
    in `storage_version`: two groups may serve the same objects (events).
    """

    group: str
    plural: str
    kind: str
    versions: tuple[str, ...]
    """Most preferred first."""
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: dict[str, Subresource] = field(default_factory=dict)
    storage_version: str = ""
    storage: str = ""
    list_kind: str = ""
    key: str = ""
    custom: bool = False
    """Not of Kubernetes itself: no strategic merge, unknown fields are kept or pruned by the definition's schema."""
    definition: str = ""
    """The name of the CustomResourceDefinition that declares it, if one does."""
    on_read: "Callable[[Resource, str, Object], Object] | None" = field(default=None, compare=False, repr=False)
    """What is done to a stored object before a version shows it, if anything."""

    def __post_init__(self) -> None:
        fill = object.__setattr__
        fill(self, "key", qualified(self.group, self.plural))
        fill(self, "singular", self.singular or self.kind.lower())
        fill(self, "storage_version", self.storage_version or self.versions[0])
        fill(self, "storage", self.storage or self.key)
        fill(self, "list_kind", self.list_kind or f"{self.kind}List")

    def __hash__(self) -> int:
        return hash((self.group, self.plural))

    def api_version(self, version: str = "") -> str:
        """Its apiVersion in a version; in that of its storage if none is said."""
        version = version or self.storage_version
        return f"{self.group}/{version}" if self.group else version


class Registry:
    """All resources, found by key, by path and by kind; `generation` changes whenever they do."""

    def __init__(self, resources: Iterator[Resource] | None = None) -> None:
        self._by_key: dict[str, Resource] = {}
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        self._replaced: dict[str, Resource] = {}
        self.generation = 0
        for resource in resources if resources is not None else builtin_resources():
            self.add(resource)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_key.values())

    def add(self, resource: Resource) -> None:
        """Serve a resource. One of a CRD takes the place of a built-in one of the same name until it is removed."""
        before = self._by_key.get(resource.key)
        if before is not None:
            self._forget(before)
            if not before.definition:
                self._replaced[resource.key] = before
        self._by_key[resource.key] = resource
        self._by_kind[resource.group, resource.kind] = resource
        for version in resource.versions:
            self._by_path[resource.group, version, resource.plural] = resource
        self.generation += 1

    def remove(self, key: str) -> None:
        resource = self._by_key.get(key)
        if resource is None:
            return
        self._forget(resource)
        self.generation += 1
        if before := self._replaced.pop(key, None):
            self.add(before)

    def _forget(self, resource: Resource) -> None:
        del self._by_key[resource.key]
        for version in resource.versions:
            self._by_path.pop((resource.group, version, resource.plural), None)
        if self._by_kind.get((resource.group, resource.kind)) is resource:
            del self._by_kind[resource.group, resource.kind]

    def find(self, key: "str | Resource") -> Resource:
        """The resource of a key; raises 404."""
        if isinstance(key, Resource):
            return key
        found = self._by_key.get(key)
        if found is None:
            raise no_such_path()
        return found

    def get(self, key: str) -> Resource | None:
        return self._by_key.get(key)

    def at(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_path.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource:
        """The resource of an object's apiVersion and kind; raises what kubectl shows for a kind that is not there."""
        group, _, version = api_version.rpartition("/")
        found = self._by_kind.get((group, kind))
        if found is None or version not in found.versions:
            message = f'no matches for kind "{kind}" in version "{api_version}"'
            raise ApiError(404, "NotFound", message)
        return found

    def groups(self) -> dict[str, list[str]]:
        """The versions of each group, most preferred first; the core group is ""."""
        found: dict[str, set[str]] = {}
        for resource in self:
            found.setdefault(resource.group, set()).update(resource.versions)
        return {group: sorted(versions, key=version_priority) for group, versions in found.items()}

    def in_version(self, group: str, version: str) -> list[Resource]:
        found = [each for each in self if each.group == group and version in each.versions]
        return sorted(found, key=lambda each: each.plural)


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sort v2 before v1 before v1beta2 before v1beta1 before v1alpha1, and other words after those."""
    import re

    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = match.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), "")


def builtin_resources() -> Iterator[Resource]:
    for table, custom in ((KUBERNETES, False), (CUSTOM, True)):
        for line in table.strip().splitlines():
            if line and not line.startswith("#"):
                yield _read(line, custom)


def _read(line: str, custom: bool) -> Resource:
    """Read a line of the table: GROUP/VERSIONS PLURAL KIND SCOPE and then, in any order, short names, +category,
    /subresource, =VERBS (of those that have only some), >STORAGE."""
    where, plural, kind, scope, *rest = line.split()
    group, _, versions = where.rpartition("/")
    marked: dict[str, list[str]] = {mark: [] for mark in "+/=>-"}
    for word in rest:
        mark = word[0] if word[0] in marked else "-"
        marked[mark].append(word.lstrip("+/=>"))
    subresources = {name: _OF_THEIR_OWN.get(name) or _part(name, kind) for name in marked["/"]}
    return Resource(
        group,
        plural,
        kind,
        tuple(versions.split(",")),
        scope == "namespaced",
        short_names=tuple(marked["-"]),
        categories=tuple(marked["+"]),
        verbs=tuple(marked["="][0].split(",")) if marked["="] else ALL_VERBS,
        subresources=subresources,
        storage=marked[">"][0] if marked[">"] else "",
        storage_version="v1" if marked[">"] else "",
        custom=custom,
    )


def _part(name: str, kind: str) -> Subresource:
    """A subresource that is the object itself, seen in part."""
    if name == "finalize":
        return Subresource(name, kind, ("update",))
    if name == "proxy":
        return Subresource(name, f"{kind}ProxyOptions", ("create", "delete", "get", "patch", "update"))
    return Subresource(name, kind)
