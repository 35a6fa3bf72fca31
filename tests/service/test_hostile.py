"""Clients that mean no good, on real sockets: nobody gets a 5xx out of it, a hang, or what is somebody else's."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import io
import json
import tarfile

import aiohttp
import pytest

from excise.service import gate
from excise.service.archives import folder_of, keep_archive
from excise.service.builds import BuildFailed
from excise.service.policy import Policy
from excise.service.sandbox import Wanted
from excise.service.templates import Do, Step, Template
from excise.substrates.remote import connect
from excise.types import MIB, Action, Limits, Spec


def run(work):
    return asyncio.run(work)


async def told(url: str, data: bytes, *, patience_s: float = 10.0) -> bytes:
    """What comes back for these bytes, until the service closes or has nothing more to say."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    found = b""
    try:
        async with asyncio.timeout(patience_s):
            while part := await reader.read(65536):
                found += part
    except TimeoutError:
        pass
    writer.close()
    return found


HEAD = b"GET /v1/sandboxes HTTP/1.1\r\nHost: h\r\n"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /v1/sandboxes HTTP/1.1\nHost: h\n\n\r\n\r\n", 400),
        (HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n", 431),
        (HEAD + b"".join(b"X-%d: y\r\n" % n for n in range(500)) + b"\r\n", 400),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (
            b"POST /v1/sandboxes HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (
            b"POST /v1/sandboxes HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            400,
        ),
        (HEAD + b"X-API-Key: a\r\nX-API-Key: b\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ],
)
def test_malformed_and_ambiguous_requests_are_refused_and_the_connection_ends(serve, data, status):
    async def work():
        async with serve("fake") as served:
            found = await told(served.url, data)
            assert found.startswith(b"HTTP/1.1 %d " % status), found[:200]
            assert found.count(b"HTTP/1.1") == 1
            failures = served.cloud.metrics.failures
            assert failures["bad_request", ""] == 1 or b"X-Request-Id" in found

    run(work())


def test_a_request_smuggled_in_a_body_is_a_body(serve):
    async def work():
        async with serve("fake") as served:
            box = await served.cloud.create("alice", Wanted())
            inner = b"DELETE /v1/sandboxes/%s HTTP/1.1\r\nHost: h\r\nX-API-Key: %s\r\n\r\n" % (
                box.id.encode(), served.token.encode(),
            )  # fmt: skip
            path = b"/v1/sandboxes/%s/run" % box.id.encode()
            for target in (path, b"/v1/sandboxes"):
                outer = b"POST %s HTTP/1.1\r\nHost: h\r\nX-API-Key: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (
                    target, served.other.encode(), len(inner),
                )  # fmt: skip
                found = await told(served.url, outer + inner)
                assert found.count(b"HTTP/1.1 ") == 1
                assert found.startswith(b"HTTP/1.1 4")
            assert served.cloud.find("alice", box.id) is box

    run(work())


def test_pipelined_actions_are_answered_in_order(serve):
    async def work():
        async with serve("fake") as served:
            box = await served.cloud.create("alice", Wanted())
            ask = b""
            for number in range(20):
                body = json.dumps({"argv": ["echo", f"number {number}"]}).encode()
                last = b"Connection: close\r\n" if number == 19 else b""
                ask += b"POST /v1/sandboxes/%s/run HTTP/1.1\r\nHost: h\r\nX-API-Key: %s\r\n%bContent-Length: %d\r\n\r\n%b" % (
                    box.id.encode(), served.token.encode(), last, len(body), body,
                )  # fmt: skip
            found = await told(served.url, ask)
            wanted = [base64.b64encode(f"number {n}\n".encode()) for n in range(20)]
            at = [found.index(each) for each in wanted]
            assert at == sorted(at)

    run(work())


def test_a_connection_goes_the_short_way_again_after_a_long_one(serve, monkeypatch):
    """Should a newer aiohttp not tell any more when it is idle, requests are still answered, but this fails."""
    taken = []
    way = gate.Gates.way
    monkeypatch.setattr(
        gate.Gates, "way", lambda self, head: taken.append(f := way(self, head)) or f
    )

    async def work():
        async with serve("fake") as served:
            remote = connect(served.url, served.token)
            box = await remote.create(Spec())
            for _ in range(3):
                await remote.run(box, Action(("true",)))
                await remote.reset(box)
            assert remote.http.repeated == 0
            assert len([t for t in taken if t is not None]) == 3
            assert len([t for t in taken if t is None]) == 4
            assert len(remote.http._idle) == 1
            await remote.close()

    run(work())


