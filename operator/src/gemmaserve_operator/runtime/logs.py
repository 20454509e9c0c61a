"""Logs: one JSON object a line for machines, or plain text for people."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

_STANDARD: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_TEXT: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_CHATTY: Final = ("kopf", "asyncio", "aiohttp", "kubernetes")
"""Loggers of libraries: a level above ours, so that ours can be read."""


class JsonFormatter(logging.Formatter):
    """Time (RFC 3339, UTC), level, logger and message, and whatever was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.name.partition(".")[0] not in _CHATTY:
            entry |= {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


def set_up_logging(level: str, style: str) -> None:
    """Log to stderr from now on, at `debug`, `info`, `warning` or `error`, as `json` or `text`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else logging.Formatter(_TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    if level != "debug":
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)
