"""The optional abilities of a substrate, through its pool: a pool has those that its substrate has."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from excise.clock import Clock
from excise.errors import Overloaded, Phase
from excise.pools.pool import Pool
from excise.pools.rules import Rules
from excise.substrates.base import (
    Background,
    Backgrounds,
    Describes,
    Entry,
    Files,
    Forks,
    ImportsImages,
    Pauses,
    Proof,
    Proves,
    Quiets,
    ReachesHost,
    Resettable,
    Shell,
    Shells,
    Snapshots,
    SpawnsItself,
    Stream,
    Streams,
    Substrate,
    Sweeps,
    Terminal,
    TimesInside,
    Tree,
    Warms,
)
from excise.types import Action, Handle


class _Files(Pool):
    async def read(self, box: Handle, path: str) -> bytes:
        return await cast("Files", self.inner).read(self._held(box), path)

    async def write(self, box: Handle, path: str, data: bytes) -> None:
        await cast("Files", self.inner).write(self._held(box), path, data)


class _Tree(Pool):
    async def stat(self, box: Handle, path: str, *, follow: bool = True) -> Entry:
        return await cast("Tree", self.inner).stat(self._held(box), path, follow=follow)

    async def look(self, box: Handle, paths: Sequence[str], kinds: Sequence[str] = ()) -> bytes:
        return await cast("Tree", self.inner).look(self._held(box), paths, kinds)

    async def entries(self, box: Handle, path: str) -> list[Entry]:
        return await cast("Tree", self.inner).entries(self._held(box), path)

    async def read_part(self, box: Handle, path: str, offset: int, most: int) -> bytes:
        return await cast("Tree", self.inner).read_part(self._held(box), path, offset, most)

    async def put(
        self,
        box: Handle,
        path: str,
        pieces: Iterable[bytes],
        *,
        mode: int = 0o644,
        owner: tuple[int, int] | None = None,
    ) -> None:
        tree = cast("Tree", self.inner)
        await tree.put(self._held(box), path, pieces, mode=mode, owner=owner)

    async def make_directory(self, box: Handle, path: str, *, mode: int = 0o755) -> None:
        await cast("Tree", self.inner).make_directory(self._held(box), path, mode=mode)

    async def remove(self, box: Handle, path: str, *, tree: bool = False) -> None:
        await cast("Tree", self.inner).remove(self._held(box), path, tree=tree)

    async def rename(self, box: Handle, path: str, to: str) -> None:
        await cast("Tree", self.inner).rename(self._held(box), path, to)

    async def chmod(self, box: Handle, path: str, mode: int) -> None:
        await cast("Tree", self.inner).chmod(self._held(box), path, mode)

    async def chown(self, box: Handle, path: str, uid: int, gid: int) -> None:
        await cast("Tree", self.inner).chown(self._held(box), path, uid, gid)


class _Quiets(Pool):
    async def quiet(self, box: Handle) -> None:
        await cast("Quiets", self.inner).quiet(self._held(box))


class _Shells(Pool):
    async def open_shell(self, box: Handle) -> Shell:
        lease = self.lease(box, Phase.RUN)
        shell = await cast("Shells", self.inner).open_shell(lease.box.handle)
        if lease.spec.env and not self._binds:
            assigned = (f"{name}={value}" for name, value in lease.spec.env.items())
            await shell.run(f"export {shlex.join(assigned)}")
        return shell


class _Streams(Pool):
    async def stream(
        self,
        box: Handle,
        action: Action,
        *,
        terminal: Terminal | None = None,
        input_open: bool = True,
    ) -> Stream:
        lease = self.lease(box, Phase.RUN)
        action = self.bound(lease, action)
        streams = cast("Streams", self.inner)
        handle = lease.box.handle
        return await streams.stream(handle, action, terminal=terminal, input_open=input_open)


class _Backgrounds(Pool):
    async def start(self, box: Handle, action: Action) -> int:
        lease = self.lease(box, Phase.RUN)
        action = self.bound(lease, action)
        return await cast("Backgrounds", self.inner).start(lease.box.handle, action)

    async def started(self, box: Handle) -> list[Background]:
        return await cast("Backgrounds", self.inner).started(self._held(box))

    async def attach(self, box: Handle, number: int) -> Stream:
        return await cast("Backgrounds", self.inner).attach(self._held(box), number)

    async def signal(self, box: Handle, number: int, signal: int) -> None:
        await cast("Backgrounds", self.inner).signal(self._held(box), number, signal)


class _Resettable(Pool):
    async def reset(self, box: Handle) -> None:
        await cast("Resettable", self.inner).reset(self._held(box, Phase.RESET))


class _Proves(Pool):
    async def prove(self, box: Handle) -> Proof:
        return await cast("Proves", self.inner).prove(self._held(box))


class _Snapshots(Pool):
    async def snapshot(self, box: Handle) -> str:
        return await cast("Snapshots", self.inner).snapshot(self._held(box))

    async def forget(self, reference: str) -> None:
        await cast("Snapshots", self.inner).forget(reference)


class _Forks(Pool):
    async def fork(self, box: Handle, copies: int = 1) -> list[Handle]:
        """The copies count against the budget, and a fork that does not fit makes none."""
        lease = self.lease(box, Phase.CREATE)
        if copies > self.room():
            text = f"{copies} copies do not fit: the budget has room for {self.room()}"
            raise Overloaded(text, substrate=self.name, phase=Phase.CREATE, retryable=True)
        made = await cast("Forks", self.inner).fork(lease.box.handle, copies)
        return [self.adopt(handle, lease) for handle in made]


class _Pauses(Pool):
    async def pause(self, box: Handle) -> None:
        lease = self.lease(box, Phase.RUN)
        await cast("Pauses", self.inner).pause(lease.box.handle)
        lease.box.doubt("it was paused")

    async def resume(self, box: Handle) -> None:
        await cast("Pauses", self.inner).resume(self._held(box))


class _TimesInside(Pool):
    @property
    def times_inside(self) -> bool:
        return cast("TimesInside", self.inner).times_inside


class _SpawnsItself(Pool):
    @property
    def spawns_itself(self) -> bool:
        return cast("SpawnsItself", self.inner).spawns_itself


class _ReachesHost(Pool):
    async def host_address(self) -> str:
        return await cast("ReachesHost", self.inner).host_address()


class _ImportsImages(Pool):
    async def has_image(self, reference: str) -> bool:
        return await cast("ImportsImages", self.inner).has_image(reference)

    async def import_image(self, reference: str, archive: Path) -> None:
        await cast("ImportsImages", self.inner).import_image(reference, archive)


class _Sweeps(Pool):
    async def sweep(self) -> int:
        return await cast("Sweeps", self.inner).sweep()


class _Warms(Pool):
    @property
    def warm(self) -> bool:
        return cast("Warms", self.inner).warm

    @property
    def warmed(self) -> Mapping[str, int]:
        return cast("Warms", self.inner).warmed

    async def warmth(self, box: Handle) -> Mapping[str, int]:
        return await cast("Warms", self.inner).warmth(self._held(box))


class _Describes(Pool):
    async def describe(self) -> dict[str, str]:
        """The substrate's own facts, and under which rules it was pooled."""
        facts = await cast("Describes", self.inner).describe()
        budget = f"{self.rules.budget.most} sandboxes, {self.rules.creating} made at once"
        return {**facts, "pool": budget}


ABILITIES: tuple[tuple[type, type[Pool]], ...] = (
    (Files, _Files),
    (Tree, _Tree),
    (Quiets, _Quiets),
    (Shells, _Shells),
    (Streams, _Streams),
    (Backgrounds, _Backgrounds),
    (Resettable, _Resettable),
    (Proves, _Proves),
    (Snapshots, _Snapshots),
    (Forks, _Forks),
    (Pauses, _Pauses),
    (TimesInside, _TimesInside),
    (SpawnsItself, _SpawnsItself),
    (ReachesHost, _ReachesHost),
    (ImportsImages, _ImportsImages),
    (Sweeps, _Sweeps),
    (Warms, _Warms),
    (Describes, _Describes),
)


def pooled(
    substrate: Substrate,
    rules: Rules | None = None,
    *,
    clock: Clock | None = None,
    kind: type[Pool] = Pool,
) -> Pool:
    """A pool over that substrate, with the abilities that it has."""
    through = tuple(t for ability, t in ABILITIES if isinstance(substrate, ability))
    bases = (kind, *through) if kind is not Pool else through or (Pool,)
    whole = cast("type[Pool]", type("Pool", bases, {"__doc__": Pool.__doc__}))
    return whole(substrate, rules, clock=clock)
