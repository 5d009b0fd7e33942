"""How pods come to hold devices: with their place on a row, and no longer than that."""

from typing import Any, Protocol

from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape


class DeviceTaker(Protocol):
    """Gives out devices to pods that come to a row, and takes them back from those that go.

    Both are called by the cluster, for trials as for what stays, and undone by its undo log: whatever a taker changes
    besides the device table it notes there itself. After an undo a pod holds exactly what it held before.
    """

    def concerns(self, shape: Shape) -> bool:
        """Whether such pods hold devices that this taker gives out."""

    def take(self, record: PodRecord, row: int) -> None:
        """A pod has come to a row: it takes its devices there, as far as there are any; it may have them already."""

    def give_back(self, record: PodRecord, row: int) -> None:
        """A pod goes from this row."""

    def held_by(self, record: PodRecord) -> Any:
        """What a pod holds now, for `restore`."""

    def restore(self, record: PodRecord, row: int, held: Any) -> None:
        """A pod that was released is back on its row: it holds what it held, whatever else there would be for it."""
