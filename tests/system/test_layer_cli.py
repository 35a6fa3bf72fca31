"""`excise layer`, as users have it."""

import json
import shutil
from pathlib import Path

import pytest

from excise.tasks import git


@pytest.fixture
def layer(excise, tmp_path):
    """Run `excise layer` on a store of its own."""

    def layer(*words, code=0):
        ended, out, err = excise("layer", *words, EXCISE_STORE=str(tmp_path / "store"))
        assert ended == code, err
        if code:
            assert err.startswith("excise: ")
            assert err.count("\n") == 1
            return err
        return json.loads(out) if "--json" in words else out

    return layer


@pytest.fixture
def source(tmp_path):
    repo = tmp_path / "source"
    repo.mkdir()
    git.run("init", "--quiet", ".", cwd=repo)
    (repo / "a.txt").write_text("a")
    git.run("add", "a.txt", cwd=repo)
    git.run("commit", "--quiet", "-m", "first", cwd=repo)
    return repo, git.text("rev-parse", "HEAD", cwd=repo)


def test_a_layer_is_built_listed_checked_and_removed(layer, source, tmp_path):
    repo, commit = source
    [built] = layer("build", "repo", repo, commit, "--json")["layers"]
    assert (built["kind"], built["of"]) == ("repo", commit)
    assert Path(built["path"], "work/repo/a.txt").read_text() == "a"
    assert layer("list", "--json")["layers"] == [
        built | {"last_used": pytest.approx(built["last_used"])}
    ]
    assert built["id"][:12] in layer("list")
    assert "1 of 1 layers" in layer("verify")
    assert layer("du", "--json")["layers"] == 1
    assert layer("rm", built["id"][:12]) == f"removed {built['id'][:12]}\n"
    assert layer("list", "--json") == {"layers": [], "damaged": []}


def test_the_base_of_this_host_is_built_once(layer):
    first = layer("build", "base", "--json")["layers"]
    again = layer("build", "base", "--json")["layers"]
    assert [each["id"] for each in first] == [each["id"] for each in again]
    assert "base" in [each["kind"] for each in first]


@pytest.mark.timeout(120)
def test_node_packages_are_built_from_a_folder_with_a_lock(layer, tmp_path):
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")  # its recipe is held in tests/layers
    folder, inner = tmp_path / "outer", {"resolved": "inner", "link": True}
    package = {"name": "outer", "version": "1.0.0", "dependencies": {"inner": "file:inner"}}
    packages = {"": package, "inner": {"version": "1.0.0"}, "node_modules/inner": inner}
    lock = {"name": "outer", "version": "1.0.0", "lockfileVersion": 3, "packages": packages}
    folder.mkdir()
    (folder / "package.json").write_text(json.dumps(package))
    (folder / "package-lock.json").write_text(json.dumps(lock))
    [built] = layer("build", "node", folder, "--at", "/work/app", "--json")["layers"]
    assert built["kind"] == "deps"
    assert Path(built["path"], "work/app/node_modules/inner").is_symlink()


def test_a_changed_layer_is_named_and_the_command_fails(layer, source):
    [built] = layer("build", "repo", *source, "--json")["layers"]
    Path(built["path"], "work/repo/a.txt").write_text("b")
    assert built["id"][:12] in layer("verify", code=1)


def test_a_damaged_layer_is_named_and_gc_removes_it(layer, source, tmp_path):
    [built] = layer("build", "repo", *source, "--json")["layers"]
    (tmp_path / "store/layers" / built["id"] / "manifest.json").write_text("{")
    assert "damaged" in layer("verify", code=1)
    assert layer("gc", "--json") == {"removed": [built["id"]], "bytes": 0}


def test_gc_keeps_to_a_budget(layer, source):
    [built] = layer("build", "repo", *source, "--json")["layers"]
    assert layer("gc", "--budget", "1GiB", "--json")["removed"] == []
    assert layer("gc", "--budget", "0", "--json")["removed"] == [built["id"]]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("rm", "abc"), "layer list"),
        (("verify", "../x"), "layer list"),
        (("gc", "--budget", "much"), "no size"),
        (("build", "repo", "/no/such/place", "0" * 40), "no folder"),
        (("build", "repo", "/", "main"), "full commit id"),
        (("build", "repo", "/", "0" * 40, "--at", "../x"), "no place"),
        (("build", "deps", "/no/such/file"), "cannot be read"),
        (("build", "base", "--path", "/etc"), "private"),
        (("build", "node", "/no/such/folder"), "cannot be read"),
        (("build", "system", "hello", "--image", "debian:12"), "excise image pull"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(layer, words, says):
    assert says in layer(*words, code=2)


def test_a_loose_requirement_is_refused_before_anything_is_made(layer, tmp_path):
    (tmp_path / "requirements.txt").write_text("attrs>=25\n")
    assert "one exact version" in layer("build", "deps", tmp_path / "requirements.txt", code=2)
    assert layer("list", "--json")["layers"] == []


def test_a_place_that_can_hold_no_store_is_refused(excise, tmp_path):
    (tmp_path / "file").touch()
    ended, _, err = excise("layer", "list", EXCISE_STORE=str(tmp_path / "file"))
    assert ended == 2
    assert "EXCISE_STORE" in err
