"""Dockerfiles as steps of a template: what Docker would do, and a clear no where Docker would be needed."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.service.daytona.dockerfile import instructions, plan_of, split
from excise.service.errors import Unsupported
from excise.service.templates import Do, Step


def test_the_sdks_own_image_is_translated():
    plan = plan_of(
        "FROM python:3.12-slim\n"
        "RUN python -m pip install 'a>1' b\n"
        "ENV A='$B x'\n"
        "WORKDIR /app\n"
        'ENTRYPOINT ["sh", "-c", "exec sleep 1"]\n'
    )
    assert plan.image == "python:3.12-slim"
    assert plan.steps == (
        Step(Do.RUN, ("python -m pip install 'a>1' b",)),
        Step(Do.ENV, ("A", "$B x")),
        Step(Do.WORKDIR, ("/app",)),
    )
    assert plan.start == "sh -c 'exec sleep 1'"


def test_lines_are_continued_and_comments_left_out():
    text = "# syntax=docker/dockerfile:1\nFROM a\nRUN one && \\\n  # why\n\n  two\n#last\nrun three"
    found = [(each.word, each.rest, each.line) for each in instructions(text)]
    assert found == [("FROM", "a", 2), ("RUN", "one &&   two", 3), ("RUN", "three", 8)]


def test_arguments_and_variables_are_put_in():
    plan = plan_of(
        "ARG V=3.12\nFROM python:$V\nARG V\nARG W=w\n"
        "ENV A=1 B=\"$A-${V}\" C='$A'\nENV D ${NO:-none} ${A:+yes}\nWORKDIR /x/$A\nUSER u$A\nRUN make\n"
    )
    assert plan.image == "python:3.12"
    assert [step for step in plan.steps if step.do is not Do.RUN] == [
        Step(Do.ENV, ("A", "1", "B", "-3.12", "C", "$A")),
        Step(Do.ENV, ("D", "none yes")),
        Step(Do.WORKDIR, ("/x/1",)),
        Step(Do.USER, ("u1",)),
    ]
    assert plan.steps[-1].words == ("export V=3.12\nexport W=w\nmake",)


def test_lists_and_here_documents_are_scripts():
    plan = plan_of(
        'FROM a\nRUN ["echo", "a b"]\nRUN <<EOF\nset -e\necho 1\nEOF\nRUN cat <<X > f\nin\nX\n'
    )
    scripts = [step.words[0] for step in plan.steps]
    assert scripts == ["echo 'a b'", "set -e\necho 1\n", "cat <<X > f\nin\nX\n"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("COPY a b", "build context"),
        ("COPY --from=x a b", "build context"),
        ("ADD http://x /y", "build context"),
        ("FROM other", "several stages"),
        ("RUN --mount=type=secret,id=x cat", "--mount"),
        ("ONBUILD RUN x", "ONBUILD"),
        ('SHELL ["powershell"]', "SHELL"),
        ("NONSENSE", "NONSENSE"),
    ],
)
def test_what_needs_docker_is_refused_with_its_line(line, why):
    with pytest.raises(Unsupported, match=f"line 3: .*{why}"):
        plan_of(f"FROM a\nRUN true\n{line}\n")


@pytest.mark.parametrize(
    "text",
    ["", "RUN x", "FROM", "FROM a b", "FROM a\nENV x", "FROM a\nWORKDIR a b", "FROM a\nRUN ",
     "FROM a\nENV A='x", "FROM a\nRUN <<EOF\nnever", "FROM a\nARG 1=2", "FROM a\nENV =1"],
)  # fmt: skip
def test_mistakes_are_said(text):
    with pytest.raises(InputError):
        plan_of(text)


def test_what_changes_nothing_in_a_sandbox_is_passed_over():
    text = (
        "FROM a\nLABEL x=y\nEXPOSE 80\nVOLUME /v\nHEALTHCHECK NONE\nSTOPSIGNAL 9\nMAINTAINER me\n"
    )
    assert plan_of(text).steps == ()
    assert plan_of(text + "RUN --mount=type=cache,target=/c make").steps == (
        Step(Do.RUN, ("make",)),
    )


def test_an_entry_point_lets_go_of_the_command_before_it():
    assert plan_of("FROM a\nCMD old\nENTRYPOINT run\n").start == "/bin/sh -c run"
    assert plan_of('FROM a\nENTRYPOINT ["run"]\nCMD ["x"]\n').start == "run x"


@given(st.text(alphabet="FROMRUNENVCAD aeb$\\\"'{}<>=\n#-1/[],", max_size=120))
def test_any_text_is_a_plan_or_a_mistake(text):
    with contextlib.suppress(InputError):
        assert plan_of("FROM a\n" + text).image == "a"


@given(st.lists(st.text(min_size=1, max_size=20).filter(lambda text: "'" not in text), max_size=5))
def test_words_in_single_quotes_stay_as_they_are(words):
    assert split(" ".join(f"'{word}'" for word in words), lambda _: "changed") == words
