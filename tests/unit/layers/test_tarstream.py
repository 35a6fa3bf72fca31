"""The reader of archives: what others write is read as they meant it, and damage is never passed over."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import ImageError
from excise.layers.images.entry import Kind
from excise.layers.images.tarstream import read_entries

NAMES = st.text(
    st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=300
).filter(lambda name: name.strip("/") and not name.endswith("/"))


class Slow:
    """A source that notes how much was asked for at once."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)
        self.most = 0

    def read(self, size: int, /) -> bytes:
        self.most = max(self.most, size)
        return self._file.read(size)


def written(*members, form=tarfile.PAX_FORMAT) -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w", format=form) as tar:
        for entry, data in members:
            tar.addfile(entry, io.BytesIO(data))
    return into.getvalue()


def member(name: str, data: bytes = b"", **about):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    for key, value in about.items():
        setattr(entry, key, value)
    return entry, data


def contents(data: bytes) -> list[tuple]:
    return [
        (e.path, e.kind, e.mode, e.uid, e.gid, e.size, b"".join(chunk for _, chunk in e.data))
        for e in read_entries(io.BytesIO(data))
    ]


@given(
    form=st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
    files=st.lists(
        st.tuples(
            NAMES,
            st.binary(max_size=2000),
            st.integers(0, 0o7777),
            st.integers(0, 2**32 - 2),
            st.integers(0, 8**7 + 5),
        ),
        max_size=5,
    ),
)
def test_what_python_writes_is_read_as_it_was_meant(form, files) -> None:
    data = written(*(member(n, d, mode=m, uid=u, gid=g) for n, d, m, u, g in files), form=form)
    expected = [(n.encode(), Kind.FILE, m, u, g, len(d), d) for n, d, m, u, g in files]
    assert contents(data) == expected


@given(keep=st.lists(st.booleans(), min_size=3, max_size=3), size=st.integers(0, 3000))
def test_data_that_is_not_read_is_passed_over(keep, size) -> None:
    data = written(*(member(str(n), bytes([n]) * size) for n in range(3)))
    for number, entry in enumerate(read_entries(io.BytesIO(data))):
        assert entry.path == str(number).encode()
        if keep[number]:
            assert b"".join(chunk for _, chunk in entry.data) == bytes([number]) * size


@given(st.data())
def test_a_cut_archive_is_never_whole(data) -> None:
    whole = written(member("first", b"x" * 700), member("n" * 150, b"y" * 10, uid=2**31))
    end = len(whole.rstrip(b"\0"))
    cut = data.draw(st.integers(1, end - 1))
    if cut in starts_of_members(whole):
        assert len(contents(whole[:cut])) < 2
    else:
        with pytest.raises(ImageError):
            contents(whole[:cut])


def starts_of_members(whole: bytes) -> set[int]:
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        return {entry.offset for entry in tar}


@given(at=st.integers(0, 511).filter(lambda at: not 148 <= at < 156), bit=st.integers(0, 7))
def test_a_header_with_one_bit_changed_is_refused(at, bit) -> None:
    whole = bytearray(written(member("name", b"data")))
    whole[at] ^= 1 << bit
    with pytest.raises(ImageError, match="damaged header"):
        contents(bytes(whole))


@given(st.binary(max_size=3000))
def test_noise_is_refused_and_never_crashes(noise) -> None:
    if noise.strip(b"\0"):
        with pytest.raises(ImageError):
            contents(noise + b"\1" * 600)


def forged(size_field: bytes = b"", kind: bytes = b"0", **fields: bytes) -> bytes:
    block = bytearray(tarfile.TarInfo("name").tobuf(tarfile.GNU_FORMAT)[:512])
    block[156:157] = kind
    if size_field:
        block[124:136] = size_field
    for at, value in fields.items():
        start = int(at[1:])
        block[start : start + len(value)] = value
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


END = bytes(1024)


def test_a_negative_or_endless_size_is_refused() -> None:
    for size in (b"\xff" * 12, b"\x80" + b"\x7f" * 11, b"-0000000001\0", b"9" * 12):
        with pytest.raises(ImageError):
            contents(forged(size) + END)


def test_an_extended_header_of_absurd_size_is_refused_before_it_is_read() -> None:
    for kind in (b"x", b"g", b"L", b"K"):
        source = Slow(forged(b"\x80" + (1 << 40).to_bytes(11, "big"), kind) + END)
        with pytest.raises(ImageError, match="absurd size"):
            list(read_entries(source))
        assert source.most <= 1 << 20


def test_a_chain_of_extended_headers_without_end_is_refused() -> None:
    with pytest.raises(ImageError, match="absurd size"):
        contents((forged(b"00000000000\0", b"x")) * 20_000 + END)


@pytest.mark.parametrize(
    "records",
    [b"9 path=", b"99 path=x\n", b"0 path=x\n", b"-5 a=b\n", b"8 path_x\n", b"x", b"1 \n"],
)
def test_a_damaged_extended_header_is_refused(records) -> None:
    header = forged(b"%011o\0" % len(records), b"x")
    with pytest.raises(ImageError, match="damaged extended header"):
        contents(header + records.ljust(512, b"\0") + forged() + END)


@pytest.mark.parametrize(
    "record",
    [b"size=-1", b"size=1e3", b"uid=99999999999999999999", b"mtime=now", b"gid=4294967295"],
)
def test_impossible_numbers_in_an_extended_header_are_refused(record) -> None:
    with pytest.raises(ImageError):
        contents(extended(record) + forged() + END)


def extended(*records: bytes) -> bytes:
    data = b""
    for record in records:
        length = len(record) + 2
        while length != len(str(length)) + len(record) + 2:
            length = len(str(length)) + len(record) + 2
        data += b"%d %s\n" % (length, record)
    return forged(b"%011o\0" % len(data), b"x") + data + bytes(-len(data) % 512)


def test_a_map_of_holes_that_contradicts_itself_is_refused() -> None:
    body = forged(b"%011o\0" % 4) + b"abcd".ljust(512, b"\0") + END
    for told in (b"5,4,1,0", b"0,4,2,4", b"0,9", b"0", b"0,x", b"6,4"):
        with pytest.raises(ImageError):
            contents(extended(b"GNU.sparse.size=8", b"GNU.sparse.map=" + told) + body)
    good = extended(b"GNU.sparse.size=8", b"GNU.sparse.map=2,4") + body
    (entry,) = read_entries(io.BytesIO(good))
    assert entry.size == 8


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ImageError, match="unknown kind"):
        contents(forged(kind=b"M") + END)


def test_what_follows_the_end_is_refused_unless_it_is_filling() -> None:
    assert contents(forged() + END + bytes(4096)) != []
    with pytest.raises(ImageError, match="after its end"):
        contents(forged() + bytes(512) + forged() + END)


def test_large_files_are_read_in_pieces() -> None:
    source = Slow(written(member("large", bytes(5 << 20))))
    sizes = [len(chunk) for entry in read_entries(source) for _, chunk in entry.data]
    assert sum(sizes) == 5 << 20
    assert source.most <= 1 << 20
