"""The messages on the page about troubleshooting are those that the program prints."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
SOURCES = [path.read_text() for path in (ROOT / "src" / "mooring").rglob("*.py")]
ROW = re.compile(r"^\| (?P<message>`[^|]*?) \|", re.MULTILINE)
PLACEHOLDER = re.compile(r"\{[^{}]*\}|%[a-z]|\" *\n\s*f?\"|\\")


def words_of(text: str) -> str:
    """A text without what is filled in, so that messages that are put together in the code can be found."""
    return " ".join(PLACEHOLDER.sub(" ", text).split())


CODE = " ".join(words_of(source) for source in SOURCES)
MESSAGES = sorted({code for row in ROW.finditer(PAGE) for code in re.findall(r"`([^`]+)`", row["message"])})


def test_there_are_messages_for_every_symptom() -> None:
    assert len(MESSAGES) >= 25


@pytest.mark.parametrize("message", MESSAGES)
def test_the_program_has_the_words_of_a_message(message: str) -> None:
    parts = [part.strip(" :,") for part in message.split("…")]

    assert [part for part in parts if part and " ".join(part.split()) not in CODE] == []
