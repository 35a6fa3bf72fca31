"""The blocking twin: the same session without an event loop of one's own."""

from __future__ import annotations

import asyncio

import pytest

from excise import Action, Fake, InputError, LifecycleError, Local, Phase, SubstrateError
from excise.blocking import Session


def test_actions_and_a_shell_without_an_event_loop(tmp_path):
    with Session(Local(tmp_path)) as s:
        assert s.act(Action.shell("echo hi; exit 3")).exit_code == 3
        s.open_shell()
        s.tell("x=5")
        assert s.tell("echo $x").stdout == b"5\n"
    assert len(s.marks.actions) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_failing_start_raises_and_leaves_nothing():
    error = SubstrateError("no", substrate="fake", phase=Phase.READY)
    fake = Fake(fail={Phase.READY: error})
    with pytest.raises(SubstrateError), Session(fake):
        pass
    assert fake.boxes == ()


def test_an_error_of_the_caller_destroys_the_sandbox_and_comes_through():
    fake = Fake()
    with pytest.raises(ZeroDivisionError), Session(fake):
        _ = 1 / 0
    assert fake.boxes == ()


def test_inside_an_event_loop_it_says_what_to_use_instead():
    async def scenario():
        with Session(Fake()):
            pass

    with pytest.raises(InputError, match="async with"):
        asyncio.run(scenario())


def test_after_the_end_there_is_no_acting():
    with Session(Fake()) as s:
        pass
    with pytest.raises(LifecycleError, match="inside its"):
        s.act(Action(("true",)))
