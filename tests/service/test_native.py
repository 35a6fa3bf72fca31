"""The native API over real HTTP, as the remote substrate and as strangers speak it."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from excise.errors import InputError, SandboxGone, SubstrateUnavailable
from excise.service.native.table import OPERATIONS
from excise.substrates.base import Terminal
from excise.substrates.remote import connect
from excise.types import Action, Spec


def run(work):
    return asyncio.run(work)


def test_streams_shells_snapshots_and_forks_through_the_wire(serve):
    async def work():
        async with serve("jail+pool") as served:
            remote = connect(served.url, served.token)
            box = await remote.create(Spec())
            stream = await remote.stream(box, Action(("cat",)))
            await stream.write(b"one\n")
            await stream.end_of_input()
            assert [piece async for piece in stream] == [(1, b"one\n")]
            assert (await stream.wait()).exit_code == 0
            tty = await remote.stream(box, Action(("bash",)), terminal=Terminal(11, 22))
            await tty.write(b"stty size; exit 3\n")
            assert b"11 22" in b"".join([data async for _, data in tty])
            assert (await tty.wait()).exit_code == 3
            number = await remote.start(box, Action.shell("echo background; sleep 60"))
            assert [b.number for b in await remote.started(box) if b.running] == [number]
            heard = await remote.attach(box, number)
            assert await anext(aiter(heard)) == (1, b"background\n")
            await remote.signal(box, number, 9)
            assert (await heard.wait()).exit_code == 137
            await remote.run(box, Action.shell("echo kept > kept"))
            reference = await remote.snapshot(box)
            (fork,) = await remote.fork(box)
            again = await remote.create(Spec(image="host"))
            made = await connect(served.url, served.token, template=reference).create(Spec())
            for each, wanted in ((fork, b"kept\n"), (made, b"kept\n"), (again, b"")):
                found = await remote.run(each, Action.shell("cat kept 2>/dev/null"))
                assert found.stdout == wanted
            await remote.forget(reference)
            assert (await remote.prove(again)).pristine is not None
            await remote.close()

    run(work())


def test_a_killed_stream_is_dead_and_one_that_breaks_goes_on(serve):
    async def work():
        async with serve("jail") as served:
            remote = connect(served.url, served.token)
            box = await remote.create(Spec())
            stream = await remote.stream(box, Action.shell("sleep 1000"))
            await stream.close()
            script = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done"
            going = await remote.stream(box, Action.shell(script))
            lines = aiter(going)
            first = await anext(lines)
            going._body._connection.close()
            rest = [data async for _, data in lines]
            assert first[1] + b"".join(rest) == b"1\n2\n3\n4\n5\n6\n"
            found = await remote.run(box, Action.shell("pgrep sleep; true"))
            assert found.stdout == b""
            await remote.close()

    run(work())


def test_an_action_asked_for_twice_under_one_id_runs_once(serve):
    async def work():
        async with serve("jail") as served:
            remote = connect(served.url, served.token)
            box = await remote.create(Spec())
            await remote.close()
            body = {"script": "echo x >> /work/count; sleep 0.3; wc -l < /work/count"}
            headers = {"X-API-Key": served.token, "Action-Id": "mine"}
            url = f"{served.url}/v1/sandboxes/{box}/run"
            async with aiohttp.ClientSession(headers=headers) as http:

                async def ask(body=body):
                    async with http.post(url, json=body) as answer:
                        return answer.status, await answer.json()

                found = [*(await asyncio.gather(ask(), ask(), ask())), await ask()]
                assert found == [found[0]] * 4
                assert found[0][1]["stdout"] == "MQo="
                assert (await ask({"script": "true"}))[0] == 409

    run(work())


def test_what_is_bad_news_has_a_kind_a_fault_and_a_request_id(serve):
    async def work():
        async with serve("fake") as served:
            async with aiohttp.ClientSession(headers={"X-API-Key": served.token}) as http:
                for path, status, kind in (
                    ("/v1/sandboxes/none", 404, "sandbox_gone"),
                    ("/v1/nothing", 404, "not_found"),
                    ("/v1/sandboxes?most=0", 400, "input"),
                    ("/v1/sandboxes?most=x", 400, "input"),
                    ("/v1/templates/none", 400, "input"),
                ):
                    async with http.get(served.url + path) as answer:
                        error = (await answer.json())["error"]
                        assert (answer.status, error["kind"]) == (status, kind)
                        assert answer.headers["X-Request-Id"] == error["request_id"]
                async with http.put(served.url + "/v1/sandboxes") as answer:
                    assert answer.status == 405
                async with http.post(served.url + "/v1/sandboxes", data=b"{") as answer:
                    assert (await answer.json())["error"]["kind"] == "input"
            wrong = connect(served.url, "e2b_" + "0" * 40)
            with pytest.raises(SubstrateUnavailable, match="no valid API key"):
                await wrong.create(Spec())
            await wrong.close()

    run(work())


def test_no_operation_shows_one_owner_what_is_anothers(serve):
    """Route by route: what is Alice's is to Bob exactly what is not there at all."""

    async def work():
        async with serve("fake") as served:
            remote = connect(served.url, served.token)
            box = await remote.create(Spec())
            await remote.close()
            ended = connect(served.url, served.token)
            gone = await ended.create(Spec())
            await ended.destroy(gone)
            await ended.close()
            bodies = {
                "MoveWire": {"path": "/a", "to": "/b"},
                "SignalWire": {"number": 9},
                "ActionWire": {"argv": ["true"]},
                "StartWire": {"argv": ["true"]},
                "ScriptWire": {"script": "true"},
                "DirectoryWire": {"path": "/a"},
                "ModeWire": {"path": "/a"},
                "SnapshotWire": {"name": "x"},
            }
            async with aiohttp.ClientSession(headers={"X-API-Key": served.other}) as http:
                asked = 0
                for operation in OPERATIONS:
                    if "{id}" not in operation.path:
                        continue
                    asked += 1
                    answers = []
                    for id_ in (box, gone, "a" * 20):
                        path = operation.path.format(id=id_, number=1, action="a", shell="s")
                        body = bodies.get(getattr(operation.takes, "__name__", ""), {})
                        data = json.dumps(body) if operation.takes else None
                        async with http.request(
                            operation.method, f"{served.url}/v1{path}?path=/etc/passwd", data=data
                        ) as answer:
                            said = (await answer.json())["error"]
                            said.pop("request_id")
                            said["message"] = said["message"].replace(id_, "ID")
                            answers.append((answer.status, said))
                    assert answers[0][0] == 404, operation.name
                    assert answers[0] == answers[1] == answers[2], operation.name
                async with http.get(f"{served.url}/v1/sandboxes") as answer:
                    assert (await answer.json())["items"] == []
                async with http.post(f"{served.url}/v1/renew", json={"ids": [box]}) as answer:
                    assert box in (await answer.json())["gone"]
            assert asked > 20

    run(work())


