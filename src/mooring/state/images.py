"""Which nodes have which container images."""

from mooring.model.api.nodes import Node


class Image:
    """A container image: its size as first reported, and the rows that have it."""

    __slots__ = ("rows", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.rows = set[int]()


def add_images(images: dict[str, Image], row: int, node: Node) -> None:
    """A node reports its images; each by all its names."""
    for image in node.status.images or ():
        for name in image.names:
            images.setdefault(name, Image(image.size_bytes)).rows.add(row)


def forget_images(images: dict[str, Image], row: int, node: Node | None) -> None:
    """A node is gone, or reports anew."""
    for image in (node.status.images or ()) if node else ():
        for name in image.names:
            found = images.get(name)
            if found is not None:
                found.rows.discard(row)
                if not found.rows:
                    del images[name]
