"""A study on disk: `study.json`, its head, and `trials.jsonl`, one line per trial as soon as it has ended.

A line is complete when its newline is there. What a crash or a full disk left behind a last complete line
is no trial: reading skips it, resuming cuts it off, and the trial is run again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from excise.errors import NO_ROOM, DiskFull, ExciseError, InputError
from excise.measure.record import FORMAT, StudyRecord, TrialRecord

HEAD = "study.json"
TRIALS = "trials.jsonl"


class RecordLost(ExciseError):
    """A record could not be written; every record before it is valid."""


@dataclass(frozen=True, slots=True)
class Study:
    """What is known of one study: its head, and its trials in the order they were run."""

    record: StudyRecord
    trials: list[TrialRecord]
    torn: bool = False
    """Whether the file ends in a line that was never finished."""

    @property
    def done(self) -> frozenset[tuple[int, int, str]]:
        return frozenset(t.key for t in self.trials)

    @property
    def measured(self) -> list[TrialRecord]:
        """The trials that count: without the warm-ups."""
        return [t for t in self.trials if not t.warm_up]


class _Format(msgspec.Struct):
    format: int


def read_study(directory: Path) -> Study:
    """Read a study, or say in one line why this is none."""
    record = read_head(directory)
    trials, ends = _complete(directory / TRIALS)
    size = (directory / TRIALS).stat().st_size if (directory / TRIALS).exists() else 0
    return Study(record, trials, torn=size != ends[-1])


def read_head(directory: Path) -> StudyRecord:
    """The head alone: what was planned, where, with what."""
    path = directory / HEAD
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{directory} is not a study: it has no {HEAD}; make one with `excise study run --out DIR`"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    _check_format(text, path)
    try:
        return msgspec.json.decode(text, type=StudyRecord)
    except msgspec.MsgspecError as error:
        raise InputError(f"{path} is not the head of a study: {error}") from None


def _check_format(text: bytes, path: Path) -> None:
    try:
        found = msgspec.json.decode(text, type=_Format).format
    except msgspec.MsgspecError as error:
        raise InputError(f"{path} is not the head of a study: {error}") from None
    _refuse_other(found, str(path))


def _refuse_other(found: int, path: str) -> None:
    """Neither a newer nor an older format is read: a field that is unknown or missing would pass for another."""
    if found > FORMAT:
        raise InputError(
            f"{path} has format {found}, this Excise reads {FORMAT}: update Excise to read it"
        )
    if found < FORMAT:
        raise InputError(
            f"{path} has the older format {found}, this Excise reads {FORMAT}: "
            "read it with the Excise that wrote it, or run the study again into a new directory"
        )


def _complete(path: Path) -> tuple[list[TrialRecord], list[int]]:
    """All complete trials of the file, and where in it none, one, two ... of them end."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], [0]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    decoder = msgspec.json.Decoder(TrialRecord)
    trials: list[TrialRecord] = []
    ends = [0]
    lines = data.split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            trial = decoder.decode(line)
        except msgspec.MsgspecError as error:
            if any(_is_trial(later, decoder) for later in lines[number:]):
                raise InputError(f"line {number} of {path} is not a trial: {error}") from None
            break
        _refuse_other(trial.format, f"line {number} of {path}")
        trials.append(trial)
        ends.append(ends[-1] + len(line) + 1)
    return trials, ends


def _is_trial(line: bytes, decoder: msgspec.json.Decoder[TrialRecord]) -> bool:
    try:
        decoder.decode(line)
    except msgspec.MsgspecError:
        return False
    return True


