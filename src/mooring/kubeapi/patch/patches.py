"""Patches of stored objects, by the types of their resources: what the pipeline of a request calls."""

import json
from typing import Any

from mooring.kubeapi.patch.field_sets import Path
from mooring.kubeapi.patch.json_patch import TooManyOperations, json_patch, merge_patch
from mooring.kubeapi.patch.managed_fields import apply_configuration, track
from mooring.kubeapi.patch.managers import ConflictError
from mooring.kubeapi.patch.undeclared import undeclared
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.schemas.book import IGNORE, STRICT, WARN, Schemas, strict_error
from mooring.kubeapi.schemas.decoding import empty_object, repeated_fields
from mooring.kubeapi.status import ApiError, FieldError, Object, bad_request, invalid, unsupported_media_type
from mooring.model.values.strategic_merge import PatchError, go_text, strategic_merge

_PATCHES_OF_CUSTOM_RESOURCES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
_STATUS: tuple[Path, ...] = (("f:status",),)


class TypedPatches:
    """Patches objects of all resources; keeps track of who manages their fields."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._empty: dict[tuple[str, str], Object] = {}

    def patched(
        self,
        resource: Resource,
        live: Object,
        patch: Any,
        patch_type: str,
        *,
        version: str = "",
        validation: str = WARN,
        warnings: list[str] | None = None,
    ) -> Object:
        """What becomes of an object by a JSON, merge or strategic merge patch; raises 400, 415 or 422."""
        strict = [] if validation == IGNORE else repeated_fields(patch)
        if patch_type == "json":
            strict = [f"json patch {problem}" for problem in strict]
        new = self._merged(resource, live, patch, patch_type, version)
        decoded = self._schemas.decode(resource, new, version)
        problems = [*strict, *decoded.strict]
        error = decoded.error or (strict_error(problems) if problems and validation == STRICT else "")
        if error:
            shown = go_text(patch) if patch_type == "strategic" else json.dumps(new, separators=(",", ":"))
            raise invalid("", "", "", [FieldError("FieldValueInvalid", "patch", error, shown)])
        if validation == WARN and warnings is not None:
            warnings.extend(problems)
        found: Object = decoded.value
        return found

    def _merged(self, resource: Resource, live: Object, patch: Any, patch_type: str, version: str) -> Object:
        try:
            match patch_type:
                case "json" if not isinstance(patch, list):
                    what = "object" if isinstance(patch, dict) else "string"
                    type_ = "[]handlers.jsonPatchOp"
                    raise bad_request(
                        f"error decoding patch: json: cannot unmarshal {what} into Go value of type {type_}"
                    )
                case "json":
                    new = json_patch(live, patch)
                case "merge":
                    new = merge_patch(live, patch)
                case "strategic" if not isinstance(patch, dict):
                    raise bad_request("json: cannot unmarshal array into Go value of type map[string]interface {}")
                case _ if resource.custom or resource.definition:
                    raise unsupported_media_type(_PATCHES_OF_CUSTOM_RESOURCES)
                case _:
                    new = strategic_merge(live, patch, self._schemas.type_of(resource, version))
        except TooManyOperations as error:
            raise ApiError(413, "RequestEntityTooLarge", str(error)) from error
        except PatchError as error:
            if patch_type == "json":
                message = "the server rejected our request due to an error in our request"
                raise ApiError(422, "Invalid", message, {}) from error
            raise ApiError(500, "", str(error)) from error
        if not isinstance(new, dict):
            raise bad_request("json: cannot unmarshal the patched value into an object")
        return new

    def applied(
        self,
        resource: Resource,
        live: Object | None,
        applied: Object,
        manager: str,
        force: bool,
        subresource: str,
        *,
        now: str,
        version: str = "",
    ) -> Object:
        """What becomes of an object, or of nothing, by server-side apply; raises 409 where managers disagree."""
        type_ = self._schemas.type_of(resource, version)
        metadata = applied.get("metadata") or {}
        if metadata.get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        if errors := undeclared(applied, type_):
            name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
            group, _, short = applied.get("apiVersion", "").rpartition("/")
            about = f"{name}; {group}/{short}, Kind={applied.get('kind', '')}"
            listed = errors[0] if len(errors) == 1 else "errors:\n" + "".join(f"  {error}\n" for error in errors)
            # The API server says 500 here, for what is a fault of the request.
            raise bad_request(f"failed to create typed patch object ({about}): {listed}")
        try:
            new = apply_configuration(
                live,
                applied,
                type_,
                manager=manager,
                now=now,
                empty=self._nothing(resource, version),
                subresource=subresource,
                force=force,
                ignored=_ignored(resource, subresource),
            )
        except ConflictError as conflict:
            raise ApiError(409, "Conflict", str(conflict), {"causes": conflict.causes}) from None
        decoded = self._schemas.decode(resource, new, version)
        if decoded.error:
            raise bad_request(decoded.error)
        found: Object = decoded.value
        return found

    def track(
        self, resource: Resource, old: Object | None, new: Object, manager: str, subresource: str, now: str
    ) -> None:
        """Note in `new` whose its fields are after an update; those that write without a name leave no trace."""
        if not manager:
            return
        tracked = track(
            old,
            new,
            self._schemas.type_of(resource),
            manager=manager,
            now=now,
            empty=self._nothing(resource, ""),
            subresource=subresource,
            ignored=_ignored(resource, subresource),
        )
        new["metadata"] = tracked["metadata"]

    def _nothing(self, resource: Resource, version: str) -> Object:
        """What an object that says nothing looks like: structs that are always there are nobody's doing."""
        if resource.definition or resource.custom:
            return {}
        key = (resource.key, version)
        if key not in self._empty:
            self._empty[key] = empty_object(self._schemas.type_of(resource, version))
        return self._empty[key]


def _ignored(resource: Resource, subresource: str) -> tuple[Path, ...]:
    """What a write cannot change, and so cannot own."""
    if "status" not in resource.subresources:
        return ()
    return (("f:spec",),) if subresource == "status" else () if subresource else _STATUS
