"""A port of a sandbox, spoken to through a shell inside it that opens it: the sandbox's network is its own.

What is asked goes in as HTTP/1.0, so that every server answers until it closes, and its words pass as they are.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from excise.errors import InputError
from excise.service.cloud import Cloud
from excise.service.daytona.errors import API, Told
from excise.service.processes import Process
from excise.service.sandbox import Sandbox
from excise.types import KIB, Action

HEAD_BYTES = 64 * KIB
LONGEST_S = 3600.0
_SCRIPT = 'exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 9; exec 4<&0; cat <&4 >&3 & cat <&3; kill $! 2>/dev/null'
_OWN = frozenset(
    {
        *("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"),
        *("upgrade", "proxy-authenticate", "proxy-authorization"),
    }
)
_KEPT_BACK = _OWN | {"host", "authorization", "x-api-key", "x-daytona-preview-token"}
_UNANSWERED = "nothing answers at port {} of the sandbox"


@dataclass(frozen=True, slots=True)
class Head:
    """How an answer begins."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]


def request_head(method: str, target: str, headers: Iterable[tuple[str, str]], port: int) -> bytes:
    """The first lines of what is asked; what was meant for this service is kept back."""
    lines = [f"{method} {target} HTTP/1.0", f"Host: 127.0.0.1:{port}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers if name.lower() not in _KEPT_BACK]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def answer_head(text: bytes) -> Head | None:
    """The first lines of an answer, or None if that is no HTTP."""
    first, *lines = text.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    code, _, reason = rest.partition(" ")
    if not version.startswith("HTTP/1.") or not (code.isascii() and code.isdigit()):
        return None
    parted = (line.partition(":") for line in lines if ":" in line)
    headers = tuple(
        (name.strip(), value.strip()) for name, _, value in parted if name.lower() not in _OWN
    )
    return Head(int(code), reason, headers) if 200 <= int(code) <= 599 else None


@asynccontextmanager
async def asked(
    cloud: Cloud, box: Sandbox, port: int, head: bytes, body: AsyncIterator[bytes]
) -> AsyncIterator[tuple[Head, AsyncGenerator[bytes, None]]]:
    """The answer of what listens at that port: its head, and its body as it comes."""
    action = Action(("bash", "-c", _SCRIPT, "relay", str(port)), timeout_s=LONGEST_S)
    process = await cloud.start(box, action, tag="preview", awaited=True)
    try:
        async with aclosing(_output(process)) as output:
            await process.write(head)
            async for part in body:
                await process.write(part)
            found, rest = await _begun(output, port)
            async with aclosing(_joined(rest, output)) as answered:
                yield found, answered
    except InputError as error:
        raise Told(502, "BAD_GATEWAY", _UNANSWERED.format(port), API) from error
    finally:
        await process.end()


async def _begun(output: AsyncGenerator[bytes, None], port: int) -> tuple[Head, bytes]:
    text = b""
    async for part in output:
        text += part
        head, end, rest = text.partition(b"\r\n\r\n")
        if end and (found := answer_head(head)) is not None:
            return found, rest
        if end or len(text) > HEAD_BYTES:
            raise Told(502, "BAD_GATEWAY", f"what answers at port {port} speaks no HTTP", API)
    raise Told(502, "BAD_GATEWAY", _UNANSWERED.format(port), API)


async def _joined(first: bytes, output: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    if first:
        yield first
    async for part in output:
        yield part


async def _output(process: Process) -> AsyncGenerator[bytes, None]:
    async with aclosing(process.follow()) as pieces:
        async for piece in pieces:
            if piece.stream == 1:
                yield piece.data