def test_every_operation_wants_a_key(serve):
    async def work():
        async with serve("fake") as served, aiohttp.ClientSession() as http:
            for operation in OPERATIONS:
                if operation.scope is None:
                    continue
                path = operation.path.format(
                    id="x", number=1, action="a", shell="s", name="n", digest="d"
                )
                url = f"{served.url}/v1{path}"
                for headers in ({}, {"X-API-Key": "x"}, {"Authorization": "Bearer " + "y" * 300}):
                    async with http.request(operation.method, url, headers=headers) as answer:
                        assert answer.status == 401, operation.name

    run(work())


def test_a_client_of_nothing_says_so_and_bad_addresses_are_refused():
    async def work():
        remote = connect("http://127.0.0.1:1", "key")
        with pytest.raises(Exception, match="excise serve"):
            await remote.create(Spec())

    run(work())
    for url in ("127.0.0.1:1", "ftp://x", "http://", "http://x:y", "http://u:p@h/"):
        with pytest.raises(InputError):
            connect(url, "key")
    for key in ("a\r\nb: c", "", "ü"):
        with pytest.raises(InputError):
            connect("http://127.0.0.1:1", key or " ")


def test_sandboxes_of_a_client_that_is_gone_are_reaped_though_a_command_still_runs(serve):
    async def work():
        async with serve("jail") as served:
            remote = connect(served.url, served.token, lease_s="1")
            box = await remote.create(Spec())
            await remote.start(box, Action(("sleep", "1000"), timeout_s=None))
            await remote.close()
            async with asyncio.timeout(30):
                while served.cloud.census.living():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            again = connect(served.url, served.token)
            with pytest.raises(SandboxGone, match="lease"):
                await again.run(box, Action(("true",)))
            await again.close()

    run(work())
