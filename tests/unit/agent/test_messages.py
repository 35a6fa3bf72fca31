"""What is asked is what arrives: requests are taken apart by an independent reader."""

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.agent import messages, wire
from excise.agent.frames import Frames
from excise.agent.messages import Exec, pack_env
from excise.errors import InputError
from excise.types import MIB
from tests.unit.agent import words

REQUESTS = frozenset(range(1, 64))
DOCS = Path(__file__).parents[3] / "docs" / "protocol.md"
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
odd_texts = st.binary(max_size=20).map(
    lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape")
)
names = texts.filter(lambda text: text and "=" not in text)
u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
u16 = st.integers(0, 2**16 - 1)


def body_of(data, op, id_=7):
    (frame,) = Frames(ops=REQUESTS).feed(data)
    assert (frame.op, frame.flags, frame.id) == (op, 0, id_)
    return frame.body


commands = st.builds(
    Exec,
    argv=st.lists(texts | odd_texts, min_size=1, max_size=5).map(tuple),
    cwd=texts,
    env=st.dictionaries(names, texts, max_size=4),
    user=texts,
    timeout_s=st.none() | st.floats(0, 4e6),
    output_limit=u64,
    merge=st.booleans(),
    one_shot=st.booleans(),
    pty=st.booleans(),
    rows=u16,
    columns=u16,
    limits=st.lists(st.tuples(u32, st.just(-1) | u64, st.just(-1) | u64), max_size=3).map(tuple),
    umask=u16,
)


@given(commands, st.binary(max_size=50), st.sampled_from([0, wire.EXEC_STREAM]))
def test_a_command_arrives_as_it_was_asked_for(what, stdin, flags):
    got = words.asked(body_of(messages.exec_(7, what, flags, stdin), wire.OP_EXEC))
    assert (got.argv, got.cwd, got.user, got.stdin) == (what.argv, what.cwd, what.user, stdin)
    assert got.env == tuple(f"{k}={v}" for k, v in what.env.items())
    assert (got.rows, got.columns, got.umask) == (what.rows, what.columns, what.umask)
    assert got.output_limit == what.output_limit
    endless = 2**64 - 1
    assert got.limits == tuple(
        tuple(endless if n == -1 else n for n in limit) for limit in what.limits
    )
    assert got.timeout_ms == messages.milliseconds(what.timeout_s)
    for flag, wanted in (
        (wire.EXEC_MERGE, what.merge),
        (wire.EXEC_ONE_SHOT, what.one_shot),
        (wire.EXEC_PTY, what.pty),
        (wire.EXEC_STREAM, what.pty or flags == wire.EXEC_STREAM),
    ):
        assert bool(got.flags & flag) == wanted


@given(st.dictionaries(names, texts, max_size=4))
def test_an_environment_packed_once_is_the_same_request(env):
    assert messages.exec_(7, Exec(("a",), env=env)) == messages.exec_(
        7, Exec(("a",), env=pack_env(env))
    )


@given(st.none() | st.floats(0, 1e9))
def test_a_time_limit_is_never_shortened_and_none_is_zero(timeout_s):
    told = messages.milliseconds(timeout_s)
    if timeout_s is None:
        assert told == 0
    else:
        assert told == messages.LONGEST_MS or timeout_s * 1000 <= told < timeout_s * 1000 + 1.5
        assert told >= 1


@given(st.binary(max_size=50), st.integers(0, 3))
def test_stdin_in_pieces_is_the_stdin(data, times):
    data *= times * 100_000 // max(1, len(data))
    pieces = list(messages.stdin_pieces(7, data))
    assert b"".join(body_of(piece, wire.OP_STDIN) for piece in pieces) == data
    assert all(len(piece) <= wire.HEAD_BYTES + messages.PIECE_BYTES for piece in pieces)


def reads(body, layout, *expected):
    """Numbers by `layout`, where `s` is a string."""
    reader = words.Reader(body)
    got = [reader.text() if code == "s" else reader.numbers(code)[0] for code in layout]
    assert (*got, reader.rest()) == (*expected, b"")


