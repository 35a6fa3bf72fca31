"""Hours in minutes: random kills, and many owners at once. Short here; `make soak` gives it its full length."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from excise.jail.sweep import Swept, sweep
from excise.layers.store import Store

from . import traces

OWNER = Path(__file__).with_name("owner.py")
KILLS = int(os.environ.get("EXCISE_SOAK_KILLS", "12"))
OWNERS = int(os.environ.get("EXCISE_SOAK_OWNERS", "6"))
SECONDS = float(os.environ.get("EXCISE_SOAK_SECONDS", "6"))
SEED = int(os.environ.get("EXCISE_SOAK_SEED", str(random.randrange(1 << 20))))

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(max(120, KILLS * 3 + OWNERS * 8 + SECONDS * 3)),
]


class Life:
    """An owner and all the processes it has."""

    def __init__(self, leases: Path, store: Path, seed: int) -> None:
        words = [sys.executable, str(OWNER), str(leases), str(store), str(seed)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"up\n"

    def victims(self, whom: str) -> list[int]:
        spawners = _children(self.process.pid)
        below = [child for spawner in spawners for child in _children(spawner)]
        agents = [pid for pid in below if _name(pid) == "excise-agent"]
        return {"driver": [self.process.pid], "spawner": spawners, "agent": agents,
                "helper": [pid for pid in below if pid not in agents]}[whom]  # fmt: skip

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def test_whatever_is_killed_whenever_one_sweep_leaves_nothing(tmp_path: Path) -> None:
    sys.stdout.write(f"seed {SEED}\n")  # shown if it fails
    dice = random.Random(SEED)
    leases, store = tmp_path / "leases", tmp_path / "store"
    Store(store)
    networks: set[int] = set()
    names: set[str] = set()
    life, killed = Life(leases, store, SEED), 0
    try:
        while killed < KILLS:
            time.sleep(dice.uniform(0, 0.3))
            whom = dice.choice(["driver", "spawner", "agent", "agent", "helper", "everybody"])
            kinds = ["driver", "spawner", "agent", "helper"] if whom == "everybody" else [whom]
            names |= {folder.name for folder in leases.glob("[0-9]*")}
            networks |= traces.networks(life.victims("agent"))
            victims = [pid for kind in kinds for pid in life.victims(kind)]
            if whom == "agent" and victims:
                victims = [dice.choice(victims)]
            for pid in victims:
                _kill(pid)
            killed += bool(victims)
            if life.process.poll() is not None or whom in {"driver", "everybody"}:
                life.end()
                life = Life(leases, store, SEED + killed)
    finally:
        life.end()
    assert len(names) >= 2
    _settle(lambda: not traces.processes(leases, names))
    sweep(leases)
    assert sweep(leases) == Swept()
    assert list(leases.iterdir()) == []
    assert traces.cgroups(names) == []
    assert traces.mounts(leases, store) == []
    networks -= traces.networks([os.getpid()])
    assert networks
    _settle(lambda: not traces.networks() & networks)
    layers = Store(store).layers()
    assert layers
    assert all(Store(store).verify(layer) for layer in layers)


def test_many_owners_at_once_neither_leak_nor_hang_nor_see_each_other(tmp_path: Path) -> None:
    sys.stdout.write(f"seed {SEED}\n")  # shown if it fails
    leases, store = tmp_path / "leases", tmp_path / "store"
    Store(store)
    running = [
        subprocess.Popen(
            [sys.executable, str(OWNER), str(leases), str(store), str(SEED + n), str(SECONDS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for n in range(OWNERS)
    ]
    names: set[str] = set()
    verbs: set[str] = set()

    def all_began() -> bool:
        names.update(folder.name for folder in leases.glob("[0-9]*"))
        return len(names) == OWNERS

    try:
        _settle(all_began, 20 + OWNERS * 4)
        for each in running:
            out, err = each.communicate(timeout=SECONDS * 2 + 90)
            assert out.splitlines(), err.decode()
            report = json.loads(out.splitlines()[-1])
            assert report["wrong"] == []
            verbs |= set(report["done"])
    finally:
        for each in running:
            each.kill()
            each.communicate()
    assert {"create", "act", "reset", "fork", "destroy", "inject"} <= verbs
    assert sweep(leases) == Swept(), "whoever ends in order leaves nothing to sweep"
    assert traces.cgroups(names) == []
    assert traces.processes(leases, names) == []


def _children(pid: int) -> list[int]:
    """Of all its threads: a child is listed with the one that started it."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:
            continue
    return found


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _settle(true: Callable[[], bool], within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            pytest.fail("waited in vain")
        time.sleep(0.02)
