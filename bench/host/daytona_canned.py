"""What the Daytona SDK talks to where its own cost is measured: answers that are written down, and nothing done."""

from __future__ import annotations

import asyncio

import msgspec

from bench.host.e2b_server import Canned, canned, said
from excise.service.daytona.describe import stamp

_SANDBOX = "a" * 20
_JSON = b"application/json"
_RAN = said(b"200 OK", _JSON, msgspec.json.encode({"exitCode": 0, "result": ""}))
_NOWHERE = said(b"404 Not Found", _JSON, b"{}")


class CannedDaytona(Canned):
    """A sandbox that is always started, in which every command has ended well."""

    def answered(self, head: bytes) -> bytes:
        path = head.split(b" ", 2)[1]
        if path.endswith(b"/process/execute"):
            return _RAN
        if b"/socket.io" in path:
            return _NOWHERE
        host = head.lower().partition(b"\r\nhost: ")[2].partition(b"\r\n")[0].decode()
        return said(b"200 OK", _JSON, _sandbox(host))


def _sandbox(host: str) -> bytes:
    return msgspec.json.encode(
        {
            "id": _SANDBOX,
            "organizationId": "bench",
            "name": _SANDBOX,
            "user": "root",
            "env": {},
            "labels": {},
            "public": False,
            "networkBlockAll": True,
            "kvm": False,
            "target": "local",
            "cpu": 1,
            "gpu": 0,
            "memory": 2,
            "disk": 4,
            "state": "started",
            "createdAt": stamp(0.0),
            "toolboxProxyUrl": f"http://{host}/toolbox",
        }
    )


if __name__ == "__main__":
    asyncio.run(canned(CannedDaytona))