class Ledger:
    """The one writer of a study directory. `create` a new one or `resume` what is there."""

    def __init__(self, directory: Path, descriptor: int) -> None:
        self.directory = directory
        self._fd = descriptor
        self._encoder = msgspec.json.Encoder()

    @classmethod
    def create(cls, directory: Path, record: StudyRecord) -> Ledger:
        """Start a study in a directory that does not exist yet or is empty."""
        check_free(directory)
        missing = _missing(directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            ledger = cls(directory, _open_locked(directory / TRIALS))
        except OSError as error:
            raise _not_written(directory, error) from None
        try:
            write_head(directory, record)
        except BaseException as error:
            (directory / TRIALS).unlink()
            ledger.close()
            _remove_empty(missing)
            if isinstance(error, OSError):
                raise _not_written(directory, error) from None
            raise
        return ledger

    @classmethod
    def resume(
        cls, directory: Path, keep: Callable[[Sequence[TrialRecord]], int] = len
    ) -> tuple[Ledger, Study]:
        """Go on with a study: cut off an unfinished line, and tell what has been done.

        `keep` says how many of the trials, from the first, stay: what was run as a whole and was
        not written as a whole is cut off too.
        """
        read_head(directory)
        try:
            ledger = cls(directory, _open_locked(directory / TRIALS))
        except OSError as error:
            raise InputError(f"cannot write into {directory}: {error.strerror}") from None
        try:
            trials, ends = _complete(directory / TRIALS)
            os.ftruncate(ledger._fd, ends[keep(trials)])
            study = read_study(directory)
        except BaseException:
            ledger.close()
            raise
        return ledger, study

    def append(self, *trials: TrialRecord) -> None:
        """Write each trial as one line: all of it or, on a full disk, nothing of it."""
        line = b"".join(self._encoder.encode(trial) + b"\n" for trial in trials)
        before = os.fstat(self._fd).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._fd, line[written:])
        except OSError as error:
            os.ftruncate(self._fd, before)
            raise RecordLost(
                f"cannot write {self.directory / TRIALS}: {error.strerror}; the records so far are "
                f"valid, make room and run the same command again to go on"
            ) from error

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _open_locked(path: Path) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise InputError(
            f"another run is writing into {path.parent}: wait for it or stop it"
        ) from None
    return descriptor


def check_free(directory: Path) -> None:
    """Refuse to start a study on top of something else."""
    try:
        found = sorted(p.name for p in directory.iterdir())
    except FileNotFoundError:
        _probe(next(p for p in directory.absolute().parents if p.exists()))
        return
    except NotADirectoryError:
        raise InputError(f"{directory} is a file: choose another --out") from None
    except OSError as error:
        raise InputError(f"cannot read {directory}: {error.strerror}") from None
    if found:
        raise InputError(
            f"{directory} holds something else ({found[0]}): choose an empty or a new --out"
        )
    _probe(directory)


def _probe(directory: Path) -> None:
    """Whether something can be made in there, found out by doing it: permissions tell only half of it."""
    try:
        with tempfile.TemporaryDirectory(prefix=".excise-", dir=directory):
            pass
    except OSError as error:
        raise InputError(
            f"cannot write into {directory} ({error.strerror}): choose another --out"
        ) from None


@contextmanager
def staged(directory: Path) -> Iterator[Path]:
    """A directory to fill that takes the place of `directory` once it is full, or leaves nothing."""
    check_free(directory)
    there = directory.exists()
    beside = directory if there else directory.parent
    missing = _missing(beside)
    scratch: Path | None = None
    try:
        beside.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=beside, prefix=".excise-"))
        scratch.chmod(0o755)
        yield scratch
        if there:
            for made in sorted(scratch.iterdir()):
                made.rename(directory / made.name)
            scratch.rmdir()
        else:
            scratch.rename(directory)
    except BaseException as error:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        _remove_empty(missing)
        cause = error.__cause__ if isinstance(error, RecordLost) else error
        if isinstance(cause, OSError):
            raise _not_written(directory, cause) from None
        raise


def _missing(directory: Path) -> list[Path]:
    """The directories above and including this one that are not there yet, the innermost first."""
    whole = directory.absolute()
    return [p for p in (whole, *whole.parents) if not p.exists()]


def _remove_empty(directories: Iterable[Path]) -> None:
    for path in directories:
        with suppress(OSError):
            path.rmdir()


def _not_written(directory: Path, error: OSError) -> ExciseError:
    kind = DiskFull if error.errno in NO_ROOM else InputError
    return kind(
        f"cannot write into {directory}: {error.strerror}; make room or choose another --out"
    )


def write_head(directory: Path, record: StudyRecord) -> None:
    """Write the head so that a crash leaves the old one or the new one."""
    text = msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
    partial = directory / f"{HEAD}.partial"
    try:
        partial.write_bytes(text)
        partial.replace(directory / HEAD)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def write_study(directory: Path, record: StudyRecord, trials: Iterable[TrialRecord]) -> None:
    """Write a whole study at once, as merging does."""
    with staged(directory) as place, Ledger.create(place, record) as ledger:
        for trial in trials:
            ledger.append(trial)
