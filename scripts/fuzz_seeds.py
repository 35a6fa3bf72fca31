"""Writes the seeds of each fuzz target, one file each: `fuzz_seeds.py FOLDER`. What once broke something is kept here too."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable
from pathlib import Path

READ, WRITE, STAT, DIR, MKDIR, REMOVE, RENAME, SYMLINK, CHMOD, CHOWN, DIGEST = range(11)
RAW, MADE = 0, 1
FIRST, LAST, PARENTS, IN_PLACE = 1, 2, 4, 8


def text(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


def name(value: bytes) -> bytes:
    return struct.pack("<H", len(value)) + value


def frame(op: int, body: bytes, number: int = 1) -> bytes:
    return struct.pack("<IBBHI", len(body), op, 0, 0, number) + body


def execution(
    *argv: bytes, env: tuple[bytes, ...] = (), stdin: bytes = b"", limits: int = 0
) -> bytes:
    head = struct.pack(
        "<IIQHHHHHHI", 32, 1000, 1 << 20, 24, 80, len(argv), len(env), limits, 0o22, len(stdin)
    )
    words = b"".join(map(text, (b"root", b"/work", *argv, *env)))
    return head + words + struct.pack("<IQQ", 7, 64, 128) * limits + stdin


def ask(op: int, body: bytes, how: int = MADE, number: int = 1) -> bytes:
    return struct.pack("<BBBB", op, how, number, len(body)) + body


def write(flags: int, data: bytes, number: int = 1) -> bytes:
    return ask(WRITE, bytes([flags, 0o644 & 0xFF, 0, 0]) + b"\x10\0" + data, MADE, number)


def wire() -> Iterable[bytes]:
    yield bytes(range(64))
    yield b"\x04\0\0\0\x03\0\0\0abc\x06\x02\0xy"


def request() -> Iterable[bytes]:
    yield execution(b"true")
    yield execution(b"bash", b"-c", b"echo hi", env=(b"PATH=/bin", b"A="), stdin=b"in", limits=2)
    yield execution()


def account() -> Iterable[bytes]:
    passwd = b"root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\n\nbad\n"
    passwd += b" " * (-len(passwd) % 8)
    group = b"root:x:0:\nstaff:x:50:me,you\nme:x:1000:\n"
    for who in (b"me", b"0", b"1000:50", b"me:staff", b":", b"99999999999"):
        yield struct.pack("<HH", len(who), len(passwd) // 8) + who + passwd + group
    limits = (
        b"Limit  Soft Limit  Hard\nMax file locks            18446744073709551615 184467440737 \n"
    )
    limits += b" " * (-len(limits) % 8)
    yield struct.pack("<HH", 1, len(limits) // 8) + b"x" + limits


def link() -> Iterable[bytes]:
    for piece in (0, 1, 11, 254):
        yield bytes([piece]) + frame(2, b"ping") + frame(3, b"") * 3 + frame(33, bytes(40))
    yield b"\x05" + frame(1, b"ok") + b"\xff\xff\xff\x7f" + bytes(20)


def control() -> Iterable[bytes]:
    snapshot = b"\1" + struct.pack("<I", 1)
    yield struct.pack("<IHH", 9, 2, 0) + snapshot * 2
    yield struct.pack("<IHH", 9, 1, 1) + snapshot + name(b"/tmp") + name(b"/data")
    yield struct.pack("<IHH", 9, 1, 0) + b"\0" + name(b"/usr")
    yield struct.pack("<IHH", 9, 400, 64) + snapshot * 40


def files() -> Iterable[bytes]:
    path = b"\x21\0"
    yield b"".join(ask(op, path) for op in (DIR, DIGEST, STAT, READ, REMOVE))
    yield write(FIRST | LAST | PARENTS, b"data") + ask(READ, b"\x10\0\0\xc8")
    yield (
        write(FIRST, b"one")
        + write(0, b"two")
        + write(LAST | IN_PLACE, b"three")
        + write(LAST, b"")
    )
    yield write(FIRST | IN_PLACE, b"one", 2) + write(FIRST, b"", 3) + ask(REMOVE, b"\1\0\0")
    yield (
        ask(MKDIR, b"\xff\1\x2a\0") + ask(RENAME, path + b"\x0a\0") + ask(SYMLINK, path + b"\x30\0")
    )
    yield ask(CHMOD, b"\0" + path) + ask(CHOWN, b"\xff\5" + path) + ask(DIGEST, b"\0\0")
    yield ask(STAT, struct.pack("<I", 0) + text(b"/l"), RAW) + ask(DIR, text(b"/"), RAW)
    yield ask(READ, text(b"/d/f") + struct.pack("<QI", 0, 100), RAW)
    yield ask(REMOVE, struct.pack("<I", 1) + text(b"/d"), RAW) + ask(11, b"")


def tree() -> Iterable[bytes]:
    yield b"\0" + b"42 (a) b) (c) S 1 42 42 0 -1 4194560 0"
    yield b"\0" + b"1 () Z"
    yield b"\1" + b"Max file locks            8646911284551352321  8646911284551352321  locks\n"
    yield b"\1" + b"Max file locks            unlimited            unlimited            locks\n"


def region(
    kind: int, start: int, size: int, offset: int = 0, file: int = 0, fixed: int = 0
) -> bytes:
    return struct.pack("<QQQIIII", start, size, offset, kind, 3, file, fixed)


def frozen() -> Iterable[bytes]:
    stack, heap = region(3, 0x7FFF00000000, 8192), region(0, 0x10000000, 16384)
    page = region(1, 0x10000000, 4096, 8192, fixed=1)
    file = struct.pack("<QqqII", 100, 1, 2, 3, 0)
    yield b"\x02\0\0\0\x04" + stack + heap + b"Cx\0\0"
    yield (
        b"\x02\x01\x01\x01\x06"
        + heap
        + page
        + file
        + struct.pack("<Q", 0x10000FF8)
        + b"12345678"
        + b"Cx\0/a\0"
    )
    yield (
        b"\x02\x01\x01\x01\x06"
        + heap
        + page
        + file
        + struct.pack("<Q", 0x10000FF9)
        + b"12345678"
        + b"Cx\0/a\0"
    )
    yield b"\x01\x01\0\0\x04" + region(2, 0x20000000, 4096, file=0) + file + b"/a\0\0"
    yield b"\xff\xff\xff\xff\xff"


def asked() -> Iterable[bytes]:
    for words, variables, terms in (
        (
            b"python\0-m\0pytest\0",
            b"PATH=/bin\0LANG=C.UTF-8\0",
            b"CC.UTF-8\0D/bin\0Npython\0\0/file\0",
        ),
        (b"/bin/python\0-c\0pass\0", b"LC_ALL=C\0TZ=UTC\0", b"CC\0ETZ=UTC\0AHOME\0D/bin\0"),
        (b"python\0-\0", b"PYTHONHASHSEED=0\0PYTHONPATH=x\0", b"C\0E\0A\0"),
        (b"python\0-u\0x\0", b"LD_PRELOAD=x\0", b""),
        (b"\0", b"=\0PYTHONHASHSEED=\0", b"Ex\0"),
    ):
        told = variables.ljust(max(len(variables), len(terms)), b"\0")
        yield bytes([len(words)]) + words + told + terms.ljust(len(told), b"\0")


def main(folder: Path) -> None:
    for target in (wire, request, account, link, control, files, tree, frozen, asked):
        into = folder / target.__name__
        into.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(target()):
            (into / f"seed-{number}").write_bytes(seed)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
