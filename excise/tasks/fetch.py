"""Gets a release's source archive from the package index and proves that it is the one meant."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from excise.errors import InputError
from excise.tasks import cache, inert, pip
from excise.tasks.descriptor import Release

_BACK_ENDS = (
    "hatchling.build",
    "flit_core.buildapi",
    "setuptools.build_meta",
    "poetry.core.masonry.api",
    "pdm.backend",
)


def fetch(package: str, release: Release, store: Path) -> Path:
    """The archive, from the store or else from the index; refused if its sha256 is another."""
    entry = store / "archives" / release.sha256

    def build(place: Path) -> None:
        archive = _download(package, release.version, place, store)
        found = cache.file_sha256(archive)
        if found != release.sha256:
            raise InputError(
                f"{package} {release.version}: the descriptor says sha256 {release.sha256}, "
                f"but the index gave {found}"
            )

    def sound(place: Path) -> bool:
        return any(cache.file_sha256(f) == release.sha256 for f in place.iterdir())

    return next(cache.ensure(entry, build, sound).iterdir())


def _download(package: str, version: str, into: Path, store: Path) -> Path:
    what = ("--no-deps", "--no-binary", package, f"{package}=={version}", "--dest", str(into))
    doing = f"downloading the source archive of {package} {version}"
    with tempfile.TemporaryDirectory(prefix="excise-inert-") as stubs:
        _write_inert_back_ends(Path(stubs))
        env = {"PYTHONPATH": stubs, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            pip.run(
                ("download", "--use-pep517", "--no-build-isolation", *what),
                store=store,
                doing=doing,
                env=env,
            )
        except pip.BackEndMissing:
            pip.run(("download", *what), store=store, doing=doing)
    return next(into.iterdir())


def _write_inert_back_ends(stubs: Path) -> None:
    for back_end in _BACK_ENDS:
        *packages, module = back_end.split(".")
        place = stubs.joinpath(*packages)
        place.mkdir(parents=True, exist_ok=True)
        (place / "__init__.py").touch()
        shutil.copy(inert.__file__, place / f"{module}.py")
