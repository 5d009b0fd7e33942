"""Let what a plugin or an action raises end a test, instead of costing one pod its turn."""

from collections.abc import Iterator
from contextlib import contextmanager

from mooring.engine.action import Cycle


@contextmanager
def raise_faults() -> Iterator[None]:
    """Raise, in this block, what schedulers of this process otherwise isolate, report and retry."""
    before, Cycle.raises_faults = Cycle.raises_faults, True
    try:
        yield
    finally:
        Cycle.raises_faults = before
