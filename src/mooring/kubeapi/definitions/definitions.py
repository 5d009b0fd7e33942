"""CustomResourceDefinitions: which names they get, and the resources that they make the server serve."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mooring.kubeapi.definitions.custom import CustomResources, Version
from mooring.kubeapi.definitions.rules import wrong_rules
from mooring.kubeapi.definitions.structural import fill_in
from mooring.kubeapi.kinds.field_errors import IMMUTABLE, invalid, not_supported, required
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.registry import SCALE, Registry, Resource, Subresource, version_priority
from mooring.kubeapi.schemas.book import Schemas
from mooring.kubeapi.status import ApiError, FieldError, Object
from mooring.kubeapi.store.records import DELETED, Event
from mooring.kubeapi.strategy import Strategy
from mooring.kubeapi.tables.column import Column

if TYPE_CHECKING:
    from mooring.kubeapi.api import Api

KEY = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until its objects are gone."""


class DefinitionStrategy(Standard):
    """The rules of definitions themselves."""

    def __init__(self, resource: Resource, registry: Registry, now: Callable[[], str]) -> None:
        super().__init__(resource)
        self._registry, self._now = registry, now

    def default(self, obj: Object) -> None:
        super().default(obj)
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        if kind := names.get("kind"):
            names["singular"] = names.get("singular") or kind.lower()
            names["listKind"] = names.get("listKind") or f"{kind}List"
        if not (spec.get("conversion") or {}).get("strategy"):
            spec["conversion"] = {"strategy": "None"}

    def begin(self, obj: Object) -> None:
        self._set_status(obj, {})

    def change(self, new: Object, old: Object, subresource: str) -> None:
        self._set_status(new, old.get("status") or {})

    def begin_deletion(self, obj: Object) -> None:
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if CLEANUP not in finalizers and not obj["metadata"].get("deletionTimestamp"):
            finalizers.append(CLEANUP)
            terminating = self._condition(
                "Terminating", True, "InstanceDeletionPending", "CustomResource deletion is pending"
            )
            conditions = obj.setdefault("status", {}).setdefault("conditions", [])
            conditions[:] = [each for each in conditions if each.get("type") != "Terminating"] + [terminating]

    def _set_status(self, obj: Object, before: Object) -> None:
        spec = obj["spec"]
        names, versions = spec["names"], spec.get("versions") or []
        stored = [each["name"] for each in versions if each.get("storage")]
        kept = before.get("storedVersions") or []
        taken = self._taken(spec)
        conditions = [
            self._condition("NamesAccepted", not taken, "NoConflicts", "no conflicts found")
            if not taken
            else self._condition("NamesAccepted", False, "PluralConflict", taken),
            self._condition("Established", not taken, "InitialNamesAccepted", "the initial names have been accepted")
            if not taken
            else self._condition("Established", False, "NotAccepted", "not all names are accepted"),
        ]
        known = {each.get("type"): each for each in before.get("conditions") or ()}
        for condition in conditions:
            was = known.get(condition["type"])
            if was and was.get("status") == condition["status"]:
                condition["lastTransitionTime"] = was.get("lastTransitionTime", condition["lastTransitionTime"])
        others = [each for kind, each in known.items() if kind not in ("NamesAccepted", "Established")]
        obj["status"] = {
            "acceptedNames": before.get("acceptedNames") or {} if taken else dict(names),
            "conditions": [*conditions, *others],
            "storedVersions": [*kept, *(name for name in stored if name not in kept)],
        }

    def _taken(self, spec: Object) -> str:
        """What names are another's; empty if all are free."""
        group, names = spec.get("group", ""), spec["names"]
        for resource in self._registry:
            is_own = resource.plural == names.get("plural")
            if resource.group == group and not is_own and resource.kind == names.get("kind"):
                return f'"{names.get("kind")}" is already in use'
        return ""

    def _condition(self, type_: str, status: bool, reason: str, message: str) -> Object:
        return {
            "type": type_,
            "status": str(status),
            "lastTransitionTime": self._now(),
            "reason": reason,
            "message": message,
        }

    def check(self, obj: Object) -> list[FieldError]:
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        group, names, versions = spec.get("group", ""), spec.get("names") or {}, spec.get("versions") or []
        found = []
        wanted = f"{names.get('plural', '')}.{group}"
        if name != wanted:
            found.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
        for field in ("plural", "singular", "kind", "listKind"):
            if not names.get(field):
                found.append(required(f"spec.names.{field}"))
        if "." not in group:
            detail = "should be a domain with at least one dot" if group else ""
            found.append(invalid("spec.group", group, detail) if group else required("spec.group"))
        if spec.get("scope") not in ("Cluster", "Namespaced"):
            found.append(not_supported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced")))
        if sum(bool(each.get("storage")) for each in versions) != 1:
            detail = "must have exactly one version marked as storage version"
            found.append(invalid("spec.versions", [each.get("name") for each in versions], detail))
        for index, version in enumerate(versions):
            found += _check_version(version, f"spec.versions[{index}]", is_only=len(versions) == 1)
        return found

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        found = []
        for field in ("group", "scope"):
            if new["spec"].get(field) != old["spec"].get(field):
                found.append(invalid(f"spec.{field}", new["spec"].get(field), IMMUTABLE))
        for field in ("plural", "kind"):
            if new["spec"]["names"].get(field) != old["spec"]["names"].get(field):
                found.append(invalid(f"spec.names.{field}", new["spec"]["names"].get(field), IMMUTABLE))
        return found


def _check_version(version: Object, path: str, *, is_only: bool) -> list[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        return [required(f"{path}.schema.openAPIV3Schema")]
    # One schema for all versions is called as it was when there was no other way.
    here = "spec.validation.openAPIV3Schema" if is_only else f"{path}.schema.openAPIV3Schema"
    if not schema.get("type"):
        return [required(f"{here}.type", "must not be empty at the root")]
    if schema["type"] != "object":
        return [invalid(f"{here}.type", schema["type"], "must be object at the root")]
    return _check_structural(schema, here) + wrong_rules(schema, here)


def _check_structural(schema: Object, path: str) -> list[FieldError]:
    """Every part says its type, or that it may be anything."""
    found = []
    for name, inner in (schema.get("properties") or {}).items():
        found += _check_part(inner, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            found += _check_part(schema[name], f"{path}.{name}")
    return found


def _check_part(schema: Object, path: str) -> list[FieldError]:
    is_open = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    found = (
        []
        if schema.get("type") or is_open
        else [required(f"{path}.type", "must not be empty for specified object fields")]
    )
    if schema.get("type") == "array" and not schema.get("items"):
        found.append(required(f"{path}.items", "must be specified"))
    return found + _check_structural(schema, path)


class Definitions:
    """Follows the definitions that are stored, and lets their resources be served."""

    def __init__(self, registry: Registry, schemas: Schemas, now: Callable[[], str]) -> None:
        self._registry, self._schemas, self._now = registry, schemas, now
        self._stored: dict[str, CustomResources] = {}
        self._versions: dict[tuple[str, str], Version] = {}
        self._api: Api | None = None

    def attach(self, api: "Api") -> None:
        """Serve what is stored already, and follow what changes from now on."""
        self._api = api
        for obj in api.list(KEY):
            self._serve(obj)
        api.store.observe(KEY, self._note)
        api.subscribe(KEY, self._clean_up)

    def strategy_of(self, resource: Resource) -> Strategy | None:
        """The rules of a custom resource, or of definitions themselves; None for others."""
        if resource.key == KEY:
            return DefinitionStrategy(resource, self._registry, self._now)
        return self._stored.get(resource.key) if resource.definition else None

    def columns(self, resource: Resource, version: str) -> Sequence[Column] | None:
        found = self._versions.get((resource.key, version or resource.storage_version))
        return found.columns if found is not None else None

    def _note(self, event: Event) -> None:
        if event.type == DELETED:
            self._forget(event.object)
        else:
            self._serve(event.object)

    def _serve(self, obj: Object) -> None:
        spec = obj["spec"]
        conditions = {
            each.get("type"): each.get("status") for each in (obj.get("status") or {}).get("conditions") or ()
        }
        if conditions.get("NamesAccepted") == "False":
            return
        versions = [Version(each) for each in spec.get("versions") or ()]
        stored = next((each for each in versions if each.is_stored), None)
        served = [each.name for each in versions if each.is_served]
        if stored is None or not served:
            return
        resource = _resource(obj, stored, sorted(served, key=version_priority), self)
        self._forget(obj)
        for version in versions:
            self._versions[resource.key, version.name] = version
            self._schemas.declare(resource.key, version.name, version)
        self._stored[resource.key] = CustomResources(stored)
        self._registry.add(resource)

    def _forget(self, obj: Object) -> None:
        key = f"{obj['spec']['names']['plural']}.{obj['spec']['group']}"
        found = self._registry.get(key)
        if found is not None and found.definition == obj["metadata"]["name"]:
            self._registry.remove(key)
            self._schemas.forget(key)
            self._stored.pop(key, None)
            for known in [known for known in self._versions if known[0] == key]:
                del self._versions[known]

    def default_on_read(self, resource: Resource, version: str, obj: Object) -> Object:
        """An object as a version shows it: with the defaults that came after it was stored."""
        found = self._versions.get((resource.key, version))
        if found is not None and found.has_defaults:
            fill_in(obj, found.schema)
        return obj

    def _clean_up(self, event: Event) -> None:
        """Delete the objects of a definition that is to go, and let it go when there are none left."""
        obj, api = event.object, self._api
        if event.type == DELETED or not obj["metadata"].get("deletionTimestamp") or api is None:
            return
        if CLEANUP not in (obj["metadata"].get("finalizers") or ()):
            return
        key = f"{obj['spec']['names']['plural']}.{obj['spec']['group']}"
        resource = self._registry.get(key)
        if resource is not None:
            _delete_all(api, resource)
            if api.records(resource):
                api.subscribe(resource, lambda _event: self._release(obj["metadata"]["name"], resource))
                return
        self._release(obj["metadata"]["name"], resource)

    def _release(self, name: str, resource: Resource | None) -> None:
        api = self._api
        assert api is not None
        obj = api.find(KEY, None, name)
        if obj is None or (resource is not None and api.records(resource)):
            return
        finalizers = obj["metadata"].get("finalizers") or []
        if CLEANUP in finalizers:
            finalizers.remove(CLEANUP)
            api.update(KEY, obj)


def _delete_all(api: "Api", resource: Resource) -> None:
    for record in api.records(resource):
        try:
            api.delete(resource, record.namespace, record.name)
        except ApiError as error:
            if error.code != 404:
                raise


def _resource(obj: Object, stored: Version, versions: Iterable[str], definitions: Definitions) -> Resource:
    spec = obj["spec"]
    names = spec["names"]
    subresources: dict[str, Subresource] = {}
    if "status" in stored.subresources:
        subresources["status"] = Subresource("status", names["kind"])
    if scale := stored.subresources.get("scale"):
        paths = (
            scale.get("specReplicasPath", ""),
            scale.get("statusReplicasPath", ""),
            scale.get("labelSelectorPath", ""),
        )
        subresources["scale"] = Subresource("scale", "Scale", SCALE.verbs, SCALE.group, SCALE.version, paths)
    return Resource(
        spec["group"],
        names["plural"],
        names["kind"],
        tuple(versions),
        spec.get("scope") == "Namespaced",
        names.get("singular", ""),
        tuple(names.get("shortNames") or ()),
        tuple(names.get("categories") or ()),
        subresources=subresources,
        storage_version=stored.name,
        list_kind=names.get("listKind", ""),
        custom=True,
        definition=obj["metadata"]["name"],
        on_read=definitions.default_on_read if stored.has_defaults else None,
    )
