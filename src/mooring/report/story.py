"""A story: what was decided at each step, or how things stood then."""

from typing import Generic, TypeVar

from msgspec import Struct

Shown = TypeVar("Shown")


class StepResult(Struct, Generic[Shown], rename="camel"):
    """One step, and what a command shows of it."""

    file: str
    after_seconds: float
    now: str
    """The time then."""
    said: str
    """The comment at the top of the file."""
    result: Shown


class Story(Struct, Generic[Shown], rename="camel"):
    steps: list[StepResult[Shown]]
