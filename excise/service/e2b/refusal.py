"""A problem in the SDKs' words: those of the edge before the sandboxes, of the daemon inside, or of the control plane."""

from __future__ import annotations

import errno
from collections.abc import Mapping

import msgspec

from excise.service.e2b import told
from excise.service.e2b.reach import address_of
from excise.service.e2b.wire import STREAM, UNARY, code_of, error_of, last, status_of
from excise.service.gate import Answer
from excise.service.problems import Problem

DAEMON = ("/health", "/files")
SERVICES = ("/process.Process/", "/filesystem.Filesystem/")
_FULL = {errno.ENOSPC, errno.EDQUOT}


def refusal(path: str, headers: Mapping[str, str], problem: Problem) -> Answer:
    """Status, content type and body."""
    if problem.kind == "sandbox_gone" and (path in DAEMON or path.startswith(SERVICES)):
        return _gone(headers, problem)
    if path.startswith(SERVICES):
        return _rpc(headers, problem)
    if problem.kind == "not_found":
        return _json(501, told.error(501, f"{path[:200]} is not there"))
    status = 507 if problem.errno in _FULL else problem.status
    return _json(status, told.error(status, problem.message))


def _gone(headers: Mapping[str, str], problem: Problem) -> Answer:
    """SDKs know by the words `was not found` that it is not the network that failed."""
    address = address_of(headers)
    text = problem.message
    if "port is not open" not in text:
        text = f"The sandbox was not found: {text}"
    id_ = address[0][:80] if address else ""
    return _json(502, told.error(502, text) | {"sandboxId": id_})


def _rpc(headers: Mapping[str, str], problem: Problem) -> Answer:
    """A stream tells its error at its end, which is all there is of it."""
    kind = headers.get("content-type", "").partition(";")[0].strip()
    if kind == STREAM and problem.status not in {401, 429}:
        return 200, STREAM.encode(), last(error_of(problem))
    return status_of(code_of(problem)), UNARY.encode(), msgspec.json.encode(error_of(problem))


def _json(status: int, body: object) -> Answer:
    return status, UNARY.encode(), msgspec.json.encode(body)
