"""Source archives are laid out whole, and none can write outside of its place."""

from __future__ import annotations

import contextlib
import io
import tarfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.tasks import load
from excise.tasks.unpack import lay_out

Entry = tuple[str, bytes, str]
FILE, DIRECTORY, SYMBOLIC, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
PLAIN = msgspec.structs.replace(
    load.task("attrs-1417"), delete=("PKG-INFO",), restore={"made": "m"}
)


def lay(place: Path, *entries: Entry) -> Path:
    """Entries are name, type, and content or where a link leads."""
    archive, into = place / "a.tar", place / "in" / "to"
    into.mkdir(parents=True)
    with tarfile.open(archive, "w") as tar:
        for name, kind, said in entries:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, 0o4777
            if kind == FILE:
                member.size = len(said)
                tar.addfile(member, io.BytesIO(said.encode()))
            else:
                member.linkname = said
                tar.addfile(member)
    lay_out(archive, PLAIN, into)
    return into


def test_files_directories_and_links_are_laid_out_below_the_top(tmp_path):
    into = lay(
        tmp_path,
        ("top", DIRECTORY, ""),
        ("top/PKG-INFO", FILE, "of the index"),
        ("top/src/a.py", FILE, "first"),
        ("top/src/a.py", FILE, "last"),
        ("top/empty/", DIRECTORY, ""),
        ("top/docs/link.py", SYMBOLIC, "../src/a.py"),
        ("top/again.py", HARD, "top/src/a.py"),
    )
    assert {str(p.relative_to(into)) for p in into.rglob("*") if not p.is_dir()} == {
        "src/a.py", "docs/link.py", "again.py", "made",
    }  # fmt: skip
    assert (into / "docs" / "link.py").read_text() == (into / "again.py").read_text() == "last"
    assert (into / "empty").is_dir()
    assert {oct(p.stat().st_mode & 0o7777) for p in into.rglob("*.py")} == {"0o644"}


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([("top/../../x", FILE, "")], "leads out"),
        ([("top/..", FILE, "")], "leads out"),
        ([("top/out", SYMBOLIC, "../../.."), ("top/out/x", FILE, "")], "leads out"),
        ([("top/out", SYMBOLIC, "/etc")], "leads out"),
        ([("top/a", SYMBOLIC, "b/.."), ("top/b", SYMBOLIC, "."), ("top/a/x", FILE, "")], "leads out"),
        ([("top/x", HARD, "top/../../../etc/passwd")], "leads out"),
        ([("top/x", HARD, "top/nowhere")], "no file"),
        ([("top/s", SYMBOLIC, "f"), ("top/x", HARD, "top/s")], "no file"),
        ([("top/pipe", tarfile.FIFOTYPE, "")], "neither a file"),
        ([("top/disk", tarfile.BLKTYPE, "")], "neither a file"),
        ([("top/d/x", FILE, ""), ("top/d", FILE, "")], "two things at one path"),
        ([("top/d", FILE, ""), ("top/d/x", FILE, "")], "two things at one path"),
        ([("top/a", FILE, ""), ("other/b", FILE, "")], "2 top directories"),
    ],
)  # fmt: skip
def test_what_leads_out_or_is_no_file_is_refused(tmp_path, entries, says):
    with pytest.raises(InputError, match=says):
        lay(tmp_path, *entries)
    assert {p.name for p in tmp_path.iterdir()} == {"a.tar", "in"}
    assert {p.name for p in (tmp_path / "in").iterdir()} == {"to"}


NAMES = st.lists(st.sampled_from(["a", "b", "..", ".", ""]), min_size=1, max_size=4).map("/".join)


@given(
    st.lists(
        st.tuples(NAMES, st.sampled_from([FILE, DIRECTORY, SYMBOLIC, HARD]), NAMES), max_size=6
    )
)
def test_no_archive_whatsoever_writes_outside_of_its_place(tmp_path_factory, entries):
    place = tmp_path_factory.mktemp("place")
    named = [
        (f"top/{name}", kind, f"top/{said}" if kind == HARD else said)
        for name, kind, said in entries
    ]
    with contextlib.suppress(InputError):
        lay(place, *named)
    assert {str(p.relative_to(place)) for p in place.glob("*")} == {"a.tar", "in"}
    assert {p.name for p in (place / "in").iterdir()} == {"to"}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (("top/a", SYMBOLIC, ""), "to nothing"),
        (("top/" + "a" * 300, FILE, ""), "too long"),
        (("top/é\0b", FILE, ""), "no file can have"),
    ],
)
def test_names_that_no_file_can_have_are_refused(tmp_path, entry, said):
    with pytest.raises(InputError, match=said):
        lay(tmp_path, entry)


def test_what_is_no_archive_is_said(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="cannot be unpacked"):
        lay_out(tmp_path / "a.tar", PLAIN, tmp_path)
