"""Login shells that need not read their profile again: learned in the background, looked up before each command."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from excise.errors import ExciseError
from excise.service.cloud import Cloud
from excise.service.e2b import login
from excise.service.e2b.login import Memo, Watched
from excise.service.files import Files
from excise.service.people import Person
from excise.service.sandbox import Sandbox
from excise.substrates.base import EntryKind, Tree
from excise.types import MIB, Action

MOST_KEYS = 500
MOST_MEMOS = 4
"""Of one key: so many states of a profile are remembered."""

PATIENCE_S = 20.0
FRESH_S = 60.0
"""After that a memo is learned anew when it is used: what a program reads that the profile runs, nobody can see."""

SHARE = 50
"""Learning takes at most this part of the time, however slow a profile is."""

Key = tuple[str, str, str, int, frozenset[tuple[str, str]]]


@dataclass(slots=True)
class _Known:
    """What is known of one user's login shell in sandboxes of one image."""

    memos: list[Memo] = field(default_factory=list)
    learning: asyncio.Task[None] | None = None
    again_s: float = 0.0


class Logins:
    """Of all sandboxes. What one owner's profile does is never taken for what another's does."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._able = isinstance(cloud.substrate, Tree)
        self._known: OrderedDict[Key, _Known] = OrderedDict()

    async def spared(self, sandbox: Sandbox, person: Person, action: Action) -> Action:
        """The action without its login shell, where it is known what that does; else as it is.

        What is not known is learned for the next time.
        """
        if not self._able or not login.can_be_spared(action.argv, action.env):
            return action
        known = self._of(sandbox, person, action.env)
        memo = await self._memo(sandbox, known)
        if memo is None or time.monotonic() > known.again_s:
            self._learn(sandbox, person, action, known)
        if memo is None or not memo.usable:
            return action
        script = memo.script(action.argv[3])
        return replace(action, argv=("bash", "-c", script), env={**action.env, **memo.environment})

    async def learned(self) -> None:
        """Wait until what is being learned is known."""
        tasks = [known.learning for known in self._known.values() if known.learning is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    def _of(self, sandbox: Sandbox, person: Person, env: Mapping[str, str]) -> _Known:
        key = sandbox.owner, sandbox.spec.image, person.name, person.uid, frozenset(env.items())
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Known()
            while len(self._known) > MOST_KEYS:
                _, oldest = self._known.popitem(last=False)
                if oldest.learning is not None:
                    oldest.learning.cancel()
        else:
            self._known.move_to_end(key)
        return known

    async def _memo(self, sandbox: Sandbox, known: _Known) -> Memo | None:
        """The memo that fits how everything looks in that sandbox now."""
        files = self._cloud.files(sandbox)
        looked: Watched | None = None
        look = b""
        for memo in known.memos:
            if memo.watched != looked:
                looked = memo.watched
                look = await files.look(looked.paths, looked.kinds)
            if look == memo.look:
                return memo
        return None

    def _learn(self, sandbox: Sandbox, person: Person, action: Action, known: _Known) -> None:
        if known.learning is None or known.learning.done():
            known.learning = asyncio.create_task(self._study(sandbox, person, action, known))

    async def _study(self, sandbox: Sandbox, person: Person, action: Action, known: _Known) -> None:
        """Shells that report, with everything looking the same before and after, or nothing is learned."""
        begun_s = time.monotonic()
        asking = replace(
            action,
            timeout_s=PATIENCE_S,
            cwd=person.home,
            user=person.name,
            output_limit_bytes=4 * MIB,
        )
        try:
            memo = await self._memo_of(sandbox, person, asking)
        except (ExciseError, OSError):  # it ended, or is paused: the next one is asked
            return
        finally:
            took_s = time.monotonic() - begun_s
            known.again_s = time.monotonic() + max(FRESH_S, SHARE * took_s)
        if memo is not None:
            same = (memo.watched, memo.look)
            others = [each for each in known.memos if (each.watched, each.look) != same]
            known.memos = [memo, *others[: MOST_MEMOS - 1]]

    async def _memo_of(self, sandbox: Sandbox, person: Person, asking: Action) -> Memo | None:
        async def shell(*words: str) -> tuple[bytes, bytes]:
            found = await self._cloud.run(sandbox, replace(asking, argv=("/bin/bash", *words)))
            return found.stdout, found.stderr

        _, trace = await shell("-l", "-x", "-c", f": {login.MARK}")
        plain, _ = await shell("--noprofile", "--norc", "-c", login.REPORT)
        first, said = await shell("-l", "-c", login.REPORT)
        report = login.report_of(first)
        path = report.environment.get("PATH", "") if report is not None else ""
        seen = login.seen_in(trace, person.home, path)
        if seen is None:
            seen, report = login.Seen(login.WATCHED_ALWAYS, frozenset()), None
        files = self._cloud.files(sandbox)
        there = await _there(files, seen.paths)
        watched = seen.watched(there)
        before = await files.look(watched.paths, watched.kinds)
        again, said_again = await shell("-l", "-c", login.REPORT)
        if before != await files.look(watched.paths, watched.kinds):
            return None
        quiet = not (said or said_again)
        return login.memo_of(
            watched,
            before,
            there,
            login.report_of(plain),
            report if quiet else None,
            login.report_of(again),
        )


async def _there(files: Files, paths: Iterable[str]) -> dict[str, EntryKind]:
    """What leads somewhere, and to what."""
    found = {}
    for path in paths:
        with contextlib.suppress(OSError):
            found[path] = (await files.stat(path, follow=True)).kind
    return found
