"""Dependencies as layers: exact, at their own place, with bytecode that is used and not written again."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from excise.errors import InputError, LayerError
from excise.layers.recipes.base import host_base
from excise.layers.recipes.deps import apt_commands, node_layer, python_layer, system_layer
from excise.layers.runner import HostRunner
from excise.layers.store import Store

AT = "/opt/environment"
PYTHON = str(Path(sys.base_prefix, "bin", "python3"))
MODULE = "def main():\n    import sys\n    print('told by', sys.prefix)\n"
WARM = """\
attrs==25.3.0
hypothesis==6.130.0
iniconfig==2.1.0
packaging==25.0
pluggy==1.6.0
pygments==2.19.2
pytest==8.4.2
sortedcontainers==2.4.0
"""


def wheel(folder: Path, name: str, *, needs: str = "") -> None:
    """A wheel of one module with one script."""
    info = f"{name}-1.0.dist-info"
    needed = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        f"{name}.py": MODULE,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needed}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    record = "".join(f"{path},sha256={_b64(text)},{len(text)}\n" for path, text in files.items())
    place = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)


def _b64(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """A folder that stands for the package index: alpha, and beta, which needs gamma."""
    folder = tmp_path_factory.mktemp("index")
    wheel(folder, "alpha")
    wheel(folder, "beta", needs="gamma")
    wheel(folder, "gamma")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PIP_NO_INDEX", "UV_NO_INDEX"):
            patch.setenv(name, "1")
        for name in ("PIP_FIND_LINKS", "UV_FIND_LINKS"):
            patch.setenv(name, str(folder))
        yield folder


@pytest.fixture(scope="module")
def alpha(index, tmp_path_factory):
    """An environment of one package, which takes seconds to make, and its store."""
    store = Store(tmp_path_factory.mktemp("shared"))
    return store, python_layer(store, "alpha==1.0", AT, python=PYTHON)


@pytest.fixture
def uv(tool, monkeypatch):
    """uv may stand beside this checkout and not on the path."""
    beside = Path(__file__).parents[2] / ".tools" / "bin"
    monkeypatch.setenv("PATH", str(beside), prepend=":")
    tool("uv")


@pytest.fixture
def inside(enter):
    """Run a command of a layer on the host's base."""

    def inside(store, layer, *command):
        base = host_base(store, [Path(sys.base_prefix)])
        ended = enter((*store.chain(layer), *base.lowers), base.binds, *command, env=base.env)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return inside


def holding(folder: Path, text: str) -> bytes:
    """The files below `folder` that hold `text`."""
    command = ["grep", "-rl", text, folder]
    return subprocess.run(command, capture_output=True, check=False).stdout


@pytest.mark.timeout(180)
def test_an_environment_works_at_its_place_and_knows_no_other(alpha, inside) -> None:
    store, layer = alpha
    assert inside(store, layer, f"{AT}/bin/alpha") == f"told by {AT}\n"
    assert (layer.path / AT[1:] / "bin/alpha").read_bytes().startswith(f"#!{AT}/bin/".encode())
    assert holding(layer.path, str(store.root)) == b""
    assert not (layer.path / AT[1:] / ".making").exists()


@pytest.mark.timeout(180)
def test_uv_makes_one_that_works_as_well(store, index, inside, uv) -> None:
    layer = python_layer(store, "alpha==1.0", f"{AT}/", python=PYTHON, installer="uv")
    assert inside(store, layer, f"{AT}/bin/alpha") == f"told by {AT}\n"
    assert holding(layer.path, str(store.root)) == b""


@pytest.mark.timeout(180)
def test_bytecode_is_baked_and_used_unchecked(alpha, inside) -> None:
    store, layer = alpha
    [cached] = layer.path.glob(f"{AT[1:]}/lib/python3*/site-packages/__pycache__/alpha.*.pyc")
    assert cached.read_bytes()[4:8] == b"\x01\0\0\0", "PEP 552: hash-based, unchecked"
    code = "import alpha; print(alpha.__cached__, alpha.main.__code__.co_filename)"
    told = inside(store, layer, f"{AT}/bin/python", "-c", code).split()
    assert [Path(told[0]).name, Path(told[1]).name] == [cached.name, "alpha.py"]
    assert told[1].startswith(AT)


@pytest.mark.timeout(180)
def test_the_same_requirements_are_one_layer_that_needs_no_index(alpha, monkeypatch) -> None:
    store, layer = alpha
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    spelt = ["alpha==1.0  # as before", ""]
    assert python_layer(store, spelt, f"{AT}/", python=PYTHON).id == layer.id


