"""Drives the spawner with nothing but the standard library, as a user who cannot read this checkout."""

import array
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

HEAD = struct.Struct("<IBBHI")
RESULT = struct.Struct("<iBBHQQQQQQQQQII")


def string(text: str) -> bytes:
    return struct.pack("<H", len(text)) + text.encode()


def text(value: str) -> bytes:
    return struct.pack("<I", len(value)) + value.encode()


def ask(line: socket.socket, op: int, body: bytes) -> tuple[int, bytes, list[int]]:
    line.send(struct.pack("<II", op, op) + body)
    while True:
        message, extra, _, _ = line.recvmsg(1 << 17, 100)
        if not message:
            sys.exit("the spawner is gone")
        said, tag = struct.unpack_from("<II", message)
        fds = array.array("i")
        for _, _, data in extra:
            fds.frombytes(data)
        if tag in {op, 0} and said != 67:
            return said, message[8:], list(fds)


def exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        got = sock.recv(size - len(data))
        if not got:
            raise EOFError
        data += got
    return data


def run(sock: socket.socket, script: str) -> dict[str, object]:
    argv = ("sh", "-c", script)
    body = struct.pack("<IIQHHHHHHI", 32, 20000, 1 << 20, 0, 0, len(argv), 1, 0, 0o22, 0)
    body += text("") + text("/") + b"".join(map(text, argv)) + text("PATH=/usr/bin:/bin")
    sock.sendall(HEAD.pack(len(body), 3, 0, 0, 1) + body)
    size, op, _, _, _ = HEAD.unpack(exactly(sock, HEAD.size))
    answer = exactly(sock, size)
    if op != 64:
        return {"op": op, "text": repr(answer)}
    code, *_, out, _ = RESULT.unpack_from(answer)
    return {"code": code, "text": answer[RESULT.size : RESULT.size + out].decode()}


def say(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")


def main(folder: Path, layer: str, scripts: list[str]) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    lease = folder / "lease"
    words = [str(folder / "excise-agent"), "spawner", "--control", str(theirs.fileno())]
    words += ["--driver", str(os.getpid()), "--lease", str(lease), "--first-id", "0"]
    words += os.environ.get("SPAWNER_WORDS", "").split()
    process = subprocess.Popen(words, pass_fds=(theirs.fileno(),), start_new_session=True)
    theirs.close()
    said, body, _ = ask(ours, 1, struct.pack("<IHH", 1, 1, 0) + b"\0" + string(layer))
    if said == 64:
        request = struct.pack("<IIQQQQII", 1, 1, 64 << 20, 0, 512 << 20, 40, 0, 0)
        said, body, fds = ask(ours, 3, request + string("rootless") + string(""))
    if said == 65:
        say({"failed": body[6:].decode(), "errno": struct.unpack_from("<I", body)[0]})
    else:
        with socket.socket(fileno=fds[0]) as agent:
            for script in scripts:
                say(run(agent, script))
    ours.close()
    say({"end": process.wait(), "lease": lease.exists()})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
