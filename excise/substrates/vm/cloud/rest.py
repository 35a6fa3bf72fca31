"""A REST interface with a token, by nothing but the standard library, whose calls block and so are made in threads."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from excise.substrates.vm.cloud.control import CloudError

ANSWER_S = 30.0

ErrorOf = Callable[[int, bytes, Mapping[str, str]], CloudError]
"""What an answer that is an error means, from its status, body and heads."""


@dataclass(frozen=True, slots=True)
class Rest:
    """One endpoint. Every call is made once."""

    endpoint: str
    token: str
    error_of: ErrorOf

    async def ask(self, verb: str, path: str, body: object | None = None) -> dict[str, Any]:
        return await asyncio.to_thread(self._ask, verb, path, body)

    def _ask(self, verb: str, path: str, body: object | None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        heads = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.endpoint}/{path}", data, heads, method=verb)  # noqa: S310  # as chosen by the user
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:  # noqa: S310
                return dict(json.loads(answer.read() or b"{}"))
        except urllib.error.HTTPError as error:
            with error:
                raise self.error_of(error.code, error.read(), dict(error.headers)) from error
        except (OSError, ValueError) as error:
            raise CloudError(f"{verb} {path}: {error}") from error
