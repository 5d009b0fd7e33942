"""One undo log for everything that somebody tries out: what was done is undone, newest first, unless it is kept.

`with cluster.what_if() as trial:` opens a trial. Everything that is done inside is undone at its end, also when
something raises, unless `trial.keep()` was called before. Trials nest: what an inner one keeps, an outer one can undo.
Places, intentions, devices and quota are on the one log, so that a trial may be about all of them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from mooring.errors import InvariantBroken


class UndoLog:
    """How to undo what was done since the outermost open trial began; nothing is noted while none is open."""

    def __init__(self) -> None:
        self.depth = 0
        """How many trials are open."""
        self._steps: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._is_for_good = False

    def note(self, undo: Callable[..., object], *arguments: Any) -> None:
        """Something was done just now that this call undoes. What is done while undoing needs no undoing."""
        if self.depth and not self._is_for_good:
            self._steps.append((undo, arguments))

    @contextmanager
    def for_good(self) -> Iterator[None]:
        """What is done inside stands, whatever is being tried out around it: it is decided, or the world says so.

        A trial around it must not have touched the same before: undoing puts back what was then.
        """
        before, self._is_for_good = self._is_for_good, True
        try:
            yield
        finally:
            self._is_for_good = before

    @property
    def steps(self) -> list[tuple[Callable[..., object], tuple[Any, ...]]] | None:
        """Where to note directly what is done many times in a row; None while nothing need be noted."""
        return self._steps if self.depth and not self._is_for_good else None

    def __len__(self) -> int:
        return len(self._steps)

    def undo_to(self, length: int) -> None:
        """Undo everything noted since there were so many steps; a step that raises does not keep the others from it."""
        steps = self._steps
        before, self._is_for_good = self._is_for_good, True
        raised: Exception | None = None
        while len(steps) > length:
            undo, arguments = steps.pop()
            try:
                undo(*arguments)
            except Exception as error:  # a plugin that is to give back what it reserved
                raised = raised or error
        self._is_for_good = before
        if raised is not None:
            raise raised

    def forget(self) -> None:
        self._steps.clear()


class Trial:
    """Something that is tried out between `with` and the end of its block."""

    __slots__ = ("_begin", "_depth", "_is_kept", "_log")

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        self._begin = self._depth = 0
        self._is_kept = False

    def keep(self) -> None:
        """Let stand what was done, once the block ends well; a trial around this one can still undo it."""
        self._is_kept = True

    def __enter__(self) -> Self:
        log = self._log
        log.depth += 1
        self._depth, self._begin, self._is_kept = log.depth, len(log), False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        log = self._log
        if log.depth != self._depth:
            raise InvariantBroken(f"trial {self._depth} ends while {log.depth} are open")
        try:
            if not self._is_kept or kind is not None:
                log.undo_to(self._begin)
        finally:
            log.depth -= 1
            if not log.depth:
                log.forget()
        return None
