"""What other processes do to a store at the same time, and what is left of those that are killed."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest

from excise.layers.store import Store

BUSY = """
import itertools, sys
from pathlib import Path
from excise.layers.key import key_of
from excise.layers.store import Store

store = Store(Path(sys.argv[1]))

def make(tree):
    for number in range(60):
        (tree / str(number)).write_bytes(bytes(3000))

print("ready", flush=True)
base = store.build(key_of({"kind": "base"}), {"kind": "base"}, make)
for number in itertools.count(int(sys.argv[2])):
    recipe = {"kind": "busy", "number": number}
    store.build(key_of(recipe, [base.id]), recipe, make, [base])
    if number % 3 == 0:
        store.gc(600_000, keep={base.id})
"""

SAME = """
import os, sys, time
from pathlib import Path
from excise.layers.key import key_of
from excise.layers.store import Store

folder, mine, others = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
store, recipe = Store(folder / "store"), {"kind": "same"}

def make(tree):
    with (folder / "built").open("a") as log:
        log.write(mine + "\\n")
    while not all((folder / other).exists() for other in others):
        time.sleep(0.001)
    (tree / "f").write_text("f")

(folder / mine).touch()
print(store.build(key_of(recipe), recipe, make).facts.digest)
"""

HOLDS = """
import sys
from pathlib import Path
from excise.layers.store import Store

store = Store(Path(sys.argv[1]))
pin = store.pin(store.find(sys.argv[2]))
print("pinned", flush=True)
sys.stdin.read()
"""


def start(code, *words):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def end(process):
    process.kill()
    process.communicate()


@pytest.mark.timeout(120)
def test_builders_killed_at_any_point_leave_a_store_that_verifies(tmp_path) -> None:
    folder = tmp_path / "store"
    for number in range(20):
        process = start(BUSY, folder, number * 1000)
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(random.uniform(0, 0.08))
        finally:
            end(process)
        store = Store(folder)
        assert store.damaged() == ()
        assert all(store.verify(layer) for layer in store.layers())
        assert list((folder / "tmp").iterdir()) == []
        parents = {key for layer in store.layers() for key in layer.parents}
        assert all(store.get(key) for key in parents)
    store.gc(0)
    left = {path.name for path in folder.rglob("*")}
    assert left == {"layers", "tmp", "locks", "format"}


@pytest.mark.timeout(120)
def test_of_processes_that_want_one_layer_one_builds_it(tmp_path) -> None:
    names = ["a", "b", "c"]
    Store(tmp_path / "store")
    started = [start(SAME, tmp_path, name, *names) for name in names]
    try:
        told = [process.communicate(timeout=60)[0] for process in started]
    finally:
        for process in started:
            end(process)
    assert len((tmp_path / "built").read_text().split()) == 1
    assert told[0].startswith("sha256:")
    assert len(set(told)) == 1


@pytest.mark.timeout(120)
def test_a_builder_that_is_killed_hands_its_turn_on(tmp_path) -> None:
    Store(tmp_path / "store")
    first = start(SAME, tmp_path, "first", "never")
    try:
        while not (tmp_path / "built").exists():
            time.sleep(0.005)
        second = start(SAME, tmp_path, "second")
        try:
            while not (tmp_path / "second").exists():
                time.sleep(0.005)
            assert second.poll() is None
            end(first)
            told, _ = second.communicate(timeout=60)
        finally:
            end(second)
    finally:
        end(first)
    assert told.startswith("sha256:")
    assert (tmp_path / "built").read_text().split() == ["first", "second"]
    Store(tmp_path / "store")
    assert list((tmp_path / "store" / "tmp").iterdir()) == []


@pytest.mark.timeout(120)
def test_a_build_under_way_is_not_swept(tmp_path) -> None:
    store = Store(tmp_path / "store")
    process = start(SAME, tmp_path, "first", "never")
    try:
        while not (tmp_path / "built").exists():
            time.sleep(0.005)
        assert store.sweep() == 0
        assert store.gc(0) == ()
        assert store.du().unfinished == 1
    finally:
        end(process)
    assert store.sweep() == 1
    assert store.du().unfinished == 0


@pytest.mark.timeout(120)
def test_a_pin_of_another_process_holds_until_that_dies(tmp_path, store, built) -> None:
    layer = built()
    process = start(HOLDS, store.root, layer.id)
    try:
        assert process.stdout.readline() == "pinned\n"
        assert store.gc(0) == ()
    finally:
        end(process)
    assert store.gc(0) == (layer.id,)
