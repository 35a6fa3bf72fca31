"""`excise pool`, as users have it: beside a pool that runs in another process, and on a demand that is written down."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading

import pytest

from excise import Action, Budget, Local, Rules, Session, Spec, pooled
from excise.pools import desk
from excise.pools.desk import Desk
from excise.pools.stage import Kind

DEMAND = {
    "sandboxes": 3,
    "wanted": [{"path": "image:a=20/repository:c=2", "pinned": 1}],
    "idle": [{"name": "one", "path": "image:a=20/repository:b=2", "idle_s": 90}],
    "waiting": [{"name": "r1", "path": "image:a=20/repository:c=2"}],
}


@pytest.fixture
def pool(excise, tmp_path):
    """Run `excise pool` where no other user's pools are."""

    def run(*words, code=0):
        ended, out, err = excise("pool", *words)
        assert ended == code, err
        return err if code else out

    return run


@pytest.fixture
def running(tmp_path):
    """A pool that runs meanwhile in a thread, and where it can be asked; True once it holds a sandbox."""
    ready, done = threading.Event(), threading.Event()

    async def live():
        async with pooled(Local(tmp_path / "state"), Rules(budget=Budget(4))) as pool, Desk(pool):
            pool.pin(Spec(), 1)
            async with Session(pool) as session:
                await session.act(Action.shell("true"))
                while pool.status()["idle"] < 1:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                ready.set()
                while not done.is_set():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    assert ready.wait(30)
    yield
    done.set()
    thread.join()


def mine(answers):
    """Others may run pools on this machine."""
    return [a for a in answers if a.get("pid") == os.getpid()]


def test_a_running_pool_is_asked_for_what_it_has_and_did(pool, running):
    [found] = mine(json.loads(pool("status", "--json"))["pools"])
    assert found["pool"] == "local+pool"
    assert (found["now"]["idle"], found["now"]["held"]) == (1, 1)
    assert sum(found["acquired"].values()) == 1
    assert found["unfit"] == []
    assert f"local+pool of process {os.getpid()}: 1 idle, 1 held" in pool("status")
    assert 'excise_pool_idle{pool="local+pool"} 1' in pool("status", "--metrics")


def test_a_running_pool_says_what_it_keeps_and_what_a_rollout_would_find(pool, running):
    [kept] = mine(json.loads(pool("plan", "--json"))["pools"])
    assert kept["keep"][0]["why"] == "pinned, 1 of 1"
    assert kept["keep"][0]["kind"] == Kind.IMAGE
    assert "1 of 1 stages there" in pool("explain")
    [other] = mine(json.loads(pool("explain", "--json", "--image", "other"))["pools"])
    assert "0 of 1 stages there" in other["lines"][1]


def test_what_a_killed_pool_left_is_removed_by_whoever_looks(tmp_path):
    door = tmp_path / "1234-abcd"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(door))
    assert list(desk.ask_all({"ask": "status"}, tmp_path)) == []
    assert not door.exists()


def test_a_pool_answers_what_it_does_not_understand_with_an_error(tmp_path, running):
    for question in ({"ask": "nonsense"}, {}, {"ask": "explain", "spec": {"image": 5}}):
        [answer] = mine(desk.ask_all(question))
        assert "error" in answer


def test_a_demand_that_is_written_down_is_planned_and_explained(pool, tmp_path):
    file = tmp_path / "demand.json"
    file.write_text(json.dumps(DEMAND))
    planned = json.loads(pool("plan", file, "--json"))
    assert planned["make"] == ["a/c"]
    assert planned["let_go"] == [{"name": "one", "why": "not worth keeping any more"}]
    assert "pinned, 1 of 1" in pool("plan", file)
    assert pool("explain", file) == "r1 -> one: 1 of 2 stages there, 2 s left\n"
    assert json.loads(pool("explain", file, "--json"))["matches"][0]["left_s"] == 2.0


def test_bad_input_is_one_line(pool, tmp_path):
    file = tmp_path / "demand.json"
    file.write_text("{}")
    for words in (("plan", file), ("explain", tmp_path / "nothing"), ("explain", "--repo", "x")):
        err = pool(*words, code=2)
        assert err.startswith("excise: ")
        assert err.count("\n") == 1
