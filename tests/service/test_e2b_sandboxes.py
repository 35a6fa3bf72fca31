"""Sandboxes of the E2B door as their owners make, find, time, pause, copy and end them, through the unmodified SDK."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from e2b import (
    AuthenticationException,
    NotFoundException,
    RateLimitException,
    Sandbox,
    SandboxException,
    SandboxNotFoundException,
    SandboxQuery,
    SandboxState,
)

from excise.errors import Phase
from excise.service.errors import Refused
from excise.service.sandbox import State
from excise.types import Egress


def call(client, method, path, body=None, token=None, **headers):
    """A request as no SDK makes it: status and JSON."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"X-API-Key": token or client.served.token, **headers}
    request = urllib.request.Request(client.served.url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.loads(refused.read())


def test_a_sandbox_says_what_it_is(e2b_client):
    def script(client):
        box = Sandbox.create(timeout=100, metadata={"a b": "ä/&="}, **client.alice)
        info = box.get_info()
        assert (info.sandbox_id, info.metadata) == (box.sandbox_id, {"a b": "ä/&="})
        assert (info.state, info.template_id) == (SandboxState.RUNNING, "base")
        assert 90 < (info.end_at - info.started_at).total_seconds() <= 101
        assert (info.cpu_count, info.memory_mb) == (1, 2048)
        (found,) = box.get_metrics()
        assert 0 < found.mem_used < found.mem_total == 2048 * 1024 * 1024
        assert found.cpu_used_pct >= 0
        assert 0 <= found.disk_used < found.disk_total

    e2b_client(script)


def test_lists_are_filtered_and_come_in_pages(e2b_client):
    def script(client):
        made = [
            Sandbox.create(metadata={"n": str(n), "even": str(n % 2 == 0)}, **client.alice)
            for n in range(5)
        ]
        Sandbox.create(metadata={"even": "True"}, **client.bob)
        made[0].pause()
        pages, paginator = [], Sandbox.list(limit=2, **client.alice)
        while paginator.has_next:
            pages.append([each.metadata["n"] for each in paginator.next_items()])
        assert pages == [["0", "1"], ["2", "3"], ["4"]]

        def found(query=None, **options):
            paginator = Sandbox.list(query=query, **options, **client.alice)
            return [each.metadata["n"] for each in paginator.next_items()]

        assert found(SandboxQuery(metadata={"even": "True"})) == ["0", "2", "4"]
        assert found(SandboxQuery(state=[SandboxState.PAUSED])) == ["0"]
        assert found(SandboxQuery(state=[SandboxState.RUNNING]), order="desc") == [
            "4",
            "3",
            "2",
            "1",
        ]
        assert found(SandboxQuery(template="base")) == ["0", "1", "2", "3", "4"]
        assert found(SandboxQuery(template="other")) == []
        assert found(SandboxQuery(started_after=made[3].get_info().started_at)) == ["3", "4"]

    e2b_client(script)


def test_time_is_extended_cut_and_kept(e2b_client):
    def script(client):
        box = Sandbox.create(timeout=100, **client.alice)

        def left():
            info = box.get_info()
            return (info.end_at - info.started_at).total_seconds()

        box.set_timeout(1000)
        assert 999 < left() < 1100
        Sandbox.connect(box.sandbox_id, timeout=10, **client.alice)
        assert left() > 999, "connecting shortens nothing"
        box.connect(timeout=2000)
        assert 1999 < left() < 2100
        box.set_timeout(50)
        assert left() < 100
        refresh = f"/sandboxes/{box.sandbox_id}/refreshes"
        assert call(client, "POST", refresh, {"duration": 500})[0] == 204
        assert 499 < left() < 600
        box.set_timeout(0)
        client.gone(box.sandbox_id)
        with pytest.raises(SandboxNotFoundException):
            box.get_info()

    e2b_client(script)


def test_a_pause_holds_processes_and_connecting_lets_them_go_on(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        handle = box.commands.run("read line; echo got $line", background=True, stdin=True)
        assert box.pause() is True
        assert box.pause() is False
        assert not box.is_running()
        assert box.get_info().state is SandboxState.PAUSED
        with pytest.raises(SandboxException, match="was not found"):
            box.commands.run("true")
        again = Sandbox.connect(box.sandbox_id, timeout=77, **client.alice)
        assert again.is_running()
        again.commands.send_stdin(handle.pid, "it\n")
        assert handle.wait().stdout == "got it\n"
        assert box.pause(mode="filesystem") is True
        box.connect()
        assert box.commands.list() == []
        assert box.is_running()

    e2b_client(script)


def test_a_sandbox_pauses_itself_and_wakes_when_it_is_used(e2b_client):
    def script(client):
        lifecycle = {"on_timeout": "pause", "auto_resume": True}
        box = Sandbox.create(timeout=1, lifecycle=lifecycle, **client.alice)
        box.files.write("kept", "x")
        assert box.get_info().lifecycle["on_timeout"] == "pause"
        client.reaches(box.sandbox_id, State.PAUSED)
        assert box.files.read("kept") == "x"
        assert box.get_info().state is SandboxState.RUNNING
        box.kill()
        plain = Sandbox.create(timeout=1, lifecycle={"on_timeout": "pause"}, **client.alice)
        client.reaches(plain.sandbox_id, State.PAUSED)
        assert not plain.is_running()

    e2b_client(script)


def test_snapshots_and_forks_have_the_files_and_are_their_own(e2b_client):
    def script(client):
        box = Sandbox.create(metadata={"k": "v"}, envs={"A": "1"}, **client.alice)
        box.files.write("f", "before")
        kept = box.create_snapshot("mine")
        unnamed = box.create_snapshot()
        box.files.write("f", "after")
        made = Sandbox.create(kept.snapshot_id, **client.alice)
        assert made.files.read("f") == "before"
        assert made.commands.run("id -un; pwd").stdout == "user\n/home/user\n"
        assert Sandbox.create("mine", **client.alice).files.read("f") == "before"
        assert [
            each.names for each in Sandbox.list_snapshots(name="mine", **client.alice).next_items()
        ] == [["mine"]]
        listed = Sandbox.list_snapshots(sandbox_id=box.sandbox_id, limit=1, **client.alice)
        assert [each.snapshot_id for each in listed.next_items()] == [kept.snapshot_id]
        assert [each.snapshot_id for each in listed.next_items()] == [unnamed.snapshot_id]
        assert not listed.has_next
        assert Sandbox.delete_snapshot(kept.snapshot_id, **client.alice) is True
        assert Sandbox.delete_snapshot(kept.snapshot_id, **client.alice) is False
        one, two = box.fork(count=2, timeout=60)
        one.files.write("f", "one's")
        assert [each.files.read("f") for each in (box, one, two)] == ["after", "one's", "after"]
        assert one.get_info().metadata == {"k": "v"}
        assert one.commands.run("echo $A").stdout == "1\n"
        box.kill()
        with pytest.raises(SandboxNotFoundException):
            box.fork()

    e2b_client(script)


def test_what_is_asked_for_twice_under_one_key_is_made_once(e2b_client):
    def script(client):
        with ThreadPoolExecutor(8) as pool:
            making = [
                pool.submit(Sandbox.create, idempotency_key="one-key", **client.alice)
                for _ in range(8)
            ]
            assert len({each.result().sandbox_id for each in making}) == 1
        with pytest.raises(SandboxException, match="409"):
            Sandbox.create(idempotency_key="one-key", metadata={"other": "x"}, **client.alice)

    e2b_client(script)


def test_nobody_reaches_what_is_somebody_elses_by_any_route(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        mine = Sandbox.create(**client.bob)
        box.files.write("f", "secret")
        kept = box.create_snapshot("hers")
        id_, bob = box.sandbox_id, client.served.other
        for method, path in (
            ("GET", ""), ("DELETE", ""), ("POST", "/timeout"), ("POST", "/refreshes"), ("POST", "/pause"),
            ("POST", "/fork"), ("POST", "/snapshots"), ("POST", "/connect"), ("POST", "/resume"),
            ("GET", "/metrics"), ("PUT", "/network"),
        ):  # fmt: skip
            body = None if method in {"GET", "DELETE"} else {"timeout": 1}
            assert call(client, method, f"/sandboxes/{id_}{path}", body, bob)[0] == 404, path
        assert call(client, "POST", f"/v2/sandboxes/{id_}/connect", {}, bob)[0] == 404
        assert [
            each["sandboxID"] for each in call(client, "GET", "/v2/sandboxes", None, bob)[1]
        ] == [mine.sandbox_id]
        token = mine._envd_access_token
        for path in (
            "/process.Process/List", "/process.Process/SendInput", "/process.Process/SendSignal",
            "/process.Process/CloseStdin", "/process.Process/Update", "/process.Process/Start",
            "/process.Process/Connect", "/process.Process/StreamInput", "/filesystem.Filesystem/Stat",
            "/filesystem.Filesystem/ListDir", "/filesystem.Filesystem/MakeDir", "/filesystem.Filesystem/Move",
            "/filesystem.Filesystem/Remove", "/filesystem.Filesystem/CreateWatcher",
            "/filesystem.Filesystem/GetWatcherEvents", "/filesystem.Filesystem/RemoveWatcher",
            "/filesystem.Filesystem/WatchDir", "/files?path=f",
        ):  # fmt: skip
            for kind in ("application/json", "application/connect+json"):
                headers = {"E2b-Sandbox-Id": id_, "Content-Type": kind}
                assert (
                    call(client, "POST", path, {}, bob, **headers, **{"X-Access-Token": token})[0]
                    == 502
                )
                assert call(client, "POST", path, {}, bob, **headers)[0] == 502
                assert call(client, "POST", path, {}, "e2b_" + "0" * 40, **headers)[0] == 401
        assert (
            call(client, "GET", "/files?path=f", None, bob, **{"X-Access-Token": "0" * 32})[0]
            == 502
        )
        for path in ("/files?path=f", "/health"):
            headers = {"E2b-Sandbox-Id": id_, "X-Access-Token": token}
            assert call(client, "GET", path, None, bob, **headers)[0] == 502
        with pytest.raises(SandboxException):
            Sandbox.create(kept.snapshot_id, **client.bob)
        assert call(client, "DELETE", f"/templates/{kept.snapshot_id}", None, bob)[0] == 404
        assert call(client, "GET", "/snapshots", None, bob)[1] == []
        assert call(client, "GET", "/templates/aliases/hers", None, bob)[0] == 404
        assert box.files.read("f") == "secret"

    e2b_client(script)


def test_a_key_that_is_none_is_refused(e2b_client):
    def script(client):
        options = client.alice | {"api_key": "e2b_" + "0" * 40}
        with pytest.raises(AuthenticationException):
            Sandbox.create(**options)
        assert call(client, "GET", "/v2/sandboxes", None, "x")[0] == 401

    e2b_client(script, "fake")


def test_what_is_not_there_is_said_in_the_sdks_terms(e2b_client):
    def script(client):
        for more in (
            {"volume_mounts": {"/data": "volume"}},
            {"network": {"deny_out": ["10.0.0.0/8"]}},
            {"network": {"allow_out": ["*.org"], "deny_out": ["0.0.0.0/0"]}},
        ):
            with pytest.raises(SandboxException, match="501"):
                Sandbox.create(**more, **client.alice)
        with pytest.raises(SandboxException, match="no network"):
            Sandbox.create(
                network={"allow_out": ["a.org"], "deny_out": ["0.0.0.0/0"]}, **client.alice
            )
        closed = Sandbox.create(allow_internet_access=False, **client.alice)
        assert closed.get_info().allow_internet_access is False
        with pytest.raises(SandboxException, match="501"):
            closed.update_network({"deny_out": ["0.0.0.0/0"]})
        assert call(client, "GET", "/volumes")[0] == 501
        assert call(client, "POST", "/secrets", {})[0] == 501
        with pytest.raises(NotFoundException):
            Sandbox.get_info("nothing", **client.alice)
        assert Sandbox.kill("nothing", **client.alice) is False
        with pytest.raises(SandboxException, match="there is no template"):
            Sandbox.create("dir:/etc", **client.alice)

    e2b_client(script)


def test_a_full_service_says_so_at_once_and_when_to_ask_again(e2b_client):
    def script(client):
        def full(*_args, **_more):
            raise Refused("enough", phase=Phase.CREATE, retry_after_s=7, theirs=True)

        client.served.cloud.create = full
        with pytest.raises(RateLimitException):
            Sandbox.create(retries=0, **client.alice)
        del client.served.cloud.create

    e2b_client(script, "fake")


def test_malformed_requests_are_the_callers_fault(e2b_client):
    def script(client):
        for body in ([], "x", 3, {"templateID": 3}, {}, {"templateID": "base", "envVars": {"a": 1}},
                     {"templateID": "base", "timeout": -1}, {"templateID": "base", "envVars": {"a=b": "c"}},
                     {"templateID": "base?what=x"}, {"templateID": "base?repo=x"}):  # fmt: skip
            status, told = call(client, "POST", "/sandboxes", body)
            assert status == 400, body
            assert told["code"] == 400
            assert told["message"]
        request = urllib.request.Request(
            client.served.url + "/sandboxes", b"{" * 100_000, {"X-API-Key": client.served.token}
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        with refused.value:
            assert refused.value.code == 400

    e2b_client(script, "fake")


def test_all_of_the_network_that_the_service_gives_is_given(e2b_client, serve):
    from excise.service.policy import Policy

    def script(client):
        box = Sandbox.create(**client.alice)
        closed = Sandbox.create(allow_internet_access=False, **client.alice)
        find = client.served.cloud.find
        assert find("alice", box.sandbox_id).spec.egress is Egress.FULL
        assert find("alice", closed.sandbox_id).spec.egress is Egress.NONE

    e2b_client(script, "fake", Policy(egress=Egress.FULL))
