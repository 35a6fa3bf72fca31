"""Goldens: what each action must give, recorded from runs on the bare process that agree with each other.

A reference is recorded twice and kept only if both recordings are the same and every exit code is the one
the workload's author wrote down. A first recording that has the digest its task's author published agrees
with the author's own, and is enough. It is cached by everything that could change it: the scripts, the tree,
the interpreter, the host's tools and the normaliser.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import msgspec

from excise.clock import Clock
from excise.errors import ExciseError
from excise.measure.trial import Performance, Setting, perform
from excise.workloads import goldens
from excise.workloads.base import Golden, Step

RECORDINGS = 3
"""At most so many runs until two in a row are the same."""


class NoReference(ExciseError):
    """The workload does not do on this machine's bare process what its author says it does."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The goldens of one workload, set-up first, and one digest over them."""

    goldens: tuple[Golden, ...]
    cached: bool = False

    @property
    def digest(self) -> str:
        return goldens.chain(self.goldens)


async def reference(
    setting: Setting,
    *,
    clock: Clock,
    cache: Path,
    interpreter: str,
    tools: str,
    published: str | None = None,
) -> Reference:
    """The goldens of a bare setting: from the cache, or recorded now and cached."""
    path = cache / "goldens" / f"{_key(setting, interpreter, tools)}.json"
    known = _load(path)
    if known is not None:
        return Reference(known, cached=True)
    recorded = await _record(setting, clock, published)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{clock.now_ns()}.partial")
    partial.write_bytes(msgspec.json.encode(recorded))
    partial.replace(path)
    return Reference(recorded)


def _key(setting: Setting, interpreter: str, tools: str) -> str:
    """A digest of all that decides the goldens; the git server's port does not."""
    digest = sha256(Path(goldens.__file__).read_bytes())
    parts = (setting.workload.name, setting.tree or "", interpreter, tools)
    anywhere = replace(setting, site=replace(setting.site, git_url="git://host/repo"))
    for part in (*parts, *(repr(s) for s in (*anywhere.set_up, *anywhere.steps))):
        digest.update(part.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()[:32]


def _load(path: Path) -> tuple[Golden, ...] | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[Golden, ...])
    except (OSError, msgspec.MsgspecError):
        return None


async def _record(setting: Setting, clock: Clock, published: str | None) -> tuple[Golden, ...]:
    last: tuple[Golden, ...] | None = None
    for number in range(RECORDINGS):
        seen = await perform(setting, clock=clock, nonce=f"reference{number}")
        recorded = _checked(setting, seen)
        if recorded == last or goldens.chain(recorded) == published:
            return recorded
        if number == RECORDINGS - 1:
            raise NoReference(_differing(setting, last or (), recorded))
        last = recorded
    raise AssertionError("unreachable")


def _checked(setting: Setting, seen: Performance) -> tuple[Golden, ...]:
    """The goldens of one recording, or why it is none."""
    name = setting.workload.name
    if seen.error is not None:
        raise NoReference(f"{name} has no reference: the bare process failed: {seen.error}")
    for step, _, got in seen.acted:
        if step.times_out and not got.timed_out:
            raise NoReference(f"{name} has no reference: {_title(step)} did not run into its limit")
        if step.exit_code is not None and got.exit_code != step.exit_code:
            said = got.stdout[-300:].decode("utf-8", "replace").strip()
            raise NoReference(
                f"{name} has no reference: {_title(step)} ended with {got.exit_code} instead of "
                f"{step.exit_code} on the bare process: {said}"
            )
    if len(seen.actions) != seen.planned:
        raise NoReference(
            f"{name} has no reference: {len(seen.actions)} of {seen.planned} actions ran"
        )
    return tuple(goldens.golden_of(o.exit_code, o.stdout) for _, _, o in seen.acted)


def _differing(setting: Setting, one: tuple[Golden, ...], other: tuple[Golden, ...]) -> str:
    steps = (*setting.set_up, *setting.steps)
    places = [
        f"{i} ({_title(step)})"
        for i, (step, a, b) in enumerate(zip(steps, one, other, strict=True))
        if a != b
    ]
    return (
        f"{setting.workload.name} has no reference: the bare process answered differently each time "
        f"at action {', '.join(places[:5])}"
    )


def _title(step: Step) -> str:
    return step.what or step.kind
