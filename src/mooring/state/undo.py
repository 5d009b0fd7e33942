"""One undo log for everything that somebody tries out: what was done is undone, newest first, unless it is kept.

`with cluster.what_if() as trial:` opens a trial. Everything that is done inside is undone at its end, also when
something raises, unless `trial.keep()` was called before. Trials nest: what an inner one keeps, an outer one can undo.
Places, plans, devices and quota are on the one log, so that a trial may be about all of them.
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
        self.begins: list[int] = []
        """For each open trial, how many steps there were when it began."""
        self.base = 1
        """The depth of the trial with which standing steps are undone."""
        self.serial = 0
        """Rises whenever such a trial begins."""
        self.outermost = 0
        """Rises whenever a trial begins that is in no other."""
        self.is_undoing = False
        """While steps are undone: who holds devices is put back by steps of its own."""

    def note(self, undo: Callable[..., object], *arguments: Any) -> None:
        """Something was done just now that this call undoes. What is done while undoing needs no undoing."""
        if self.depth and not self._is_for_good:
            self._steps.append((undo, arguments))

    def note_standing(self, undo: Callable[..., object], *arguments: Any) -> None:
        """Something was decided just now that this call undoes: with the base trial, not with one inside it."""
        if not self.depth or self._is_for_good:
            return
        begins, base = self.begins, self.base
        if len(begins) <= base:
            self._steps.append((undo, arguments))
            return
        self._steps.insert(begins[base], (undo, arguments))
        for index in range(base, len(begins)):
            begins[index] += 1

    @contextmanager
    def for_good(self) -> Iterator[None]:
        """What is done inside stands, whatever is being tried out around it: it is decided, or the world says so.

        A trial around it must not have touched the same before: undoing puts back what was then.
        """
        before = self._is_for_good, self.is_undoing
        self._is_for_good, self.is_undoing = True, False
        try:
            yield
        finally:
            self._is_for_good, self.is_undoing = before

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
        was_undoing, self.is_undoing = self.is_undoing, True
        raised: Exception | None = None
        while len(steps) > length:
            undo, arguments = steps.pop()
            try:
                undo(*arguments)
            except Exception as error:  # a plugin that is to give back what it reserved
                raised = raised or error
        self._is_for_good, self.is_undoing = before, was_undoing
        if raised is not None:
            raise raised

    def forget(self) -> None:
        self._steps.clear()


class Trial:
    """Something that is tried out between `with` and the end of its block."""

    __slots__ = ("_base", "_depth", "_is_base", "_is_kept", "_log")

    def __init__(self, log: UndoLog, *, is_base: bool = False) -> None:
        """With `is_base`, what stands inside (`note_standing`) is undone with this trial."""
        self._log = log
        self._depth = 0
        self._base = log.base
        self._is_base = is_base
        self._is_kept = False

    def keep(self) -> None:
        """Let stand what was done, once the block ends well; a trial around this one can still undo it."""
        self._is_kept = True

    def __enter__(self) -> Self:
        log = self._log
        log.depth += 1
        log.outermost += log.depth == 1
        log.begins.append(len(log))
        self._depth, self._is_kept = log.depth, False
        if self._is_base or log.depth == 1:
            self._base, log.base = log.base, log.depth
            log.serial += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        log = self._log
        if log.depth != self._depth:
            raise InvariantBroken(f"trial {self._depth} ends while {log.depth} are open")
        begin = log.begins[-1]
        try:
            if not self._is_kept or kind is not None:
                log.undo_to(begin)
        finally:
            log.begins.pop()
            log.depth -= 1
            if self._is_base:
                log.base = self._base
            if not log.depth:
                log.forget()
        return None
