"""The numbers of `native/protocol.h` under the same names; a test holds the two together."""

from __future__ import annotations

from struct import Struct
from typing import Final

PROTOCOL_VERSION: Final = 1
HEAD_BYTES: Final = 12
REQUEST_LIMIT: Final = 8 << 20
CHUNK_LIMIT: Final = 256 << 10
LOOK_MOST: Final = 1024
LINE_BYTES: Final = 3072
LINE_TELL_BYTES: Final = 1024
CREDIT_BYTES: Final = 1 << 20

OP_HELLO: Final = 1
OP_PING: Final = 2
OP_EXEC: Final = 3
OP_STDIN: Final = 4
OP_STDIN_END: Final = 5
OP_SIGNAL: Final = 6
OP_RESIZE: Final = 7
OP_CREDIT: Final = 8
OP_LIST: Final = 9
OP_ATTACH: Final = 10
OP_DETACH: Final = 11
OP_SHELL_OPEN: Final = 12
OP_SHELL_RUN: Final = 13
OP_SHELL_CLOSE: Final = 14
OP_QUIET: Final = 15
OP_PROCESSES: Final = 16
OP_ENVIRONMENT: Final = 17
OP_THAW: Final = 18

OP_READ: Final = 32
OP_WRITE: Final = 33
OP_STAT: Final = 34
OP_DIR: Final = 35
OP_MKDIR: Final = 36
OP_REMOVE: Final = 37
OP_RENAME: Final = 38
OP_SYMLINK: Final = 39
OP_CHMOD: Final = 40
OP_CHOWN: Final = 41
OP_DIGEST: Final = 42
OP_LOOK: Final = 43

OP_RESULT: Final = 64
OP_OUTPUT: Final = 65
OP_PONG: Final = 66
OP_DONE: Final = 67
OP_ERROR: Final = 68
OP_DATA: Final = 69
OP_ENTRY: Final = 70
OP_ENTRIES: Final = 71
OP_ACTIONS: Final = 72
OP_PROCESS_LIST: Final = 73
OP_TAKEN: Final = 74

EXEC_STREAM: Final = 1
EXEC_PTY: Final = 2
EXEC_BACKGROUND: Final = 4
EXEC_STDIN_OPEN: Final = 8
EXEC_STDIN_KEPT: Final = 16
EXEC_MERGE: Final = 32
EXEC_ONE_SHOT: Final = 64

END_EXIT: Final = 0
END_SIGNAL: Final = 1
END_TIMEOUT: Final = 2
END_NOT_STARTED: Final = 3

FAULT_NONE: Final = 0
FAULT_MISSING_PROGRAM: Final = 1
FAULT_NOT_EXECUTABLE: Final = 2
FAULT_MISSING_CWD: Final = 3
FAULT_NO_USER: Final = 4
FAULT_NO_ROOM: Final = 5

WRITE_FIRST: Final = 1
WRITE_LAST: Final = 2
WRITE_PARENTS: Final = 4
WRITE_IN_PLACE: Final = 8

STDOUT: Final = 1
STDERR: Final = 2
"""The flags of an OP_OUTPUT frame."""

ANSWERS: Final = frozenset({OP_HELLO, *range(OP_RESULT, OP_TAKEN + 1)})

HEAD: Final = Struct("<IBBHI")
"""Length of the body, op, flags, zero, id."""

EXEC_HEAD: Final = Struct("<IIQHHHHHHI")
"""Flags, timeout_ms, output limit, rows, columns, argc, envc, limits, umask, bytes of stdin."""

EXEC_LIMIT: Final = Struct("<IQQ")
"""Resource, soft, hard."""

RESULT_HEAD: Final = Struct("<iBBHQQQQQQQQQII")
"""Code, end, fault, errno, four stamps, user, system, peak, two totals, two lengths."""

WRITE_HEAD: Final = Struct("<IIII")
"""Flags, mode, uid, gid."""

U16_PAIR: Final = Struct("<HH")
U32: Final = Struct("<I")
U32_PAIR: Final = Struct("<II")
U64: Final = Struct("<Q")
