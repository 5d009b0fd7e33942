"""Manifests that change step by step: each step's documents are applied over those before, as `kubectl apply` would."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mooring.model.api.meta import ObjectMeta, TypeMeta
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.jobs.expansion import controller_of
from mooring.model.loading.catalog import Catalog
from mooring.model.loading.documents import Document, read_documents
from mooring.model.loading.fields import FieldChecks
from mooring.model.loading.replicas import REPLICAS, WITHOUT, expand_node, expand_pod
from mooring.model.objects.kinds import decode
from mooring.model.objects.picture import Manifests
from mooring.model.places import CLUSTER_SCOPED, Place

Identity = tuple[str, str, str, str]
"""Group, kind, namespace and name."""

WITHOUT_PODS = frozenset({"Pod", "LimitRange", "ResourceQuota", "PriorityClass", *CLUSTER_SCOPED})
"""Kinds that bring no templates of pods, and change what is filled in for new ones."""

_COPIED: dict[tuple[str, str], tuple[type[Any], Callable[[Any, Place], Sequence[Any]]]] = {
    ("", "Pod"): (Pod, expand_pod),
    ("", "Node"): (Node, expand_node),
}
"""The groups and kinds of which one manifest may stand for many."""


def load_steps(steps: Sequence[Sequence[str | Path]], checks: FieldChecks | None = None) -> list[Manifests]:
    """The whole cluster after each step; the first is taken as it stands.

    A document replaces the one of the same kind and name; one with a deletionTimestamp takes it away at once. Either
    may also name a single copy of a manifest with replicas, or a single pod of a workload, which then makes another.
    Documents without a name (generateName) are added each time.
    """
    story = _Story()
    found: list[Manifests] = []
    for number, paths in enumerate(steps):
        for document in read_documents(paths, checks):
            story.apply(document, is_first=not number)
        found.append(story.collect())
    return found


class _Story:
    """What has been said so far, and what became of single objects that were made from it."""

    def __init__(self) -> None:
        self._known: dict[Identity | int, Document] = {}
        self._nameless = 0
        self._copies: dict[Identity, set[str] | None] = {}
        """The names that each manifest with replicas stands for; None until somebody asks."""
        self._made: dict[str, Pod] = {}
        """By key: the pods that workloads had made when the last step was over."""
        self._pods: dict[str, Pod] = {}
        """By key: all pods then."""
        self._remade: Counter[str] = Counter()
        """By key: how often a pod made room for another of that name: it was deleted, or its template changed."""
        self._told: set[Identity] = set()
        """What the documents of this step are about."""

    def apply(self, document: Document, *, is_first: bool) -> None:
        meta = decode(document.source, TypeMeta, document.place, document.kind).metadata
        identity = _identity(document, meta)
        self._told.add(identity)
        if not meta.name:
            self._nameless += 1
            self._known[self._nameless] = document
        elif meta.deletion_timestamp is not None and not is_first:
            self._delete(identity, document)
        else:
            if not is_first and identity not in self._known:
                self._leave_template(identity)
                document = self._keep_owner(identity, document)
            if not is_first:
                document = self._keep_spec(identity, document)
            self._known[identity] = document
            self._copies.pop(identity, None)
            if REPLICAS in (meta.annotations or {}) and identity[:2] in _COPIED:
                self._copies[identity] = None

    def collect(self) -> Manifests:
        catalog = Catalog()
        for document in self._known.values():
            catalog.add_document(document)
        manifests = catalog.picture()
        for pod in manifests.pods if self._pods else ():
            self._keep_or_remake(pod)
            if pod.key in self._remade and not pod.metadata.uid:
                pod.metadata = replace(pod.metadata, uid=f"{pod.key}-{self._remade[pod.key]}")
        self._told.clear()
        self._made = {pod.key: pod for pod in manifests.pods if controller_of(pod.metadata) is not None}
        self._pods = {pod.key: pod for pod in manifests.pods}
        return manifests

    def _keep_or_remake(self, pod: Pod) -> None:
        """A pod is what it was when it was made (limits of its namespace and classes of priority may have changed
        since), unless this step speaks of it. For one whose template it changes, the workload makes another."""
        before = self._pods.get(pod.key)
        if before is None or before.spec == pod.spec or self._is_told(pod):
            return
        spec = replace(pod.spec, priority=before.spec.priority, preemption_policy=before.spec.preemption_policy)
        if controller_of(pod.metadata) is None or not self._templates_told(pod.metadata.namespace):
            pod.spec = before.spec
        elif before.spec != spec:
            self._remade[pod.key] += 1

    def _is_told(self, pod: Pod) -> bool:
        of = ("", "Pod", pod.metadata.namespace)
        if (*of, pod.metadata.name) in self._told:
            return True
        templates = (found for found in self._copies if found in self._told and found[:3] == of)
        return any(pod.metadata.name in self._names_of(template) for template in templates)

    def _templates_told(self, namespace: str) -> bool:
        """Whether a document of this step may be a workload of a namespace."""
        return any(found[2] == namespace and found[1] not in WITHOUT_PODS for found in self._told)

    def _delete(self, identity: Identity, document: Document) -> None:
        """Take away what was given, one copy of it, or a pod that a workload made."""
        key = _pod_key(identity)
        if key and identity in self._known and _is_done(self._known[identity]):
            return
        is_known = self._known.pop(identity, None) is not None or self._leave_template(identity)
        self._copies.pop(identity, None)
        if not is_known and key not in self._made:
            _, kind, namespace, name = identity
            scoped = name if kind in CLUSTER_SCOPED else f"{namespace}/{name}"
            expected = f"the name of a {kind} that is there, to delete it"
            raise document.place.error("metadata.name", expected=expected, found=scoped, subject=f"{kind} {scoped}")
        if key:
            self._remade[key] += 1

    def _leave_template(self, identity: Identity) -> bool:
        """Let a manifest with replicas no longer make the copy of this name; False if none makes it."""
        *of, name = identity
        for template in self._copies:
            if list(template[:3]) == of and name in self._names_of(template):
                self._names_of(template).discard(name)
                self._known[template] = _without(self._known[template], name)
                return True
        return False

    def _names_of(self, template: Identity) -> set[str]:
        names = self._copies[template]
        if names is None:
            document = self._known[template]
            type_, expand = _COPIED[template[:2]]
            copies = expand(decode(document.source, type_, document.place, document.kind), document.place)
            names = self._copies[template] = {copy.metadata.name for copy in copies}
        return names

    def _keep_owner(self, identity: Identity, document: Document) -> Document:
        """A pod that a workload made remains its, if the document does not say whose it is."""
        made = self._made.get(_pod_key(identity))
        if made is None:
            return document
        source = _mapping(document)
        metadata = source["metadata"]
        if metadata.get("ownerReferences"):
            return document
        kept = {"ownerReferences": msgspec.to_builtins(made.metadata.owner_references)}
        for field, texts in (("labels", made.metadata.labels), ("annotations", made.metadata.annotations)):
            kept[field] = {**(texts or {}), **(metadata.get(field) or {})}
        return Document(
            document.api_version, document.kind, document.place, {**source, "metadata": {**metadata, **kept}}
        )

    def _keep_spec(self, identity: Identity, document: Document) -> Document:
        """A pod of which only the status is told is otherwise what it was."""
        before = self._pods.get(_pod_key(identity))
        source = _mapping(document) if before is not None else {}
        if before is None or source.get("spec"):
            return document
        spec = msgspec.to_builtins(before.spec)
        return Document(document.api_version, document.kind, document.place, {**source, "spec": spec})


def _identity(document: Document, meta: ObjectMeta) -> Identity:
    return document.api_version.rpartition("/")[0], document.kind, meta.namespace or "default", meta.name


def _pod_key(identity: Identity) -> str:
    group, kind, namespace, name = identity
    return f"{namespace}/{name}" if (group, kind) == ("", "Pod") else ""


def _is_done(document: Document) -> bool:
    """Whether a pod has done its part of a workload: that counts when its object is gone, too."""
    pod = decode(document.source, Pod, document.place, document.kind)
    return pod.status.phase == "Succeeded" and controller_of(pod.metadata) is not None


def _mapping(document: Document) -> dict[str, Any]:
    source = document.source
    found: dict[str, Any] = source if isinstance(source, dict) else msgspec.json.decode(source)
    return found


def _without(document: Document, name: str) -> Document:
    """The same manifest, but for one of its copies."""
    source = _mapping(document)
    metadata = source["metadata"]
    annotations = dict(metadata["annotations"])
    annotations[WITHOUT] = ",".join(filter(None, (annotations.get(WITHOUT), name)))
    return Document(
        document.api_version,
        document.kind,
        document.place,
        {**source, "metadata": {**metadata, "annotations": annotations}},
    )
