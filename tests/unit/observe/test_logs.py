"""Log lines have a level, and a time with its zone."""

import io
import json
import logging
import re
from typing import Literal

import pytest

from mooring.observe.logs import start_logging


def logged(monkeypatch: pytest.MonkeyPatch, form: Literal["text", "json"]) -> str:
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        start_logging(logging.INFO, form)
        logging.getLogger("mooring.test").warning("a %s", "line")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    return written.getvalue()


def test_lines_of_json_have_time_zone_and_level(monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.loads(logged(monkeypatch, "json"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", line.pop("ts"))
    assert line == {"level": "warning", "logger": "mooring.test", "msg": "a line"}


def test_lines_for_people_have_a_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert re.fullmatch(r"\S+ \d\d:\d\d:\d\d,\d{3}[+-]\d{4} WARNING a line\n", logged(monkeypatch, "text"))
