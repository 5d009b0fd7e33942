"""What a running scheduler logs: lines for people or JSON for machines, with level, time and time zone."""

import json
import logging
import time
from datetime import UTC, datetime
from typing import Literal


def start_logging(level: int, form: Literal["text", "json"]) -> None:
    """Log to standard error from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if form == "json" else _Text("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)


class _Text(logging.Formatter):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 (logging's)
        zone = time.strftime("%z", time.localtime(record.created))
        return f"{super().formatTime(record, datefmt)}{zone}"


class _Json(logging.Formatter):
    """The keys that kube-scheduler's JSON has, and the exception where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
