"""How far a long job has come, told to whoever watches; this one tells nobody."""

from types import TracebackType
from typing import Self


class Progress:
    """Phases of one job, each counted or not."""

    def __enter__(self) -> Self:
        return self

    def phase(self, name: str, total: int | None = None) -> None:
        """Begin another phase; the one before is done."""

    def reached(self, done: int) -> None:
        """So much of the phase is done."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The job is over."""
