"""What a kind adds to the pipeline of a request; `kinds/` has one of these for each resource that adds something."""

from typing import ClassVar

from mooring.kubeapi.status import FieldError, Object


class Strategy:
    """The rules of one resource. Objects are changed in place; this one has no rules, for kinds that need none."""

    fields_selectable: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Field selectors beside metadata.name and metadata.namespace, each with the path to its value."""
    fields_instead: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Of some of these: the path to the value that counts where the first has none."""
    allows_unconditional_update = True
    """Whether an update may leave out resourceVersion."""
    allows_create_on_update = False
    returns_deleted = False
    """Whether a deletion answers with the object rather than a Status."""

    def default(self, obj: Object) -> None:
        """Fill in what was left out."""

    def prepare_create(self, obj: Object) -> None:
        """Drop what a client may not set; a status, mostly."""

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        """Carry over what this kind of update may not change; count the generation."""
        if subresource == "status":
            for key in old.keys() | new.keys():
                if key not in ("status", "metadata", "kind", "apiVersion"):
                    if key in old:
                        new[key] = old[key]
                    else:
                        del new[key]

    def validate(self, obj: Object) -> list[FieldError]:
        return []

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[FieldError]:
        return []

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        """What the client should know though it is allowed."""
        return []

    def begin_deletion(self, obj: Object) -> None:
        """What a deletion notes in the object before it is decided whether it can go."""

    def grace_period(self, obj: Object, asked: int | None) -> int:
        """The seconds that a deletion leaves the object; most are gone at once."""
        return 0
