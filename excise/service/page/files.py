"""The page's files as answers: read once, with headers that let them do nothing but what they are for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from importlib import resources
from typing import TypeAlias

from aiohttp import web

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def routes() -> Iterable[web.RouteDef]:
    """The page, and what it consists of. None of it is secret; what it shows wants a key."""
    folder = resources.files("excise.service.page")
    for path, name in (
        ("/", "index.html"),
        ("/page/page.css", "page.css"),
        ("/page/page.js", "page.js"),
    ):
        yield web.get(path, _answering(folder.joinpath(name).read_bytes(), name.partition(".")[2]))


def _answering(body: bytes, ending: str) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        del request
        return web.Response(
            body=body, content_type=_KINDS[ending], charset="utf-8", headers=HEADERS
        )

    return answer
