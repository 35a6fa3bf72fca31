"""The agent's half of the codec, written from protocol.h and from nothing in the package but its numbers."""

import struct
from dataclasses import dataclass

from excise.agent import wire
from excise.agent.answers import Result


def frame(op, id_, body=b"", flags=0):
    return struct.pack("<IBBHI", len(body), op, flags, 0, id_) + body


def string(value):
    data = value.encode("utf-8", "surrogateescape")
    return struct.pack("<I", len(data)) + data


def result_body(result):
    *numbers, out, err = result
    return struct.pack("<iBBHQQQQQQQQQII", *numbers, len(out), len(err)) + out + err


def result(id_, code=0, stdout=b"", stderr=b"", end=wire.END_EXIT, fault=wire.FAULT_NONE):
    told = Result(
        code, end, fault, 0, 10, 20, 30, 40, 1, 2, 3, len(stdout), len(stderr), stdout, stderr
    )
    return frame(wire.OP_RESULT, id_, result_body(told))


def error(id_, number, message=""):
    return frame(wire.OP_ERROR, id_, struct.pack("<I", number) + string(message))


def entry_body(entry):
    numbers = struct.pack("<IIIQqI", *entry[:6])
    return numbers + string(entry.name) + string(entry.target)


def entries_body(entries):
    return struct.pack("<I", len(entries)) + b"".join(map(entry_body, entries))


@dataclass
class Asked:
    """A request for a command, taken apart."""

    flags: int
    timeout_ms: int
    output_limit: int
    rows: int
    columns: int
    umask: int
    user: str
    cwd: str
    argv: tuple[str, ...]
    env: tuple[str, ...]
    limits: tuple[tuple[int, int, int], ...]
    stdin: bytes


class Reader:
    """Takes a request's body apart; what does not add up fails the test."""

    def __init__(self, body):
        self.body = body
        self.at = 0

    def numbers(self, layout):
        found = struct.unpack_from("<" + layout, self.body, self.at)
        self.at += struct.calcsize("<" + layout)
        return found

    def text(self):
        (length,) = self.numbers("I")
        return self.bytes(length).decode("utf-8", "surrogateescape")

    def bytes(self, length):
        assert self.at + length <= len(self.body)
        found = self.body[self.at : self.at + length]
        self.at += length
        return found

    def rest(self):
        return self.bytes(len(self.body) - self.at)


def asked(body):
    reader = Reader(body)
    flags, timeout_ms, output_limit, rows, columns, argc, envc, limits, umask, stdin_bytes = (
        reader.numbers("IIQHHHHHHI")
    )
    user, cwd = reader.text(), reader.text()
    argv = tuple(reader.text() for _ in range(argc))
    env = tuple(reader.text() for _ in range(envc))
    limited = tuple(reader.numbers("IQQ") for _ in range(limits))
    stdin = reader.rest()
    assert len(stdin) == stdin_bytes
    return Asked(
        flags, timeout_ms, output_limit, rows, columns, umask, user, cwd, argv, env, limited, stdin
    )
