"""The fake does what is written down, in the time that is written down."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise import Action, Fake, FakeClock, Fault, InputError, Latencies, Observation, Spec
from excise.substrates.fake import null, open_substrate, script_of


def run(fake, action):
    async def once():
        return await fake.run(await fake.create(Spec()), action)

    return asyncio.run(once())


@given(st.lists(st.integers(0, 10**11), max_size=5))
def test_sleep_takes_exactly_its_time(sleeps_ns):
    clock = FakeClock()
    script = "\n".join(f"sleep {ns / 1e9!r}" for ns in sleeps_ns)
    seen = run(Fake(clock=clock), Action.shell(script, timeout_s=None))
    assert abs(clock.now_ns() - sum(sleeps_ns)) <= 1
    assert seen.inside_ns == clock.now_ns()


def test_a_sleep_beyond_its_time_out_is_cut_short():
    clock = FakeClock()
    seen = run(Fake(Latencies(run_s=1.0), clock=clock), Action.shell("sleep 9", timeout_s=2.5))
    assert (seen.exit_code, seen.timed_out, clock.now_ns()) == (137, True, 3_500_000_000)


@pytest.mark.parametrize(
    ("action", "code", "stdout"),
    [
        (Action(("true",)), 0, b""),
        (Action(("false",)), 1, b""),
        (Action.shell("false", merge=True), 1, b""),
        (Action.shell("echo 'a  b' c; false"), 1, b"a  b c\n"),
        (Action.shell("echo 1\nexit 7\necho 2"), 7, b"1\n"),
        (Action.shell("false; exit"), 1, b""),
        (Action(("cat",), stdin=b"\0in"), 0, b"\0in"),
        (Action.shell("echo 'open"), 2, b""),
    ],
)
def test_the_known_commands(action, code, stdout):
    seen = run(Fake(), action)
    assert (seen.exit_code, seen.stdout) == (code, stdout)


def test_the_unknown_is_a_missing_program_unless_answers_know_it():
    assert run(Fake(), Action(("pytest", "-q"))).fault is Fault.MISSING_PROGRAM
    answers = {"pytest -q": Observation(1, b"1 failed", inside_ns=2_000_000_000)}
    clock = FakeClock()
    seen = run(Fake(clock=clock, answers=answers), Action.shell("pytest -q", merge=True))
    assert (seen.exit_code, seen.stdout_bytes, clock.now_ns()) == (1, 8, 2_000_000_000)
    chosen = Fake(answers=lambda a: Observation(len(a.argv)))
    assert run(chosen, Action(("a", "b", "c"))).exit_code == 3


def test_the_null_substrate_says_nothing_to_everything():
    seen = run(null(), Action.shell("pytest"))
    assert (seen.exit_code, seen.text, seen.inside_ns) == (0, "", 0)


def test_a_script_is_known_without_the_merging_of_its_streams():
    assert script_of(Action.shell("ls -l", merge=True)) == "ls -l"
    assert script_of(Action(("ls", "a b"))) == "ls 'a b'"


def test_options_are_seconds_by_verb():
    assert open_substrate(create_s="0.5").latencies == Latencies(create_s=0.5)
    with pytest.raises(InputError, match="it has: create_s"):
        open_substrate(speed="1")
    with pytest.raises(InputError, match="seconds"):
        open_substrate(run_s="fast")
