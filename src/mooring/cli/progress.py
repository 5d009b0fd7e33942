"""A progress bar on standard error, for people who wait at a terminal; nobody else sees one."""

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mooring.observe.progress import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

PATIENCE_SECONDS = 0.7
"""What is over sooner needs no bar."""


class ProgressBar(Progress):
    """One bar for the phases of a command, wiped away at the end."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._wanted = sys.stderr.isatty() and not quiet
        self._bar: Bar | None = None
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if self._wanted:
            from rich.console import Console
            from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[count]}"),
                TimeElapsedColumn(),
            )
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._timer = threading.Timer(PATIENCE_SECONDS, self._bar.start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def phase(self, name: str, total: int | None = None) -> None:
        if self._bar is not None:
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            self._bar.add_task(name, total=total, count="" if total is None else f"0/{total:,}")

    def reached(self, done: int) -> None:
        if self._bar is not None and self._bar.tasks:
            task = self._bar.tasks[-1]
            total = max(done, int(task.total or 0))
            self._bar.update(task.id, completed=done, total=total, count=f"{done:,}/{total:,}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None and self._bar is not None:
            self._timer.cancel()
            self._timer.join()
            self._bar.stop()
