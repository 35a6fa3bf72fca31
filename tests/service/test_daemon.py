"""The service as users have it: a process of its own, told to stop, killed, started again; keys while it runs."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from excise.cli import main
from excise.errors import Overloaded, Phase, SandboxGone, SubstrateError, SubstrateUnavailable
from excise.substrates.remote.blocking import Service
from excise.substrates.remote.requests import request
from excise.types import Action

pytestmark = pytest.mark.timeout(240)  # several processes start one after the other


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def marked(mark: str) -> int:
    """How many processes of this host have this word in their command line."""
    return sum(
        mark.encode() in p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if _there(p)
    )


def _there(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


def answered(url: str, path: str, token: str, box: str) -> str:
    """Status and body, to any client by its own headers."""
    headers = {"X-API-Key": token, "E2b-Sandbox-Id": box} if "files" in path else {}
    headers |= {"Authorization": f"Bearer {token}"}
    if path.startswith("/sandboxes"):
        headers |= {"X-API-Key": token}
    asked = urllib.request.Request(url + path, headers=headers)  # our own
    try:
        with urllib.request.urlopen(asked) as answer:
            return f"{answer.status} {answer.read().decode()}"
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.read().decode()}"


@pytest.mark.usefixtures("jail")
def test_after_kill_9_nothing_runs_any_more_and_clients_hear_the_truth(start):
    daemon = start()
    mark = f"86{os.getpid()}{time.monotonic_ns() % 100_000}"
    with Service(daemon.url, daemon.token) as service:
        box = service.create()
        broken = []

        def act() -> None:
            with pytest.raises(SubstrateError) as raised:
                box.run(Action(("sleep", mark), timeout_s=None))
            broken.append(raised.value)

        acting = threading.Thread(target=act)
        acting.start()
        eventually(lambda: marked(mark) > 0)
        daemon.end(signal.SIGKILL)
        eventually(lambda: marked(mark) == 0)
        acting.join()
        assert broken
        with pytest.raises(SubstrateError, match="no service"):
            box.run(Action(("true",)))
    again = start()
    assert again.token == "YOUR_KEY", "the key is told once"
    with Service(again.url, daemon.token) as service:
        lost = type(box)(service, box.id)
        with pytest.raises(SandboxGone, match="lost when the service was killed"):
            lost.run(Action(("true",)))
        for path, status in (
            (f"/v1/sandboxes/{box.id}", 404),
            (f"/api/sandbox/{box.id}", 404),
            (f"/toolbox/{box.id}/version", 404),
            (f"/sandboxes/{box.id}", 404),
            ("/files?path=/etc/passwd", 502),
        ):
            said = answered(again.url, path, daemon.token, box.id)
            assert said.startswith(str(status)), path
            assert "lost when the service was killed" in said, path
        with service.create() as fresh:
            assert fresh.run(Action.shell("echo up")).stdout == b"up\n"


@pytest.mark.usefixtures("jail")
def test_sigterm_lets_what_is_under_way_end_and_refuses_what_is_new(start):
    daemon = start("--drain", "20")
    with Service(daemon.url, daemon.token) as service:
        box = service.create()
        found = []
        script = "touch /work/up; sleep 2; echo finished"
        acting = threading.Thread(target=lambda: found.append(box.run(Action.shell(script))))
        acting.start()
        eventually(lambda: box.run(Action.shell("test -e /work/up")).ok)
        daemon.process.send_signal(signal.SIGTERM)

        def refuses() -> bool:
            try:
                service.create().destroy()
            except Overloaded as error:
                return error.retryable and error.retry_after_s is not None
            return False

        eventually(refuses)
        acting.join()
        assert found[0].stdout == b"finished\n"
        box.destroy()
        assert daemon.process.wait(30) == 0
    assert '"what": "ended"' in "".join(daemon.errors)


def test_a_second_signal_ends_it_at_once_and_so_does_the_end_of_patience(start):
    daemon = start("--substrate", "fake", "--drain", "3600")
    with Service(daemon.url, daemon.token) as service:
        service.create()
        daemon.process.send_signal(signal.SIGTERM)
        eventually(lambda: '"what": "draining"' in "".join(daemon.errors))
        assert daemon.end() == 0
    patient = start("--substrate", "fake", "--drain", "0.1")
    with Service(patient.url, daemon.token) as service:
        box = service.create()
        assert patient.end() == 0
    last = start("--substrate", "fake")
    with Service(last.url, daemon.token) as service, pytest.raises(SandboxGone, match="shut down"):
        type(box)(service, box.id).run(Action(("true",)))


def test_a_service_takes_as_many_open_files_as_it_may_have(start):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
    try:
        daemon = start("--substrate", "fake")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    limits = Path(f"/proc/{daemon.process.pid}/limits").read_text()
    assert re.search(rf"Max open files +{hard} +{hard} ", limits)


def test_two_services_do_not_share_a_state_folder(start):
    start("--substrate", "fake")
    with pytest.raises(AssertionError, match="another service uses"):
        start("--substrate", "fake")


def test_keys_are_added_rotated_and_revoked_while_it_runs(start, capsys):
    daemon = start("--substrate", "fake")

    def excise(*words: str, state: Path) -> str:
        assert main([*words, "--state", str(state)]) == 0
        return capsys.readouterr().out

    token = excise("key", "add", "bob", "--note", "for a test", state=daemon.folder).strip()
    service = Service(daemon.url, token)

    def works(token: str) -> bool:
        service.target = type(service.target).of(daemon.url, token)
        try:
            service.ask(request(service.target, "GET", "/v1/sandboxes"), Phase.READY)
        except SubstrateUnavailable:
            return False
        return True

    eventually(lambda: works(token))
    listed = excise("key", "list", state=daemon.folder)
    assert token not in listed
    assert "for a test" in listed
    assert token.encode() not in b"".join(p.read_bytes() for p in daemon.folder.glob("state*"))
    (id_,) = (line.split()[0] for line in listed.splitlines() if "for a test" in line)
    rotated = excise("key", "rotate", id_, "--overlap", "1", state=daemon.folder).strip()
    eventually(lambda: works(rotated))
    eventually(lambda: not works(token))
    watching = excise("key", "add", "eve", "--scope", "watch", state=daemon.folder).strip()
    time.sleep(1.5)
    assert not works(watching), "a watcher reaches no sandbox"
    (again,) = (
        line.split()[0]
        for line in excise("key", "list", state=daemon.folder).splitlines()
        if "for a test" in line and line.split()[0] != id_
    )
    excise("key", "revoke", again, state=daemon.folder)
    eventually(lambda: not works(rotated))
    service.close()


def test_tls_is_signed_by_an_authority_of_its_own_for_every_name_below_the_domain(start):
    daemon = start("--substrate", "fake", "--domain", "sandboxes.test")
    said = "".join(daemon.said)
    ca = re.search(r"SSL_CERT_FILE=(\S+)", said)[1]
    assert re.search(r"E2B_DOMAIN=sandboxes.test:\d+ ", said)
    assert Path(ca).with_name("ca.key").stat().st_mode & 0o777 == 0o600
    url = daemon.url.replace("127.0.0.1", "localhost")
    trusting = ssl.create_default_context(cafile=ca)
    with Service(url, daemon.token, tls=trusting) as service, service.create() as box:
        assert box.run(Action(("echo", "safe"))).stdout == b"safe\n"
    with Service(url, daemon.token) as service, pytest.raises(SubstrateError, match="CERTIFICATE"):
        service.create()
    port = int(daemon.url.rpartition(":")[2])
    name = "49983-abc.sandboxes.test"
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        trusting.wrap_socket(plain, server_hostname=name) as wrapped,
    ):
        assert wrapped.version() in {"TLSv1.2", "TLSv1.3"}


def test_templates_of_the_operator_and_of_owners_survive_a_restart(start, tmp_path):
    file = tmp_path / "templates.toml"
    file.write_text('[ours]\nuser = "root"\nsteps = [{ do = "env", words = ["A", "1"] }]\n')
    daemon = start("--substrate", "fake", "--templates", str(file))
    with Service(daemon.url, daemon.token) as service:
        put = b'{"name":"mine","steps":[{"do":"env","words":["B","2"]}]}'
        service.ask(request(service.target, "PUT", "/v1/templates", put), Phase.CREATE)
    daemon.end()
    again = start("--substrate", "fake", "--templates", str(file))
    with Service(again.url, daemon.token) as service:
        listed = service.ask(request(service.target, "GET", "/v1/templates"), Phase.READY)
        assert b'"mine"' in listed
        assert b'"ours"' in listed


def test_bad_input_is_one_line_and_nothing_is_changed(tmp_path, capsys):
    for words, said in (
        (["--substrate", "nothing"], "no substrate"),
        (["--log", "loud"], "--log"),
        (["--certificate", "x"], "belong together"),
        (["--repository", "x"], "NAME=FOLDER"),
        (["--templates", str(tmp_path / "none")], "none"),
        (["--sandboxes", "0"], "sandboxes"),
    ):
        assert main(["serve", "--state", str(tmp_path / "s"), *words]) == 2
        told = capsys.readouterr().err
        assert said in told
        assert len(told.splitlines()) == 1
    assert not (tmp_path / "s").exists()
