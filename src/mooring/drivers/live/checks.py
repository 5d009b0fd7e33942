"""What has to be in order for a scheduler to work, and to be told of it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that has to be in order, and whether it is."""

    name: str
    problem: str = ""
    is_needed: bool = True
    """If not, it is said and nothing more: service goes on without it."""
