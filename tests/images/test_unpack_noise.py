"""Archives with right checksums and senseless fields: unpacked or refused, never any other error."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from excise.errors import ImageError
from excise.layers.images.below import Below
from excise.layers.images.tarstream import read_entries
from excise.layers.images.unpack import unpack

BYTES = st.one_of(
    st.sampled_from(
        [b"", b"a", b"b", b"a/b", b"./", b"/", b".wh.a", b"a/.wh..wh..opq", b"\xff\xfe", b"\0x"]
    ),
    st.binary(max_size=40),
)
NUMBERS = st.one_of(
    st.sampled_from([b"", b"0", b"644", b"7777", b"17777777777", b"-1", b"\x80" + b"\xff" * 11]),
    st.binary(max_size=12),
)
RECORDS = st.lists(
    st.tuples(
        st.sampled_from(
            [b"path", b"linkpath", b"size", b"uid", b"gid", b"mtime", b"SCHILY.xattr.user.x", b"GNU.sparse.map",
             b"SCHILY.xattr.security.capability", b"SCHILY.xattr.system.posix_acl_access", b"GNU.sparse.major",
             b"GNU.sparse.minor", b"GNU.sparse.size", b"GNU.sparse.realsize", b"GNU.sparse.offset", b"\0", b""]
        ),
        st.one_of(BYTES, st.sampled_from([b"0", b"1", b"5", b"0,1", b"1,4,9,2", b"99999999999", b"1e5", b"1.5"])),
    ),
    max_size=4,
)  # fmt: skip
MEMBERS = st.tuples(
    st.sampled_from([b"0", b"\0", b"1", b"2", b"3", b"5", b"6", b"7", b"S", b"x", b"g", b"L", b"K"]),
    BYTES, BYTES, st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), st.binary(max_size=20), RECORDS, st.booleans(),
)  # fmt: skip


def block(kind: bytes, name: bytes, link: bytes, numbers, size: int, *, honest: bool) -> bytes:
    mode, uid, gid, mtime = numbers
    made = bytearray(512)
    for at, width, value in [
        (0, 100, name), (100, 8, mode), (108, 8, uid), (116, 8, gid), (136, 12, mtime),
        (124, 12, b"%o" % size if honest else mtime), (157, 100, link), (257, 8, b"ustar\x0000"),
    ]:  # fmt: skip
        made[at : at + min(width, len(value))] = value[:width]
    made[156:157] = kind
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


def records_of(records) -> bytes:
    data = b""
    for key, value in records:
        length = len(key) + len(value) + 3
        while length != len(str(length)) + len(key) + len(value) + 3:
            length = len(str(length)) + len(key) + len(value) + 3
        data += b"%d %s=%s\n" % (length, key, value)
    return data


def archive_of(members) -> bytes:
    data = b""
    for kind, name, link, numbers, body, records, honest in members:
        about = records_of(records)
        if about:
            plain = (b"", b"", b"", b"")
            data += block(b"x", b"about", b"", plain, len(about), honest=True)
            data += about.ljust(-(-len(about) // 512) * 512, b"\0")
        content = about if kind in (b"x", b"g") else body
        data += block(kind, name, link, numbers, len(content), honest=honest)
        data += content.ljust(-(-len(content) // 512) * 512, b"\0")
    return data + bytes(1024)


@pytest.mark.timeout(180)
@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(members=st.lists(MEMBERS, min_size=1, max_size=6))
def test_noise_is_unpacked_or_refused_in_one_line(as_root, members) -> None:
    said = ""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="images-") as name:
        tree = Path(name, "tree")
        tree.mkdir()
        try:
            unpack(read_entries(io.BytesIO(archive_of(members))), tree, Below(()))
        except ImageError as error:
            said = str(error)
        assert {entry.name for entry in Path(name).iterdir()} == {"tree"}
    assert said.isprintable()
