"""Admission, rates, keys, policies, problems, people, the census: what is decided without touching anything."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import (
    DeadlineExceeded,
    InputError,
    LifecycleError,
    Overloaded,
    Phase,
    SandboxGone,
    SubstrateError,
)
from excise.service.admission import Use, refusal
from excise.service.errors import Refused, Unauthorized, Unsupported
from excise.service.idempotency import Once
from excise.service.keys import Ring, Scope, new_key
from excise.service.people import entered, newcomer, people
from excise.service.policy import Policy, allowed
from excise.service.problems import Fault, problem_of
from excise.service.rates import Rate
from excise.service.templates import Do, Step, Template, outcome
from excise.types import GIB, Allow, Egress, Limits, Repo, Spec

POLICY = Policy(sandboxes=10, sandboxes_per_owner=4, most_load_per_core=2.0)


@given(
    st.integers(0, 20), st.integers(0, 20), st.integers(1, 5),
    st.integers(0, 2 * GIB), st.integers(0, 2 * GIB), st.floats(0, 4),
)  # fmt: skip
def test_what_is_admitted_fits_and_what_fits_is_admitted(all_, mine, copies, memory, disk, load):
    use = Use(all_, mine, memory, disk, load)
    refused = refusal(POLICY, use, copies)
    fits = (
        mine + copies <= 4 and all_ + copies <= 10 and load <= 2.0
        and memory >= POLICY.free_memory_bytes and disk >= POLICY.free_disk_bytes
    )  # fmt: skip
    assert (refused is None) is fits
    if refused is not None:
        assert refused.retry_after_s
        assert refused.theirs is (mine + copies > 4)


@given(st.lists(st.floats(0, 2), min_size=1, max_size=200), st.integers(1, 10))
def test_nobody_gets_more_than_the_burst_and_the_rate(gaps, burst):
    rate, now, got = Rate(5.0, burst), 0.0, 0
    for turn, gap in enumerate(gaps):
        now += gap
        wait = rate.take("a", now)
        got += wait is None
        if wait is not None:
            assert 0 < wait <= 1.0
            assert rate.take(f"another {turn}", now) is None
    assert got <= burst + 5.0 * now + 1
    assert Rate(None, 1).take("a", 0.0, 1000) is None


def test_keys_are_known_by_their_tokens_alone_and_only_while_they_hold():
    key, token = new_key("alice", 100.0, expires_s=200.0)
    watch, watching = new_key("ops", 100.0, scope=Scope.WATCH)
    ring = Ring([key, watch])
    assert ring.check(token, 150.0).owner == "alice"
    for wrong in (None, "", token[:-1], token + "0", token.upper(), "x" * 10_000, "ü\ud800"):
        with pytest.raises(Unauthorized):
            ring.check(wrong, 150.0)
    with pytest.raises(Unauthorized):
        ring.check(token, 250.0)
    with pytest.raises(Unauthorized):
        ring.check(watching, 150.0)
    assert ring.check(watching, 150.0, Scope.WATCH).owner == "ops"
    assert token.encode() not in repr(key).encode()
    for owner in ("", "a b", "ü", "x" * 101, "a/b"):
        with pytest.raises(InputError):
            new_key(owner, 0.0)


@pytest.mark.parametrize(
    "spec",
    [
        Spec(image="dir:/etc"),
        Spec(image="oci:/root/x"),
        Spec(image="docker-archive:/root/x.tar:a:b"),
        Spec(image="docker-daemon:secret"),
        Spec(limits=Limits(cpuset=(0,))),
        Spec(egress=Egress.FULL),
        Spec(egress=Allow(("169.254.169.254:80",))),
        Spec(repo=Repo("/root", "HEAD")),
        Spec(repo=Repo("/srv/repos/../../root", "HEAD")),
        Spec(repo=Repo("/srv/repos-of-others", "HEAD")),
    ],
)
def test_a_caller_names_no_place_of_the_host_and_takes_no_more_than_allowed(spec):
    with pytest.raises(InputError):
        allowed(spec, Policy(repositories={"ours": "/srv/repos"}))


def test_what_is_allowed_is_bounded():
    policy = Policy(most=Limits(cpus=2.0), egress=Egress.FULL, repositories={"ours": "/srv/repos"})
    found = allowed(Spec(image="python:3.11", limits=Limits(cpus=None, memory_bytes=GIB)), policy)
    assert (found.limits.cpus, found.limits.memory_bytes) == (2.0, GIB)
    assert allowed(Spec(repo=Repo("ours", "HEAD")), policy).repo == Repo("/srv/repos", "HEAD")
    inside = Repo("/srv/repos/a", "HEAD")
    assert allowed(Spec(repo=inside, egress=Egress.FULL), policy).repo == inside
    with pytest.raises(InputError):
        allowed(Spec(image="python:3.11"), Policy(any_image=False))


def of_substrate(kind: type[SubstrateError], **more: bool) -> SubstrateError:
    return kind("said", substrate="jail", phase=Phase.RUN, **more)


@pytest.mark.parametrize(
    ("error", "status", "fault"),
    [
        (of_substrate(SandboxGone), 404, Fault.INFRASTRUCTURE),
        (of_substrate(SubstrateError, retryable=True), 502, Fault.INFRASTRUCTURE),
        (of_substrate(DeadlineExceeded), 504, Fault.INFRASTRUCTURE),
        (of_substrate(Overloaded, retryable=True), 503, Fault.INFRASTRUCTURE),
        (Refused("x", phase=Phase.CREATE, retry_after_s=3, theirs=True), 429, Fault.CALLER),
        (Refused("x", phase=Phase.CREATE, retry_after_s=3), 503, Fault.INFRASTRUCTURE),
        (InputError("bad"), 400, Fault.CALLER),
        (Unsupported("no"), 501, Fault.CALLER),
        (LifecycleError("no"), 409, Fault.CALLER),
        (FileNotFoundError(2, "no such file", "/x"), 404, Fault.CALLER),
        (OSError(39, "not empty", "/x"), 400, Fault.CALLER),
        (ZeroDivisionError("secret"), 500, Fault.INFRASTRUCTURE),
    ],
)
def test_whose_fault_it_was_is_never_mistaken(error, status, fault):
    found = problem_of(error)
    assert (found.status, found.fault) == (status, fault)
    assert "secret" not in found.message
    if isinstance(error, SubstrateError):
        assert found.phase == str(error.phase)
        assert (found.retry_after_s is not None) is error.retryable


def test_people_are_read_as_the_c_library_reads_them():
    passwd = b"root:x:0:0:root:/root:/bin/bash\nbroken\n:x:a:b:c:d:e\nuser:x:1000:100::/home/u:\n"
    found = people(passwd)
    assert (found["user"].uid, found["user"].home, found["user"].shell) == (
        1000,
        "/home/u",
        "/bin/sh",
    )
    made = newcomer("dev", found)
    assert made.uid not in {each.uid for each in found.values()}
    again, groups = entered(made, passwd[:-1], b"")
    assert people(again)["dev"] == made
    assert groups == f"dev:x:{made.gid}:\n".encode()


def test_steps_say_who_where_and_with_what():
    steps = (
        Step(Do.USER, ("dev",)),
        Step(Do.WORKDIR, ("/a",)),
        Step(Do.WORKDIR, ("b",)),
        Step(Do.ENV, ("X", "1", "Y", "2")),
        Step(Do.RUN, ("true",)),
    )
    stand = outcome(Template("t", spec=Spec(env={"X": "0"}), steps=steps))
    assert (stand.user, stand.workdir, stand.env) == ("dev", "/a/b", {"X": "1", "Y": "2"})
    for bad in (Step(Do.ENV, ("X",)), Step(Do.USER, ()), Step(Do.RUN, ())):
        with pytest.raises(InputError):
            outcome(Template("t", steps=(bad,)))


def test_what_failed_under_a_key_may_be_tried_again_and_the_oldest_is_forgotten():
    async def work():
        once: Once[int] = Once(kept=2)
        made = []

        async def make(fail: bool) -> int:
            await asyncio.sleep(0)
            made.append(fail)
            if fail:
                raise InputError("no")
            return len(made)

        with pytest.raises(InputError):
            await once.do("a", 1, lambda: make(True))
        assert await once.do("a", 1, lambda: make(False)) == 2
        assert await once.do("a", 1, lambda: make(False)) == 2
        for key in ("b", "c"):
            await once.do(key, 1, lambda: make(False))
        assert len(once) == 2
        waiting = asyncio.create_task(once.do("d", 1, lambda: make(False)))
        await asyncio.sleep(0)
        waiting.cancel()
        assert await once.do("d", 1, lambda: make(True)) == 5

    asyncio.run(work())
