"""Normalising takes out what file systems and clocks put in, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.workloads.base import Golden
from excise.workloads.goldens import chain, golden_of, matches, normalise

LISTING = b"""total 12
drwxr-xr-x  2 root root 4096 Nov 18 21:36 .
drwx------ 10 user  staff 60 Jan  1  2025 ..
-rw-r--r--  1 root root 1234 Nov 18 21:36 a file.py
lrwxrwxrwx  1 root root    9 Nov 18 21:36 link -> a file.py
drwxr-xr-x  3 root root 4096 Nov 18 21:36 src
"""
ELSEWHERE = b"""total 0
drwx------ 4 nobody nogroup 100 Dec 24 03:07 .
drwxr-xr-x 1 nobody nogroup  14 Dec 24 03:07 ..
-rw-r--r-- 2 nobody nogroup 1234 Dec 24 03:07 a file.py
lrwxrwxrwx 1 nobody nogroup 9 Dec 24 03:07 link -> a file.py
drwxr-xr-x 1 nobody nogroup 80 Dec 24  2024 src
"""
PIECES = [
    b"1 passed in 0.12s", b"== 2 failed in 61.20s (0:01:01) ==", b"0x7f00deadbeef", b"total 12",
    b"drwxr-xr-x 2 r r 4096 Nov 18 21:36 src", b"-rw-r--r-- 1 r r 5 Nov 18 21:36 r 5 5 Nov 18 21:36 y",
    b"/tmp/tmpab12/x", b"/a/b/repo/src/x.py", b"/v/lib/python3.11/site-packages/p.py", b"/repo",
    b"took 120.53ms", b"../tmp/pytest-of-me/pytest-0/x", b"\n", b" ", b"=", b"/", b".", b"1", b"s",
]  # fmt: skip


@given(st.one_of(st.binary(), st.lists(st.sampled_from(PIECES)).map(b"".join)))
def test_normalising_twice_is_normalising_once(output: bytes) -> None:
    once = normalise(output)
    assert normalise(once) == once


def test_a_listing_is_the_same_on_another_file_system() -> None:
    assert normalise(LISTING) == normalise(ELSEWHERE)


@pytest.mark.parametrize(
    ("real", "other"),
    [
        (b" 1234 ", b" 1235 "),
        (b"a file.py\nl", b"b file.py\nl"),
        (b"-rw-r--r--  1", b"-rwxr-xr-x  1"),
        (b" src\n", b" lib\n"),
        (b"-> a file.py", b"-> b file.py"),
    ],
)
def test_a_listing_of_other_files_is_another(real: bytes, other: bytes) -> None:
    assert real in LISTING
    assert normalise(LISTING) != normalise(LISTING.replace(real, other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"1 passed in 0.12s\n", b"1 passed in 10.00s\n"),
        (b"1 passed in 0.12s\n", b"1 passed in 61.20s (0:01:01)\n"),
        (b"===== 1 passed in 0.12s =====\n", b"==== 1 passed in 10.12s ====\n"),
        (b"Ran 18 tests in 0.234s\n", b"Ran 18 tests in 1.001s\n"),
        (b"<function f at 0x7f1234567890>", b"<function f at 0x55aa00bb11cc>"),
        (b'File "/state/1/work/repo/src/x.py"', b'File "/work/repo/src/x.py"'),
        (b"in /tmp/pytest-of-root/pytest-0/a/x", b"in ../../tmp/pytest-of-me/pytest-7/a/x"),
        (b"/root/venv/lib/python3.11/ast.py:1", b"/usr/lib/python3.11/ast.py:1"),
    ],
)
def test_noise_does_not_count(one: bytes, other: bytes) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"1 passed in 0.12s", b"2 passed in 0.12s"),
        (b"x = 0x7f\n", b"x = 0x7e\n"),
        (b"a\r\n", b"a\n"),
        (b"a\n", b"a"),
        (b"total 12 files", b"total 13 files"),
        (b"wait 5 s", b"wait 6 s"),
        (b"/work/repo/a", b"/work/repo/b"),
        (b"3.11", b"3.12"),
    ],
)
def test_content_counts(one: bytes, other: bytes) -> None:
    assert normalise(one) != normalise(other)


def test_a_golden_wants_code_digest_and_size() -> None:
    golden = golden_of(0, b"1 passed in 0.12s\n")
    assert matches(golden, 0, b"1 passed in 3.45s\n")
    assert not matches(golden, 1, b"1 passed in 0.12s\n")
    assert not matches(golden, 0, b"1 passed in 0.12s")
    assert golden.size_bytes == len(b"1 passed in <time>\n")


def test_cut_output_is_never_golden() -> None:
    whole = b"line\n" * 300_000
    assert not matches(golden_of(0, whole), 0, whole[:1000] + whole[-1000:])


@given(st.lists(st.builds(Golden, st.integers(0, 255), st.text("0123456789abcdef", min_size=64, max_size=64), st.integers(0, 9))))  # fmt: skip
def test_the_chain_depends_on_every_golden_and_their_order(goldens: list[Golden]) -> None:
    assert chain(goldens) == chain(list(goldens))
    assert chain(goldens) != chain([*goldens, Golden(0, "0" * 64, 0)])
    if goldens != goldens[::-1]:
        assert chain(goldens) != chain(goldens[::-1])
