"""What the jails of one process share: the spawner, the layers, and what each jail stands on.

No sandbox is known here. Threads and event loops may use one yard at once; a child of fork starts with an
empty one, because spawner and jails are its parent's.
"""

from __future__ import annotations

import functools
import itertools
import os
import secrets
import threading
import weakref
from collections import Counter, OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path

from excise.errors import InputError, LayerError
from excise.jail.control import BoxLimits
from excise.jail.depending import Ingredients
from excise.jail.ground import Ground, import_archive, imported_key, lay_ground
from excise.jail.path import SNAPSHOT, Laid, Step, laid, steps_of
from excise.jail.phase import NAME, failed
from excise.jail.spawner import Coming, Frozen, Spawner
from excise.jail.uplinks import Uplinks
from excise.layers.prices import Prices
from excise.layers.store import Store
from excise.pools.stage import Kind, Stage
from excise.pools.stage import Path as Stages
from excise.substrates.inside.habits import Habits
from excise.types import Limits, Spec
from excise.warm.layer import AUTO

MOST_LAID = 256
"""Environments whose layers are held though no jail stands on them; the one unused longest goes first."""


_ALWAYS = {Kind.BASE, Kind.SNAPSHOT}
"""Here as long as anything is."""


@dataclass(eq=False)
class Standing:
    """A stack in the spawner that jails are made on, and what their commands start with.

    `frozen` is the snapshot at its top, if it has one that is ours to let go of. It is let go of with its
    last user: a jail that may be reset to it, or a name that a caller has for it. What is laid out for a spec
    has the yard itself as a user.
    """

    stack: int
    ground: Ground
    frozen: Frozen | None = None
    users: int = 0

    @property
    def is_warm(self) -> bool:
        return self.ground.warmth.layer is not None


