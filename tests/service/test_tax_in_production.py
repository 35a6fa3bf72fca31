"""Live rollouts as studies: kept by a real service, exported, reported and projected by the command line."""

from __future__ import annotations

import http.server
import json
import threading

import pytest

from excise.cli import main
from excise.substrates.remote.blocking import Service
from excise.types import Action


@pytest.mark.timeout(240)
def test_what_a_service_saw_can_be_reported_and_projected(start, tmp_path, capsys):
    daemon = start("--substrate", "local")
    with Service(daemon.url, daemon.token) as service:
        for turn in range(6):
            with service.create() as box:
                for _ in range(turn + 2):
                    box.run(Action(("true",)))
        watching = "".join(daemon.said).partition("#key=")[2].split()[0]
        assert main(["top", "--once", "--url", daemon.url, "--key", watching]) == 0
        assert "rollouts that ended: 6 ok; actions: 27" in capsys.readouterr().out
    daemon.end()
    out = tmp_path / "study"
    assert main(["study", "live", str(out), "--state", str(daemon.folder)]) == 0
    assert "6 rollouts" in capsys.readouterr().out
    trials = [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]
    assert [len(trial["actions"]) for trial in trials] == [2, 3, 4, 5, 6, 7]
    assert all(trial["outcome"] == "ok" for trial in trials)
    assert main(["study", "report", str(out)]) == 0
    assert "live:host" in capsys.readouterr().out
    assert main(["project", str(out)]) == 0
    assert "native" in capsys.readouterr().out


@pytest.mark.timeout(120)
def test_the_books_can_be_switched_off(start):
    daemon = start("--substrate", "fake", "--no-tax")
    with Service(daemon.url, daemon.token) as service, service.create() as box:
        box.run(Action(("true",)))
    daemon.end()
    assert not (daemon.folder / "rollouts.jsonl").exists()


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes spans as OpenTelemetry's exporters send them."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.came.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


@pytest.mark.timeout(120)
def test_every_request_is_a_span_with_its_id_for_a_collector_that_is_named(start):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        collector.came = []
        serving = threading.Thread(target=collector.serve_forever)
        serving.start()
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}"}
        daemon = start("--substrate", "fake", env=env)
        with Service(daemon.url, daemon.token) as service, service.create() as box:
            box.run(Action(("true",)))
        daemon.end()
        collector.shutdown()
        serving.join()
    paths, told = zip(*collector.came, strict=True)
    assert set(paths) == {"/v1/traces"}
    for name in (b"POST /v1/sandboxes", b"POST /v1/sandboxes/*/run", b"excise.request_id"):
        assert name in b"".join(told)
