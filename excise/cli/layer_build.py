"""`excise layer build`: a layer that is not here yet, by the recipe that it is named after."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from excise.cli.layer import Json, open_store, tell

build = typer.Typer(
    name="build",
    help="Build a layer that is not here yet, and say where it is.",
    no_args_is_help=True,
)

AtRepo = Annotated[str, typer.Option("--at", help="Where the repository stands in environments.")]
AtDeps = Annotated[str, typer.Option("--at", help="Where the environment of packages stands.")]


@build.command("base")
def build_base(
    path: Annotated[
        list[Path] | None, typer.Option(help="A path of this host to be seen too; may be repeated.")
    ] = None,
    *,
    as_json: Json = False,
) -> int:
    """Build the base of this host's own programs; a second time it is only looked up."""
    from excise.layers.recipes.base import host_base

    store = open_store()
    base = host_base(store, path or ())
    return tell(store, list(base.layers), as_json)


@build.command("repo")
def build_repo(
    source: Annotated[
        str, typer.Argument(help="A repository's folder, or an address git can fetch.")
    ],
    commit: Annotated[str, typer.Argument(help="A full commit id.")],
    *,
    at: AtRepo = "/work/repo",
    as_json: Json = False,
) -> int:
    """Build a clean checkout of a commit, with nothing in it that came later."""
    from excise.layers.recipes.repo import repo_layer

    store = open_store()
    return tell(store, [repo_layer(store, source, commit, at)], as_json)


@build.command("deps")
def build_deps(
    requirements: Annotated[Path, typer.Argument(help="A file of exact versions, one per line.")],
    *,
    at: AtDeps = "/opt/environment",
    python: Annotated[str, typer.Option(help="The interpreter, by its path.")] = "/usr/bin/python3",
    installer: Annotated[str, typer.Option(help="pip or uv.")] = "pip",
    as_json: Json = False,
) -> int:
    """Build a Python environment of exactly these packages, with their bytecode."""
    from excise.layers.recipes.deps import python_layer

    text = _read(requirements, "name a requirements file")
    store = open_store()
    built = python_layer(store, text, at, python=python, installer=installer)
    return tell(store, [built], as_json)


@build.command("node")
def build_node(
    folder: Annotated[Path, typer.Argument(help="Where package.json and package-lock.json are.")],
    *,
    at: AtDeps = "/work/repo",
    as_json: Json = False,
) -> int:
    """Build the node_modules that a package-lock.json names, with this host's npm."""
    from excise.layers.recipes.deps import node_layer

    package = _read(folder / "package.json", "name the folder that it is in")
    lock = _read(folder / "package-lock.json", "`npm install` in its folder writes it")
    store = open_store()
    return tell(store, [node_layer(store, package, lock, at)], as_json)


@build.command("system")
def build_system(
    packages: Annotated[list[str], typer.Argument(help="Names of Debian packages.")],
    *,
    image: Annotated[str, typer.Option(help="A pulled image of a Debian to install them on.")],
    as_json: Json = False,
) -> int:
    """Install Debian packages upon an image, in a jail: nothing runs on this host."""
    from contextlib import closing

    from excise.jail.ground import below_image
    from excise.jail.runner import JailRunner
    from excise.jail.spawner import Spawner
    from excise.layers.recipes.deps import system_layer

    store = open_store()
    parents = below_image(store, image)
    with closing(Spawner.start()) as spawner:
        built = system_layer(store, packages, parents=parents, runner=JailRunner(spawner))
    return tell(store, [built], as_json)


def _read(file: Path, remedy: str) -> str:
    from excise.errors import InputError

    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {remedy}") from error
