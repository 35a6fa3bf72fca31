"""A problem in the words of the native API."""

from __future__ import annotations

import msgspec
from aiohttp import web

from excise.service.doors import request_id
from excise.service.problems import Problem, problem_of
from excise.substrates.remote.wire import ErrorWire, RefusalWire

_encode = msgspec.json.Encoder().encode


def refused(request: web.BaseRequest, problem: Problem) -> web.Response:
    """The answer of a request that was no success."""
    body = body_of_refusal(problem, request_id(request))
    return web.Response(body=body, status=problem.status, content_type="application/json")


def body_of_refusal(problem: Problem, request: str) -> bytes:
    """What is told of a problem, as JSON."""
    return _encode(RefusalWire(_wire(problem, request)))


def told_of(request: web.BaseRequest, error: BaseException) -> ErrorWire:
    """An error as a value, for where an answer has begun already."""
    return _wire(problem_of(error), request_id(request))


def _wire(problem: Problem, request: str) -> ErrorWire:
    return ErrorWire(
        kind=problem.kind,
        message=problem.message,
        fault=problem.fault.value,
        phase=problem.phase,
        retryable=problem.retryable,
        retry_after_s=problem.retry_after_s,
        request_id=request,
        substrate=problem.substrate,
        errno=problem.errno,
    )