def test_slow_and_idle_clients_are_let_go(serve, monkeypatch):
    monkeypatch.setattr(gate, "LOOKS_EVERY_S", 0.05)
    monkeypatch.setattr(gate, "HEAD_S", 0.2)
    monkeypatch.setattr(gate, "STALLED_S", 0.2)
    monkeypatch.setattr(gate, "IDLE_S", 0.2)

    async def work():
        async with serve("fake") as served:
            assert b" 408 " in await told(served.url, b"GET / HT", patience_s=20)
            assert await told(served.url, b"", patience_s=20) == b""
            body = b"POST /v1/sandboxes/x/run HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc"
            assert b" 408 " in await told(served.url, body, patience_s=20)
            assert served.cloud.metrics.failures["slow_client", ""] == 2
            body = b"POST /v1/sandboxes HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nX-API-Key: %b\r\n\r\nabc"
            assert await told(served.url, body % served.token.encode(), patience_s=20) == b""

    run(work())


def test_more_connections_than_there_may_be_are_turned_away_at_once(serve, monkeypatch):
    known = gate.Gates.__init__.__kwdefaults__
    monkeypatch.setattr(gate.Gates.__init__, "__kwdefaults__", known | {"most": 5})

    async def work():
        async with serve("fake") as served:
            host, _, port = served.url.removeprefix("http://").partition(":")
            kept = [await asyncio.open_connection(host, int(port)) for _ in range(5)]
            await asyncio.sleep(0.1)
            assert b" 503 " in await told(served.url, HEAD + b"\r\n")
            assert served.cloud.metrics.failures["connections", ""] == 1
            for _, writer in kept:
                writer.close()
                await writer.wait_closed()
            async with aiohttp.ClientSession() as http, http.get(f"{served.url}/healthz") as answer:
                assert answer.status == 200

    run(work())


def test_huge_deep_and_broken_json_is_bad_input(serve):
    async def work():
        async with serve("fake") as served, aiohttp.ClientSession() as http:
            box = await served.cloud.create("alice", Wanted())
            headers = {"X-API-Key": served.token}
            deep = b'{"argv":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
            for path in ("/v1/sandboxes", f"/v1/sandboxes/{box.id}/run"):
                for body in (
                    b"{", b"[]", b"null", b'{"env": 1}', b"\xff\xfe", deep,
                    b'{"argv": ["' + b"\\ud800" * 10 + b'"]}', b'{"labels": {"a": null}}',
                    b'{"lifetime_s": 1e400}', b'{"idle_s": -1}', b'{"timeout_s": "NaN"}',
                ):  # fmt: skip
                    async with http.post(served.url + path, data=body, headers=headers) as answer:
                        if path.endswith("run") and b"argv" not in body:
                            assert answer.status == 400, body
                        assert answer.status in {201, 400}, (path, body[:40], await answer.text())

    run(work())


def test_paths_do_not_lead_out_of_a_sandbox_and_names_do_not_lead_out_of_a_route(serve):
    async def work():
        async with serve("jail") as served:
            box = await served.cloud.create("alice", Wanted())
            await served.cloud.run(
                box, Action.shell("ln -s /proc/1/root/etc /work/link; mkdir /work/d")
            )
            headers = {"X-API-Key": served.token}
            secret = "of-the-host-alone"
            (served.cloud.folder.parent / "private").write_text(secret)
            outside = str(served.cloud.folder.parent / "private")
            async with aiohttp.ClientSession(headers=headers) as http:
                for path in (
                    outside,
                    "/../../.." + outside,
                    "/work/d/../../../.." + outside,
                    "/work/link/../.." + outside,
                ):
                    url = f"{served.url}/v1/sandboxes/{box.id}/files"
                    async with http.get(url, params={"path": path}) as answer:
                        assert answer.status == 404
                        assert secret not in await answer.text()
                for path in ("relative", "", "/a\0b", "/" + "a" * 5000):
                    async with http.get(url, params={"path": path}) as answer:
                        assert answer.status == 400
                for id_ in ("..%2f..", "%00", "a%0d%0ab", "." * 20, box.id.upper(), box.id + "x"):
                    async with http.get(f"{served.url}/v1/sandboxes/{id_}") as answer:
                        assert answer.status in {400, 404}
                        assert "\r" not in answer.headers.get("X-Request-Id", "")

    run(work())


def test_owners_have_limits_of_requests_sandboxes_and_streams_and_are_told_when_to_come_again(
    serve,
):
    async def work():
        policy = Policy(requests_per_s=5, burst=20, sandboxes_per_owner=2, streams_per_owner=1)
        async with serve("jail", policy) as served, aiohttp.ClientSession() as http:
            box = await served.cloud.create("alice", Wanted())
            process = await served.cloud.start(box, Action(("sleep", "100")))
            url = f"{served.url}/v1/sandboxes"
            alice, bob = {"X-API-Key": served.token}, {"X-API-Key": served.other}
            async with http.post(url, json={}, headers=alice) as answer:
                assert answer.status == 201
            async with http.post(url, json={}, headers=alice) as answer:
                assert answer.status == 429
                assert int(answer.headers["Retry-After"]) >= 1
                assert (await answer.json())["error"]["kind"] == "too_many"
            follow = f"{url}/{box.id}/processes/{process.number}/output"
            async with http.get(follow, headers=alice) as first:
                assert first.status == 200
                async with http.get(follow, headers=alice) as second:
                    assert second.status == 429
            for _ in range(30):
                async with http.get(url, headers=alice) as answer:
                    if answer.status == 429:
                        break
            else:
                raise AssertionError("asked without end")
            async with http.get(url, headers=bob) as answer:
                assert answer.status == 200

    run(work())