@dataclass(eq=False)
class Yard:
    """One per `Jail`."""

    store_folder: Path | None = None
    leases: Path | None = None
    warm: bool = False
    uplinks: Uplinks = field(default_factory=Uplinks)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _pid: int = field(default_factory=os.getpid)
    _spawner: Spawner | None = None
    _store: Store | None = None
    _prices: Prices | None = None
    _here: Counter[str] = field(default_factory=Counter)
    """Stages whose layers are held, by how many environments."""
    _standings: OrderedDict[Laid, Standing] = field(default_factory=OrderedDict)
    _laying: dict[Laid, threading.Lock] = field(default_factory=dict)
    _snapshots: dict[str, Standing] = field(default_factory=dict)
    _standbys: dict[tuple[int, BoxLimits], list[Coming]] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _mine: str = field(default_factory=lambda: secrets.token_hex(6))

    def __post_init__(self) -> None:
        _all.add(self)

    @property
    def spawner(self) -> Spawner:
        """The one of this process, started by whoever needs it first, and again if it has died."""
        with self._lock:
            self._start_anew_after_fork()
            if self._spawner is not None and self._spawner.process.poll() is not None:
                self._spawner.close()
                self._forget_all()
            if self._spawner is None:
                self._spawner = Spawner.start(leases=self.leases)
            return self._spawner

    @property
    def store(self) -> Store:
        with self._lock:
            if self._store is None:
                self._store = Store(self.store_folder)
            return self._store

    @property
    def prices(self) -> Prices:
        with self._lock:
            if self._prices is None:
                self._prices = Prices(self.store.root)
            return self._prices

    def meant(self, spec: Spec) -> Spec:
        """With a warm interpreter, if that is what all environments here get."""
        inside = spec.warm is not None or spec.image.startswith(SNAPSHOT)
        return spec if inside or not self.warm else replace(spec, warm=AUTO)

    def stages(self, spec: Spec) -> Stages:
        """The path of its environment: a stage that is held costs nothing more, others what they cost last time."""
        return tuple(self._stage(step) for step in steps_of(laid(spec)))

    @property
    def is_up(self) -> bool:
        return self._spawner is not None

    def name(self) -> str:
        """A handle that no other jail ever had."""
        return f"{NAME}-{self._mine}-{next(self._numbers)}"

    def known(self, spec: Spec) -> Standing | None:
        """What the spec's jails stand on, if that is laid out already: nothing is waited for.

        The caller is a user of it from now on, and lets go of it.
        """
        with self._lock:
            self._start_anew_after_fork()
            if spec.image.startswith(SNAPSHOT):
                found: Standing | None = self._of_snapshot(spec)
            elif self._spawner is None or self._spawner.process.poll() is not None:
                return None
            else:
                found = self._standing(laid(spec))
            if found is not None:
                found.users += 1
            return found

    def lay(self, spec: Spec) -> Standing:
        """As `known`, but lay it out if it is not: layers are built, which takes as long as it takes.

        Whoever wants the same meanwhile waits for it; whoever wants something else does not.
        """
        with self._lock:
            turn = self._laying.setdefault(laid(spec), threading.Lock())
        with turn:
            try:
                return self.known(spec) or self._lay(spec)
            finally:
                self._laying.pop(laid(spec), None)

    def _lay(self, spec: Spec) -> Standing:
        try:
            ground = lay_ground(spec, Ingredients(self.store, lambda: self.spawner))
        except LayerError as error:
            raise failed(str(error)) from error
        self._note_prices(spec, ground)
        with self._lock:
            stack = self.spawner.stack(ground.lowers, ground.binds)
            standing = self._standings[laid(spec)] = Standing(stack, ground, users=2)
            self._here.update(step.key for step in steps_of(laid(spec)))
            self._let_unused_go()
        return standing

    def _stage(self, step: Step) -> Stage:
        price = self.prices.of(step.kind, step.key)
        seconds = 0.0 if step.kind in _ALWAYS or self._here[step.key] else price.seconds
        return Stage(step.kind, step.key, seconds, price.bytes)

    def _note_prices(self, spec: Spec, ground: Ground) -> None:
        layers = {Kind.IMAGE: [ground.image], Kind.REPO: [ground.repo]}
        if ground.warmth.layer is not None:
            layers[Kind.INTERPRETER] = [(ground.warmth.layer,)]
        layers[Kind.DEPENDENCIES] = [(each,) for each in reversed(ground.deps)]
        for step in steps_of(laid(spec)):
            if step.kind in layers:
                self.prices.note(step.kind, step.key, layers[step.kind].pop(0))

    def habits(self, spec: Spec, standing: Standing) -> Habits:
        ground = standing.ground
        user = spec.user if spec.user is not None else ground.user
        return Habits.of({**ground.env, **spec.env}, user, ground.workspace)

    def holds(self, reference: str) -> bool:
        """Whether there is an archive that was imported under this name."""
        return self.store.get(imported_key(reference)) is not None

    def take_in(self, reference: str, archive: Path) -> None:
        """Keep a root file system under this name."""
        try:
            import_archive(self.store, reference, archive)
        except LayerError as error:
            raise failed(str(error)) from error

    def stand_on(self, frozen: Frozen, below: Standing) -> Standing:
        """What a snapshot of a jail leaves, to make others on."""
        return Standing(frozen.stack, below.ground, frozen)

    def standby(self, stack: int, limits: BoxLimits) -> Coming | None:
        """A jail that was ordered ahead for this, if there is one that is made and still lives."""
        with self._lock:
            waiting = self._standbys.get((stack, limits), [])
            spawner = self.spawner
            while waiting and not spawner.lives(waiting[0].number):
                waiting.pop(0)
            return waiting.pop(0) if waiting and spawner.is_made(waiting[0]) else None

    def relieve(self, box: int, standing: Standing, limits: BoxLimits) -> None:
        """A box was reset: end it, and have another made behind the caller's back, because who has reset once will again.

        Never more than could be reset.
        """
        with self._lock:
            spawner, stack = self.spawner, standing.stack
            waiting = self._standbys.setdefault((stack, limits), [])
            if len(waiting) < standing.users:
                waiting.append(spawner.order(stack, limits, hostname=NAME, in_place_of=box))
            else:
                spawner.destroy(box)

    def use(self, standing: Standing) -> None:
        with self._lock:
            standing.users += 1

    def let_go(self, standing: Standing) -> None:
        """One user less; a snapshot without users is freed."""
        with self._lock:
            standing.users -= 1
            spawner = self._spawner
            if standing.users > (standing.frozen is None):  # the yard's own use is none
                return
            if spawner is None or not self._is_mine() or spawner.process.poll() is not None:
                return
            self._send_home(standing.stack, spawner)
            if standing.users == 0 and standing.frozen is not None:
                spawner.unstack(standing.stack)
                spawner.forget(standing.frozen.snapshot)

    def keep(self, standing: Standing) -> str:
        """A name for a snapshot, to be put into `Spec.image`."""
        reference = f"{SNAPSHOT}{self._mine}-{next(self._numbers)}"
        with self._lock:
            self._snapshots[reference] = standing
            self.use(standing)
        return reference

    def forget(self, reference: str) -> None:
        """The name is not used any more. Idempotent."""
        with self._lock:
            standing = self._snapshots.pop(reference, None)
            if standing is not None:
                self.let_go(standing)

    def close(self) -> None:
        """End the spawner, and with it every jail. Idempotent; the next use starts another."""
        self.uplinks.close()
        with self._lock:
            if self._is_mine() and self._spawner is not None:
                self._spawner.close()
            self._forget_all()

    def _standing(self, wanted: Laid) -> Standing | None:
        """The one for that, if all of it is still there."""
        found = self._standings.get(wanted)
        if found is None:
            return None
        if found.ground.missing:
            self._give_up(wanted)
            return None
        self._standings.move_to_end(wanted)
        return found

    def _let_unused_go(self) -> None:
        """Layers that nobody stands on may be evicted from the store, unless they were wanted a short while ago."""
        unused = [key for key, standing in self._standings.items() if standing.users == 1]
        for key in unused[: max(0, len(self._standings) - MOST_LAID)]:
            self._give_up(key)

    def _give_up(self, key: Laid) -> None:
        """The next who wants it lays it out anew; jails that stand on it are not touched."""
        standing = self._standings.pop(key)
        self._here.subtract(step.key for step in steps_of(key))
        standing.users -= 1
        spawner = self.spawner
        self._send_home(standing.stack, spawner)
        spawner.unstack(standing.stack)
        standing.ground.pin.close()

    def _send_home(self, stack: int, spawner: Spawner) -> None:
        """Nobody stands there any more, so nobody will be reset to it."""
        for key in [key for key in self._standbys if key[0] == stack]:
            for coming in self._standbys.pop(key):
                spawner.cancel(coming)

    def _of_snapshot(self, spec: Spec) -> Standing:
        if spec.repo is not None:
            raise InputError("a snapshot has its repository in it: leave Spec.repo out")
        if spec.deps:
            raise InputError("a snapshot has its dependencies in it: leave Spec.deps out")
        if spec.warm:
            raise InputError("a snapshot has its interpreter in it: leave Spec.warm out")
        standing = self._snapshots.get(spec.image)
        if standing is None:
            raise InputError(f"{spec.image} is not a snapshot of this process, or was forgotten")
        return standing

    def _is_mine(self) -> bool:
        return self._pid == os.getpid()

    def _start_anew_after_fork(self) -> None:
        if not self._is_mine():
            self._pid = os.getpid()
            self._mine = secrets.token_hex(6)
            self._forget_all()

    def _forget_all(self) -> None:
        for standing in self._standings.values():
            standing.ground.pin.close()
        self._standings.clear()
        self._here.clear()
        self._laying.clear()
        self._standbys.clear()
        self._snapshots.clear()
        self._spawner = None


def limits_of(spec: Spec) -> BoxLimits:
    """The spec's limits in the kernel's units; what cannot be meant is refused before anything is made."""
    return _kernels(spec.limits)


@functools.lru_cache(maxsize=64)
def _kernels(limits: Limits) -> BoxLimits:
    for what, value in (("cpus", limits.cpus), ("memory_bytes", limits.memory_bytes),
                        ("pids", limits.pids), ("disk_bytes", limits.disk_bytes)):  # fmt: skip
        if value is not None and value <= 0:
            raise InputError(f"Limits.{what} is {value}: give more than 0, or None for no limit")
    absent = [core for core in limits.cpuset or () if not 0 <= core < (os.cpu_count() or 1)]
    if absent:
        raise InputError(f"Limits.cpuset names cores that are not here: {absent}")
    return BoxLimits.of(limits)


_all: weakref.WeakSet[Yard] = weakref.WeakSet()


def _with_a_lock_of_its_own() -> None:
    """Another thread of the parent may have held the lock, and does not exist in the child."""
    for yard in tuple(_all):
        yard._lock = threading.RLock()  # noqa: SLF001
        yard.uplinks = Uplinks(parents=yard.uplinks)


os.register_at_fork(after_in_child=_with_a_lock_of_its_own)
