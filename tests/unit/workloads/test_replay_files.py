"""Real agents' files are read as they write them; ours survive a round trip; others are refused."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.workloads.replay import form
from excise.workloads.replay.agreement import agree, similarity, summarise
from excise.workloads.replay.classify import classify
from excise.workloads.replay.form import Recorded, Recording
from excise.workloads.replay.read import read
from excise.workloads.replay.stage import moved, staged


def asked(at: float, *commands: str) -> dict[str, object]:
    actions = [{"command": command, "tool_call_id": "c"} for command in commands]
    return {"role": "assistant", "content": "so", "extra": {"actions": actions, "timestamp": at}}


def seen(at: float, output: str, returncode: int = 0) -> dict[str, object]:
    extra = {"raw_output": output, "returncode": returncode, "timestamp": at, "exception_info": ""}
    return {"role": "tool", "content": f"<returncode>{returncode}</returncode>", "extra": extra}


MINI = {
    "info": {
        "config": {"environment": {"cwd": "/testbed", "timeout": 45, "env": {"PAGER": "cat"}}},
        "exit_status": "Submitted",
    },
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        asked(100.0, "cd /testbed && ls"),
        seen(100.5, "a.py\n"),
        asked(103.5, "cat a.py", "python -m pytest -q"),
        seen(104.0, "x = 1\n"),
        seen(104.0, "1 failed in 0.10s\n", 1),
        asked(110.0, "sleep 99"),
        seen(155.0, "", -1),
        asked(160.0, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt"),
        {"role": "exit", "content": "p", "extra": {"exit_status": "Submitted", "submission": "p"}},
    ],
    "trajectory_format": "mini-swe-agent-1.1",
}
OLD_MINI = {
    "info": {},
    "messages": [
        {"role": "system", "content": "Use ```bash\nls\n```"},
        {"role": "assistant", "content": "I look.\n\n```bash\ngrep -rn x .\n```\n"},
        {"role": "user", "content": "<returncode>1</returncode>\n<output>\nnone\n</output>"},
        {"role": "assistant", "content": "```bash\na\n```\n```bash\nb\n```"},
        {"role": "user", "content": "only one block, please"},
    ],
}
SWE = {
    "environment": "swe_main",
    "trajectory": [
        {
            "action": "create reproduce.py\n",
            "observation": "[File: /testbed/reproduce.py (1 lines total)]\r\n1:",
            "execution_time": 0.25,
            "state": {"open_file": "n/a", "working_dir": "/testbed"},
        },
        {
            "action": "edit 1:1\nprint(1)\nend_of_edit\n",
            "observation": "File updated.",
            "state": '{"open_file": "n/a", "working_dir": "/testbed/src"}\n',
        },
        {"action": "python reproduce.py", "observation": "1", "state": None},
        {"action": "", "observation": "nothing said"},
        {"action": "submit", "observation": "", "state": "not json"},
    ],
}


def of(document: object) -> Recording:
    return read(json.dumps(document).encode(), "x.traj")


def test_mini_gives_commands_codes_and_times() -> None:
    recording = of(MINI)
    assert recording.root == "/testbed"
    assert recording.env == {"PAGER": "cat"}
    actions = recording.actions
    assert [a.kind for a in actions] == ["inspect", "inspect", "test", "command", "command"]
    assert [a.rc for a in actions] == [0, 0, 1, -1, 0]
    assert [a.think_s for a in actions] == [None, 3.0, None, 6.0, 5.0]
    assert [a.recorded_s for a in actions] == [0.5, None, None, 45.0, None]
    assert actions[0].obs == "a.py\n"
    assert actions[0].obs_len == 5
    assert {a.timeout_s for a in actions} == {45.0}


def test_old_mini_files_have_one_block_per_reply() -> None:
    (action,) = of(OLD_MINI).actions
    assert (action.command, action.rc, action.obs) == ("grep -rn x .", 1, "none")


def test_swe_agent_gives_verbs_directories_and_tool_times() -> None:
    actions = of(SWE).actions
    assert [a.kind for a in actions] == ["edit", "edit", "command", "command"]
    assert [a.cwd for a in actions] == ["/testbed", "/testbed", "/testbed/src", "/testbed/src"]
    assert actions[0].recorded_s == 0.25
    assert actions[0].obs == "[File: /testbed/reproduce.py (1 lines total)]\n1:"
    assert actions[1].command == "edit 1:1 <<'end_of_edit'\nprint(1)\nend_of_edit"
    assert all(a.rc is None for a in actions)


@pytest.mark.parametrize("document", [MINI, OLD_MINI, SWE])
def test_our_own_form_survives_a_round_trip(document: object) -> None:
    recording = of(document)
    assert read(form.dump(recording), "x.jsonl") == recording


@pytest.mark.parametrize(
    "data",
    [
        b"", b"not json", b"[]", b"{}", b'{"messages": []}', b'{"trajectory": []}',
        b'{"messages": [], "trajectory_format": "mini-swe-agent-9"}', b'{"messages": [1]}',
        b'{"trajectory": [3]}', b'{"replay": 9, "source": "x", "root": "/"}', b'{"replay": 1}',
        b'{"replay": 1, "source": "x", "root": "/"}\n{"i": "one"}\n',
        b'{"replay": 1, "source": "x", "root": "/"}\n',
    ],
)  # fmt: skip
def test_what_is_no_trajectory_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(InputError) as refused:
        read(data, "x.traj")
    assert "\n" not in str(refused.value)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["messages", "trajectory", "extra", "actions", "role", "content", "state", "action", "info"]), inner)))  # fmt: skip
def test_any_json_is_read_or_refused(document: object) -> None:
    with contextlib.suppress(InputError):
        of(document)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("ls -la", "inspect"),
        ("cd /testbed && grep -rn x src | head", "inspect"),
        ("cd '/a b' && timeout 60 python -m pytest tests -q", "test"),
        ("PYTHONPATH=src timeout -s KILL 9 pytest -x", "test"),
        ("export A=1 && cd x; ./bin/test sympy/core", "test"),
        ("python tests/runtests.py forms", "test"),
        ("source /opt/env/bin/activate && python setup.py build", "command"),
        ("sed -n '1,9p' a.py", "inspect"),
        ("sed -i 's/a/b/' a.py", "edit"),
        ("cat > a.py <<'EOF'\nx\nEOF", "edit"),
        ("cat a.py 2>/dev/null", "inspect"),
        ("cat a.py 2>&1 | head", "inspect"),
        ("echo hello", "command"),
        ("echo hello >> log", "edit"),
        ("git diff HEAD", "inspect"),
        ("git checkout -- a.py", "edit"),
        ("python -c 'print(1)'", "command"),
        ("pip install x", "command"),
        ("str_replace_editor view /a.py", "inspect"),
        ("str_replace_editor str_replace /a.py --old_str a --new_str b", "edit"),
        ("open a.py 12", "inspect"),
        ("submit", "command"),
        ("", "command"),
    ],
)
def test_kinds_follow_the_rule_list(command: str, kind: str) -> None:
    assert classify(command) == kind


@given(st.text())
def test_every_command_has_a_kind(command: str) -> None:
    assert classify(command) in {"inspect", "command", "edit", "test"}


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("cd /testbed && ls", "cd /w/repo && ls"),
        ("cat /testbed/a.py", "cat /w/repo/a.py"),
        ("cat '/testbed'", "cat '/w/repo'"),
        ("ls /testbed2 x/testbed /testbed.bak", "ls /testbed2 x/testbed /testbed.bak"),
    ],
)
def test_only_the_root_itself_is_moved(text: str, there: str) -> None:
    assert moved(text, "/testbed", "/w/repo") == there


def test_steps_go_where_the_repository_is() -> None:
    steps = staged(of(SWE), workspace="/w", repository="/w/repo", python="/venv/bin/python")
    assert [s.cwd for s in steps] == ["/w/repo", "/w/repo", "/w/repo/src", "/w/repo/src"]
    assert steps[0].script.startswith('export PATH=/w/.excise-replay/bin:/venv/bin:"$PATH"\n')


def test_agreement_counts_what_is_known() -> None:
    known = Recorded(0, "inspect", "ls", rc=0, obs="a\nb\n")
    unknown = Recorded(1, "command", "x")
    told = [agree(known, 0, "a\nb"), agree(known, 2, "nothing like it"), agree(unknown, 0, "")]
    summary = summarise(told)
    assert (summary.actions, summary.rc_known, summary.rc_equal) == (3, 2, 1)
    assert (summary.output_known, summary.output_same) == (2, 1)


@given(st.text(), st.text())
def test_similarity_is_a_share_and_whole_for_equals(one: str, other: str) -> None:
    assert 0 <= similarity(one, other) <= 1
    assert similarity(one, one) == 1


def test_similarity_of_huge_outputs_is_bounded_work() -> None:
    one = "".join(f"{i}\n" for i in range(200_000))
    assert similarity(one, one + "tail\n") > 0.9
