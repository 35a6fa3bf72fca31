"""The small translations of the Daytona door: routes, terms, lists, entries, patterns, repositories, signatures."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import hmac
import stat
from base64 import urlsafe_b64encode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.service.daytona import git_words
from excise.service.daytona.asked import Build, NewSandbox, read
from excise.service.daytona.code import script_of
from excise.service.daytona.entries import info, mode_of
from excise.service.daytona.info import listening
from excise.service.daytona.listing import Query, page, shown
from excise.service.daytona.relay import answer_head, request_head
from excise.service.daytona.routes import Route, Table
from excise.service.daytona.search import chosen, matches, translated
from excise.service.daytona.shares import FOREVER, signature_of, signed
from excise.service.daytona.terms import egress_of, limits_of, terms_of, told
from excise.service.errors import Unsupported
from excise.service.sandbox import AtEnd
from excise.substrates.base import Entry, EntryKind
from excise.types import GIB, Allow, Egress, Limits

# Routes.

ROUTES = [Route("GET", path, path) for path in ("a", "a/{x}", "a/{x}/b", "a/b", "{x}/{y}/c")]


@given(st.lists(st.text("ab%2F{}", max_size=4), min_size=1, max_size=4))
def test_a_path_finds_what_fits_it_piece_by_piece(pieces):
    found = Table(ROUTES).find("GET", "/".join(pieces))
    if found is not None:
        path, words = found
        assert len(path.split("/")) == len(pieces)
        assert len(words) == path.count("{")


def test_plain_paths_come_first_and_words_are_unquoted():
    table = Table(ROUTES)
    assert table.find("GET", "a/b") == ("a/b", ())
    assert table.find("GET", "a/x%2Fy/b") == ("a/{x}/b", ("x/y",))
    assert table.find("POST", "a/b") is None
    assert table.find("GET", "a//b") is None


# Terms.


def test_the_protocols_own_defaults_hold():
    terms = terms_of(NewSandbox(), stops=True)
    assert (terms.auto_stop, terms.idle_s, terms.at_idle) == (15, 900.0, AtEnd.STOP)
    assert (terms.rest_s, terms.lifetime_s, terms.auto_delete) == (None, None, -1)
    assert terms_of(NewSandbox(), stops=False).idle_s is None


@pytest.mark.parametrize(
    ("asked", "idle_s", "at_idle", "rest_s"),
    [
        (NewSandbox(auto_stop_interval=0), None, AtEnd.STOP, None),
        (NewSandbox(auto_stop_interval=2, auto_delete_interval=0), 120.0, AtEnd.DESTROY, None),
        (NewSandbox(auto_pause_interval=3), 180.0, AtEnd.PAUSE, None),
        (NewSandbox(auto_delete_interval=5), 900.0, AtEnd.STOP, 300.0),
    ],
)
def test_intervals_become_leases_and_rests(asked, idle_s, at_idle, rest_s):
    terms = terms_of(asked, stops=True)
    assert (terms.idle_s, terms.at_idle, terms.rest_s) == (idle_s, at_idle, rest_s)


@pytest.mark.parametrize(
    "asked",
    [
        NewSandbox(auto_stop_interval=-1),
        NewSandbox(auto_delete_interval=-2),
        NewSandbox(ttl_minutes=10**9),
        NewSandbox(gpu=1),
        NewSandbox(secrets=[{"A": "b"}]),
        NewSandbox(kvm=True),
        NewSandbox(outbound_proxy_url="http://x"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(asked):
    with pytest.raises(InputError):
        terms_of(asked, stops=True)


def test_the_network_is_what_was_asked_for_and_is_given():
    open_, shut = (
        terms_of(NewSandbox(), stops=True),
        terms_of(NewSandbox(network_block_all=True), stops=True),
    )
    assert egress_of(open_, None, Egress.FULL) is Egress.FULL
    assert egress_of(shut, None, Egress.FULL) is Egress.NONE
    named = terms_of(NewSandbox(domain_allow_list="a.org, b.org"), stops=True)
    assert egress_of(named, None, Egress.FULL) == Allow(
        ("a.org:443", "a.org:80", "b.org:443", "b.org:80")
    )
    with pytest.raises(Unsupported):
        egress_of(open_, "10.0.0.0/8", Egress.FULL)
    with pytest.raises(InputError, match="no network"):
        egress_of(open_, "nonsense", Egress.FULL)


@given(st.integers(1, 64), st.integers(1, 512), st.integers(1, 512))
def test_resources_are_told_as_they_were_asked_for(cpu, memory, disk):
    limits = limits_of(cpu, memory, disk, Limits())
    assert limits.memory_bytes == memory * GIB
    assert told(limits) == {"cpu": cpu, "memory": memory, "disk": disk}


@given(st.binary(max_size=200))
def test_any_body_is_read_or_refused(data):
    with contextlib.suppress(InputError):
        read(data, NewSandbox)


def test_a_deep_body_is_refused():
    with pytest.raises(InputError):
        read(b'{"labels":' * 5000, NewSandbox)


def test_fields_that_are_not_known_are_passed_over():
    found = read(b'{"buildInfo": {"dockerfileContent": "FROM a", "x": 1}, "y": []}', NewSandbox)
    assert found.build_info == Build("FROM a")


# Lists.


def told_(number: int, **more: object) -> dict[str, object]:
    base = {
        "id": f"ID{number}", "name": f"n{number}", "state": "started", "snapshot": None,
        "target": "local", "public": False, "recoverable": False, "cpu": number, "memory": 1,
        "disk": 1, "createdAt": f"2026-01-{number + 1:02}T00:00:00.000Z",
        "lastActivityAt": "2026-01-01T00:00:00.000Z", "autoDestroyAt": None,
    }  # fmt: skip
    return base | more


ITEMS = [told_(number) for number in range(10)]


@given(st.integers(1, 12))
def test_pages_together_are_the_list(limit):
    found, cursor = [], None
    while True:
        part, cursor = page(ITEMS, cursor, limit)
        found += part
        if cursor is None:
            break
        assert len(part) == limit
    assert found == ITEMS


@pytest.mark.parametrize(
    ("single", "several", "numbers"),
    [
        ({"id": "id3"}, {}, [3]),
        ({"name": "N"}, {}, list(range(10))),
        ({"minCpu": "3", "maxCpu": "4"}, {}, [3, 4]),
        ({}, {"states": ["stopped", "paused"]}, []),
        ({"createdAtAfter": "2026-01-08T00:00:00+00:00"}, {}, [8, 9]),
        ({"createdAtBefore": "2026-01-03T00:00:00Z"}, {}, [0, 1]),
        ({"autoDestroyAtAfter": "2026-01-03T00:00:00Z"}, {}, []),
        ({"isPublic": "true"}, {}, []),
        ({"sort": "cpu", "order": "desc", "maxCpu": "2"}, {}, [2, 1, 0]),
    ],
)
def test_filters_and_orders_hold(single, several, numbers):
    assert [item["cpu"] for item in shown(ITEMS, Query(single, several))] == numbers


@pytest.mark.parametrize("single", [{"sort": "x"}, {"minCpu": "y"}, {"createdAtAfter": "then"}])
def test_questions_that_make_no_sense_are_refused(single):
    with pytest.raises(InputError):
        shown(ITEMS, Query(single))


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": 1}'])
def test_labels_are_an_object_of_texts(text):
    with pytest.raises(InputError):
        Query({"labels": text}).labels()


# Entries.


@given(st.integers(0, 0o777))
def test_modes_are_written_as_everywhere(mode):
    entry = Entry("n", EntryKind.DIRECTORY, 0, mode, 1, 2, 1_700_000_000_123_456_789)
    assert mode_of(entry) == stat.filemode(stat.S_IFDIR | mode)
    found = info(entry, "/n")
    assert (found["permissions"], found["owner"], found["group"]) == (f"{mode:04o}", "1", "2")
    assert str(found["modifiedAt"]).startswith("2023-11-14T22:13:20.123456")


def test_special_bits_and_kinds_have_their_letters():
    def mode(kind, bits):
        return mode_of(Entry("n", kind, 0, bits, 0, 0, 0))

    assert mode(EntryKind.FILE, 0o4755) == "urwxr-xr-x"
    assert mode(EntryKind.DIRECTORY, 0o1777) == "dtrwxrwxrwx"
    assert mode(EntryKind.LINK, 0o777).startswith("L")


# Patterns.


@given(st.text("ab*?[]x", max_size=8), st.text("abx", max_size=6))
def test_within_one_folder_patterns_are_those_of_a_shell(pattern, name):
    if "**" in pattern or "[" in pattern:
        return
    assert (chosen(name.encode(), "/t", pattern) != []) == (
        bool(name) and fnmatch.fnmatchcase(name, pattern)
    )


@given(st.text("ab*?[]{},!^\\/.-", max_size=14))
@example("[a--]")
@example("[---b]")
def test_any_pattern_can_be_used(pattern):
    chosen(b"a\0a/b\0", "/t", pattern)
    assert translated(pattern) is not None


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.py", ["a.py"]),
        ("**/*.py", ["a.py", "b/c.py", "b/d/e.py"]),
        ("b/**", ["b/c.py", "b/d/e.py"]),
        ("{a,x}.{py,txt}", ["a.py", "x.txt"]),
        ("[!a]*.txt", ["x.txt"]),
        ("b/?.py", ["b/c.py"]),
    ],
)
def test_patterns_reach_as_deep_as_they_say(pattern, names):
    found = b"x.txt\0a.py\0b/c.py\0b/d/e.py\0"
    assert chosen(found, "/t", pattern) == [f"/t/{name}" for name in names]


def test_lines_that_were_found_are_read_whatever_is_in_them():
    found = b"/a:b\x001:x:1:y\n/c\x0012:\n/d\x00z\nnoise\n"
    assert matches(found) == [
        {"file": "/a:b", "line": 1, "content": "x:1:y"},
        {"file": "/c", "line": 12, "content": ""},
    ]
    assert len(matches(b"/a\x001:x\n" * 10, most=3)) == 3


# Repositories.


def test_a_status_is_read():
    said = (
        "# branch.oid abc\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -1\0"
        "1 .M N... 100644 100644 100644 h h a file\0"
        "2 R. N... 100644 100644 100644 h h R100 new name\0old name\0"
        "u UU N... 1 2 3 4 h h h both\0? un known\0"
    )
    found = git_words.status(said.encode())
    assert (found["currentBranch"], found["ahead"], found["behind"]) == ("main", 2, 1)
    assert found["fileStatus"] == [
        {"name": "a file", "staging": "Unmodified", "worktree": "Modified", "extra": ""},
        {"name": "new name", "staging": "Renamed", "worktree": "Unmodified", "extra": "old name"},
        {"name": "both", "staging": "Updated but unmerged", "worktree": "Updated but unmerged", "extra": ""},
        {"name": "un known", "staging": "Untracked", "worktree": "Untracked", "extra": ""},
    ]  # fmt: skip
    assert git_words.status(b"# branch.head (detached)\0")["detached"] is True


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        ("fatal: not a git repository (or any parent)", 404, "GIT_REPO_NOT_FOUND"),
        ("fatal: Authentication failed for 'x'", 401, "GIT_AUTH_FAILED"),
        ("error: pathspec 'x' did not match any file(s) known to git", 404, "GIT_BRANCH_NOT_FOUND"),
        ("fatal: a branch named 'x' already exists", 409, "GIT_BRANCH_EXISTS"),
        (" ! [rejected] main -> main (fetch first)", 409, "GIT_PUSH_REJECTED"),
        (
            "fatal: unable to access 'https://x': Could not resolve host: x",
            502,
            "GIT_TRANSPORT_FAILED",
        ),
        ("error: Your local changes would be overwritten by checkout", 409, "GIT_DIRTY_WORKTREE"),
        ("something else", 400, "BAD_REQUEST"),
    ],
)
def test_gits_words_are_errors_of_the_sdk(said, status, code):
    found = git_words.refused(said, 128)
    assert (found.status, found.code) == (status, code)


@given(st.binary(max_size=200))
def test_whatever_git_says_is_read(said):
    git_words.status(said)
    git_words.history(said)
    git_words.remotes(said)


# Signatures, ports, code.


def test_signatures_are_those_of_the_sdk_and_hold_for_one_file_and_time():
    text = b"v1:files:GET:/a b:100"
    wanted = urlsafe_b64encode(hmac.new(b"key", text, hashlib.sha256).digest()).rstrip(b"=")
    signature = signature_of("key", "GET", "/a b", 100)
    assert signature == "v1_" + wanted.decode()
    assert signed("key", "GET", "/a b", "100", signature, 99.0)
    for changed in (
        ("no", "GET", "/a b", "100"),
        ("key", "POST", "/a b", "100"),
        ("key", "GET", "/b", "100"),
        ("key", "GET", "/a b", "101"),
    ):
        assert not signed(*changed, signature, 99.0)
    assert not signed("key", "GET", "/a b", "100", signature, 100.0)
    assert signed("key", "GET", "/", str(FOREVER), signature_of("key", "GET", "/", 0), 1e12)
    assert not signed("key", "GET", "/a b", "x", signature, 0.0)


def test_listening_ports_are_found_in_the_kernels_table():
    table = "sl local rem st\n 0: 0100007F:1F90 0:0 0A x\n 1: 0100007F:0050 0:0 01 x\n 0: 00:0016 0:0 0A"
    assert listening(table) == [22, 8080]


@given(
    st.sampled_from(["python", "javascript", "typescript"]),
    st.lists(st.text(max_size=10), max_size=3),
)
def test_arguments_of_code_are_quoted(language, argv):
    assert script_of(language, argv)


def test_a_language_that_is_not_known_is_refused():
    with pytest.raises(InputError, match="cobol"):
        script_of("cobol", [])


def test_what_was_meant_for_the_service_is_not_handed_to_a_port():
    head = request_head(
        "GET",
        "/x?y",
        [
            ("Authorization", "Bearer t"),
            ("X-API-Key", "t"),
            ("X-Daytona-Preview-Token", "t"),
            ("Accept", "*/*"),
            ("Host", "h"),
            ("Upgrade", "u"),
        ],
        80,
    )
    assert (
        head
        == b"GET /x?y HTTP/1.0\r\nHost: 127.0.0.1:80\r\nConnection: close\r\nAccept: */*\r\n\r\n"
    )


@given(st.binary(max_size=100))
def test_any_answer_of_a_port_is_read_or_refused(text):
    found = answer_head(text)
    assert found is None or 200 <= found.status <= 599
