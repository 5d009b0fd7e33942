"""Who belongs to whom: owner references, and how a controller adopts what it selects and lets go of the rest."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from mooring.kubeapi.api import Api
from mooring.kubeapi.controllers.informers import controller_of
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import LabelSelector
from mooring.model.values.selectors import Selector, compile_label_selector

Object = dict[str, Any]


def owner_reference(owner: Object, *, blocks: bool = True) -> Object:
    """A reference that says: this one is my controller."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    if blocks:
        reference["blockOwnerDeletion"] = True
    return reference


def selector_of(selector: Mapping[str, Any] | None) -> Selector:
    """Compile a label selector as it stands in an object."""
    return compile_label_selector(None if selector is None else msgspec.convert(dict(selector), LabelSelector))


def modify(
    api: Api, resource: str, namespace: str, name: str, change: Callable[[Object], bool | None]
) -> Object | None:
    """Change an object as it is now; nothing happens if it is gone, or if `change` says False."""
    try:
        found = api.get(resource, namespace, name)
    except ApiError as error:
        if error.code == 404:
            return None
        raise
    if change(found) is False:
        return found
    return api.update(resource, found)


O = TypeVar("O")  # noqa: E741


class Claims:
    """Settles which objects an owner controls: matching orphans are adopted, what no longer matches is released."""

    def __init__(self, api: Api, resource: str, owner: Object, selector: Selector) -> None:
        self._api, self._resource, self._owner, self._selector = api, resource, owner, selector

    def settle(self, candidates: Iterable[O], metadata: Callable[[O], Any]) -> list[O]:
        """The candidates that the owner controls from now on."""
        uid = self._owner["metadata"]["uid"]
        is_leaving = "deletionTimestamp" in self._owner["metadata"]
        kept = []
        for candidate in candidates:
            found = metadata(candidate)
            owner = found.controller
            matches = self._selector.matches(found.labels)
            if owner is not None and owner["uid"] == uid:
                if matches or is_leaving or self._release(found):
                    kept.append(candidate)
            elif (
                owner is None and matches and not is_leaving and found.deletion_timestamp is None and self._adopt(found)
            ):
                kept.append(candidate)
        return kept

    def _adopt(self, found: Any) -> bool:
        reference = owner_reference(self._owner)

        def add(obj: Object) -> bool:
            if obj["metadata"]["uid"] != found.uid or controller_of(obj) is not None:
                return False
            obj["metadata"].setdefault("ownerReferences", []).append(reference)
            return True

        return modify(self._api, self._resource, found.namespace, found.name, add) is not None

    def _release(self, found: Any) -> bool:
        """Let go of an object; tells whether it is still kept."""
        uid = self._owner["metadata"]["uid"]

        def drop(obj: Object) -> None:
            metadata = obj["metadata"]
            metadata["ownerReferences"] = [one for one in metadata.get("ownerReferences") or () if one["uid"] != uid]

        modify(self._api, self._resource, found.namespace, found.name, drop)
        return False
