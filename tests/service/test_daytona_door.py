"""The Daytona door on the wire: what it holds back, whom it shows what, and what it says to nonsense."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random

import aiohttp
import pytest

from excise.service.daytona import absent
from excise.service.daytona.room import room_of
from excise.service.daytona.session_routes import SHELLS_AT_REST
from excise.service.daytona.tables import CONTROL, TOOLBOX
from excise.service.sandbox import AtEnd, State


class Client:
    """One owner's requests."""

    def __init__(self, served, http, token: str | None) -> None:
        self.url = served.url
        self.http = http
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def ask(self, method: str, path: str, **more):
        headers = {**self.headers, **more.pop("headers", {})}
        async with self.http.request(
            method, f"{self.url}{path}", headers=headers, **more
        ) as answer:
            data = await answer.read()
            with contextlib.suppress(ValueError):
                return answer.status, json.loads(data)
            return answer.status, data

    async def box(self, **more) -> str:
        status, told = await self.ask("POST", "/api/sandbox", json=more)
        assert status == 200, told
        return told["id"]

    async def session(self, box: str, id_: str, command: str, **more):
        await self.ask("POST", f"/toolbox/{box}/process/session", json={"sessionId": id_})
        path = f"/toolbox/{box}/process/session/{id_}/exec"
        return await self.ask("POST", path, json={"command": command, **more})


@contextlib.asynccontextmanager
async def clients(serve, kind="jail+pool", **more):
    async with serve(kind, **more) as served, aiohttp.ClientSession() as http:
        yield served, Client(served, http, served.token), Client(served, http, served.other)


def test_a_question_about_a_command_is_held_until_the_command_has_ended(serve):
    async def work():
        async with clients(serve) as (_, alice, _):
            box = await alice.box()
            wait = "until [ -e /work/go ]; do sleep 0.01; done; echo gone; (exit 5)"
            _, told = await alice.session(box, "s", wait, runAsync=True)
            path = f"/toolbox/{box}/process/session/s/command/{told['cmdId']}"
            first = asyncio.create_task(alice.ask("GET", path))
            second = asyncio.create_task(alice.ask("GET", path))
            await asyncio.sleep(0.3)
            assert not first.done(), "held"
            assert not second.done(), "held"
            form = aiohttp.FormData({"files[0].path": "/work/go"})
            form.add_field("files[0].file", b"", filename="go")
            await alice.ask("POST", f"/toolbox/{box}/files/bulk-upload", data=form)
            for status, told in await asyncio.gather(first, second):
                assert (status, told["exitCode"]) == (200, 5)

    asyncio.run(work())


def test_what_does_not_end_is_told_to_be_running_after_a_while(serve, monkeypatch):
    monkeypatch.setattr("excise.service.daytona.session_routes.hold_s", lambda _: 0.05)

    async def work():
        async with clients(serve) as (_, alice, _):
            box = await alice.box()
            _, told = await alice.session(box, "s", "sleep 100", runAsync=True)
            path = f"/toolbox/{box}/process/session/s/command/{told['cmdId']}"
            status, told = await alice.ask("GET", path)
            assert status == 200
            assert "exitCode" not in told

    asyncio.run(work())


def test_many_sessions_do_not_keep_as_many_shells_and_lose_nothing(serve):
    async def work():
        async with clients(serve) as (served, alice, _):
            box = await alice.box()
            count = SHELLS_AT_REST + 8
            for number in range(count):
                status, told = await alice.session(
                    box, f"s{number}", f"cd /tmp; N={number}; f() {{ echo f$N; }}"
                )
                assert (status, told["exitCode"]) == (200, 0)
            found = served.cloud.find("alice", box)
            async with asyncio.timeout(30):
                while room_of(found).tasks:
                    await asyncio.wait(set(room_of(found).tasks))
            assert len(found.processes) <= SHELLS_AT_REST + 1
            for number in (0, 1, count - 1):
                _, told = await alice.session(box, f"s{number}", "f; pwd")
                assert told["stdout"] == f"f{number}\n/tmp\n"

    asyncio.run(work())