@given(texts, texts, u32, u32, u64, st.booleans())
def test_the_other_requests_arrive_as_they_were_asked_for(path, other, one, two, large, flag):
    most = two % (2**31)
    for data, op, layout, expected in (
        (messages.hello(7), wire.OP_HELLO, "I", (1,)),
        (messages.signal(7, 9, whole_tree=flag), wire.OP_SIGNAL, "II", (9, flag)),
        (messages.resize(7, one % 65536, 5), wire.OP_RESIZE, "HH", (one % 65536, 5)),
        (messages.credit(7, one), wire.OP_CREDIT, "I", (one,)),
        (messages.attach(7), wire.OP_ATTACH, "I", (7,)),
        (messages.detach(7), wire.OP_DETACH, "I", (7,)),
        (messages.shell_run(7, one, path, 0.25, large), wire.OP_SHELL_RUN, "IIQs",
         (one, 250, large, path)),
        (messages.shell_close(7, one), wire.OP_SHELL_CLOSE, "I", (one,)),
        (messages.quiet(7, None), wire.OP_QUIET, "I", (0,)),
        (messages.read(7, path, large, most), wire.OP_READ, "sQI", (path, large, most)),
        (messages.stat(7, path, follow=flag), wire.OP_STAT, "Is", (flag, path)),
        (messages.directory(7, path), wire.OP_DIR, "s", (path,)),
        (messages.mkdir(7, path, one, parents=flag), wire.OP_MKDIR, "IIs", (one, flag, path)),
        (messages.remove(7, path, tree=flag), wire.OP_REMOVE, "Is", (flag, path)),
        (messages.rename(7, path, other), wire.OP_RENAME, "ss", (path, other)),
        (messages.symlink(7, other, path), wire.OP_SYMLINK, "ss", (other, path)),
        (messages.chmod(7, path, one), wire.OP_CHMOD, "Is", (one, path)),
        (messages.chown(7, path, one, two), wire.OP_CHOWN, "IIs", (one, two, path)),
        (messages.digest(7, path), wire.OP_DIGEST, "s", (path,)),
        (messages.look(7, [path], [other]), wire.OP_LOOK, "IIsIs", (2, 0, path, 1, other)),
    ):  # fmt: skip
        reads(body_of(data, op), layout, *expected)
    sent = messages.thaw(7, large, other.encode())
    assert body_of(sent, wire.OP_THAW) == large.to_bytes(8, "little") + other.encode()
    for data, op in (
        (messages.stdin_end(7), wire.OP_STDIN_END),
        (messages.list_actions(7), wire.OP_LIST),
        (messages.processes(7), wire.OP_PROCESSES),
        (messages.environment(7), wire.OP_ENVIRONMENT),
    ):
        assert body_of(data, op) == b""


@given(texts, st.binary(max_size=40), u32, u32)
def test_a_piece_of_a_file_arrives_with_its_owner(path, data, uid, gid):
    sent = messages.write(7, path, data, flags=3, mode=0o640, uid=uid, gid=gid)
    reader = words.Reader(body_of(sent, wire.OP_WRITE))
    assert reader.numbers("IIII") == (3, 0o640, uid, gid)
    assert (reader.text(), reader.rest()) == (path, data)


@pytest.mark.parametrize(
    "what",
    [
        Exec(("a\0b",)),
        Exec(("a",), cwd="/\0"),
        Exec(("a",), user="\0"),
        Exec(("a",), env={"A": "\0"}),
        Exec(("a",), env={"A=B": "c"}),
        Exec(("a",), env={"": "c"}),
        Exec(("\ud800",)),
        Exec(("a",), timeout_s=-1),
        Exec(("a",), timeout_s=float("nan")),
        Exec(("a",), rows=65536),
        Exec(("a",), umask=-1),
        Exec(("a",), output_limit=-1),
        Exec(("a",) * 65536),
        Exec(("a",), limits=((-1, 0, 0),)),
        Exec(("a" * (8 * MIB),)),
    ],
)
def test_what_no_agent_could_do_is_refused_here(what):
    with pytest.raises(InputError):
        messages.exec_(7, what)


def test_other_requests_refuse_what_no_agent_could_do():
    for ask in (
        lambda: messages.signal(7, 65, whole_tree=True),
        lambda: messages.resize(7, -1, 5),
        lambda: messages.chmod(7, "/a", -1),
        lambda: messages.read(7, "/a\0", 0, 5),
        lambda: messages.write(7, "/a", bytes(8 * MIB), flags=1),
        lambda: messages.shell_open(7, Exec(("ls",))),
        lambda: messages.quiet(7, -0.5),
    ):
        with pytest.raises(InputError):
            ask()


def test_the_example_of_the_documentation_is_what_is_sent():
    block = re.search(r"```hex\n(.*?)```", DOCS.read_text(), re.DOTALL)[1]
    lines = [line.split("|")[0] for line in block.splitlines()]
    request, answer = "\n".join(lines).split("\n\n")
    what = Exec(("echo", "hi"), env={"PATH": "/bin"}, timeout_s=60.0, output_limit=65536)
    assert messages.exec_(1, what) == bytes.fromhex(request)
    (frame,) = Frames().feed(bytes.fromhex(answer))
    from excise.agent.answers import result

    assert (frame.op, frame.id) == (wire.OP_RESULT, 1)
    told = result(frame.body)
    assert (told.code, told.end, told.stdout, told.stderr) == (0, wire.END_EXIT, b"hi\n", b"")
    assert told.exited_ns - told.spawned_ns == 600_000
    assert struct.calcsize(wire.RESULT_HEAD.format) == 88
