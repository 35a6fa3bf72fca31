"""What outlives the process: keys, which sandboxes there were, templates, and nothing that grows without bound.

SQLite in WAL mode. One thread writes, in batches, so that no request waits for a disk; what is not written when the
process is killed are at most the last few milliseconds, and of those a client hears that there is no such sandbox,
which is true. Other processes (`excise key`) may write at the same time.
"""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from excise.errors import ExciseError, InputError
from excise.service.keys import Key, Scope

FILE = "state.sqlite"
BUSY_S = 10.0
ENDED_KEPT = 10_000
BATCH = 500
LONGEST_QUEUE = 100_000

MIGRATIONS = (
    """
    CREATE TABLE keys (
      id TEXT PRIMARY KEY, owner TEXT NOT NULL, scope TEXT NOT NULL, digest BLOB NOT NULL UNIQUE,
      made_s REAL NOT NULL, expires_s REAL, revoked_s REAL, note TEXT NOT NULL
    );
    CREATE TABLE sandboxes (
      id TEXT PRIMARY KEY, owner TEXT NOT NULL, handle TEXT NOT NULL, made_s REAL NOT NULL,
      ended TEXT, ended_s REAL
    );
    CREATE INDEX sandboxes_by_end ON sandboxes (ended_s);
    CREATE TABLE templates (
      owner TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (owner, name)
    );
    """,
)
"""Each brings a state of the version before to the next; `user_version` tells how many were applied."""

Write: TypeAlias = tuple[str, tuple[object, ...]]


class StateDamaged(ExciseError):
    """The state cannot be read, or was written by a newer version of this package."""


def opened(folder: Path) -> sqlite3.Connection:
    """A connection to the state in that folder, made or migrated if need be; private to its owner."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / FILE
    try:
        database = sqlite3.connect(
            path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        path.chmod(0o600)  # and never opened besides: closing it would drop the locks of SQLite
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA journal_size_limit = 16777216")
        _migrate(database)
    except sqlite3.DatabaseError as error:
        raise StateDamaged(f"{path}: {error}; move it away to start anew") from error
    return database


def _migrate(database: sqlite3.Connection) -> None:
    with contextlib.closing(database.cursor()) as cursor:
        cursor.execute("BEGIN IMMEDIATE")
        (version,) = cursor.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            cursor.execute("ROLLBACK")
            raise StateDamaged(f"the state is of version {version}, newer than this package knows")
        for migration in MIGRATIONS[version:]:
            for statement in filter(str.strip, migration.split(";")):
                cursor.execute(statement)
        cursor.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        cursor.execute("COMMIT")


class State:
    """Reads at once, writes behind. `close` waits until all is written."""

    def __init__(self, folder: Path) -> None:
        self._database = opened(folder)
        self._writer = opened(folder)
        self._writes: queue.Queue[Write | Callable[[], None] | None] = queue.Queue(LONGEST_QUEUE)
        self._lost = 0
        self._thread = threading.Thread(target=self._write, name="state", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Writes that could not be made, because the disk was full or too slow."""
        return self._lost

    def keys(self) -> list[Key]:
        return [_key(row) for row in self._database.execute(_KEYS)]

    def version(self) -> int:
        """Another number whenever some other process has written."""
        (found,) = self._database.execute("PRAGMA data_version").fetchone()
        return int(found)

    def made(self, id_: str, owner: str, handle: str, made_s: float) -> None:
        sql = "INSERT OR REPLACE INTO sandboxes (id, owner, handle, made_s) VALUES (?, ?, ?, ?)"
        self._put(sql, id_, owner, handle, made_s)

    def ended(self, id_: str, why: str, ended_s: float) -> None:
        self._put("UPDATE sandboxes SET ended = ?, ended_s = ? WHERE id = ?", why, ended_s, id_)

    def unended(self) -> list[tuple[str, str, str]]:
        """Id, owner and handle of those that a killed service had."""
        rows = self._database.execute("SELECT id, owner, handle FROM sandboxes WHERE ended IS NULL")
        return [(str(id_), str(owner), str(handle)) for id_, owner, handle in rows]

    def graves(self) -> list[tuple[str, str, str]]:
        """Id, owner and why, of those that ended last, oldest first."""
        rows = self._database.execute(
            "SELECT id, owner, ended FROM sandboxes WHERE ended IS NOT NULL "
            "ORDER BY ended_s DESC LIMIT ?",
            (ENDED_KEPT,),
        )
        return [(str(id_), str(owner), str(why)) for id_, owner, why in rows][::-1]

    def templates(self) -> list[bytes]:
        return [bytes(body) for (body,) in self._database.execute("SELECT body FROM templates")]

    def put_template(self, owner: str, name: str, body: bytes) -> None:
        self._put("INSERT OR REPLACE INTO templates VALUES (?, ?, ?)", owner, name, body)

    def remove_template(self, owner: str, name: str) -> None:
        self._put("DELETE FROM templates WHERE owner = ? AND name = ?", owner, name)

    def trim(self) -> None:
        """Forget what ended long ago."""
        self._put(
            "DELETE FROM sandboxes WHERE ended IS NOT NULL AND id NOT IN "
            "(SELECT id FROM sandboxes WHERE ended IS NOT NULL ORDER BY ended_s DESC LIMIT ?)",
            ENDED_KEPT,
        )

    def later(self, work: Callable[[], None]) -> None:
        """Have this done by the thread that writes."""
        try:
            self._writes.put_nowait(work)
        except queue.Full:
            self._lost += 1

    def settle(self) -> None:
        """Wait until all that was asked for is written."""
        done = threading.Event()
        self._writes.put(done.set)
        done.wait()

    def close(self) -> None:
        self._writes.put(None)
        self._thread.join()
        self._writer.close()
        self._database.close()

    def _put(self, sql: str, *values: object) -> None:
        try:
            self._writes.put_nowait((sql, values))
        except queue.Full:
            self._lost += 1

    def _write(self) -> None:
        while True:
            batch = [self._writes.get()]
            with contextlib.suppress(queue.Empty):
                while len(batch) < BATCH:
                    batch.append(self._writes.get_nowait())
            writes = [each for each in batch if isinstance(each, tuple)]
            if writes:
                self._commit(writes)
            for each in batch:
                if callable(each):
                    each()
            if None in batch:
                return

    def _commit(self, writes: list[Write]) -> None:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for sql, values in writes:
                self._writer.execute(sql, values)
            self._writer.execute("COMMIT")
        except sqlite3.Error:
            self._lost += len(writes)
            with contextlib.suppress(sqlite3.Error):
                self._writer.execute("ROLLBACK")


