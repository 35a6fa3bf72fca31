"""`excise study report`: which files there are afterwards, and one clear line where there can be none."""

from __future__ import annotations

import json

import pytest

from excise.cli import main
from excise.measure.store import write_study


@pytest.fixture
def directory(build, tmp_path):
    head, trials = build.study(("bare", "docker"), ("T0",), blocks=3)
    write_study(tmp_path / "study", head, trials)
    return tmp_path / "study"


def test_all_files_are_written_the_page_is_named_and_the_study_is_left_as_it_was(
    directory, capsys
) -> None:
    before = {p.name: p.read_bytes() for p in directory.iterdir()}
    assert main(["study", "report", str(directory)]) == 0
    out = directory / "report"
    files = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()}
    assert {
        "report.html",
        "report.md",
        "summary.json",
        "tables/main.md",
        "tables/main.csv",
    } <= files
    assert {"figures/F2.svg", "figures/F2.png", "figures/F3.svg"} <= files
    printed = capsys.readouterr().out
    assert "docker" in printed
    assert f"report: {out / 'report.html'}" in printed.replace("\n", "")
    assert {p.name: p.read_bytes() for p in directory.iterdir() if p.is_file()} == before


def test_json_is_one_object_with_all_values(directory, tmp_path, capsys) -> None:
    assert main(["study", "report", str(directory), "--out", str(tmp_path / "r"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "r" / "summary.json").read_text())
    assert {c["label"] for c in printed["cells"]} == {"bare", "docker"}


def test_one_format_writes_only_that(directory, tmp_path) -> None:
    out = tmp_path / "r"
    assert main(["study", "report", str(directory), "--out", str(out), "--format", "figures"]) == 0
    assert not (out / "report.html").exists()
    assert (out / "figures" / "F2.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["/does/not/exist"], "is not a study"),
        (["{study}", "--format", "pdf"], "no format 'pdf'; there are html, md, figures"),
        (["{study}", "--out", "{study}/study.json"], "choose another --out"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(directory, capsys, arguments, says) -> None:
    assert main(["study", "report", *(a.format(study=directory) for a in arguments)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_an_unwritable_directory_is_said_in_one_line(directory, capsys) -> None:
    """In /proc not even root can make anything."""
    assert main(["study", "report", str(directory), "--out", "/proc/excise/report"]) == 2
    error = capsys.readouterr().err
    assert "choose another --out" in error
    assert error.count("\n") == 1


README = "# Mine\n\n<!-- measured -->\nold\n<!-- /measured -->\n\ntext\n"


def test_the_table_goes_between_the_marks_of_a_document_with_host_and_date(
    directory, tmp_path
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(README)
    readme.chmod(0o640)
    words = ["study", "report", str(directory), "--into", str(readme)]
    assert main(words) == 0
    once = readme.read_text()
    assert main(words) == 0
    assert readme.read_text() == once
    assert readme.stat().st_mode & 0o777 == 0o640
    before, _, rest = once.partition("<!-- measured -->\n")
    made, _, after = rest.partition("<!-- /measured -->")
    assert (before, after) == ("# Mine\n\n", "\n\ntext\n")
    assert "old" not in made
    assert "| | bare | docker |" in made
    assert "2026-11-18" in made
    assert "Written-down CPU, 2 cores" in made
    assert "n=6" in made
    assert {line.count("|") for line in made.splitlines() if line.startswith("|")} == {4}


@pytest.mark.parametrize(
    "text", ["no marks", "<!-- /measured -->\n<!-- measured -->", README + README, None]
)
def test_a_document_without_a_place_for_the_table_is_refused_and_left_alone(
    directory, tmp_path, capsys, text
) -> None:
    readme = tmp_path / "README.md"
    if text is None:
        readme.write_bytes(b"\xff")
    else:
        readme.write_text(text)
    before = readme.read_bytes()
    assert main(["study", "report", str(directory), "--into", str(readme)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert readme.read_bytes() == before
    assert not (directory / "report").exists()


def test_a_study_without_trials_fills_no_document(build, tmp_path, capsys) -> None:
    head, _ = build.study(("bare", "docker"), ("T0",), blocks=3)
    write_study(tmp_path / "study", head, [])
    readme = tmp_path / "README.md"
    readme.write_text(README)
    assert main(["study", "report", str(tmp_path / "study"), "--into", str(readme)]) == 2
    assert "run it first" in capsys.readouterr().err
    assert readme.read_text() == README


def test_every_part_of_a_report_goes_where_a_document_has_marks_for_it(directory, tmp_path) -> None:
    page = tmp_path / "page.md"
    names = ("", ":claims", ":work", ":components", ":T2", ":doubts", ":figures", ":loads")
    page.write_text("".join(f"<!-- measured{n} -->\n<!-- /measured{n} -->\n\n" for n in names))
    words = [
        "study",
        "report",
        str(directory),
        "--out",
        str(tmp_path / "page"),
        "--into",
        str(page),
    ]
    assert main([*words, "--format", "figures"]) == 0
    made = {
        name: page.read_text()
        .partition(f"<!-- measured{name} -->\n")[2]
        .partition(f"\n<!-- /measured{name} -->")[0]
        for name in names
    }
    assert "confirmed" in made[":claims"]
    assert "| T0 | 1 |" in made[":work"]
    assert "| docker n=3 |" in made[":components"]
    assert made[":T2"] == made[":loads"] == "This study has nothing to say of that."
    assert "![" in made[":figures"]
    for drawn in made[":figures"].split("](")[1:]:
        assert (tmp_path / drawn.partition(")")[0]).is_file()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<!-- measured:nothing -->\n<!-- /measured:nothing -->", "a report has"),
        ("<!-- measured:claims -->\n<!-- /measured:doubts -->", "no place"),
        ("<!-- measured:claims -->\n<!-- measured:doubts -->", "no place"),
        ("<!-- measured:claims -->", "no place"),
    ],
)
def test_marks_that_make_no_sense_are_refused(directory, tmp_path, capsys, text, says) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert main(["study", "report", str(directory), "--into", str(page)]) == 2
    assert says in capsys.readouterr().err
    assert page.read_text() == text
