"""Manifests that change step by step: each step's documents are applied over those before, as `kubectl apply` would."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from mooring.model.collection import Collection, Manifests
from mooring.model.documents import Document, read_documents
from mooring.model.kinds import decode
from mooring.model.meta import TypeMeta

Identity = tuple[str, str, str, str]


def load_steps(steps: Sequence[Sequence[str | Path]]) -> list[Manifests]:
    """The whole cluster after each step.

    A document replaces the one of the same kind and name; one with a deletionTimestamp takes it away at once. Documents
    without a name (generateName) are added each time.
    """
    known: dict[Identity | int, Document] = {}
    found: list[Manifests] = []
    for paths in steps:
        for document in read_documents(paths):
            _apply(document, known)
        found.append(_collect(known.values()))
    return found


def _apply(document: Document, known: dict[Identity | int, Document]) -> None:
    meta = decode(document.source, TypeMeta, document.place, document.kind).metadata
    group = document.api_version.rpartition("/")[0]
    key = (group, document.kind, meta.namespace or "default", meta.name) if meta.name else len(known)
    if meta.deletion_timestamp is None:
        known[key] = document
    else:
        known.pop(key, None)


def _collect(documents: Iterable[Document]) -> Manifests:
    collection = Collection()
    for document in documents:
        collection.add_document(document)
    return collection.finish()
