"""Dependencies as a layer: Python packages (pip or uv), Node packages (npm), system packages (apt).

Python's are compiled when the layer is made, to bytecode that is used unchecked: an interpreter in a sandbox could
not keep what it compiles for the next one, and would compile it again in every rollout. pytest rewrites its
plugins and caches that under other names, so one empty test is run where pytest is installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from excise.errors import InputError
from excise.layers.key import key_of
from excise.layers.lay import place_in
from excise.layers.recipe import settled
from excise.layers.recipes import restate
from excise.layers.recipes.relocate import relocate
from excise.layers.recipes.requirements import are_hashed, names_in, pinned
from excise.layers.runner import Command, HostRunner, Runner, Work
from excise.layers.store import Layer, Store

INSTALLERS = ("pip", "uv")
_MAKING = ".making"


def python_layer(
    store: Store,
    requirements: str | Sequence[str],
    at: str,
    *,
    python: str = "/usr/bin/python3",
    installer: str = "pip",
    parents: Sequence[Layer] = (),
    runner: Runner | None = None,
) -> Layer:
    """A virtual environment of `python` at `at` with exactly these packages: dependencies are named or absent."""
    wanted, at = pinned(requirements), settled(at)
    if installer not in INSTALLERS:
        raise InputError(f"no installer {installer!r}; there are {', '.join(INSTALLERS)}")
    runs = runner or HostRunner()
    below = [path for parent in parents for path in store.chain(parent)]
    recipe = {
        "kind": "deps",
        "installer": installer,
        "at": at,
        "python": python,
        "interpreter": runs.identity(python),
        "requirements": list(wanted),
    }

    def make(tree: Path) -> Mapping[str, object]:
        seen = runs.sees(tree, at)
        runs.run(_work(installer, python, at, seen, wanted), below=below, tree=tree)
        if seen != at:
            relocate(place_in(tree, at), seen, at)
        return {"hashed": are_hashed(wanted)}

    key = key_of(recipe, [parent.id for parent in parents])
    return store.build(key, recipe, make, parents)


def _work(installer: str, python: str, at: str, seen: str, wanted: Sequence[str]) -> Work:
    """All in a folder of the environment that is removed at the end."""
    folder = f"{at}/{_MAKING}"
    inputs = {
        f"{folder}/requirements.txt": "".join(f"{line}\n" for line in wanted).encode(),
        f"{folder}/test_nothing.py": b"def test_nothing():\n    pass\n",
        f"{folder}/restate.py": Path(restate.__file__).read_bytes(),
    }
    commands = [*_install(installer, python, seen, wanted), _compile(seen, at)]
    if "pytest" in names_in(wanted):
        commands.append(_rewrite(seen))
    if seen != at:
        argv = (f"{seen}/bin/python", "-I", f"{seen}/{_MAKING}/restate.py", seen, at)
        commands.append(Command(argv, "telling bytecode its place"))
    commands.append(Command(("rm", "-r", f"{seen}/{_MAKING}"), "tidying up"))
    return Work(tuple(commands), inputs)


def _install(
    installer: str, python: str, seen: str, requirements: Sequence[str]
) -> Sequence[Command]:
    interpreter = f"{seen}/bin/python"
    exactly = ("--no-deps", *(("--require-hashes",) if are_hashed(requirements) else ()))
    listed = ("--requirement", f"{seen}/{_MAKING}/requirements.txt")
    make: tuple[str, ...]
    install: tuple[str, ...]
    check: tuple[str, ...]
    if installer == "uv":
        make = ("uv", "venv", "--quiet", "--allow-existing", "--python", python, seen)
        install = ("uv", "pip", "install", "--quiet", "--link-mode=copy", "--python", interpreter)
        check = ("uv", "pip", "check", "--python", interpreter)
    else:
        make = (python, "-m", "venv", seen)
        pip = (interpreter, "-m", "pip", "--disable-pip-version-check", "--no-input")
        install, check = (*pip, "install", "--quiet", "--no-compile"), (*pip, "check")
    commands = [Command(make, f"making a virtual environment of {python}")]
    if requirements:
        commands += [Command((*install, *exactly, *listed), "installing the requirements")]
        commands += [Command(check, "installing just these packages")]
    return commands


def _compile(seen: str, at: str) -> Command:
    mode = ("--invalidation-mode", "unchecked-hash", "-q", "-q", "-f", "-s", seen, "-p", at)
    argv = (f"{seen}/bin/python", "-m", "compileall", *mode, f"{seen}/lib")
    tolerant = (
        "sh",
        "-c",
        '"$@" || true',
        "sh",
    )  # packages carry files that are no Python of today
    return Command((*tolerant, *argv), "compiling the packages")


def _rewrite(seen: str) -> Command:
    options = ("-q", "-p", "no:cacheprovider", "--rootdir", ".", "-c", "/dev/null")
    argv = (f"{seen}/bin/python", "-m", "pytest", *options, "test_nothing.py")
    return Command(argv, "running an empty test", cwd=f"{seen}/{_MAKING}")


def node_layer(
    store: Store,
    package: str,
    lock: str,
    at: str,
    *,
    parents: Sequence[Layer] = (),
    runner: Runner | None = None,
) -> Layer:
    """The packages that a `package.json` and its `package-lock.json` (their texts) name, at `at`/node_modules."""
    if not lock.strip():
        raise InputError("Node packages need a package-lock.json: `npm install` writes it")
    runs, at = runner or HostRunner(), settled(at)
    below = [path for parent in parents for path in store.chain(parent)]
    recipe = {
        "kind": "deps",
        "installer": "npm",
        "at": at,
        "interpreter": runs.identity("node"),
        "package": package,
        "lock": lock,
    }

    def make(tree: Path) -> None:
        inputs = {
            f"{at}/package.json": package.encode(),
            f"{at}/package-lock.json": lock.encode(),
        }
        argv = ("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
        command = Command(argv, "installing the Node packages", cwd=runs.sees(tree, at))
        runs.run(Work((command,), inputs), below=below, tree=tree)

    key = key_of(recipe, [parent.id for parent in parents])
    return store.build(key, recipe, make, parents)


def system_layer(
    store: Store, packages: Sequence[str], *, parents: Sequence[Layer], runner: Runner
) -> Layer:
    """Debian packages of the distribution below, without what they only recommend; nothing of the lists is kept."""
    if not runner.contained:
        raise InputError(
            "system packages need a runner in a sandbox: this host is not to be changed"
        )
    wanted = sorted(set(packages))
    wrong = [name for name in wanted if not name or name.startswith("-") or " " in name]
    if wrong or not wanted:
        raise InputError(f"{(wrong or [''])[0]!r} is no package's name")
    below = [path for parent in parents for path in store.chain(parent)]
    recipe = {"kind": "deps", "installer": "apt", "packages": wanted}

    def make(tree: Path) -> None:
        runner.run(Work(tuple(apt_commands(wanted))), below=below, tree=tree)

    key = key_of(recipe, [parent.id for parent in parents])
    return store.build(key, recipe, make, parents)


def apt_commands(packages: Sequence[str]) -> Sequence[Command]:
    """What installs `packages` and removes what only apt itself would use."""
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "--", *packages)
    clean = ("sh", "-c", "apt-get clean && find /var/lib/apt/lists /var/log/apt -type f -delete")
    return [
        Command(("apt-get", "update", "--quiet"), "reading the package lists", env=env),
        Command(install, "installing system packages", env=env),
        Command(clean, "removing the package lists"),
    ]
