"""Tasks rebuilt for real. `attrs-1417` needs the package index once; the rest is made here."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from excise.cli import main
from excise.errors import InputError, TaskError
from excise.tasks import cache, forge, git, load
from excise.tasks.descriptor import Check, Prepared, Release, Task
from excise.tasks.serve import GitServer
from excise.tasks.unpack import lay_out

pytestmark = pytest.mark.timeout(300)
BASE_COMMIT = "ca73bea9181ba4803b9ffae5b3492c83225de540"
MAIN = "from excise.cli import main; raise SystemExit(main())"


def archive(folder: Path, version: str, answer: int) -> Path:
    top = folder / f"tiny-{version}"
    top.mkdir(parents=True)
    (top / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n")
    (top / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["flit_core"]\nbuild-backend = "flit_core.buildapi"\n'
    )
    (top / "tiny.py").write_text(f"ANSWER = {answer}\n")
    (top / "test_tiny.py").write_text(f"# of {version}\nimport tiny\nassert tiny.ANSWER == 42\n")
    file = folder / f"tiny-{version}.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        tar.add(top, arcname=top.name)
    return file


VERSIONS = {"0.9": 40, "1.0": 41, "1.1": 42}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, Path]:
    """A user's own task, with one older release, and the folder of its archives."""
    place = tmp_path_factory.mktemp("tiny")
    raw = msgspec.structs.replace(
        load.task("attrs-1417"),
        id="tiny",
        package="tiny",
        restore={},
        requirements=(),
        golden={},
        sources=("tiny.py",),
        tests=("test_tiny.py",),
        origin=None,
        upstream_commit=None,
        checks=(Check(path="test_tiny.py", fail_to_pass=("t",), pass_to_pass=0),),
    )
    releases = []
    for version, answer in VERSIONS.items():
        file = archive(place / "archives", version, answer)
        work = place / version
        git.run("init", "-q", work, cwd=place)
        lay_out(file, raw, work)
        git.run("add", "--all", "--force", ".", cwd=work)
        tree = git.text("write-tree", cwd=work)
        releases.append(Release(version, cache.file_sha256(file), tree))
    older, base, fixed = releases
    return msgspec.structs.replace(
        raw, base=base, fixed=fixed, history=(older,)
    ), place / "archives"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all: to make an environment with pip in it takes longer than a task does."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def tiny(described: tuple[Task, Path], monkeypatch: pytest.MonkeyPatch) -> Task:
    """The task, to be built from archives in a folder, without any index."""
    task, archives = described
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(archives))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    return task


def test_attrs_is_rebuilt_to_the_very_tree_and_commit() -> None:
    prepared = forge.prepare(load.task("attrs-1417"))
    assert prepared.commit == BASE_COMMIT
    tree = git.text("rev-parse", "HEAD^{tree}", cwd=prepared.checkout)
    assert tree == prepared.tree == "5f9691e65b70612e702dc01e38ae260271c80be2"
    assert b"tuple(field_transformer(cls, attrs))" in prepared.gold_patch
    assert not list(prepared.venv.glob("lib/*/site-packages/attr*"))


def test_attrs_is_verified_on_the_bare_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["task", "verify", "attrs-1417"]) == 0
    assert "pass before and after: 13" in capsys.readouterr().out


def test_a_wrong_fail_to_pass_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = Path(load.__file__).parent / "library" / "attrs-1417.toml"
    wrong = ours.read_text().replace("::test_hook_generator", "::test_hook_applied")
    (tmp_path / "wrong.toml").write_text(wrong)
    assert main(["task", "verify", str(tmp_path / "wrong.toml")]) == 1
    said = capsys.readouterr().err
    assert "does not fail before the fix" in said
    assert "test_hook_generator" in said


def test_a_users_task_is_built_twice_at_once_without_harm(tiny: Task, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: forge.prepare(tiny, tmp_path / "cache"), range(2))
    assert first == second
    assert b"+ANSWER = 42" in first.gold_patch
    assert b"+# of 1.1" in first.test_patch
    log = git.text("log", "--format=%an %ae %at %s", cwd=first.checkout)
    assert log == "rollout-bench bench@localhost 1700000000 base"


def test_the_fixed_release_is_nowhere_in_the_repository(tiny: Task, store: Path) -> None:
    prepared = forge.prepare(tiny, store)
    objects = objects_of(prepared)
    assert tiny.base.tree in objects
    assert tiny.fixed.tree not in objects


@pytest.mark.parametrize("spoiled", ["gold.patch", "repo.git/HEAD", "checkout/tiny.py"])
def test_a_spoiled_entry_is_rebuilt(tiny: Task, store: Path, spoiled: str) -> None:
    prepared = forge.prepare(tiny, store)
    (prepared.git_dir.parent / spoiled).write_text("spoiled")
    assert forge.prepare(tiny, store) == prepared
    assert "spoiled" not in (prepared.git_dir.parent / spoiled).read_text()


def test_another_archive_or_tree_than_described_is_refused(tiny: Task, store: Path) -> None:
    tiny = msgspec.structs.replace(tiny, id="refused")
    for field, said in (("sha256", "the index gave"), ("tree", "unpacks to the git tree")):
        value = "0" * len(getattr(tiny.base, field))
        base = msgspec.structs.replace(tiny.base, **{field: value})
        with pytest.raises(InputError, match=said):
            forge.prepare(msgspec.structs.replace(tiny, base=base), store)
    assert not list(store.glob("tasks/refused*"))


