"""Namespaces that are being deleted: their pods go first, then everything else, then they."""

from mooring.kubeapi.controllers.conditions import set_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.slices import SLICE
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.records import Record

FINALIZER = "kubernetes"


class Namespaces(Controller):
    """Empties namespaces that are to go."""

    name = "namespace-controller"

    def start(self) -> None:
        self._namespaces = self.informers.of("namespaces")
        self._namespaces.on_change(self._changed)
        self._may_delete = SLICE
        """Objects that this look may still delete."""

    def _changed(self, old: Object | None, new: Object | None) -> None:
        found = new or old
        if found is not None and (new is None or "deletionTimestamp" in found["metadata"]):
            self.enqueue(("", found["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        name = key[1]
        namespace = self.api.find("namespaces", None, name)
        if namespace is not None and "deletionTimestamp" not in namespace["metadata"]:
            return
        left, failures = self._empty(name)
        if self._may_delete <= 0 and not failures:
            self.enqueue(key)
            return
        if namespace is None:
            return
        self._write_conditions(name, left, failures)
        if not left:
            self._finalize(name)
        else:
            self.enqueue(key, after=0.2 if len(left) < 100 else 1.0)

    def _empty(self, name: str) -> tuple[list[tuple[Resource, Record]], list[str]]:
        """Delete what is in a namespace: all pods before anything else."""
        failures: list[str] = []
        self._may_delete = SLICE
        pods = self.api.registry.find("pods")
        self._delete_all(pods, name, failures)
        resources = [one for one in self.api.registry if one.namespaced and "delete" in one.verbs and one is not pods]
        if not list(self.api.store.records(pods.storage, name)):
            for resource in resources:
                self._delete_all(resource, name, failures)
        left = [(one, record) for one in (pods, *resources) for record in self.api.store.records(one.storage, name)]
        seen: dict[tuple[str, str], tuple[Resource, Record]] = {}
        for resource, record in left:
            seen.setdefault((resource.storage, record.name), (resource, record))
        return list(seen.values()), failures

    def _delete_all(self, resource: Resource, namespace: str, failures: list[str]) -> None:
        for record in list(self.api.store.records(resource.storage, namespace)):
            if b'"deletionTimestamp"' in record.data and record.text_at(("metadata", "deletionTimestamp")):
                continue
            self._may_delete -= 1
            if self._may_delete < 0:
                return
            try:
                self.api.delete(resource, namespace, record.name, propagation="Background")
            except ApiError as error:
                if error.code != 404:
                    failures.append(f"{resource.key}/{record.name}: {error}")

    def _write_conditions(self, name: str, left: list[tuple[Resource, Record]], failures: list[str]) -> None:
        namespace = self.api.find("namespaces", None, name)
        if namespace is None:
            return
        status = namespace.setdefault("status", {})
        before = [dict(one) for one in status.get("conditions") or ()]
        now = self.now
        said = [
            (
                "NamespaceDeletionDiscoveryFailure",
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            ("NamespaceDeletionContentFailure", *_content_failure(failures)),
            ("NamespaceContentRemaining", *_remaining(left)),
            ("NamespaceFinalizersRemaining", *_finalizers(left)),
        ]
        for type_, value, reason, message in said:
            set_condition(status, type_, value, now, reason=reason, message=message)
        if status["conditions"] != before:
            self.api.update("namespaces", namespace, subresource="status")

    def _finalize(self, name: str) -> None:
        namespace = self.api.find("namespaces", None, name)
        if namespace is None:
            return
        spec = namespace.setdefault("spec", {})
        kept = [one for one in spec.get("finalizers") or () if one != FINALIZER]
        if kept != (spec.get("finalizers") or []):
            spec["finalizers"] = kept
            self.api.update("namespaces", namespace, subresource="finalize")


def _content_failure(failures: list[str]) -> tuple[str, str, str]:
    if not failures:
        return "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"
    return (
        "True",
        "ContentDeletionFailed",
        f"Failed to delete all resource types, {len(failures)} remaining: {failures[0]}",
    )


def _remaining(left: list[tuple[Resource, Record]]) -> tuple[str, str, str]:
    if not left:
        return "False", "ContentRemoved", "All content successfully removed"
    counts: dict[str, int] = {}
    for resource, _ in left:
        name = f"{resource.plural}.{resource.group}"
        counts[name] = counts.get(name, 0) + 1
    shown = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(counts.items()))
    return "True", "SomeResourcesRemain", f"Some resources are remaining: {shown}"


def _finalizers(left: list[tuple[Resource, Record]]) -> tuple[str, str, str]:
    counts: dict[str, int] = {}
    for _, record in left:
        if b'"finalizers"' in record.data:
            for finalizer in record.decode()["metadata"].get("finalizers") or ():
                counts[finalizer] = counts.get(finalizer, 0) + 1
    if not counts:
        return "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"
    shown = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(counts.items()))
    return "True", "SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {shown}"
