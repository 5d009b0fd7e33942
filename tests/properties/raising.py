"""Raising in the middle of admission, and what must be so whatever has raised."""

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.lifecycle.lifecycle import Lifecycle
from mooring.model.decisions import Decision
from mooring.state.workloads import Stage

ROOMS = ("mooring.actions.admit", "mooring.state.quota_tree")
GENERATOR = 0x20
UNDOING = ("undo", "_restore", "_tell_followers", "take_back", "start_anew")
"""What is undone must not raise: that is what everything else relies on."""


class Injected(Exception):
    """A mistake of ours."""


class Injector:
    """Raises at one call of a function of admission, counted from when it starts."""

    def __init__(self, at: int) -> None:
        self.where = ""
        self._left = at

    def run(self, work: Callable[[], list[Decision]]) -> list[Decision]:
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            return work()
        finally:
            sys.settrace(before)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> None:
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if event != "call" or not module.startswith(ROOMS) or code.co_flags & GENERATOR:
            return
        if code.co_name.startswith(("<", "__", *UNDOING)) or _is_world(frame.f_back):
            return
        self._left -= 1
        if not self._left:
            sys.settrace(None)
            self.where = f"{module}.{code.co_qualname}"
            raise Injected(self.where)


def _is_world(caller: FrameType | None) -> bool:
    """Whether it is the world around the scheduler that calls."""
    return caller is None or caller.f_globals.get("__name__", "").startswith("mooring.testing")


def check_stages(lifecycle: Lifecycle) -> None:
    """Who holds quota by its stage is in the ledger, who waits is in a line, and nobody else."""
    admission = lifecycle.admission
    for key, record in lifecycle.workloads.items():
        holds, waits = admission.admitted(key) is not None, admission.pending.find(key) is not None
        assert (holds, waits) == (record.is_holding, record.stage is Stage.WAITING), f"{key} is {record.stage}"
    strangers = {found.pending.key for found in admission.ledger.admitted_workloads()} - set(lifecycle.workloads)
    assert not strangers, f"{strangers} hold quota, and nobody knows them"


def check_quota(admission: Admission) -> None:
    """What queues use is what their workloads hold; what cohorts use, what is beyond the queues' own."""
    tree = admission.structure.tree
    held = Counter[tuple[int, int]]()
    for found in admission.ledger.admitted_workloads():
        held.update({(found.node, column): amount for column, amount in found.usage.items()})
    for node in reversed(range(len(tree.nodes))):
        for column in range(len(tree.columns)):
            for child in (*tree.child_queues[node], *tree.child_cohorts[node]):
                held[node, column] += max(0, held[child, column] - int(tree.local[child, column]))
            used = tree.usage_of(node, column)
            assert used == held[node, column], f"{tree.nodes[node].name} uses {used}, held: {held[node, column]}"
