"""Recorded trajectories run again on the bare process: bash, editor verbs, time-outs, the command line."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from excise.errors import InputError
from excise.measure.replay import Place, Replayed, replay
from excise.substrates import local
from excise.workloads.replay.read import read

EDITED = """\
File updated. Please review the changes and make sure they are correct (correct indentation, \
no duplicate lines, etc). Edit the file again if necessary.
[File: /testbed/new.py (2 lines total)]
1:print('one')
2:print('two')
"""
VERBS = [
    ("create new.py", "[File: /testbed/new.py (1 lines total)]\n1:"),
    ("edit 1:1\nprint('one')\nprint('two')\nend_of_edit", EDITED),
    ("python3 new.py", "one\ntwo"),
    ("edit \"print('one')\" 'print(1'", None),
    ("python3 new.py", "one\ntwo"),
    ("insert 'print(3)'", "[File: /testbed/new.py (3 lines total)]\n1:print('one')\n2:print('two')\n3:print(3)\n"),
    ("find_file 'new.*'", 'Found 1 matches for "new.*" in /testbed:\n/testbed/new.py'),
    ("search_file two", 'Found 1 matches for "two" in /testbed/new.py:\nLine 2:print(\'two\')\nEnd of matches for "two" in /testbed/new.py'),
    ("search_dir two", 'Found 1 matches for "two" in /testbed:\n/testbed/new.py (1 matches)\nEnd of matches for "two" in /testbed'),
    ("str_replace_editor create /testbed/t.txt --file_text 'a\nb\n'", "File created successfully at: /testbed/t.txt"),
    ("str_replace_editor create /testbed/t.txt --file_text ''", "File already exists at: /testbed/t.txt. Cannot overwrite files using command `create`."),
    ("str_replace_editor str_replace /testbed/t.txt --old_str b --new_str '--x'", None),
    ("str_replace_editor insert /testbed/t.txt --insert_line 0 --new_str top", None),
    ("cat t.txt", "top\na\n--x"),
    ("str_replace_editor undo_edit /testbed/t.txt", None),
    ("cat t.txt && cd /testbed && ls t.txt", "a\n--x\nt.txt"),
    (
        "str_replace_editor view /testbed/t.txt --view_range 2 2",
        "Here's the result of running `cat -n` on /testbed/t.txt:\n     2\t--x\n",
    ),
    ("goto", None),
]  # fmt: skip


def swe_agent(*actions: tuple[str, str | None]) -> bytes:
    steps = [
        {"action": action, "observation": seen, "state": {"working_dir": "/testbed"}}
        for action, seen in actions
    ]
    return json.dumps({"trajectory": steps}).encode()


def mini(*actions: tuple[str, str, int], timeout: int = 30) -> bytes:
    messages: list[dict[str, object]] = []
    for number, (command, output, code) in enumerate(actions):
        asked = {"actions": [{"command": command}], "timestamp": number + 0.5}
        seen = {"raw_output": output, "returncode": code, "timestamp": number + 1.0}
        messages.append({"role": "assistant", "content": "", "extra": asked})
        messages.append({"role": "user", "content": "", "extra": seen})
    config = {"environment": {"cwd": "/testbed", "timeout": timeout}}
    document = {"trajectory_format": "mini-swe-agent-1.1", "info": {"config": config}}
    return json.dumps({**document, "messages": messages}).encode()


def again(data: bytes, tmp_path: Path) -> Replayed:
    substrate = local.open_substrate(state=str(tmp_path / "state"))
    recording = read(data, "x.traj")
    images = tmp_path / "images"
    return asyncio.run(replay(substrate, recording, Place(), images=images, unisolated=True))


def test_editor_verbs_do_and_say_what_the_originals_do(tmp_path: Path) -> None:
    replayed = again(swe_agent(*VERBS), tmp_path)
    for (action, seen), agreement in zip(VERBS, replayed.agreements, strict=True):
        if seen is not None:
            assert agreement.similarity == 1, action
    assert [a.rc for a in replayed.agreements if a.rc] == [1, 8, 2]


def test_codes_outputs_and_time_outs_are_compared(tmp_path: Path) -> None:
    data = mini(
        ("echo x > a && cat /testbed/a", "x\n", 0),
        ("cat /testbed/nope", "cat: /testbed/nope: No such file or directory\n", 1),
        ("sleep 60", "", -1),
        ("true", "something else", 3),
        timeout=1,
    )
    replayed = again(data, tmp_path)
    assert [a.same_rc for a in replayed.agreements] == [True, True, True, False]
    assert replayed.summary.rc_equal == 3
    assert replayed.summary.output_same == 3
    assert replayed.think_s == 1.5
    assert replayed.breakdown.actions == 4


def test_a_recording_is_not_run_unisolated_by_accident(tmp_path: Path) -> None:
    recording = read(mini(("touch escaped", "", 0)), "x")
    with pytest.raises(InputError, match="--unisolated"):
        asyncio.run(replay(local.open_substrate(), recording, Place(), images=tmp_path))


def test_the_command_line_saves_and_replays(tmp_path: Path) -> None:
    (tmp_path / "x.traj.json").write_bytes(mini(("echo hello", "hello\n", 0)))
    excise = [str(Path(sys.executable).with_name("excise")), "replay"]
    lines = str(tmp_path / "x.jsonl")
    subprocess.run([*excise, "x.traj.json", "--save", lines], cwd=tmp_path, check=True)
    ran = subprocess.run(
        [*excise, lines, "--substrate", "local", "--unisolated", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(ran.stdout)["summary"]["output_same"] == 1
    refused = subprocess.run(
        [*excise, "nothing.traj"], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert len(refused.stderr.strip().splitlines()) == 1


RECORD = """
import sys
from pathlib import Path
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.test_models import DeterministicModel, make_output
replies = [["echo 'x = 1' > a.py", "cat a.py"], ["exit 3"], ["sleep 60"],
           ["echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat a.py"]]
outputs = [make_output("so", [{"command": c} for c in cs]) for cs in replies]
DefaultAgent(DeterministicModel(outputs=outputs, cost_per_call=0.0),
             LocalEnvironment(cwd=sys.argv[1], timeout=1), system_template="s",
             instance_template="t", output_path=Path(sys.argv[2]), cost_limit=0).run("t")
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_the_real_mini_swe_agent_writes_is_replayed_in_full_agreement(tmp_path: Path) -> None:
    """Needs the package index: the agent is installed into a throw-away environment."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    install = [home / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    while subprocess.run([*install, "--no-deps", "mini-swe-agent==2.4.6"], check=False).returncode:
        time.sleep(5)  # an index is busy at times; this test's own time is the bound
    needed = ["jinja2", "pydantic", "python-dotenv", "platformdirs", "rich"]
    subprocess.run([*install, *needed], check=True, stderr=subprocess.DEVNULL)
    place, written = tmp_path / "place", tmp_path / "real.traj.json"
    place.mkdir()
    subprocess.run(
        [home / "bin" / "python", "-c", RECORD, place, written],
        check=True, capture_output=True, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    summary = again(written.read_bytes(), tmp_path).summary
    assert summary.actions == 5
    assert summary.rc_equal == summary.rc_known == 5
    assert summary.output_same == summary.output_known == 4