_KEYS = (
    "SELECT id, owner, scope, digest, made_s, expires_s, revoked_s, note FROM keys ORDER BY made_s"
)


def _key(row: tuple[str, str, str, bytes, float, float | None, float | None, str]) -> Key:
    id_, owner, scope, digest, made_s, expires_s, revoked_s, note = row
    return Key(id_, owner, Scope(scope), digest, made_s, expires_s, revoked_s, note)


class KeyFile:
    """The keys of a state, for whoever manages them: each change is made at once, and one service or many see it."""

    def __init__(self, folder: Path) -> None:
        self._database = opened(folder)

    def all(self) -> list[Key]:
        return [_key(r) for r in self._database.execute(_KEYS)]

    def add(self, key: Key) -> None:
        values = (key.id, key.owner, key.scope.value, key.digest, key.made_s)
        more = (key.expires_s, key.revoked_s, key.note)
        self._database.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values + more)

    def find(self, id_: str) -> Key:
        found = [key for key in self.all() if key.id == id_]
        if not found:
            raise InputError(f"there is no key {id_!r}; `excise key list` shows them")
        return found[0]

    def end(self, id_: str, at_s: float) -> None:
        """It holds until then, and not longer."""
        self.find(id_)
        self._database.execute(
            "UPDATE keys SET revoked_s = ? WHERE id = ? AND (revoked_s IS NULL OR revoked_s > ?)",
            (at_s, id_, at_s),
        )

    def close(self) -> None:
        self._database.close()


@contextlib.contextmanager
def key_file(folder: Path) -> Iterator[KeyFile]:
    """The keys of a state, while the block runs."""
    keys = KeyFile(folder)
    try:
        yield keys
    finally:
        keys.close()
