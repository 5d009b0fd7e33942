"""The pipeline of a request: admit, default, prepare, validate, store. In process and over HTTP alike.

Everything here is synchronous and runs in one thread: what was read cannot have changed until it is written. Objects
are plain dictionaries in their resource's storage version; what is handed out is fresh and belongs to the caller. A
change is decided when a method returns, on disk and known to watchers when `store.committed(revision)` says so.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec

from mooring.kubeapi import metadata
from mooring.kubeapi.auth.user import SYSTEM, User
from mooring.kubeapi.conversion import from_storage, to_storage
from mooring.kubeapi.deletion import Deletion, carry_out, is_finished
from mooring.kubeapi.patch.patches import TypedPatches
from mooring.kubeapi.registry import Registry, Resource
from mooring.kubeapi.requests import CREATE, DELETE, UPDATE, Admission, NoAdmission, Request
from mooring.kubeapi.schemas.book import WARN, Schemas
from mooring.kubeapi.selectors import make_selector
from mooring.kubeapi.status import (
    FieldError,
    Object,
    already_exists,
    bad_request,
    invalid,
    method_not_allowed,
    not_found,
)
from mooring.kubeapi.store.records import Event, Record
from mooring.kubeapi.store.store import Store
from mooring.kubeapi.strategy import Strategy

if TYPE_CHECKING:
    from mooring.kubeapi.auth.tokens import Tokens

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
Objects = list[Object]
Records = list[Record]
_VERBS = {CREATE: "create", UPDATE: "update", DELETE: "delete"}
GENERATED_TRIES = 8
"""How often a name is made up until one is free."""


class Options(TypedDict, total=False):
    """What may be said with every write."""

    user: User
    dry_run: bool
    manager: str
    """The field manager, in whose name fields are owned from now on."""
    warnings: list[str]
    """A list that what the client should know is added to."""
    verb: str
    """Of a creation by PUT or by apply: the verb of the request."""


class Api:
    """All that can be done to objects. `resource` is "pods", "deployments.apps", or a Resource."""

    def __init__(
        self,
        store: Store,
        registry: Registry | None = None,
        *,
        strategy_of: Callable[[Resource], Strategy] = lambda resource: Strategy(),
        admission: Admission | None = None,
        schemas: Schemas | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.registry = registry or Registry()
        self.strategy_of = strategy_of
        self.admission: Admission = admission or NoAdmission()
        self.schemas = schemas or Schemas()
        self.patches = TypedPatches(self.schemas)
        self.now = now
        self.tokens: Tokens | None = None
        """Who makes tokens for service accounts, where someone does."""

    # Reading

    def record(self, resource: str | Resource, namespace: str | None, name: str) -> Record:
        """An object as it is stored; raises 404."""
        resource = self.registry.find(resource)
        found = self.store.get(resource.storage, (namespace or "") if resource.namespaced else "", name)
        if found is None:
            raise not_found(resource.group, resource.plural, name)
        return found

    def get(self, resource: str | Resource, namespace: str | None, name: str) -> Object:
        return self.record(resource, namespace, name).decode()

    def find(self, resource: str | Resource, namespace: str | None, name: str) -> Object | None:
        """As `get`, with None for what is not there."""
        resource = self.registry.find(resource)
        found = self.store.get(resource.storage, (namespace or "") if resource.namespaced else "", name)
        return found.decode() if found is not None else None

    def records(
        self, resource: str | Resource, namespace: str | None = None, labels: str = "", fields: str = ""
    ) -> Records:
        resource = self.registry.find(resource)
        selects = make_selector(resource, self.strategy_of(resource), labels, fields)
        found = self.store.records(resource.storage, namespace if resource.namespaced else None)
        return list(found) if selects is None else [record for record in found if selects(record)]

    def list(
        self, resource: str | Resource, namespace: str | None = None, labels: str = "", fields: str = ""
    ) -> Objects:
        """The objects of a namespace, or of all (None), by namespace and name."""
        return [record.decode() for record in self.records(resource, namespace, labels, fields)]

    def subscribe(self, resource: str | Resource, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call back for every change from now on, in order of revisions; the result ends it. A change is told when it
        is on disk, never from within the call that makes it."""
        return self.store.subscribe(self.registry.find(resource).storage, callback)

    # Writing

    def create(
        self,
        resource: str | Resource,
        obj: Object,
        namespace: str | None = None,
        **options: Unpack[Options],
    ) -> Object:
        resource = self.registry.find(resource)
        if "create" not in resource.verbs:
            raise method_not_allowed(resource.group, resource.plural, "create")
        obj = _copy(obj)
        metadata.set_kind(resource, obj)
        namespace = self._namespace(resource, obj, namespace)
        name = metadata.begin(resource, obj, namespace, self.now())
        strategy = self.strategy_of(resource)
        request = _request(CREATE, resource, namespace, name, obj, None, "", options)

        strategy.default(obj)
        now = metadata.timestamp(self.now())
        self.patches.track(resource, None, obj, options.get("manager", ""), "", now)
        self.admission.mutate(request)
        obj = request.object
        strategy.prepare_create(obj)
        if errors := strategy.validate(obj):
            raise invalid(resource.group, resource.kind, name, errors)
        request.warnings.extend(strategy.warnings(obj, None))
        self._make_unique(resource, obj, namespace)
        request.name = name = obj["metadata"].get("name") or ""
        if not name:
            raise bad_request("name or generateName is required")
        self.admission.validate(request)
        if not request.dry_run:
            self.store.put(resource.storage, namespace, name, obj)
        return obj

    def _namespace(self, resource: Resource, obj: Object, namespace: str | None) -> str:
        if not resource.namespaced:
            return ""
        namespace = namespace or metadata.metadata_of(obj).get("namespace")
        return namespace or "default"

    def _make_unique(self, resource: Resource, obj: Object, namespace: str) -> None:
        """Refuse a name that is taken; make up another where it was made up."""
        about = obj["metadata"]
        name = about.get("name") or ""
        for _ in range(GENERATED_TRIES):
            if self.store.get(resource.storage, namespace, name) is None:
                about["name"] = name
                return
            if not about.get("generateName") or not name.startswith(about["generateName"][:58]):
                break
            name = metadata.generate_name(about["generateName"])
        raise already_exists(resource.group, resource.plural, about["name"])

    def update(
        self,
        resource: str | Resource,
        obj: Object,
        *,
        subresource: str = "",
        **options: Unpack[Options],
    ) -> Object:
        """Replace an object, or the part of it that a subresource is. 409 if it is not what it was when read."""
        resource = self.registry.find(resource)
        obj = _copy(obj)
        metadata.set_kind(resource, obj)
        about = metadata.metadata_of(obj)
        namespace = self._namespace(resource, obj, None)
        name = about.get("name") or ""
        record = self.store.get(resource.storage, namespace, name)
        strategy = self.strategy_of(resource)
        if record is None:
            if strategy.allows_create_on_update and not subresource:
                options["verb"] = "update"
                return self.create(resource, obj, namespace, **options)
            raise not_found(resource.group, resource.plural, name)
        if not about.get("resourceVersion") and not strategy.allows_unconditional_update:
            error = FieldError("FieldValueInvalid", "metadata.resourceVersion", "must be specified for an update", 0)
            raise invalid(resource.group, resource.kind, name, [error])
        return self._replace(resource, record, obj, subresource, options)

    def patch(
        self,
        resource: str | Resource,
        namespace: str | None,
        name: str,
        patch: Any,
        patch_type: str,
        *,
        subresource: str = "",
        force: bool = False,
        version: str = "",
        validation: str = WARN,
        **options: Unpack[Options],
    ) -> Object:
        """Change an object by a patch: "json", "merge", "strategic", or "apply", which creates what is not there.

        The patch is of an object in `version`, that of the storage if none is said; `validation` (Strict, Warn or
        Ignore) is about its unknown and duplicate fields.
        """
        resource = self.registry.find(resource)
        version = version or resource.storage_version
        namespace = (namespace or "default") if resource.namespaced else ""
        record = self.store.get(resource.storage, namespace, name)
        live = from_storage(resource, version, record.decode()) if record is not None else None
        if record is None and (patch_type != "apply" or subresource):
            raise not_found(resource.group, resource.plural, name)
        if patch_type == "apply":
            manager, now = options.get("manager", ""), metadata.timestamp(self.now())
            new = self.patches.applied(resource, live, patch, manager, force, subresource, now=now, version=version)
            options["manager"] = ""
        else:
            assert live is not None
            warnings = options.get("warnings")
            new = self.patches.patched(
                resource, live, patch, patch_type, version=version, validation=validation, warnings=warnings
            )
        new = to_storage(resource, version, new)
        metadata.set_kind(resource, new)
        if record is None:
            metadata.metadata_of(new)["name"] = name
            options["verb"] = "patch"
            return self.create(resource, new, namespace, **options)
        return self._replace(resource, record, new, subresource, options, verb="patch")

    def _replace(
        self, resource: Resource, record: Record, obj: Object, subresource: str, options: Options, verb: str = "update"
    ) -> Object:
        """The rest of every update and patch."""
        old = record.decode()
        metadata.carry_over(resource, obj, old)
        strategy = self.strategy_of(resource)
        request = _request(UPDATE, resource, record.namespace, record.name, obj, old, subresource, options)
        request.verb = verb

        strategy.default(obj)
        now = metadata.timestamp(self.now())
        self.patches.track(resource, old, obj, options.get("manager", ""), subresource, now)
        strategy.prepare_update(obj, old, subresource)
        self.admission.mutate(request)
        obj = request.object
        if errors := strategy.validate_update(obj, old, subresource):
            raise invalid(resource.group, resource.kind, record.name, errors)
        request.warnings.extend(strategy.warnings(obj, old))
        self.admission.validate(request)
        return self.write(resource, record, obj, dry_run=request.dry_run)

    def write(self, resource: Resource, record: Record, obj: Object, *, dry_run: bool = False) -> Object:
        """Store what an update came to: nothing if nothing changed; its end, if that is all it was waiting for."""
        if dry_run or obj == record.decode():
            return obj
        if is_finished(resource, obj):
            self.store.remove(resource.storage, record.namespace, record.name, obj)
        else:
            self.store.put(resource.storage, record.namespace, record.name, obj)
        return obj

    def delete(
        self,
        resource: str | Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period: int | None = None,
        propagation: str | None = None,
        **options: Unpack[Options],
    ) -> Object:
        """Delete an object, or begin to: it stays while it has grace or finalizers. Answers as the API does, with a
        Status, or with the object as it is now."""
        resource = self.registry.find(resource)
        record = self.record(resource, namespace, name)
        obj = record.decode()
        request = _request(DELETE, resource, record.namespace, name, obj, obj, "", options)
        self.admission.validate(request)
        how = Deletion(uid, resource_version, grace_period, propagation)
        return carry_out(self, resource, record, how, dry_run=request.dry_run)

    def delete_collection(
        self,
        resource: str | Resource,
        namespace: str | None,
        labels: str = "",
        fields: str = "",
        *,
        grace_period: int | None = None,
        propagation: str | None = None,
        **options: Unpack[Options],
    ) -> Objects:
        """Delete all that a selector selects; returns them as they were."""
        found = self.records(resource, namespace, labels, fields)
        how = Deletion(None, None, grace_period, propagation)._asdict()
        for record in found:
            self.delete(resource, record.namespace, record.name, **how, **options)
        return [record.decode() for record in found]

    def create_sub(
        self,
        resource: str | Resource,
        namespace: str | None,
        name: str,
        subresource: str,
        body: Object,
        **options: Unpack[Options],
    ) -> Object:
        """POST to a subresource: binding, eviction, token."""
        from mooring.kubeapi.subresources import create

        return create(self, self.registry.find(resource), namespace, name, subresource, body, options)

    def get_sub(self, resource: str | Resource, namespace: str | None, name: str, subresource: str) -> Object:
        """GET of a subresource: scale, status."""
        from mooring.kubeapi.subresources import read

        return read(self, self.registry.find(resource), namespace, name, subresource)

    def update_sub(
        self,
        resource: str | Resource,
        namespace: str | None,
        name: str,
        subresource: str,
        body: Object,
        **options: Unpack[Options],
    ) -> Object:
        """PUT of a subresource that is an object of its own kind: scale."""
        from mooring.kubeapi.subresources import update

        return update(self, self.registry.find(resource), namespace, name, subresource, body, options)


def _copy(obj: Object) -> Object:
    """The same object, shared with nobody."""
    copied: Object = _decode(_encode(obj))
    return copied


def _request(
    operation: str,
    resource: Resource,
    namespace: str,
    name: str,
    obj: Object,
    old: Object | None,
    subresource: str,
    options: Options,
) -> Request:
    user, dry_run = options.get("user", SYSTEM), options.get("dry_run", False)
    warnings = options.get("warnings", [])
    verb = options.get("verb") or _VERBS[operation]
    return Request(operation, resource, namespace, name, obj, old, subresource, user, dry_run, warnings, verb)
