"""A story for people: each step under a heading, with what was decided then."""

import textwrap
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from mooring.cli.schedule.table import print_result
from mooring.drivers.offline.story import Story


def print_story(console: Console, story: Story, pools: list[Mapping[str, str]], *, wide: bool) -> None:
    for number, (step, pool_of) in enumerate(zip(story.steps, pools, strict=True)):
        print_heading(console, number, step.file, step.after_seconds, step.said)
        print_result(console, step.result, pool_of, wide=wide)


def print_heading(console: Console, number: int, file: str, after_seconds: float, said: str) -> None:
    """Which step it is, counted from 0, when it happens, and what its file says of it."""
    if number:
        console.print()
    when = "at first" if not number else f"{_in_words(after_seconds)} later"
    console.print(Text(f"STEP {number + 1}, {when}: {file}", style="bold reverse"), soft_wrap=True)
    for line in textwrap.wrap(said, console.width):
        console.print(Text(line, style="italic"))
    console.print()


def _in_words(seconds: float) -> str:
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
