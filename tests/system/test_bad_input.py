"""Whatever is wrong with the input: one line that says what to do, the right exit code, and nothing is changed."""

import json
import os
import shutil
import socket
import tarfile
from pathlib import Path

import pytest

from excise.measure.synthetic import synthetic
from excise.tasks import load

pytestmark = pytest.mark.timeout(120)
DESCRIPTOR = Path(load.__file__).parent / "library" / "attrs-1417.toml"


def below(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder, apart from the programs' own cache."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in folder.rglob("*")
        if p.relative_to(folder).parts[0] != "cache"
    }


@pytest.fixture
def refuses(excise, tmp_path):
    """Run a command that must be refused, and return the one line that it says."""

    def refuses(*words, code=2, **environment):
        before = below(tmp_path)
        ended, out, err = excise(*words, **environment)
        assert (ended, out) == (code, ""), err
        assert err.startswith("excise: ")
        assert err.count("\n") == 1
        assert below(tmp_path) == before
        return err

    return refuses


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--preset", "huge"), "no preset 'huge'; there are smoke,"),
        (("--substrate", "dokcer"), "did you mean docker"),
        (("--substrate", "fake:colour=red"), "no option"),
        (("--workload", "T9"), "unknown workload"),
        (("--workload", "T0+loud"), "unknown variant"),
        (("--workload", "T2:attrs-0"), "attrs-0"),
        (("--task", "attrs-0"), "no task 'attrs-0'; there are attrs-1417"),
        (("--load", "storm:1"), "unknown load shape"),
        (("--blocks", "0"), "--blocks"),
        (("--size", "huge"), "such as 2x4"),
        (("--cache", "lukewarm"), "there are warm, cold-page"),
        (("--substrate", "fake", "--substrate", "fake"), "two substrates"),
    ],
)
def test_what_a_study_does_not_know_is_refused_before_anything_is_made(
    refuses, tmp_path, words, says
):
    assert says in refuses("study", "run", "--out", "s", *words)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "--substrate", "dokcer", "true"), "did you mean docker"),
        (("task", "verify", "attrs-0"), "no task 'attrs-0'"),
        (("task", "verify", "attrs-0", "--substrate", "dokcer"), "attrs-0"),
        (("project", "nowhere"), "not a study"),
        (("study", "list", "nowhere"), "nowhere is no directory"),
        (("study", "report", "nowhere"), "not a study"),
        (("study", "diff", "nowhere", "nowhere"), "not a study"),
        (("study", "merge", "nowhere", "nowhere", "--out", "new"), "not a study"),
        (("study", "export", "nowhere", "--out", "new"), "not a study"),
    ],
)
def test_unknown_names_and_places_are_refused_everywhere(refuses, words, says):
    assert says in refuses(*words)


@pytest.mark.parametrize("out", ["full", "file", "file/below", "/proc/excise"])
def test_an_output_directory_that_cannot_be_used_is_refused(refuses, tmp_path, out):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("important")
    (tmp_path / "file").write_text("")
    words = ("study", "run", "--out", out, "--substrate", "fake", "--workload", "T0")
    assert "choose" in refuses(*words)
    assert not (tmp_path / "cache").exists()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The head and the first trials of a study."""
    made = tmp_path_factory.mktemp("made") / "s"
    synthetic(made)
    trials = made / "trials.jsonl"
    trials.write_text("".join(trials.read_text().splitlines(keepends=True)[:3]))
    return made


@pytest.mark.parametrize("of_head", [True, False])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 99}, "update Excise"),
        ({"format": 0}, "older format 0"),
        ({"seed": "seven"}, "Expected `int`"),
        (None, "not"),
    ],
)
def test_a_study_that_cannot_be_read_is_left_alone(refuses, study, tmp_path, change, says, of_head):
    shutil.copytree(study, tmp_path / "s")
    path = tmp_path / "s" / ("study.json" if of_head else "trials.jsonl")
    first, *rest = [path.read_text()] if of_head else path.read_text().splitlines(keepends=True)
    spoiled = "{" if change is None else json.dumps(json.loads(first) | change)
    path.write_text("".join([spoiled + "\n", *rest]))
    assert says in refuses(
        *(("study", "run", "--out", "s") if of_head else ("study", "report", "s"))
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('package = "attrs"\n', "", "package"),
        ("18a06db7", "18a0", "sha256"),
        ('sources = ["src"]', 'sources = ["../src"]', "../src"),
        ("tests/test_hooks.py", "/etc/passwd", "/etc/passwd"),
        ("id = ", "id == ", "mine.toml"),
    ],
)
def test_a_descriptor_that_is_wrong_is_refused_by_its_place(refuses, tmp_path, old, new, says):
    text = DESCRIPTOR.read_text()
    assert old in text
    (tmp_path / "mine.toml").write_text(text.replace(old, new))
    study = ("study", "run", "--out", "s", "--task", "mine.toml")
    assert says in refuses(*(study if old == "id = " else ("task", "verify", "mine.toml")))
    assert not (tmp_path / "cache").exists()


def test_an_archive_with_another_hash_is_refused(refuses, tmp_path):
    (tmp_path / "mine.toml").write_text(DESCRIPTOR.read_text())
    top = tmp_path / "index" / "attrs-25.2.0"
    top.mkdir(parents=True)
    (top / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: attrs\nVersion: 25.2.0\n")
    (top / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    )
    with tarfile.open(tmp_path / "index" / "attrs-25.2.0.tar.gz", "w:gz") as tar:
        tar.add(top, arcname=top.name)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")}
    assert "sha256" in refuses("task", "verify", "mine.toml", **offline)


@pytest.mark.parametrize("listening", [False, True])
def test_docker_that_does_not_run_is_said_with_a_remedy(refuses, tmp_path, listening):
    path = tmp_path / "dead.sock"
    if listening:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(os.path.relpath(path))
    docker = {"DOCKER_HOST": f"unix://{path}"}
    run = ("run", "--substrate", "docker", "--image", "x", "--", "true")
    assert "; try: " in refuses(*run, code=1, **docker)
    assert "; try: " in refuses("study", "run", "--substrate", "docker", "--out", "s", **docker)
    assert not (tmp_path / "s").exists()
    assert not (tmp_path / "cache").exists()
