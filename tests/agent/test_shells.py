"""Persistent shells: what survives from one script to the next, and what ends them."""

import pytest

from excise.agent import wire
from excise.agent.errors import AgentRefused
from tests.agent.conftest import ENV, holding


def test_directory_variables_and_functions_survive(box, tmp_path):
    with box.open_shell(env=ENV, cwd=str(tmp_path)) as shell:
        assert shell.run("pwd -P; mkdir in; cd in; x='a b'; f() { echo \"f:$x\"; }").code == 0
        assert shell.run("f; pwd -P").stdout.decode() == f"f:a b\n{tmp_path.resolve()}/in\n"


def test_codes_and_streams_are_those_of_each_script(box):
    with box.open_shell(env=ENV) as shell:
        first = shell.run("echo out; echo err >&2; (exit 3)")
        assert (first.code, first.stdout, first.stderr) == (3, b"out\n", b"err\n")
        assert shell.run("true").code == 0
        assert shell.run("echo $?").stdout == b"0\n"
        assert shell.run("no-such-program").code == 127


def test_scripts_may_be_anything(box):
    with box.open_shell(env=ENV) as shell:
        assert shell.run("echo \"it's\" \\\n  'a \"b\"'; echo '\\x41' $'\\x41'").stdout == (
            b'it\'s a "b"\n\\x41 A\n'
        )
        assert shell.run("cat <<'END'\nk\xe4se $x\nEND").stdout.decode() == "käse $x\n"
        assert shell.run("").code == 0
        assert shell.run("# only a comment").code == 0
        assert shell.run("echo no newline at the end; cat").stdout == b"no newline at the end\n"
        big = "x=" + "y" * 300_000 + "; echo ${#x}"
        assert shell.run(big).stdout == b"300000\n"


def test_a_syntax_error_does_not_end_the_shell(box):
    with box.open_shell(env=ENV) as shell:
        shell.run("x=kept")
        assert shell.run("if ((").code != 0
        assert shell.run("echo $x").stdout == b"kept\n"


def test_output_over_the_limit_is_cut_and_counted(box):
    with box.open_shell(env=ENV) as shell:
        found = shell.run("printf abcdefgh", output_limit=4)
        assert (found.stdout, found.stdout_total) == (b"abgh", 8)
        assert shell.run("printf abcdefgh").stdout == b"abcdefgh"


def test_a_script_that_ends_the_shell_is_answered_with_its_end(box):
    shell = box.open_shell(env=ENV)
    found = shell.run("echo last; exit 5")
    assert (found.code, found.stdout) == (5, b"last\n")
    with pytest.raises(AgentRefused, match="ESRCH"):
        shell.run("echo more")


def test_a_time_out_kills_what_the_script_started(box, marker):
    shell = box.open_shell(env=ENV)
    found = shell.run(f"echo before; setsid sleep {marker} & sleep {marker}", timeout_s=1.5)
    assert (found.end, found.code, found.stdout) == (wire.END_TIMEOUT, 137, b"before\n")
    assert holding(marker) == []


def test_shells_do_not_share_anything(box):
    with box.open_shell(env=ENV) as one, box.open_shell(env=ENV) as two:
        one.run("x=1; cd /usr")
        assert two.run("echo [$x]; pwd").stdout == b"[]\n/\n"


def test_what_is_in_the_background_prints_into_no_script(box, tmp_path):
    go = tmp_path / "go"
    with box.open_shell(env=ENV) as shell:
        shell.run(f"mkfifo {go}; (cat {go} >/dev/null; echo late) & disown")
        go.write_bytes(b"x")
        shell.run("wait; sleep 0.1")
        assert shell.run("echo mine").stdout == b"mine\n"


@pytest.mark.parametrize("user", ["nobody"])
def test_a_shell_is_opened_as_whom_it_is_told_to(box, user):
    with box.open_shell(env=ENV, user=user) as shell:
        assert shell.run("id -un").stdout.decode() == f"{user}\n"
    with pytest.raises(AgentRefused):
        box.open_shell(env=ENV, user="no-such-user")


def test_a_closed_shell_refuses_scripts_and_leaves_nothing_waiting(box):
    shell = box.open_shell(env=ENV)
    shell.close()
    with pytest.raises(AgentRefused, match="no such shell"):
        shell.run("echo")
