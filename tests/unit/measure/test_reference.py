"""Goldens are what two runs of the bare process agree on; where they never do, there is no reference."""

import asyncio

import pytest

from excise.clock import FakeClock
from excise.measure.reference import NoReference, reference
from excise.substrates.fake import script_of
from excise.types import Observation
from excise.workloads.goldens import chain, golden_of


@pytest.fixture
def recorded(rig, tmp_path):
    """Record a workload of one action that says the next of these words in each run."""

    def recorded(*words, exit_code=0, published=None):
        said = iter(words)

        def answer(action):
            if script_of(action) != "ask":
                return None
            return Observation(exit_code, stdout=next(said).encode())

        setting = rig.setting(rig.listed("ask"), answers=answer)
        found = asyncio.run(
            reference(
                setting,
                clock=FakeClock(),
                cache=tmp_path,
                interpreter="i",
                tools="t",
                published=published,
            )
        )
        return found, list(said)

    return recorded


def test_two_runs_that_agree_are_the_reference_and_the_next_study_has_it_from_the_cache(recorded):
    found, left = recorded("same", "same", "never asked")
    assert (found.goldens, found.cached) == ((golden_of(0, b"same"),), False)
    assert left == ["never asked"]
    again, left = recorded("other")
    assert (again.goldens, again.cached, left) == (found.goldens, True, ["other"])
    assert again.digest == found.digest


def test_one_run_that_agrees_with_the_author_is_enough(recorded):
    published = chain([golden_of(0, b"same")])
    found, left = recorded("same", "never asked", published=published)
    assert (found.digest, left) == (published, ["never asked"])


def test_a_run_that_differs_from_the_author_is_repeated(recorded):
    found, left = recorded("mine", "mine", published=chain([golden_of(0, b"same")]))
    assert (found.goldens, left) == ((golden_of(0, b"mine"),), [])


def test_where_two_disagree_a_third_decides(recorded):
    found, _ = recorded("once", "steady", "steady")
    assert found.goldens == (golden_of(0, b"steady"),)


def test_where_no_two_agree_the_workload_and_the_action_are_named(recorded, tmp_path):
    with pytest.raises(NoReference, match=r"W has no reference: .* each time at action 0 \(comm"):
        recorded("one", "another", "a third")
    assert not (tmp_path / "goldens").exists()


def test_a_bare_process_that_does_not_do_what_the_author_says_is_no_reference(recorded):
    with pytest.raises(NoReference, match="ended with 1 instead of 0 on the bare process: no such"):
        recorded("no such file", exit_code=1)
