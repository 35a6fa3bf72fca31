"""What people write for an image, and what it means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.layers.images.reference import Reference, Source, parse

HEX = "0123456789abcdef" * 4
PARTS = st.from_regex(r"[a-z0-9]+([._-][a-z0-9]+)?", fullmatch=True).filter(lambda p: len(p) < 40)
TAGS = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)
REGISTRIES = st.sampled_from(
    ["docker.io", "ghcr.io", "localhost", "localhost:5000", "127.0.0.1:80", "[::1]:5000"]
)


def test_the_host_is_the_host() -> None:
    assert parse("host") == Reference(Source.HOST)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("python", "docker://docker.io/library/python:latest"),
        ("python:3.12", "docker://docker.io/library/python:3.12"),
        ("team/app", "docker://docker.io/team/app:latest"),
        ("docker.io/python", "docker://docker.io/library/python:latest"),
        ("index.docker.io/python", "docker://docker.io/library/python:latest"),
        ("docker://ghcr.io/a/b/c:v1", "docker://ghcr.io/a/b/c:v1"),
        ("localhost/app", "docker://localhost/app:latest"),
        ("localhost:5000/app:x", "docker://localhost:5000/app:x"),
        ("[::1]:5000/app", "docker://[::1]:5000/app:latest"),
        (f"ghcr.io/a@sha256:{HEX}", f"docker://ghcr.io/a@sha256:{HEX}"),
        (f"ghcr.io/a:tag@sha256:{HEX}", f"docker://ghcr.io/a@sha256:{HEX}"),
        ("dir:/srv/root:odd", "dir:/srv/root:odd"),
        ("oci:/srv/layout", "oci:/srv/layout"),
        ("oci:/srv/layout:1", "oci:/srv/layout:1"),
        ("oci-archive:/srv/a.tar:1", "oci-archive:/srv/a.tar:1"),
        ("docker-archive:/srv/a.tar:ghcr.io/app:1", "docker-archive:/srv/a.tar:ghcr.io/app:1"),
        ("docker-daemon:app", "docker-daemon:app:latest"),
        (f"docker-daemon:sha256:{HEX}", f"docker-daemon:sha256:{HEX}"),
    ],
)
def test_what_is_written_means_this(text, whole) -> None:
    assert str(parse(text)) == whole


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "Host", "UPPER", "a//b", "a:", "a:b:c", "/abs", "a/", "-a", "a@sha256:12", "a@md5:12", "docker://",
        "dir:", "dir:rel", "oci:rel", "oci:", "oci:/p:", "oci-archive:x.tar", "docker-archive:/a.tar:",
        "docker-daemon:", "docker-daemon:A", "docker-daemon:a:b:c", "x" * 300, "a\nb", "dir:/a\x00b",
        "http://host/image", "ostree:/srv/x", "--help", "a b", "dir:/\udcff",
    ],
)  # fmt: skip
def test_what_means_nothing_says_what_can_be_written(text) -> None:
    with pytest.raises(InputError, match=r"writ(e|ten)"):
        parse(text)


@given(
    registry=REGISTRIES,
    names=st.lists(PARTS, min_size=1, max_size=4),
    tag=TAGS,
    exact=st.booleans(),
)
def test_a_whole_reference_parses_to_itself(registry, names, tag, exact) -> None:
    end = f"@sha256:{HEX}" if exact else f":{tag}"
    reference = parse(f"docker://{registry}/{'/'.join(names)}{end}")
    assert parse(str(reference)) == reference
    assert (reference.tag, reference.digest) == (("", f"sha256:{HEX}") if exact else (tag, ""))


@given(st.text(max_size=60))
def test_any_text_is_a_reference_or_bad_input_and_means_one_thing(text) -> None:
    reference, said = None, ""
    try:
        reference = parse(text)
    except InputError as error:
        said = str(error)
    assert "\n" not in said
    assert reference is None or parse(str(reference)) == reference


@pytest.mark.parametrize(
    ("text", "loopback"),
    [
        ("localhost/a", True),
        ("localhost:5000/a", True),
        ("127.0.0.1:5000/a", True),
        ("127.9.9.9/a", True),
        ("[::1]:5000/a", True),
        ("10.0.0.1:5000/a", False),
        ("localhost.example.com/a", False),
        ("127.0.0.1.example.com/a", False),
        ("python", False),
    ],
)
def test_only_a_registry_on_this_machine_is_trusted_without_tls(text, loopback) -> None:
    assert parse(text).loopback is loopback