def test_a_shell_with_jobs_in_the_background_is_not_laid_to_rest(serve):
    async def work():
        async with clients(serve) as (served, alice, _):
            box = await alice.box()
            await alice.session(box, "s", "sleep 100 & echo started")
            session = room_of(served.cloud.find("alice", box)).sessions["s"]
            assert await session.rest() is False
            _, told = await alice.session(box, "s", "jobs -p | wc -l")
            assert told["stdout"] == "1\n"

    asyncio.run(work())


def test_a_session_whose_shell_ended_says_so(serve):
    async def work():
        async with clients(serve) as (_, alice, _):
            box = await alice.box()
            _, told = await alice.session(box, "s", "echo last; exit 3")
            assert (told["exitCode"], told["stdout"]) == (3, "last\n")
            status, told = await alice.session(box, "s", "true")
            assert (status, told["code"], told["source"]) == (
                410,
                "SESSION_ENDED",
                "DAYTONA_DAEMON",
            )

    asyncio.run(work())


def test_who_leaves_a_log_or_a_terminal_leaves_the_command_running(serve):
    async def work():
        async with clients(serve) as (_, alice, _):
            box = await alice.box()
            script = "echo one; until [ -e /work/go ]; do sleep 0.01; done; echo two"
            _, told = await alice.session(box, "s", script, runAsync=True)
            logs = f"/toolbox/{box}/process/session/s/command/{told['cmdId']}/logs?follow=true"
            async with alice.http.ws_connect(alice.url + logs, headers=alice.headers) as socket:
                assert (await socket.receive()).data == b"\x01\x01\x01one\n"
            await alice.ask(
                "POST", f"/toolbox/{box}/process/execute", json={"command": "touch /work/go"}
            )
            async with alice.http.ws_connect(alice.url + logs, headers=alice.headers) as socket:
                data = b"".join([message.data async for message in socket])
            assert data.replace(b"\x01\x01\x01", b"") == b"one\ntwo\n"
            assert socket.close_code == 1000

    asyncio.run(work())


def test_a_lot_of_output_reaches_a_slow_follower_whole(serve):
    async def work():
        async with clients(serve) as (_, alice, _):
            box = await alice.box()
            go = "until [ -e /work/go ]; do sleep 0.01; done"
            script = f"{go}; head -c 30000000 /dev/zero | tr '\\0' x; echo end"
            _, told = await alice.session(box, "s", script, runAsync=True)
            logs = f"/toolbox/{box}/process/session/s/command/{told['cmdId']}/logs?follow=true"
            size = 0
            async with alice.http.ws_connect(alice.url + logs, headers=alice.headers) as socket:
                path = f"/toolbox/{box}/process/execute"
                await alice.ask("POST", path, json={"command": "touch /work/go"})
                await asyncio.sleep(0.5)
                async for message in socket:
                    size += len(message.data) - 3
            assert size == 30_000_004

    asyncio.run(work())


def test_intervals_are_the_sandboxes_leases(serve):
    async def work():
        async with clients(serve) as (served, alice, _):
            box = await alice.box(autoStopInterval=2, autoDeleteInterval=3, ttlMinutes=60)
            found = served.cloud.find("alice", box)
            assert (found.idle_s, found.at_idle, found.rest_s) == (120.0, AtEnd.STOP, 180.0)
            await alice.ask("POST", f"/api/sandbox/{box}/autostop/0")
            assert found.idle_s is None
            await alice.ask("POST", f"/api/sandbox/{box}/autodelete/0")
            await alice.ask("POST", f"/api/sandbox/{box}/stop")
            assert found.state is State.ENDED, "deleted as soon as it stopped"
            idle = served.cloud.find("alice", await alice.box(autoStopInterval=1))
            idle.used_ns -= 120 * 10**9
            served.cloud.census.due(idle)
            async with asyncio.timeout(20):
                while idle.state is State.RUNNING:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert idle.state is State.STOPPED

    asyncio.run(work())


def _paths(box: str):
    for table, prefix in ((CONTROL, "/api/"), (TOOLBOX, f"/toolbox/{box}/")):
        for route in table:
            path = route.path.replace("{id}", box).replace("{minutes}", "5").replace("{port}", "80")
            path = "/".join("s" if piece.startswith("{") else piece for piece in path.split("/"))
            yield route.method, prefix + path
    for offers, prefix in (
        (absent.SANDBOX, f"/api/sandbox/{box}/"),
        (absent.TOOLBOX, f"/toolbox/{box}/"),
    ):
        for each in offers:
            yield "GET", prefix + each.prefix


