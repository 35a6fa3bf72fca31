"""Images from folders, layouts and archives: whole and verified in the store, or not there at all."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import shutil
import subprocess

import pytest

from excise.errors import ImageError, InputError
from excise.layers.images.image import images
from excise.layers.images.pull import pull


def test_an_oci_layout_becomes_layers_and_a_configuration(
    store, layout, two_layers, merged
) -> None:
    entry = layout.add(two_layers)
    image = pull(store, f"oci:{layout.folder}:latest")
    assert image.digest == entry["digest"]
    assert len(image.layers) == 2
    assert image.layers[0].parents == (image.layers[1].id,)
    seen = merged(image)
    assert "etc/gone" not in seen
    assert seen["var/cache/new"][4] == b"new"
    config = image.config
    assert config.env == {"PATH": "/usr/bin:/bin", "EMPTY": "", "EQUAL": "a=b"}
    assert (config.user, config.workdir, config.volumes) == ("1000:1000", "/work", ("/data",))
    assert (config.entrypoint, config.cmd) == (("/bin/sh", "-c"), ("true",))


@pytest.mark.parametrize(
    ("pack", "ending"),
    [
        (gzip.compress, "+gzip"),
        (bytes, ""),
        (lambda data: gzip.compress(data[:999]) + gzip.compress(data[999:]) + bytes(99), "+gzip"),
    ],
    ids=["gzip", "plain", "two members and filling"],
)
def test_layers_may_be_packed_in_several_ways(
    store, layout, two_layers, merged, pack, ending
) -> None:
    layout.add(two_layers, pack=pack, ending=ending)
    assert "etc/added" in merged(pull(store, f"oci:{layout.folder}"))


def test_zstd_is_unpacked_by_its_own_program(store, layout, two_layers, merged, zstd) -> None:
    layout.add(two_layers, pack=zstd, ending="+zstd")
    assert "etc/added" in merged(pull(store, f"oci:{layout.folder}"))


def test_without_that_program_one_is_told_to_install_it(
    store, layout, two_layers, zstd, monkeypatch, tmp_path
) -> None:
    layout.add(two_layers, pack=zstd, ending="+zstd")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/rm").symlink_to("/bin/rm")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ImageError, match="install the program `zstd`"):
        pull(store, f"oci:{layout.folder}")


@pytest.mark.parametrize("cut", ["cut", "flipped"])
def test_damaged_zstd_is_refused(store, layout, two_layers, zstd, cut) -> None:
    def damage(data: bytes) -> bytes:
        packed = bytearray(zstd(data))
        if cut == "cut":
            return bytes(packed[:-7])
        packed[len(packed) // 2] ^= 0xFF
        return bytes(packed)

    layout.add(two_layers, pack=damage, ending="+zstd")
    with pytest.raises(ImageError):
        pull(store, f"oci:{layout.folder}")
    assert store.layers() == ()


@pytest.fixture
def zstd():
    if shutil.which("zstd") is None:
        if "registry" in os.environ.get("EXCISE_REQUIRE", "").split(","):
            pytest.fail("zstd is not installed", pytrace=False)
        pytest.skip("zstd is not installed")
    command = ["zstd", "--compress", "--stdout", "--quiet"]
    return lambda data: subprocess.run(command, input=data, capture_output=True, check=True).stdout


def test_images_share_the_layers_they_have_in_common(store, layout, two_layers, tar) -> None:
    layout.add(two_layers, "one")
    layout.add([two_layers[0], tar(tar.file("else"))], "other")
    one = pull(store, f"oci:{layout.folder}:one")
    other = pull(store, f"oci:{layout.folder}:other")
    assert one.layers[1] == other.layers[1]
    assert one.layers[0] != other.layers[0]
    assert len(store.layers()) == 3


@pytest.mark.parametrize("empty", [b"", bytes(1024)])
def test_a_layer_of_nothing_is_a_layer(store, layout, two_layers, merged, empty) -> None:
    layout.add([empty, two_layers[0], empty])
    image = pull(store, f"oci:{layout.folder}")
    assert len(image.layers) == 3
    assert "etc/keep" in merged(image)


def test_only_root_pulls_and_others_are_told_so(store, layout, two_layers) -> None:
    layout.add(two_layers)
    os.seteuid(65534)
    try:
        with pytest.raises(InputError, match="pull as root"):
            pull(store, f"oci:{layout.folder}")
    finally:
        os.seteuid(0)


def test_more_layers_than_a_page_of_mount_options(store, layout, tar, merged) -> None:
    stack = [tar(tar.file(f"f{n}", b"x"), tar.file("last", str(n).encode())) for n in range(70)]
    stack += [tar(tar.file(".wh.f3"))]
    layout.add(stack)
    image = pull(store, f"oci:{layout.folder}")
    seen = merged(image)
    assert len(image.lowers) == 71
    assert set(seen) == {f"f{n}" for n in range(70) if n != 3} | {"last"}
    assert seen["last"][4] == b"69"


@pytest.mark.parametrize("what", ["manifest", "config", "layer"])
def test_a_part_that_was_tampered_with_is_refused(store, layout, two_layers, what) -> None:
    entry = layout.add(two_layers)
    blobs = layout.folder / "blobs/sha256"
    manifest = json.loads((blobs / entry["digest"][7:]).read_text())
    target = {"manifest": entry, "config": manifest["config"], "layer": manifest["layers"][1]}[what]
    path = blobs / target["digest"][7:]
    data = bytearray(path.read_bytes())
    data[-3] ^= 1 if what == "layer" else 0
    path.write_bytes(
        bytes(data) if what == "layer" else bytes(data).replace(b"linux", b"Linux") + b" "
    )
    with pytest.raises(ImageError):
        pull(store, f"oci:{layout.folder}")
    assert len(store.layers()) == (1 if what == "layer" else 0)
    assert images(store) == ()
    assert store.du().unfinished == 0
    for layer in store.layers():
        store.remove(layer)  # nobody holds it any more


def test_a_layer_that_is_not_what_the_configuration_says_is_refused(store, layout, tar) -> None:
    layout.add([tar(tar.file("evil"))], diff_ids=["sha256:" + "0" * 64])
    with pytest.raises(ImageError, match="damaged: it unpacks to"):
        pull(store, f"oci:{layout.folder}")
    assert store.layers() == ()


@pytest.mark.parametrize("by", [-1, 1])
def test_a_part_of_another_size_than_announced_is_refused(store, layout, two_layers, by) -> None:
    entry = layout.add(two_layers, "true")
    made = json.loads((layout.folder / "blobs/sha256" / entry["digest"][7:]).read_text())
    made["layers"][0]["size"] += by
    data = json.dumps(made).encode()
    layout.enter(layout.blob(data, entry["mediaType"]), "false")
    with pytest.raises(ImageError, match="announced"):
        pull(store, f"oci:{layout.folder}:false")


def test_a_layer_that_unpacks_to_more_than_allowed_is_refused(store, layout, tar) -> None:
    layout.add([tar(tar.file("zeros", bytes(30_000_000)))])
    with pytest.raises(ImageError, match="more than is allowed"):
        pull(store, f"oci:{layout.folder}", most_bytes=1_000_000)
    assert store.layers() == ()


@pytest.mark.parametrize(
    "pack",
    [
        lambda data: gzip.compress(data)[:-9],
        lambda data: gzip.compress(data[:-1024]) + b"junk",
        lambda data: gzip.compress(data)[:-8] + bytes(8),
        bz2.compress,
    ],
    ids=["cut", "junk after it", "wrong checksum", "another packing"],
)
def test_damaged_packing_is_one_clear_error(store, layout, two_layers, pack) -> None:
    layout.add(two_layers, pack=pack)
    with pytest.raises(ImageError) as raised:
        pull(store, f"oci:{layout.folder}")
    assert "\n" not in str(raised.value)
    assert store.layers() == ()


def test_of_many_machines_the_one_for_this_is_taken(store, layout, two_layers, tar, merged) -> None:
    mine = layout.add(two_layers, "mine")
    other = layout.add([tar(tar.file("other"))], "other", architecture="mips")
    platform = {"os": "linux", "architecture": _architecture(layout, mine)}
    unknown = {"os": "unknown", "architecture": "unknown"}
    entries = [
        other | {"platform": {"os": "linux", "architecture": "mips"}},
        other | {"platform": unknown},
        mine | {"platform": platform},
    ]
    layout.enter(layout.index(entries), "many")
    layout.enter(layout.index(entries[:2]), "few")
    image = pull(store, f"oci:{layout.folder}:many")
    assert image.digest == mine["digest"]
    with pytest.raises(ImageError, match="it has linux/mips"):
        pull(store, f"oci:{layout.folder}:few")
    with pytest.raises(ImageError, match="is for linux/mips"):
        pull(store, f"oci:{layout.folder}:other")


def _architecture(layout, entry) -> str:
    blobs = layout.folder / "blobs/sha256"
    manifest = json.loads((blobs / entry["digest"][7:]).read_text())
    return json.loads((blobs / manifest["config"]["digest"][7:]).read_text())["architecture"]


def test_without_a_tag_there_must_be_no_choice(store, layout, two_layers) -> None:
    layout.add(two_layers, "one")
    layout.add(two_layers[:1], "other")
    with pytest.raises(ImageError, match="name one of: one, other"):
        pull(store, f"oci:{layout.folder}")
    with pytest.raises(ImageError, match="'none'"):
        pull(store, f"oci:{layout.folder}:none")


def test_the_host_is_not_pulled(store) -> None:
    with pytest.raises(InputError, match="nothing to pull"):
        pull(store, "host")


def test_what_is_not_there_is_said(store, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.tar").write_bytes(bytes(10240))
    for text in (
        f"oci:{tmp_path}/none",
        f"oci:{tmp_path}/empty",
        f"oci-archive:{tmp_path}/none.tar",
    ):
        with pytest.raises(ImageError):
            pull(store, text)
    with pytest.raises(ImageError, match=r"lacks manifest\.json"):
        pull(store, f"docker-archive:{tmp_path}/empty.tar")
