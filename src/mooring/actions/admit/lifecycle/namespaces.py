"""The labels of namespaces, as queues select on them."""

from collections.abc import Iterator, Mapping

from mooring.state.related import RelatedObjects


class NamespaceLabels(Mapping[str, Mapping[str, str]]):
    """By namespace, its labels as they are now."""

    def __init__(self, related: RelatedObjects) -> None:
        self._related = related

    def __getitem__(self, namespace: str) -> Mapping[str, str]:
        return self._related.namespaces[namespace].metadata.labels or {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._related.namespaces)

    def __len__(self) -> int:
        return len(self._related.namespaces)
