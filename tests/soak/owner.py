"""One owner of jails that does everything there is to do with them, in several threads, until somebody kills it.

python owner.py LEASES STORE SEED [SECONDS]: with SECONDS it ends by itself, and reports what it did as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from excise.errors import SandboxGone, SubstrateError
from excise.jail.blocking import Jail, Sandbox
from excise.types import MIB, Action, Limits, Spec

SPEC = Spec(limits=Limits(cpus=None, memory_bytes=256 * MIB, pids=64, disk_bytes=32 * MIB))
THREADS = 3
INJECTED = ("kill -9 $$", "sleep 30", "head -c 1G /dev/zero | tail", ":(){ :|:& };:", "exit 3")


class Owner:
    """Every sandbox carries a canary: its own name, in a file, that no other sandbox may ever show."""

    def __init__(self, jail: Jail, seed: int) -> None:
        self.jail = jail
        self.dice = random.Random(seed)
        self.mine: list[tuple[Sandbox, str]] = []
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []

    def step(self) -> None:
        verbs = [self.create, self.act, self.act, self.reset, self.fork, self.destroy, self.inject]
        verb = self.dice.choice(verbs) if self.mine else self.create
        try:
            verb()
            self.done[verb.__name__] += 1
        except SandboxGone:  # killed by an injected failure: that is what the error is for
            self.done["gone"] += 1
            self.destroy()
        except SubstrateError as error:
            if not error.retryable:
                self.wrong.append(str(error))
            self.done["retry"] += 1

    def create(self) -> None:
        if len(self.mine) < 4:
            self.adopt(self.jail.create(SPEC))

    def adopt(self, box: Sandbox) -> None:
        canary = f"{box.name}-{self.dice.random()}"
        box.write("canary", canary.encode())
        self.mine.append((box, canary))

    def act(self) -> None:
        box, canary = self.dice.choice(self.mine)
        seen = box.run(Action.shell("cat canary && echo $RANDOM > scratch", timeout_s=30))
        full = not seen.ok and seen.stdout == b""  # a fork bomb of ours still has all its places
        if seen.stdout.decode() != canary and not full:
            self.wrong.append(f"cross-talk: {seen.stdout!r} is not {canary!r}")

    def reset(self) -> None:
        at = self.dice.randrange(len(self.mine))
        box, _ = self.mine.pop(at)
        box.reset()
        if box.run(Action.shell("echo *")).stdout != b"*\n":
            self.wrong.append("a reset sandbox still has what was written")
        self.adopt(box)

    def fork(self) -> None:
        box, canary = self.dice.choice(self.mine)
        for copy in box.fork(2):
            if copy.read("canary").decode() != canary:
                self.wrong.append("a fork has not the files of its parent")
            copy.destroy()
        if box.read("canary").decode() != canary:
            self.wrong.append("a parent lost its files in a fork")

    def destroy(self) -> None:
        box, _ = self.mine.pop(self.dice.randrange(len(self.mine)))
        box.destroy()

    def inject(self) -> None:
        box, _ = self.dice.choice(self.mine)
        box.run(Action.shell(self.dice.choice(INJECTED), timeout_s=0.3))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(leases: str, store: str, seed: str, seconds: str = "") -> int:
    until = time.monotonic() + float(seconds) if seconds else None
    with Jail(Path(store), leases=Path(leases)) as jail:
        owners = [Owner(jail, int(seed) * 100 + n) for n in range(THREADS)]

        def live(owner: Owner) -> None:
            while until is None or time.monotonic() < until:
                owner.step()
            while owner.mine:
                owner.destroy()

        threads = [threading.Thread(target=live, args=(owner,)) for owner in owners]
        for thread in threads:
            thread.start()
        say("up")
        for thread in threads:
            thread.join()
    done = sum((owner.done for owner in owners), Counter())
    wrong = [text for owner in owners for text in owner.wrong]
    say(json.dumps({"done": done, "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
