"""What holds for every request on the quick way, whatever its protocol: the same as `app` sees to on the long one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from excise.service.account import Account, Spans
from excise.service.doors import Desk, Door, Hurries, retry_after
from excise.service.gate import Answer, Asked, Pattern, Quick
from excise.service.problems import problem_of


def hurried(desk: Desk, doors: Sequence[Door]) -> dict[tuple[str, Pattern], Quick]:
    """The quick ways of all doors, each request with its account, its span and its refusal."""
    ways: dict[tuple[str, Pattern], Quick] = {}
    spans = Spans()
    for door in doors:
        if isinstance(door, Hurries):
            for (method, pattern), handle in door.quick(desk).items():
                what = f"{method} /{'/'.join(pattern)}"
                ways[method, pattern] = _around(desk, spans, door, what, handle)
    return ways


def _around(desk: Desk, spans: Spans, door: Hurries, what: str, handle: Quick) -> Quick:
    metrics, name = desk.cloud.metrics, door.name

    async def run(asked: Asked) -> Answer | None:
        account = Account(metrics, name, what)
        with spans.span(what, asked.id):
            try:
                answer = await handle(asked)
            except asyncio.CancelledError:
                account.answered(499)
                raise
            except Exception as error:  # noqa: BLE001  # told to the client and to the log
                problem = problem_of(error)
                account.went_wrong(problem, error)
                status, kind, body = door.refused_quickly(asked, problem)
                if problem.retry_after_s is not None:
                    kind += b"\r\nRetry-After: %b" % retry_after(problem.retry_after_s).encode()
                answer = status, kind, body
            account.answered(200 if answer is None else answer[0])
        return answer

    return run
