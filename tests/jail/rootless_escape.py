"""Runs as a user without root: makes attempts and sets off bombs in jails of his own, and says what came of each.

python rootless_escape.py FOLDER, with on stdin: {"attempts": {name: argument}, "bombs": {name: script}}
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from excise.errors import SandboxGone
from excise.jail.blocking import Jail, Sandbox
from excise.types import MIB, Action, Limits, Spec

SMALL = Spec(limits=Limits(cpus=None, memory_bytes=512 * MIB, pids=64, disk_bytes=32 * MIB))


def say(kind: str, name: str, what: object) -> None:
    sys.stdout.write(json.dumps([kind, name, what]) + "\n")


def attempt(box: Sandbox, name: str, argument: str) -> None:
    seen = box.run(Action(("/tmp/attempts", name, argument), timeout_s=20))
    say("attempt", name, seen.text)


def explode(jail: Jail, neighbour: Sandbox, name: str, script: str) -> None:
    with jail.create(SMALL) as box:
        try:
            seen = box.run(Action(("bash", "-c", script), timeout_s=1, output_limit_bytes=MIB))
        except SandboxGone:
            say("bomb", name, "the jail is gone")
        else:
            box.reset()
            kept = len(seen.stdout) <= MIB and box.run(Action(("true",))).ok
            say("bomb", name, "held" if kept else seen.text[-200:])
    alive = neighbour.read("canary") == b"alive" and neighbour.run(Action.shell("exec true")).ok
    say("neighbour", name, alive)


def main(folder: Path) -> None:
    asked = json.load(sys.stdin)
    with Jail(folder / "store", leases=folder / "leases") as jail, jail.create(SMALL) as neighbour:
        neighbour.write("canary", b"alive")
        with jail.create() as box:
            box.write("/tmp/attempts", (folder / "attempts").read_bytes())
            box.run(Action(("chmod", "755", "/tmp/attempts")))
            for name, argument in asked["attempts"].items():
                attempt(box, name, argument)
        for name, script in asked["bombs"].items():
            explode(jail, neighbour, name, script)
    say("end", "leases", [each.name for each in (folder / "leases").iterdir()])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
