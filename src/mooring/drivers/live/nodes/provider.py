"""What a provider of nodes is to the driver."""

from typing import Protocol

from mooring.model.decisions import Launch, Terminate


class NodeProvider(Protocol):
    """Launches nodes and lets them go. Both return at once: what is refused is told later, as any decision is."""

    def launch(self, decision: Launch) -> None:
        """Ask for a node."""

    def terminate(self, decision: Terminate) -> None:
        """Let a node go that has no pods left, or stop waiting for one that was asked for."""
