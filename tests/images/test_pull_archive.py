"""Archives of images are read where they are: OCI's, and what `docker save` writes now and wrote long ago."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile

import pytest

from excise.errors import ImageError, InputError
from excise.layers.images.pull import pull


def test_an_archived_layout_is_read_where_it_is(
    store, layout, two_layers, tmp_path, merged
) -> None:
    entry = layout.add(two_layers)
    archive = tmp_path / "image.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(layout.folder, arcname=".")
    image = pull(store, f"oci-archive:{archive}:latest")
    assert image.digest == entry["digest"]
    assert "etc/added" in merged(image)
    packed = tmp_path / "image.tar.gz"
    packed.write_bytes(gzip.compress(archive.read_bytes()))
    with pytest.raises(InputError, match="gunzip"):
        pull(store, f"oci-archive:{packed}")


def test_what_docker_saves_is_read(store, layout, two_layers, tmp_path, merged) -> None:
    archive = save(layout, two_layers, tmp_path / "saved.tar")
    image = pull(store, f"docker-archive:{archive}:app:1")
    assert "etc/added" in merged(image)
    assert pull(store, f"docker-archive:{archive}").digest == image.digest
    with pytest.raises(ImageError, match="name one of: app:1"):
        pull(store, f"docker-archive:{archive}:app:2")


def test_what_docker_saved_long_ago_has_links_between_its_layers(
    store, layout, two_layers, tmp_path, merged
) -> None:
    archive = save(layout, two_layers, tmp_path / "saved.tar", linked=True)
    assert "etc/added" in merged(pull(store, f"docker-archive:{archive}"))


def test_a_saved_archive_that_was_tampered_with_is_refused(
    store, layout, two_layers, tmp_path
) -> None:
    archive = save(layout, two_layers, tmp_path / "saved.tar")
    data = archive.read_bytes()
    assert data.count(b"added") > 1
    archive.write_bytes(data.replace(b"added", b"ADDED"))
    with pytest.raises(ImageError, match="damaged"):
        pull(store, f"docker-archive:{archive}")


def save(layout, layers, archive, *, linked=False):
    """As `docker save` writes it."""
    entry = layout.add(layers)
    blobs = layout.folder / "blobs/sha256"
    manifest = json.loads((blobs / entry["digest"][7:]).read_text())
    config = manifest["config"]["digest"][7:]
    saved = archive.parent / "saved"
    saved.mkdir()
    shutil.copy(blobs / config, saved / f"{config}.json")
    for number, data in enumerate(layers):
        (saved / str(number)).mkdir()
        (saved / str(number) / "layer.tar").write_bytes(data)
    if linked:
        (saved / "0/layer.tar").rename(saved / "0/moved.tar")
        (saved / "0/layer.tar").symlink_to("../0/moved.tar")
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    listing = [{"Config": f"{config}.json", "RepoTags": ["app:1"], "Layers": names}]
    (saved / "manifest.json").write_text(json.dumps(listing))
    with tarfile.open(archive, "w") as tar:
        for path in sorted(saved.iterdir()):
            tar.add(path, arcname=path.name)
    return archive
