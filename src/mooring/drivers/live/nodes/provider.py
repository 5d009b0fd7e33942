"""What a provider of nodes is to the driver."""

from typing import Protocol

from mooring.model.decisions import Launch, Terminate


class NodeProvider(Protocol):
    """Launches nodes and lets them go. Both return at once, with why not if that is known; else that comes later."""

    def launch(self, decision: Launch) -> str:
        """Ask for a node."""

    def terminate(self, decision: Terminate) -> str:
        """Let a node go that has no pods left, or stop waiting for one that was asked for."""