SERVE = """
import asyncio, sys
from pathlib import Path
from excise.tasks.serve import GitServer
async def main():
    async with GitServer({"tiny": Path(sys.argv[1])}) as server:
        print(server.url("tiny"), flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


def test_the_server_serves_a_clone_and_dies_with_its_owner(
    tiny: Task, store: Path, tmp_path: Path
) -> None:
    prepared = forge.prepare(tiny, store)
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(prepared.git_dir)], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().strip()
        git.run("clone", "-q", url, "clone", cwd=tmp_path)
        os.kill(owner.pid, signal.SIGKILL)
    port = url.split(":")[2].partition("/")[0]
    deadline = time.monotonic() + 10
    while b"--port=" + port.encode() in subprocess.check_output(["ps", "-eo", "args"]):
        assert time.monotonic() < deadline, "git-daemon outlives its owner"
        time.sleep(0.02)


def test_the_server_serves_nothing_else(tiny: Task, store: Path) -> None:
    prepared = forge.prepare(tiny, store)

    async def main() -> str:
        async with GitServer({"tiny": prepared.git_dir}) as server:
            with pytest.raises(InputError, match="not served"):
                server.url("other")
            return await asyncio.to_thread(clone, server.url("tiny"))

    def clone(url: str) -> str:
        other = f"{url.rpartition('/')[0]}/checkout"
        done = subprocess.run(
            ["git", "ls-remote", other], capture_output=True, text=True, check=False
        )
        return done.stderr

    assert "access denied" in asyncio.run(main())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_other_task_is_verified_too() -> None:
    """Two at once, the large ones first: each is a program of its own."""
    large = ("sympy-1133", "django-524", "sphinx-747")
    others = sorted(set(load.names()) - {"attrs-1417"}, key=lambda name: name not in large)

    def verify(name: str) -> tuple[int, str]:
        command = [sys.executable, "-c", MAIN, "task", "verify", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(others, pool.map(verify, others), strict=True))
    assert {name: said for name, (code, said) in found.items() if code} == {}
    assert len(found) == 6


def test_older_releases_lie_below_the_base_and_nothing_above_it(tiny: Task, store: Path) -> None:
    prepared = forge.prepare(tiny, store, history="releases")
    log = git.text("log", "--format=%T %s", cwd=prepared.checkout).splitlines()
    assert log == [f"{tiny.base.tree} base", f"{tiny.history[0].tree} tiny 0.9"]
    assert prepared.commit != forge.prepare(tiny, store).commit
    assert b"-ANSWER = 41\n+ANSWER = 42" in prepared.gold_patch
    assert tiny.fixed.tree not in objects_of(prepared)


def test_an_older_release_is_held_to_its_tree_too(tiny: Task, store: Path) -> None:
    wrong = msgspec.structs.replace(tiny.history[0], tree="0" * 40)
    with pytest.raises(InputError, match=r"tiny 0\.9 unpacks to the git tree"):
        forge.prepare(msgspec.structs.replace(tiny, history=(wrong,)), store, history="releases")


def upstream(described: Path, place: Path) -> dict[str, str]:
    """A package's own repository with a commit per release; returns their ids."""
    place.mkdir()
    git.run("init", "-q", "--initial-branch=trunk", "work", cwd=place)
    commits = {}
    for version in VERSIONS:
        for file in ("tiny.py", "test_tiny.py", "pyproject.toml"):
            shutil.copy(described / f"tiny-{version}" / file, place / "work" / file)
        git.run("add", "--all", ".", cwd=place / "work")
        git.run("commit", "-q", "-m", f"upstream {version}", cwd=place / "work")
        commits[version] = git.text("rev-parse", "HEAD", cwd=place / "work")
    git.run("clone", "-q", "--bare", "work", "origin.git", cwd=place)
    return commits


def test_the_packages_own_history_ends_at_the_base(
    tiny: Task, described: tuple[Task, Path], store: Path, tmp_path: Path
) -> None:
    commits = upstream(described[1], tmp_path / "up")
    url = f"file://{tmp_path}/up/origin.git"
    real = msgspec.structs.replace(tiny, origin=url, upstream_commit=commits["1.0"])
    prepared = forge.prepare(real, store, history="origin")
    assert prepared.commit == commits["1.0"]
    log = git.text("log", "--all", "--format=%s", cwd=prepared.git_dir).splitlines()
    assert log == ["upstream 1.0", "upstream 0.9"]
    assert b"+ANSWER = 42" in prepared.gold_patch
    found = objects_of(prepared)
    assert commits["1.1"] not in found
    assert tiny.fixed.tree not in found
    assert forge.prepare(real, store, history="origin") == prepared
    verified = git.text("fsck", "--full", "--strict", cwd=prepared.git_dir)
    assert "missing" not in verified


def test_an_origin_that_is_not_the_described_one_is_refused(
    tiny: Task, described: tuple[Task, Path], store: Path, tmp_path: Path
) -> None:
    commits = upstream(described[1], tmp_path / "up")
    url = f"file://{tmp_path}/up/origin.git"
    other = msgspec.structs.replace(tiny, origin=url, upstream_commit=commits["1.1"])
    with pytest.raises(InputError, match=rf"{commits['1.1']} has the tree .*, not base\.tree"):
        forge.prepare(other, store, history="origin")
    with pytest.raises(InputError, match="names no origin and upstream_commit"):
        forge.prepare(tiny, store, history="origin")
    gone = msgspec.structs.replace(other, origin=f"file://{tmp_path}/nowhere.git")
    with pytest.raises(TaskError, match=r"cannot be fetched .*use history=single or releases"):
        forge.prepare(gone, store, history="origin")


def objects_of(prepared: Prepared) -> str:
    every = ("--batch-all-objects", "--batch-check")
    return git.text("cat-file", *every, cwd=prepared.git_dir)
