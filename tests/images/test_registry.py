"""A real registry: by tag and by digest, for this machine, verified, and not asked for what is here."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from excise.errors import ImageError
from excise.layers.images.image import images
from excise.layers.images.pull import pull


def test_an_image_is_pulled_by_tag_and_by_digest(
    registry, store, layout, two_layers, mounted, tree_of
) -> None:
    layout.add(two_layers)
    digest = registry.push(layout, "latest", "team/app:1")
    by_tag = pull(store, f"docker://{registry.address}/team/app:1")
    by_digest = pull(store, f"{registry.address}/team/app@{digest}")
    assert by_tag.digest == by_digest.digest == digest
    assert by_tag.layers == by_digest.layers
    seen = tree_of(mounted(by_tag.lowers))
    assert seen["etc/added"][4] == b"added"
    assert "etc/gone" not in seen
    assert {image.digest for image, _ in images(store)} == {digest}
    assert store.du().unfinished == 0


def test_dockers_own_manifests_keep_their_digest(registry, store, layout, two_layers) -> None:
    layout.add(two_layers)
    digest = registry.push(layout, "latest", "app:v2", "--format", "v2s2")
    image = pull(store, f"{registry.address}/app:v2")
    assert image.digest == digest
    assert image.config.user == "1000:1000"


def test_a_tag_that_moves_is_followed_unless_one_asks_for_what_is_here(
    registry, store, layout, two_layers, tar
) -> None:
    layout.add(two_layers, "old")
    layout.add([two_layers[0], tar(tar.file("newer"))], "new")
    text = f"{registry.address}/app:main"
    registry.push(layout, "old", "app:main")
    old = pull(store, text)
    registry.push(layout, "new", "app:main")
    assert pull(store, text, cached=True) == old
    new = pull(store, text)
    assert new.digest != old.digest
    assert pull(store, text, cached=True).digest == new.digest


def test_what_is_here_is_not_fetched_again(registry, store, layout, two_layers) -> None:
    layout.add(two_layers)
    digest = registry.push(layout, "latest", "app:1")
    image = pull(store, f"{registry.address}/app:1")
    manifest = json.loads(registry.blob(digest).read_text())
    for layer in manifest["layers"]:
        shutil.rmtree(registry.blob(layer["digest"]).parent)
    assert pull(store, f"{registry.address}/app:1").layers == image.layers


def test_layers_that_another_image_brought_are_not_fetched_again(
    registry, store, layout, two_layers, tar, mounted, tree_of
) -> None:
    layout.add(two_layers, "one")
    layout.add([two_layers[0], tar(tar.file("other"))], "other")
    digest = registry.push(layout, "one", "one:1")
    registry.push(layout, "other", "other:1")
    one = pull(store, f"{registry.address}/one:1")
    manifest = json.loads(registry.blob(digest).read_text())
    shutil.rmtree(registry.blob(manifest["layers"][0]["digest"]).parent)
    other = pull(store, f"{registry.address}/other:1")
    assert other.layers[1] == one.layers[1]
    assert "etc/keep" in tree_of(mounted(other.lowers))


def test_layers_that_are_not_packed_are_taken_as_they_are(
    registry, store, layout, two_layers
) -> None:
    layout.add(two_layers, pack=bytes, ending="")
    digest = registry.push(layout, "latest", "plain:1", "--preserve-digests")
    manifest = json.loads(registry.blob(digest).read_text())
    assert {layer["mediaType"][-4:] for layer in manifest["layers"]} == {".tar"}
    assert pull(store, f"{registry.address}/plain:1").digest == digest


def test_an_image_with_one_layer_twice_is_whole(registry, store, layout, two_layers) -> None:
    layout.add([two_layers[0], two_layers[1], two_layers[0]])
    layout.add([two_layers[0]], "base")
    registry.push(layout, "latest", "twice:1")
    registry.push(layout, "base", "base:1")
    pull(store, f"{registry.address}/base:1")
    assert len(pull(store, f"{registry.address}/twice:1").layers) == 3


def test_a_registry_that_is_gone_is_said_and_the_cached_image_is_still_here(
    registry, serving, store, layout, two_layers, tmp_path
) -> None:
    layout.add(two_layers)
    storage = tmp_path / "other"
    storage.mkdir()
    address, process = serving(storage)
    target = f"docker://{address}/app:1"
    command = [
        "skopeo",
        "copy",
        "--quiet",
        "--dest-tls-verify=false",
        f"oci:{layout.folder}:latest",
    ]
    subprocess.run([*command, target], check=True, capture_output=True)
    image = pull(store, target)
    process.kill()
    process.wait()
    with pytest.raises(ImageError, match=r"cannot be resolved.*--cached") as raised:
        pull(store, target)
    assert "\n" not in str(raised.value)
    assert pull(store, target, cached=True) == image


def test_a_part_tampered_with_at_the_registry_is_refused(
    registry, store, layout, two_layers
) -> None:
    layout.add(two_layers)
    digest = registry.push(layout, "latest", "app:1")
    manifest = json.loads(registry.blob(digest).read_text())
    blob = registry.blob(manifest["layers"][1]["digest"])
    data = bytearray(blob.read_bytes())
    data[len(data) // 2] ^= 1
    blob.write_bytes(bytes(data))
    with pytest.raises(ImageError, match="cannot be fetched"):
        pull(store, f"{registry.address}/app:1")
    assert store.layers() == ()
    assert images(store) == ()


def test_a_manifest_tampered_with_at_the_registry_is_refused(
    registry, store, layout, two_layers
) -> None:
    layout.add(two_layers)
    digest = registry.push(layout, "latest", "app:1")
    path = registry.blob(digest)
    path.write_bytes(path.read_bytes().replace(b'"schemaVersion"', b' "schemaVersion"'))
    with pytest.raises(ImageError):
        pull(store, f"{registry.address}/app@{digest}")
    assert store.layers() == ()


def test_an_index_at_the_registry_is_resolved_to_this_machine(
    registry, store, layout, two_layers, tar
) -> None:
    mine = layout.add(two_layers, "mine")
    other = layout.add([tar(tar.file("other"))], "foreign", architecture="mips")
    config = json.loads((layout.folder / "blobs/sha256" / _config_of(layout, mine)).read_text())
    entries = [
        other | {"platform": {"os": "linux", "architecture": "mips"}},
        mine | {"platform": {"os": "linux", "architecture": config["architecture"]}},
    ]
    layout.enter(layout.index(entries), "many")
    index = registry.push(layout, "many", "app:many", "--all")
    image = pull(store, f"{registry.address}/app:many")
    assert image.digest == mine["digest"]
    assert pull(store, f"{registry.address}/app@{index}").digest == mine["digest"]


def _config_of(layout, entry) -> str:
    manifest = json.loads((layout.folder / "blobs/sha256" / entry["digest"][7:]).read_text())
    return manifest["config"]["digest"][7:]


def test_a_name_the_registry_does_not_have_is_one_clear_line(registry, store) -> None:
    with pytest.raises(ImageError, match=r"cannot be resolved: .*manifest unknown") as raised:
        pull(store, f"{registry.address}/none:1")
    assert "\n" not in str(raised.value)


def test_hostile_layers_from_a_registry_are_refused(registry, store, layout, tar) -> None:
    layout.add([tar(tar.link("a", "/etc"), tar.file("a/x"), tar.file("../../x"))])
    registry.push(layout, "latest", "evil:1")
    with pytest.raises(ImageError, match="climbs"):
        pull(store, f"{registry.address}/evil:1")
    assert store.layers() == ()


def test_without_skopeo_one_is_told_to_install_it(store, tmp_path, monkeypatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/rm").symlink_to("/bin/rm")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ImageError, match="install the program `skopeo`"):
        pull(store, "python:3.12")


PULL = """
import sys
from pathlib import Path
from excise.layers.images.pull import pull
from excise.layers.store import Store
pull(Store(Path(sys.argv[1])), sys.argv[2])
"""


def test_a_pull_that_is_killed_takes_its_helper_along(registry, store) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes calls and never says anything
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-c", PULL, str(store.root), f"{address}/app:1"]
        process = subprocess.Popen(command)
        until(lambda: fetching(address))
        process.kill()
        process.wait()
        until(lambda: not fetching(address))
    store.sweep()
    assert store.du().unfinished == 0


def until(comes_true) -> None:
    for _ in range(1000):
        if comes_true():
            return
        time.sleep(0.02)
    pytest.fail("it does not come true")


def fetching(address: str) -> list[str]:
    """The processes that are a skopeo for this address, but for those that are dead and not yet buried."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = place.read_bytes().split(b"\0")
            if words[0].endswith(b"skopeo") and any(address.encode() in word for word in words):
                found.append(place.parent.name)
    return found
