"""Who asks."""

from dataclasses import dataclass, field

MASTERS = "system:masters"
ANONYMOUS = "system:anonymous"
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
NODE_NAME = "authentication.kubernetes.io/node-name"
"""In a user's `extra`: the node of the pod that it is the account of."""


@dataclass(frozen=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict, compare=False, hash=False)

    @property
    def is_master(self) -> bool:
        return MASTERS in self.groups


SYSTEM = User("system:apiserver", (MASTERS, AUTHENTICATED))
"""The control plane itself: its controllers and nodes, in process."""
