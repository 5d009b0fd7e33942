"""Manifests in, everything that scheduling reads out: typed, validated, defaulted, with workloads expanded to pods.

`load_manifests` reads files, `build_manifests` takes documents that are in memory already. Both refuse bad input with
one ManifestError that says where it stands; nothing is half loaded.
"""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from mooring.model.loading.catalog import Catalog
from mooring.model.loading.documents import flatten, read_documents
from mooring.model.loading.fields import FieldChecks
from mooring.model.objects.kinds import kind_of_type
from mooring.model.objects.picture import Manifests
from mooring.model.places import Place, show

__all__ = ["Manifests", "build_manifests", "collector_paused", "load_manifests"]


def load_manifests(paths: Sequence[str | Path], checks: FieldChecks | None = None) -> Manifests:
    """Read manifests from files, folders (recursive) and `-` for standard input."""
    with collector_paused():
        catalog = Catalog()
        for document in read_documents(paths, checks):
            catalog.add_document(document)
        return catalog.picture()


def build_manifests(documents: Iterable[Any], source: str = "<memory>") -> Manifests:
    """Take documents in memory: mappings as a user writes them, JSON text, or typed objects (which are taken over).

    Error messages number the documents from 1, after `source`.
    """
    with collector_paused():
        catalog = Catalog()
        for number, document in enumerate(documents, start=1):
            place = Place(source, number)
            kind = kind_of_type(type(document))
            if kind is not None:
                catalog.add(kind, document, place)
            elif isinstance(document, dict | bytes | msgspec.Raw):
                for found in (found for found in flatten(document, place) if not found.is_wrapper):
                    catalog.add_document(found)
            else:
                raise place.error("", expected="an object", found=show(document))
        return catalog.picture()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic collector while one big state is built, and only built.

    It would walk millions of new objects again and again, and find nothing to collect.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
