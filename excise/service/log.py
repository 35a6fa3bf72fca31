"""What the service says while it runs: one JSON object a line, with the id of the request it is about.

Never a token, never the contents of a sandbox, and of a path only its form.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from contextvars import ContextVar
from typing import TextIO

LOGGER = logging.getLogger("excise.service")
REQUEST: ContextVar[str | None] = ContextVar("request", default=None)
_OWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class Lines(logging.Formatter):
    """A record as one line of JSON; what is passed as `extra` comes along."""

    def format(self, record: logging.LogRecord) -> str:
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        told: dict[str, object] = {
            "at": f"{whole}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "what": record.getMessage(),
        }
        if (request := REQUEST.get()) is not None:
            told["request"] = request
        told |= {name: value for name, value in record.__dict__.items() if name not in _OWN}
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


def begin(level: str = "info", stream: TextIO | None = None) -> logging.Handler:
    """Say it on standard error from now on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False
    return handler