async def too_often(http, url: str, path: str, headers: dict[str, str]) -> None:
    """Asked for without end, it is refused with a time to come again."""
    for _ in range(30):
        async with http.post(url + path, data=b"{}", headers=headers) as answer:
            if answer.status == 429:
                assert int(answer.headers["Retry-After"]) >= 1
                assert len(answer.headers["X-Request-Id"]) == 16
                return
    raise AssertionError(f"{path}: asked without end")


def test_actions_have_limits_and_are_in_the_numbers_by_whatever_door_and_proof(serve):
    async def work():
        policy = Policy(requests_per_s=0.01, burst=5)
        async with serve("fake", policy) as served, aiohttp.ClientSession() as http:
            for owner in ("alice", "bob", "carol"):
                box = await served.cloud.create(owner, Wanted())
                if owner == "alice":
                    key = {"X-API-Key": served.token}
                    ways = {"native": (f"/v1/sandboxes/{box.id}/run", key)}
                elif owner == "bob":
                    key = {"Authorization": f"Bearer {served.other}"}
                    ways["daytona"] = (f"/toolbox/{box.id}/process/execute", key)
                else:
                    key = {"E2b-Sandbox-Id": box.id, "X-Access-Token": box.token}
                    ways["e2b"] = ("/process.Process/List", key)
            for path, headers in ways.values():
                await too_often(http, served.url, path, headers)
            metrics = served.cloud.metrics
            assert {door for door, status in metrics.answers if status == 429} == set(ways)
            assert metrics.failures["too_many", "run"] == len(ways)

    run(work())


def test_websockets_without_end_are_counted_as_their_owners_streams(serve):
    async def work():
        policy = Policy(streams_per_owner=3)
        async with serve("jail", policy) as served, aiohttp.ClientSession() as http:
            box = await served.cloud.create("alice", Wanted())
            alice = {"Authorization": f"Bearer {served.token}"}
            inside = f"{served.url}/toolbox/{box.id}/process"
            async with http.post(f"{inside}/pty", json={"id": "p"}, headers=alice) as made:
                assert made.status == 201
            sockets = [
                await http.ws_connect(f"{inside}/pty/p/connect", headers=alice) for _ in "123"
            ]
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(f"{inside}/pty/p/connect", headers=alice)
            assert refused.value.status == 429
            assert int(refused.value.headers["Retry-After"]) >= 1
            for socket in sockets:
                await socket.close()
            async with asyncio.timeout(10):
                while served.desk.streams:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    run(work())


def test_a_body_that_unpacks_to_more_than_any_may_hold_is_refused_by_every_door(serve):
    bomb = gzip.compress(b'{"name": "' + b"0" * (64 * MIB) + b'"}', 1)
    assert len(bomb) < MIB

    async def work():
        async with serve("fake") as served, aiohttp.ClientSession() as http:
            key = {"X-API-Key": served.token, "Content-Encoding": "gzip"}
            for path in ("/v1/sandboxes", "/api/sandbox", "/v2/sandboxes", "/v3/templates"):
                async with http.post(served.url + path, data=bomb, headers=key) as answer:
                    assert answer.status == 413, (path, await answer.text())
            assert len(served.cloud.census) == 0

    run(work())


def archive_of(*members: tuple[str, bytes]) -> bytes:
    """A packed archive with files of these names."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()


@pytest.mark.parametrize(
    "archive",
    [
        archive_of(("zeros", bytes(96 * MIB))),
        archive_of(("../../outside", b"x")),
        b"no archive at all",
    ],
    ids=["bomb", "outside", "nonsense"],
)
def test_what_is_wrong_with_an_archive_stays_in_the_sandbox_that_unpacks_it(serve, archive):
    async def parts():
        yield archive

    async def work():
        limits = Limits(cpus=None, memory_bytes=256 * MIB, disk_bytes=32 * MIB)
        async with serve("jail", Policy(most=limits)) as served:
            cloud, name = served.cloud, hashlib.sha256(archive).hexdigest()
            await keep_archive(folder_of(cloud.folder / "archives", "alice"), name, parts())
            steps = (Step(Do.COPY, ("/work",), name),)
            await cloud.templates.put(Template("t", "alice", Spec(limits=limits), steps))
            with pytest.raises(BuildFailed, match="COPY /work ended with"):
                await cloud.create("alice", Wanted(template="t"))
            assert len(cloud.census) == 0
            fine = await cloud.create("alice", Wanted())
            assert (await cloud.run(fine, Action(("true",)))).ok

    run(work())
