"""The history of a template: one ControllerRevision for each form that it has had."""

from typing import Any

import msgspec

from mooring.kubeapi.api import Api
from mooring.kubeapi.controllers.informers import Informer
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.controllers.template_hash import template_hash
from mooring.kubeapi.status import ApiError

Object = dict[str, Any]
RESOURCE = "controllerrevisions.apps"


class Revisions:
    """The revisions of one owner."""

    def __init__(self, api: Api, informer: Informer[Object], owner: Object, label: str) -> None:
        """`label` is where a revision carries its hash."""
        self._api, self._informer, self._owner, self._label = api, informer, owner, label
        self._namespace = owner["metadata"]["namespace"]

    def all(self) -> list[Object]:
        """Oldest first."""
        found = self._informer.controlled_by(self._owner["metadata"]["uid"])
        return sorted(
            found, key=lambda one: (one["revision"], one["metadata"]["creationTimestamp"], one["metadata"]["name"])
        )

    def adopt_orphans(self, labels: dict[str, str]) -> None:
        """Take revisions that have our labels and belong to nobody."""
        for found in list(self._informer.list(self._namespace)):
            metadata = found["metadata"]
            is_orphan = not any(one.get("controller") for one in metadata.get("ownerReferences") or ())
            given = metadata.get("labels") or {}
            if is_orphan and labels and all(given.get(key) == value for key, value in labels.items()):
                fresh = self._api.get(RESOURCE, self._namespace, metadata["name"])
                fresh["metadata"].setdefault("ownerReferences", []).append(owner_reference(self._owner))
                self._api.update(RESOURCE, fresh)

    def of_now(self, collisions: int) -> tuple[Object, int]:
        """The revision of the template as it is, made if it is new; and how often a name was taken."""
        template = self._owner["spec"]["template"]
        known = self.all()
        newest = known[-1]["revision"] if known else 0
        same = [one for one in known if template_of(one) == template]
        if same:
            found = same[-1]
            if found["revision"] == newest:
                return found, collisions
            fresh = self._api.get(RESOURCE, self._namespace, found["metadata"]["name"])
            fresh["revision"] = newest + 1
            return self._api.update(RESOURCE, fresh), collisions
        return self._create(template, newest + 1, collisions)

    def _create(self, template: Object, number: int, collisions: int) -> tuple[Object, int]:
        while True:
            mark = template_hash(template, collisions)
            name = f"{self._owner['metadata']['name']}-{mark}"
            labels = (template.get("metadata") or {}).get("labels") or {}
            made = {
                "metadata": {
                    "name": name,
                    "labels": {**labels, self._label: mark},
                    "annotations": dict(self._owner["metadata"].get("annotations") or {}),
                    "ownerReferences": [owner_reference(self._owner)],
                },
                "data": _in_order({"spec": {"template": {**template, "$patch": "replace"}}}),
                "revision": number,
            }
            made["metadata"]["annotations"].pop("kubectl.kubernetes.io/last-applied-configuration", None)  # type: ignore[index]
            try:
                return self._api.create(RESOURCE, made, self._namespace), collisions
            except ApiError as error:
                if error.code != 409:
                    raise
                collisions += 1

    def truncate(self, keep: set[str], limit: int) -> None:
        """Forget the oldest revisions beyond a limit that nobody needs."""
        spare = [one for one in self.all() if one["metadata"]["name"] not in keep]
        for found in spare[: max(0, len(spare) - limit)]:
            self._api.delete(RESOURCE, self._namespace, found["metadata"]["name"])


def _in_order(data: Object) -> Object:
    """Sort all keys: whoever compares revisions compares their bytes, as Go writes them."""
    ordered: Object = msgspec.json.decode(msgspec.json.encode(data, order="sorted"))
    return ordered


def template_of(revision: Object) -> Object:
    """The pod template that a revision stands for."""
    template = dict(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return template