@pytest.mark.timeout(180)
def test_a_hash_that_does_not_fit_is_refused_and_leaves_nothing(store, index, uv) -> None:
    good = hashlib.sha256(next(index.glob("alpha-*")).read_bytes()).hexdigest()
    with pytest.raises(LayerError, match=r"(?i)hash"):
        with_hash(store, "0" * 64)
    assert store.layers() == ()
    assert list((store.root / "tmp").iterdir()) == []
    assert with_hash(store, good).facts.notes == {"hashed": True}


def with_hash(store, digest: str):
    requirement = f"alpha==1.0 --hash=sha256:{digest}"
    return python_layer(store, requirement, AT, python=PYTHON, installer="uv")


@pytest.mark.timeout(180)
def test_a_dependency_that_is_not_named_is_missed_and_not_fetched(store, index) -> None:
    with pytest.raises(LayerError, match="gamma"):
        python_layer(store, "beta==1.0", AT, python=PYTHON)
    assert store.layers() == ()


@pytest.mark.timeout(180)
def test_with_its_dependency_it_is_made(store, index, uv) -> None:
    both = "beta==1.0\ngamma==1.0"
    layer = python_layer(store, both, AT, python=PYTHON, installer="uv")
    assert list(layer.path.glob(f"{AT[1:]}/lib/python3*/site-packages/gamma.py"))


def test_an_unknown_installer_or_a_missing_interpreter_is_told(store) -> None:
    with pytest.raises(InputError, match="pip, uv"):
        python_layer(store, "a==1", AT, installer="conda")
    with pytest.raises(LayerError, match="making a virtual environment of /no/python"):
        python_layer(store, "a==1", AT, python="/no/python")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_pytest_rewrites_is_cached_in_the_layer_and_not_written_again(
    store, inside, monkeypatch
) -> None:
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):  # this one is made from the index itself
        monkeypatch.delenv(name, raising=False)
    layer = python_layer(store, WARM, AT, python=PYTHON)
    rewritten = [p for p in layer.path.rglob("*-pytest-8.4.2.pyc") if "hypothesis" in str(p)]
    assert rewritten
    script = (
        "cd /tmp && printf 'def test_a():\\n    pass\\n' > test_a.py && touch before && "
        f"{AT}/bin/pytest -q -p no:cacheprovider test_a.py && find {AT} -newer before -name '*.pyc'"
    )
    told = inside(store, layer, "sh", "-c", script)
    assert "1 passed" in told
    assert ".pyc" not in told
    made_in = str(store.root / "tmp").encode()
    assert not [p for p in layer.path.rglob("*.pyc") if made_in in p.read_bytes()]


@pytest.mark.timeout(180)
def test_node_packages_are_those_of_the_lock(store, tool, tmp_path) -> None:
    tool("npm")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/package.json").write_text(json.dumps({"name": "inner", "version": "1.0.0"}))
    (tmp_path / "inner/index.js").write_text("module.exports = 7;\n")
    packed = subprocess.run(
        ["npm", "pack", "--silent"],
        cwd=tmp_path / "inner",
        capture_output=True,
        text=True,
        check=True,
    )
    archive = tmp_path / "inner" / packed.stdout.strip()
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    package = {"name": "outer", "version": "1.0.0", "dependencies": {"inner": f"file:{archive}"}}
    entry = {"version": "1.0.0", "resolved": f"file:{archive}", "integrity": f"sha512-{digest}"}
    lock = {"name": "outer", "version": "1.0.0", "lockfileVersion": 3, "requires": True}
    lock |= {"packages": {"": package, "node_modules/inner": entry}}
    layer = node_layer(store, json.dumps(package), json.dumps(lock), "/work/app")
    assert (layer.path / "work/app/node_modules/inner/index.js").read_text().endswith("7;\n")
    entry["integrity"] = f"sha512-{'0' * 86}=="
    with pytest.raises(LayerError, match="Node packages"):
        node_layer(store, json.dumps(package), json.dumps(lock), "/work/app")


def test_node_packages_without_a_lock_are_refused(store) -> None:
    with pytest.raises(InputError, match=r"package-lock\.json"):
        node_layer(store, "{}", "", "/work/app")


def test_system_packages_are_never_installed_on_the_host(store) -> None:
    with pytest.raises(InputError, match="this host is not to be changed"):
        system_layer(store, ["cowsay"], parents=(), runner=HostRunner())


def test_apt_takes_names_for_names() -> None:
    _, install, clean = apt_commands(["b", "a"])
    assert install.argv[-3:] == ("--", "b", "a")
    assert "--no-install-recommends" in install.argv
    assert "/var/lib/apt/lists" in clean.argv[-1]
