"""Following one pod to its place, whatever the others do."""

from types import SimpleNamespace
from typing import Any, cast

from mooring.cli.progress import ProgressBar
from mooring.drivers.offline.driver import Offline
from mooring.drivers.offline.explain import MOST_STEPS, follow
from mooring.model.keys import PodKey


class Stubborn:
    """A queue whose head comes back in each cycle, so that no step of one turn gets past it."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.turn = SimpleNamespace(has=lambda key: False)
        record = SimpleNamespace(key="a/pod", node_name="")
        cluster = SimpleNamespace(pods=SimpleNamespace(records={"a/pod": record}))
        self.scheduler = SimpleNamespace(queue=self, cluster=cluster)

    def __len__(self) -> int:
        return 1

    def peek(self) -> Any:
        return self.turn

    def count_ahead_of(self, key: str) -> int:
        return 0

    def decide(self, progress: ProgressBar, at_most: int) -> list[Any]:
        return []

    def step(self, at_most: int) -> tuple[list[Any], bool]:
        self.steps.append(at_most)
        return [], False


def test_steps_without_progress_become_larger_and_come_to_an_end() -> None:
    stubborn = Stubborn()

    assert follow(PodKey("a/pod"), cast(Offline, stubborn), ProgressBar(quiet=True), patient=True) is None

    assert stubborn.steps[:5] == [0, 1, 2, 4, 8]
    assert len(stubborn.steps) <= MOST_STEPS + 1