SECRET = "a-secret-of-alice"


def test_nobody_reaches_anything_of_somebody_elses_by_any_route(serve):
    async def work():
        async with clients(serve) as (served, alice, bob):
            box = await alice.box(name="hers", labels={"k": SECRET}, env={"S": SECRET})
            await alice.session(box, "s", f"echo {SECRET}")
            await alice.ask("POST", f"/api/sandbox/{box}/snapshot", json={"name": SECRET})
            stranger = Client(served, alice.http, None)
            wrong = Client(served, alice.http, "e2b_" + "0" * 40)
            query = "?path=/etc/passwd&pattern=x&source=/a&destination=/b&expires=0&signature=v1_x&key=k"
            for method, path in _paths(box):
                everybodys = path in {"/api/sandbox", "/api/sandbox/paginated", "/api/snapshots"}
                to_bob = {200, 400} if everybodys else {404, 501}
                for who, allowed in ((bob, to_bob), (stranger, {401}), (wrong, {401})):
                    status, told = await who.ask(method, path + query, json={})
                    assert status in allowed, (method, path, status, told)
                    assert SECRET not in str(told), (method, path)
            for name in ("hers", box, SECRET):
                assert (await bob.ask("GET", f"/api/sandbox/{name}"))[0] == 404
                assert (await bob.ask("GET", f"/api/snapshots/{name}"))[0] == 404
            found = served.cloud.find("alice", box)
            assert found.state is State.RUNNING
            assert found.labels == {"k": SECRET}

    asyncio.run(work())


NONSENSE = (
    b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"command": 5}', b'{"path": null}',
    b'{"a":' * 3000, b'{"timeout": -1, "command": "x", "code": "x"}', b'{"command": "\\ud800"}',
    b'{"sessionId": "a/b", "id": "a/b", "files": [1]}', b'{"name": "' + b"x" * 5000 + b'"}',
    b'{"envs": {"A B": "c"}, "command": "x", "code": "x"}', b'{"rows": 0, "cols": 99999, "id": "x"}',
    b'{"paths": []}',
    b'{"path": "relative/../..", "files": ["-x"], "url": "-u", "name": "-n",'  # noqa: ISC004
    b' "branch": "-b", "key": "-k", "value": "v", "message": "m", "author": "a", "email": "e"}',
)  # fmt: skip
WORDS = (
    "", "/", "..", "/../../etc/passwd", "%00", "/work/%00x", "-x", "x" * 5000, "\x7f", "0", "-1",
    "999999999999999999999", "true", "[", "{", "*" * 200, "\u202e", "/proc/self/mem", "/dev/zero",
)  # fmt: skip


@pytest.mark.timeout(240)
def test_nonsense_is_answered_with_a_reason_by_every_route(serve):
    chance = random.Random(7)

    async def work():
        async with clients(serve) as (served, alice, _):
            box = await alice.box()
            await alice.session(box, "s", "true")
            tried = 0
            for method, path in [*_paths(box)]:
                if path.endswith(("/stop", "/pause", "/archive")) or (method, path) == (
                    "DELETE",
                    f"/api/sandbox/{box}",
                ):
                    continue
                for body in chance.sample(NONSENSE, 6):
                    names = (
                        "path",
                        "pattern",
                        "cursor",
                        "limit",
                        "labels",
                        "depth",
                        "mode",
                        "owner",
                        "source",
                        "page",
                        "id",
                        "cols",
                    )
                    query = {name: chance.choice(WORDS) for name in chance.sample(names, 4)}
                    kind = chance.choice(
                        ["application/json", "multipart/form-data; boundary=b", "x"]
                    )
                    try:
                        async with asyncio.timeout(30):
                            status, told = await alice.ask(
                                method,
                                path,
                                data=body,
                                params=query,
                                headers={"Content-Type": kind},
                            )
                    except aiohttp.ClientPayloadError:
                        continue
                    tried += 1
                    assert status < 500 or status == 501, (method, path, body, query, told)
                    if status >= 400:
                        assert told["message"], (method, path, told)
                        assert told["requestId"]
            assert tried > 400
            assert served.cloud.find("alice", box).state is State.RUNNING

    asyncio.run(work())


