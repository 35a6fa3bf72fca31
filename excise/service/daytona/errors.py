"""Bad news in the words of the SDK: it makes an exception of its own from the status, the code and the source. Pure."""

from __future__ import annotations

from excise.service.problems import Problem

API = "DAYTONA_API"
DAEMON = "DAYTONA_DAEMON"

_CODES = {
    "file_not_found": ("FILE_NOT_FOUND", DAEMON),
    "permission_denied": ("FILE_ACCESS_DENIED", DAEMON),
    "not_a_directory": ("INVALID_FILE_PATH", DAEMON),
    "is_a_directory": ("INVALID_FILE_PATH", DAEMON),
}


class Told(Exception):  # an answer, not a fault of ours
    """An answer of the protocol that has no counterpart in the cloud: its status, and its own code for it."""

    def __init__(self, status: int, code: str, message: str, source: str = DAEMON) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.source = source


def body_of(problem: Problem, path: str, at: str, request_id: str) -> dict[str, object]:
    """The body of an answer that tells a problem."""
    code, source = _CODES.get(problem.kind, (problem.kind.upper(), API))
    return body(problem.status, code, source, problem.message, path, at) | {
        "requestId": request_id,
        "fault": str(problem.fault),
        "phase": problem.phase,
        "retryable": problem.retryable,
    }


def told_of(told: Told, path: str, at: str, request_id: str) -> dict[str, object]:
    """The body of such an answer."""
    words = body(told.status, told.code, told.source, told.message, path, at)
    return words | {"requestId": request_id}


def body(
    status: int, code: str, source: str, message: str, path: str, at: str
) -> dict[str, object]:
    """What every error has. Uploads read `errors`; everything else reads `message`."""
    return {
        "statusCode": status,
        "code": code,
        "source": source,
        "message": message,
        "error": message,
        "errors": [message],
        "path": path,
        "timestamp": at,
    }
