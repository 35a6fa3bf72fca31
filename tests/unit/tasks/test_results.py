"""What runners report, as names of tests."""

from __future__ import annotations

from excise.tasks.descriptor import Check
from excise.tasks.results import Results, read, telling
from excise.tasks.verify import Found, differences

PYTEST = """\
F.
=========================== short test summary info ============================
PASSED tests/fake.py::in_captured_output
=================================== PASSES =====================================
=========================== short test summary info ============================
PASSED tests/test_a.py::test_one
PASSED tests/test_a.py::test_more[x - y]
FAILED tests/test_a.py::test_two - assert 1 == 2
FAILED tests/test_a.py::test_more[a - b] - assert x[0] - y[1] == [2]
FAILED tests/test_a.py::test_more[x] - no]
FAILED tests/test_a.py::test_plain - assert [1 - 1] == [2]
ERROR tests/test_b.py - ImportError: no
SKIPPED [1] tests/test_a.py:9: not here
1 failed, 2 passed in 0.01s
"""

DJANGO = """\
test_one (pkg.tests.T.test_one) ... ok
test_two (pkg.tests.T.test_two)
Says what it does. ... FAIL
test_three (pkg.tests.T.test_three)
Passes. ... ok
test_four (pkg.tests.T.test_four) ... skipped 'why'
test_five (pkg.tests.T.test_five) ... expected failure
======================================================================
FAIL: test_two (pkg.tests.T.test_two)
----------------------------------------------------------------------
ERROR: test_six (pkg.tests.T.test_six) (sub=1)
"""


def test_pytests_last_summary_counts_and_no_other() -> None:
    found = read(PYTEST, "pytest")
    assert found.passed == {"tests/test_a.py::test_one", "tests/test_a.py::test_more[x - y]"}
    assert "tests/test_b.py" in found.failed


def test_a_parameter_with_a_dash_is_no_reason() -> None:
    names = {"test_two", "test_more[a - b]", "test_more[x]", "test_plain"}
    failed = read(PYTEST, "pytest").failed - {"tests/test_b.py"}
    assert failed == {f"tests/test_a.py::{name}" for name in names}


def test_a_django_test_with_a_docstring_has_its_outcome_on_the_next_line() -> None:
    found = read(DJANGO, "django")
    assert found.passed == {"pkg.tests.T.test_one", "pkg.tests.T.test_three"}
    assert found.failed == {"pkg.tests.T.test_two", "pkg.tests.T.test_six"}


def test_a_report_without_tests_names_none() -> None:
    silent = read("Starting\nSegmentation fault\n\n", "pytest")
    assert silent == Results(frozenset(), frozenset(), said="Segmentation fault")
    assert read("", "django").said == "nothing"
    assert telling("run x", "django")[0] == "run x -v 2"


def results(passed: str, failed: str) -> Results:
    return Results(frozenset(passed), frozenset(failed))


def said(before: Results, after: Results, **declared: object) -> list[str]:
    check = Check(**{"path": "t", "fail_to_pass": ("a",), "pass_to_pass": 1, **declared})
    return list(differences(Found(check, before, after)))


def test_a_task_that_does_what_it_says_has_no_problems() -> None:
    assert not said(results("b", "a"), results("ab", ""))
    assert not said(results("b", "ac"), results("ab", "c"), known_failing=("c",))
    assert not said(results("b", ""), results("ab", "")), "a test that did not exist before"


def test_every_difference_names_its_tests() -> None:
    assert "does not pass after the fix: a" in said(results("b", "a"), results("b", "a"))[0]
    assert "does not fail before the fix: a" in said(results("ab", ""), results("ab", ""))[0]
    assert "also goes from failing to passing: c" in said(results("b", "ac"), results("abc", ""))[0]
    assert "fails after it: b" in said(results("b", "a"), results("a", "b"))[0]
    assert "not known_failing: c" in said(results("b", "ac"), results("ab", "c"))[0]
    assert "0 tests pass before and after, not 1" in said(results("", "a"), results("a", ""))[0]
    crashed = Results(frozenset(), frozenset(), said="no module")
    assert "reported no test; it said: no module" in said(crashed, crashed)[0]