@pytest.mark.parametrize(
    ("path", "status"), [("/api/nothing", 404), ("/toolbox/x", 404), ("/preview/x/80/", 401)]
)
def test_what_is_nowhere_is_said_in_the_protocols_words(serve, path, status):
    async def work():
        async with clients(serve, "fake") as (_, alice, _):
            found, told = await alice.ask("GET", path)
            assert (found, told["statusCode"]) == (status, status)

    asyncio.run(work())


def test_old_versions_find_the_service_and_get_output_with_marks(serve):
    async def work():
        async with clients(serve) as (_, alice, _):
            status, told = await alice.ask("GET", "/api/config")
            assert (status, told["proxyToolboxUrl"]) == (200, f"{alice.url}/toolbox")
            box = await alice.box()
            _, told = await alice.ask("GET", f"/api/sandbox/{box}/toolbox-proxy-url")
            assert told == {"url": f"{alice.url}/toolbox"}
            alice.headers["X-Daytona-SDK-Version"] = "0.155.0"
            _, told = await alice.session(box, "s", "echo a; echo b >&2")
            assert sorted(told["output"].encode().split(b"\n"))[1:] == [
                b"\x01\x01\x01a",
                b"\x02\x02\x02b",
            ]
            path = f"/toolbox/{box}/process/session/s/command/{told['cmdId']}/logs"
            _, told = await alice.ask("GET", path, headers={"Accept": "text/plain"})
            assert b"\x01\x01\x01a\n" in told

    asyncio.run(work())


def test_without_streams_sessions_work_command_by_command_and_the_rest_is_refused(serve):
    async def work():
        async with clients(serve, "local") as (_, alice, _):
            box = await alice.box()
            path = f"/toolbox/{box}/process/execute"
            status, told = await alice.ask("POST", path, json={"command": "echo $((1+1))"})
            assert (status, told["result"]) == (200, "2\n")
            await alice.session(box, "s", "X=5; cd /")
            _, told = await alice.session(
                box, "s", "echo $X; pwd >&2; exit_with() { return 4; }; exit_with"
            )
            assert (told["stdout"], told["stderr"], told["exitCode"]) == ("5\n", "/\n", 4)
            _, told = await alice.session(box, "s", "echo later", runAsync=True)
            command = f"/toolbox/{box}/process/session/s/command/{told['cmdId']}"
            assert (await alice.ask("GET", command))[1]["exitCode"] == 0
            assert (await alice.ask("POST", f"{command}/input", json={"data": "x"}))[0] == 410
            _, told = await alice.session(box, "s", "sleep 0.5", runAsync=True)
            command = f"/toolbox/{box}/process/session/s/command/{told['cmdId']}"
            assert (await alice.ask("POST", f"{command}/input", json={"data": "x"}))[0] == 501
            assert (await alice.ask("POST", f"/toolbox/{box}/process/pty", json={"id": "p"}))[
                0
            ] == 501
            for verb in ("fork", "pause", "stop", "snapshot"):
                found = await alice.ask("POST", f"/api/sandbox/{box}/{verb}", json={"name": "n"})
                assert found[0] == 501, verb
            assert (await alice.ask("DELETE", f"/toolbox/{box}/process/session/s"))[0] == 204
            assert (await alice.ask("DELETE", f"/api/sandbox/{box}"))[0] == 200

    asyncio.run(work())


def test_a_user_that_is_not_there_is_no_sandbox(serve):
    async def work():
        async with clients(serve) as (served, alice, _):
            status, told = await alice.ask("POST", "/api/sandbox", json={"user": "nosuch"})
            assert (status, "nosuch" in told["message"]) == (400, True)
            assert len(served.cloud.census) == 0
            box = await alice.box(user="nobody")
            path = f"/toolbox/{box}/process/execute"
            _, told = await alice.ask("POST", path, json={"command": "id -un"})
            assert told["result"] == "nobody\n"

    asyncio.run(work())
