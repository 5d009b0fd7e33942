"""Manifests that a cluster starts with: read, multiplied where they stand for many, and applied."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mooring.kubeapi.api import Api
from mooring.kubeapi.conversion import to_storage
from mooring.kubeapi.metadata import metadata_of
from mooring.kubeapi.nodes.registration import free_addresses, register_node
from mooring.kubeapi.schemas.book import STRICT
from mooring.kubeapi.status import ApiError, Object, bad_request
from mooring.kubeapi.templates import TemplateError, expand
from mooring.model.loading.documents import Document, read_documents

MANAGER = "mooring-up"
_FIRST = (
    "CustomResourceDefinition",
    "Namespace",
    "Node",
    "PriorityClass",
    "StorageClass",
    "ServiceAccount",
    "LimitRange",
)
"""Kinds that others lean on: they are applied before the rest, in whatever order the files have them."""


def read_manifests(paths: Sequence[str | Path]) -> list[tuple[Document, Object]]:
    """Every object of the files, in the order in which they are to be applied."""
    found = []
    for document in read_documents(paths):
        source = document.source
        obj = source if isinstance(source, dict) else msgspec.json.decode(source)
        obj = {"apiVersion": document.api_version, "kind": document.kind, **obj}
        with _at(document):
            found += [(document, each) for each in expand(obj)]
    return sorted(found, key=lambda each: _rank(each[0].kind))


def _rank(kind: str) -> int:
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


@contextmanager
def _at(document: Document) -> Iterator[None]:
    """Say of what is wrong where it stands."""
    try:
        yield
    except TemplateError as error:
        raise document.place.error(
            "metadata", expected=error.expected, found=error.found, subject=document.kind
        ) from error
    except ApiError as error:
        expected = "an object that the API takes"
        raise document.place.error("", expected=expected, found=str(error), subject=document.kind) from error


def apply_manifests(api: Api, manifests: Sequence[tuple[Document, Object]], settle: Callable[[], None]) -> None:
    """Apply them as `kubectl apply --server-side` would.

    Namespaces that nobody has made are made, as `mooring schedule` takes them for granted; `settle` lets controllers
    put into them what pods need.
    """
    for document, obj in manifests:
        with _at(document):
            _make_namespace(api, obj)
    settle()
    addresses = free_addresses(api)
    for document, obj in manifests:
        with _at(document):
            _apply(api, obj, addresses)


def _make_namespace(api: Api, obj: Object) -> None:
    namespace = metadata_of(obj).get("namespace") or "default"
    if not isinstance(namespace, str):
        raise bad_request("metadata.namespace: expected text")
    if api.find("namespaces", None, namespace) is None:
        api.create("namespaces", {"metadata": {"name": namespace}})


def _apply(api: Api, obj: Object, addresses: Iterator[str]) -> None:
    resource = api.registry.of_kind(obj.get("apiVersion", ""), obj.get("kind", ""))
    version = obj["apiVersion"].rpartition("/")[2]
    checked = api.schemas.read(resource, obj, version, STRICT, [])
    about = metadata_of(checked)
    if resource.key == "nodes":
        register_node(api, checked, addresses)
        return
    namespace = about.get("namespace") or "default" if resource.namespaced else None
    if about.get("generateName") and not about.get("name"):
        api.create(resource, to_storage(resource, version, checked), namespace, manager=MANAGER)
        return
    obj.pop("status", None)
    api.patch(resource, namespace, about.get("name", ""), obj, "apply", version=version, manager=MANAGER, force=True)


def make_nodes(count: int) -> list[Object]:
    """So many nodes, spread over three zones."""
    return [
        {
            "metadata": {
                "name": f"node-{number}",
                "labels": {
                    "topology.kubernetes.io/zone": f"zone-{number % 3}",
                    "topology.kubernetes.io/region": "region-0",
                },
            }
        }
        for number in range(count)
    ]
