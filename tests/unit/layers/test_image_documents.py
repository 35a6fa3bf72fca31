"""Manifests, indexes and configurations, as makers of images write them and as nobody should."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import ImageError
from excise.layers.images.documents import (
    Index,
    Manifest,
    Platform,
    choose,
    platform_of,
    read_config,
    read_document,
    read_saved,
)

DIGEST = "sha256:" + "a" * 64
OCI = "application/vnd.oci.image."
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["schemaVersion", "config", "layers", "manifests", "digest", "size", "os",
                         "mediaType", "architecture", "rootfs", "diff_ids", "Config", "Layers"]),
        inner, max_size=5),
    max_leaves=12,
)  # fmt: skip


def part(media_type: str, **about) -> dict:
    return {"mediaType": OCI + media_type, "digest": DIGEST, "size": 7} | about


def manifest(**changes) -> bytes:
    plain = {
        "schemaVersion": 2,
        "config": part("config.v1+json"),
        "layers": [part("layer.v1.tar+gzip")],
    }
    return json.dumps(plain | changes).encode()


def test_a_manifest_is_read() -> None:
    read = read_document(manifest(), "it")
    assert isinstance(read, Manifest)
    assert (read.config.digest, read.layers[0].size) == (DIGEST, 7)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"schemaVersion": 1}, "schema 1"),
        ({"manifests": []}, "at once"),
        ({"mediaType": OCI + "index.v1+json"}, "not an image's"),
        ({"layers": None}, "neither"),
        ({"layers": [part("layer.nondistributable.v1.tar+gzip")]}, "kept elsewhere"),
        ({"layers": [part("layer.v1.tar+xz")]}, "not read"),
        ({"layers": [part("layer.v1.tar", size=-1)]}, "-1 bytes"),
        ({"layers": [part("layer.v1.tar", digest="sha512:" + "a" * 128)]}, "only sha256"),
        ({"layers": [part("layer.v1.tar", digest="sha256:../../../etc/passwd")]}, "only sha256"),
        ({"layers": [part("layer.v1.tar")] * 401}, "can be mounted"),
        ({"config": part("artifact")}, "not an image's"),
    ],
)
def test_what_is_no_image_is_refused(changes, why) -> None:
    with pytest.raises(ImageError, match=why):
        read_document(manifest(**changes), "it")


@given(JSON)
def test_any_json_is_read_or_refused_in_one_line(value) -> None:
    data = json.dumps(value).encode()
    for read in (read_document, read_config, read_saved):
        said = ""
        try:
            read(data, "it")
        except ImageError as error:
            said = str(error)
        assert "\n" not in said


def test_text_that_is_no_json_or_too_deep_is_refused() -> None:
    for data in (b"", b"\xff", b"{", b"[" * 100_000):
        with pytest.raises(ImageError, match="cannot be read"):
            read_document(data, "it")


def index(*platforms) -> Index:
    entries = [
        part("manifest.v1+json", digest="sha256:" + f"{n:064x}", platform=p)
        if p
        else part("manifest.v1+json")
        for n, p in enumerate(platforms)
    ]
    read = read_document(json.dumps({"schemaVersion": 2, "manifests": entries}).encode(), "it")
    assert isinstance(read, Index)
    return read


def test_the_plainest_variant_for_the_machine_is_chosen() -> None:
    arm = {"os": "linux", "architecture": "arm64"}
    amd = {"os": "linux", "architecture": "amd64"}
    read = index(
        arm, {"os": "windows", "architecture": "amd64"}, amd | {"variant": "v3"}, amd, None
    )
    assert choose(read, Platform("linux", "amd64"), "it").digest.endswith("3")
    assert choose(read, platform_of("aarch64"), "it").digest.endswith("0")
    with pytest.raises(
        ImageError, match=r"nothing for linux/riscv64; it has linux/amd64, linux/arm64"
    ):
        choose(read, platform_of("riscv64"), "it")


def test_a_configuration_without_a_process_is_one_with_defaults() -> None:
    plain = {"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": [DIGEST]}}
    for process in ({}, {"config": None}, {"config": {"Env": None, "Cmd": None, "User": None}}):
        read = read_config(json.dumps(plain | process).encode(), "it")
        assert (dict(read.env), read.cmd, read.user, read.diff_ids) == ({}, (), "", (DIGEST,))
