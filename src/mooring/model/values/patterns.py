"""Regular expressions that users write into objects: RE2's, as in Go, which take time linear in the text.

Python's own backtrack: `^(a+)+$` takes longer than anyone waits for on forty letters that do not match.
"""

from functools import lru_cache
from typing import Protocol

import re2


class PatternError(ValueError):
    """A text is no regular expression."""


class Match(Protocol):
    def group(self) -> str: ...

    def start(self) -> int: ...

    def end(self) -> int: ...


class Pattern:
    """A compiled regular expression."""

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled = re2.compile(text, options=options)
        except (re2.error, UnicodeEncodeError) as error:
            shown = error.args[0] if error.args else error
            raise PatternError(shown.decode() if isinstance(shown, bytes) else str(shown)) from error

    def matches(self, text: str) -> bool:
        """Whether any part of a text matches."""
        return self._compiled.search(text) is not None

    def find_all(self, text: str, most: int = -1) -> list[str]:
        """The parts of a text that match, from left to right; an empty one right after another is not one."""
        found: list[str] = []
        end = -1
        match: Match
        for match in self._compiled.finditer(text):
            if most >= 0 and len(found) >= most:
                break
            if match.end() > match.start() or match.start() != end:
                found.append(match.group())
            end = match.end()
        return found


@lru_cache(maxsize=1024)
def linear_pattern(text: str) -> Pattern:
    """The pattern of a text; PatternError if it is none."""
    return Pattern(text)
