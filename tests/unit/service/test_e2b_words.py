"""The small translations of the E2B door: envelopes, words, entries, steps, names, signatures."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import stat
from datetime import datetime
from urllib.parse import quote, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from excise.errors import ExciseError, InputError
from excise.service.e2b import asked, events
from excise.service.e2b.entries import entry_info, moment, permissions, placed
from excise.service.e2b.naming import environment_of
from excise.service.e2b.recipe import readiness, recipe_of
from excise.service.e2b.signing import Deed, Signed, signed
from excise.service.e2b.stream import patience_of, silence_of
from excise.service.e2b.told import labels_asked, states_asked
from excise.service.e2b.wire import Envelopes, envelope, last, message
from excise.service.people import Person
from excise.service.templates import Do, Template, outcome
from excise.substrates.base import Entry, EntryKind
from excise.types import Deps, Repo

TEXT = st.text(max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=4)

# Envelopes.


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in itertools.pairwise(ends)]


@given(st.lists(OBJECTS, max_size=4), st.lists(st.integers(0, 10_000), max_size=8))
def test_messages_are_the_same_however_they_are_cut(messages, places):
    envelopes, found = Envelopes(), []
    for part in cut(b"".join(map(envelope, messages)) + last(), places):
        found += envelopes.feed(part)
    envelopes.finish()
    assert found == [json.loads(json.dumps(each)) for each in messages]


@given(st.binary(max_size=60))
def test_what_is_no_stream_of_messages_is_the_callers_fault(data):
    envelopes = Envelopes(largest=50)
    with contextlib.suppress(ExciseError):
        envelopes.feed(data)
        envelopes.finish()
    with contextlib.suppress(InputError):
        assert isinstance(message(data), dict)


def test_a_message_too_large_or_packed_is_refused_before_it_has_come():
    for head, said in ((b"\0\0\0\0\x64", "most"), (b"\1\0\0\0\1", "compressed")):
        with pytest.raises(ExciseError, match=said):
            Envelopes(largest=50).feed(head)
    with pytest.raises(InputError, match="JSON"):
        message(b"[" * 100_000)


# What clients say.

KNOWN = (
    *("process", "cmd", "args", "envs", "cwd", "tag", "pty", "size", "rows", "cols", "stdin", "input", "pid"),
    *("signal", "fromImage", "fromTemplate", "steps", "type", "filesHash", "startCmd", "readyCmd", "excise.repo"),
)  # fmt: skip
SAID = st.recursive(
    VALUES, lambda inner: st.dictionaries(st.sampled_from(KNOWN), inner, max_size=4), max_leaves=5
).filter(lambda value: isinstance(value, dict))


@given(SAID)
def test_whatever_is_said_is_understood_or_the_callers_fault(said):
    for understand in (
        events.wish_of, events.terminal_of, events.selected, events.signal_of, events.input_of, recipe_of,
        lambda given: environment_of("base", asked.texts(given, "process")),
        lambda given: readiness(asked.maybe_text(given, "readyCmd")),
    ):  # fmt: skip
        with contextlib.suppress(ExciseError):
            understand(said)


@given(st.binary(max_size=100))
def test_octets_come_through_as_they_are(data):
    text = base64.b64encode(data).decode()
    assert events.input_of({"input": {"stdin": text}}) == data
    assert events.input_of({"input": {"pty": text}}) == data


@given(TEXT)
def test_octets_that_are_none_are_the_callers_fault(text):
    with contextlib.suppress(InputError):
        assert isinstance(asked.octets({"it": text}, "it"), bytes)


@given(st.text("0123456789.-e ", max_size=16))
def test_deadlines_are_a_little_before_the_clients_own(text):
    said = {"connect-timeout-ms": text, "keepalive-ping-interval": text}
    patience_s = patience_of(said)
    if patience_s is not None:
        assert 0 < patience_s <= int(text) / 1000
    assert silence_of(said) >= 1


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_labels_come_back_however_strange_they_are(name, value):
    query = urlencode({quote(name, safe=""): quote(value, safe="")})
    assert labels_asked(query) == {name: value}


def test_states_are_told_by_the_names_that_clients_have():
    assert states_asked(["running,paused"]) == states_asked([])
    with pytest.raises(InputError, match="running or paused"):
        states_asked(["ended"])


# Entries.

ENTRIES = st.builds(
    Entry,
    name=TEXT,
    kind=st.sampled_from(EntryKind),
    size=st.integers(0, 2**60),
    mode=st.integers(0, 0o7777),
    uid=st.integers(0, 2**31),
    gid=st.integers(0, 2**31),
    modified_ns=st.integers(-(2**80), 2**80),
    target=st.none() | TEXT,
)


@given(ENTRIES)
def test_every_entry_can_be_told(entry):
    told = entry_info(f"/a/{entry.name}", entry, {0: "root"}, {}, leads_to=EntryKind.FILE)
    assert json.loads(json.dumps(told)) == told
    assert int(told["size"]) in {0, entry.size}
    assert told["type"].startswith("FILE_TYPE_")
    datetime.fromisoformat(told["modifiedTime"][:26] + "+00:00")


@given(st.integers(0, 0o777))
def test_permissions_are_those_of_ls(mode):
    entry = Entry("f", EntryKind.FILE, 0, mode, 0, 0, 0)
    assert permissions(entry)[1:] == stat.filemode(stat.S_IFREG | mode)[1:]


@given(st.integers(0, 2**61))
def test_times_are_told_to_the_nanosecond(ns):
    told = moment(ns)
    whole = datetime.fromisoformat(told[:19] + "+00:00").timestamp()
    assert int(whole) * 10**9 + int(told[20:29]) == ns


@given(TEXT, st.none() | st.just("/work"))
def test_every_path_is_absolute_or_refused(path, workdir):
    with contextlib.suppress(InputError):
        assert placed(path, Person("user", 1000, 1000, "/home/user"), workdir).startswith("/")


# Steps.

WORD = st.text("abc/.$ '\"", min_size=1, max_size=8)
STEPS = st.lists(
    st.one_of(
        st.builds(lambda s: {"type": "RUN", "args": [s]}, WORD),
        st.builds(lambda s, u: {"type": "RUN", "args": [s, u]}, WORD, st.sampled_from(["root", "user", "z"])),
        st.builds(lambda n, v: {"type": "ENV", "args": [n, v]}, WORD, WORD),
        st.builds(lambda p: {"type": "WORKDIR", "args": [p]}, WORD),
        st.builds(lambda u: {"type": "USER", "args": [u]}, st.sampled_from(["root", "user", "z"])),
        st.builds(lambda a, b: {"type": "COPY", "args": [a, b], "filesHash": "ab"}, WORD, WORD),
    ),
    max_size=6,
)  # fmt: skip


@given(STEPS)
def test_a_template_ends_with_the_user_place_and_variables_that_its_steps_say(steps):
    recipe = recipe_of({"fromImage": "host", "steps": steps})
    assert len(recipe.origins) == len(recipe.steps)
    assert list(recipe.origins) == sorted(recipe.origins)
    stand = outcome(Template("it", steps=recipe.steps))
    users = ["user", *(each["args"][0] for each in steps if each["type"] == "USER")]
    assert stand.user == users[-1]
    assert stand.workdir is not None
    assert stand.workdir.startswith("/")
    said = dict(each["args"] for each in steps if each["type"] == "ENV")
    assert dict(stand.env) == said


def test_a_step_by_somebody_else_ends_where_it_began():
    recipe = recipe_of({"fromImage": "host", "steps": [{"type": "RUN", "args": ["x", "root"]}]})
    said = [(step.do, step.words) for step in recipe.steps[2:]]
    assert said == [(Do.USER, ("root",)), (Do.RUN, ("x",)), (Do.USER, ("user",))]


# Names of environments.


@given(
    st.fixed_dictionaries(
        {"repo": st.text("ab/&=?% ", min_size=1), "commit": st.just("a" * 40)},
        optional={"path": st.text("p/", min_size=1), "deps": st.just("six==1.17.0,attrs==25.3.0")},
    )
)
def test_a_name_says_what_metadata_says(said):
    by_name = environment_of(f"python:3.12?{urlencode(said)}", {})
    metadata = {f"excise.{word}": value for word, value in said.items()}
    by_metadata = environment_of("base", {**metadata, "excise.image": "python:3.12", "mine": "x"})
    assert by_name == by_metadata
    assert by_name.template == "python:3.12"
    assert by_name.repo == Repo(said["repo"], "a" * 40, said.get("path", "repo"))
    assert by_name.deps == ((Deps(("six==1.17.0", "attrs==25.3.0")),) if "deps" in said else ())


def test_the_name_goes_before_the_metadata_and_system_packages_below_pythons():
    found = environment_of("x?apt=git", {"excise.apt": "vim", "excise.deps": "six==1.17.0"})
    assert found.deps == (Deps(("git",), installer="apt"), Deps(("six==1.17.0",)))
    with pytest.raises(InputError, match="without options"):
        environment_of("x?deps=--index-url=evil", {})


# Signatures.


@given(TEXT, st.sampled_from(Deed), TEXT, st.none() | st.integers(-(10**9), 10**10), TEXT)
def test_a_signature_holds_for_what_was_signed_and_nothing_else(path, deed, user, expires_s, token):
    of = Signed(path, deed, user, expires_s)
    assert of.holds(of.by(token), token)
    assert not of.holds(of.by(token), token + "x")
    assert not Signed(path + "x", deed, user, expires_s).holds(of.by(token), token)


@given(st.text("0123456789-x", max_size=16))
@example("--5")
def test_an_expiry_is_a_time_or_the_callers_fault(text):
    with contextlib.suppress(InputError):
        assert signed("f", Deed.READ, "", text).expires_s == int(text)
