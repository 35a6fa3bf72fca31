import pytest

from excise.cli import main


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["project", "--slow", "x"], "--slow"),
        (["project", "--nope"], "--nope"),
        (["nope"], "nope"),
        (["project", "/nowhere"], "not a study"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(capsys, arguments, says):
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("excise: ")
    assert told.err.count("\n") == 1
    assert says in told.err


def test_a_right_one_is_exit_code_0(capsys):
    assert main(["project", "--slow", "2", "--fast", "1"]) == 0
    assert "2.000x" in capsys.readouterr().out
