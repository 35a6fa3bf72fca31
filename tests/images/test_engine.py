"""A real Docker engine's images, and archives by programs that are not ours."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from excise.errors import ImageError
from excise.layers.images.pull import pull

NAME = "excise-test/pulled"


@pytest.fixture
def engine(tmp_path, needed, two_layers, layout):
    """An engine that has the two layers as an image; gives its name there."""
    answers = shutil.which("docker") is not None and (
        subprocess.run(["docker", "version"], capture_output=True, check=False).returncode == 0
    )
    needed("docker", answers, "no Docker engine answers")
    layout.add(two_layers)
    archive = archived(layout, tmp_path / "to-load.tar", f"{NAME}:1", needed)
    subprocess.run(["docker", "load", "--input", archive], check=True, capture_output=True)
    yield f"{NAME}:1"
    subprocess.run(
        ["docker", "image", "rm", "--force", f"{NAME}:1"], check=True, capture_output=True
    )


def archived(layout, archive, name, needed):
    needed("registry", shutil.which("skopeo") is not None, "skopeo is not installed")
    command = ["skopeo", "copy", "--quiet", f"oci:{layout.folder}:latest"]
    subprocess.run([*command, f"docker-archive:{archive}:{name}"], check=True, capture_output=True)
    return archive


def test_an_engines_image_is_pulled_and_not_saved_a_second_time(
    engine, store, mounted, tree_of, monkeypatch, tmp_path
) -> None:
    image = pull(store, f"docker-daemon:{engine}")
    seen = tree_of(mounted(image.lowers))
    assert seen["etc/added"][2:5] == (1000, 1000, b"added")
    assert "etc/gone" not in seen
    assert image.config.user == "1000:1000"
    stub = tmp_path / "bin"  # an engine's client that can say what there is, and save nothing
    stub.mkdir()
    real = shutil.which("docker")
    (stub / "docker").write_text(f'#!/bin/sh\n[ "$2" = save ] && exit 9\nexec {real} "$@"\n')
    (stub / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(stub), prepend=":")
    assert pull(store, f"docker-daemon:{engine}").layers == image.layers


def test_an_image_the_engine_does_not_have_is_one_clear_line(engine, store) -> None:
    with pytest.raises(ImageError, match=r"cannot be found: .*[Nn]o such image") as raised:
        pull(store, "docker-daemon:excise-test/none:1")
    assert "\n" not in str(raised.value)


def test_an_archive_by_skopeo_is_read(store, layout, two_layers, tmp_path, needed) -> None:
    layout.add(two_layers)
    archive = archived(layout, tmp_path / "saved.tar", "app:1", needed)
    direct = pull(store, f"oci:{layout.folder}")
    assert pull(store, f"docker-archive:{archive}:app:1").layers == direct.layers
    assert pull(store, f"docker-archive:{archive}:docker.io/library/app:1").layers == direct.layers
