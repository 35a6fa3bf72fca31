"""A service as a process of its own, for benchmarks: started, spoken to, and gone without a trace."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

MAIN = "from excise.cli import main; raise SystemExit(main())"


class Served:
    """`with Served("--substrate", "jail") as served: served.url, served.key`."""

    def __init__(self, *words: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="excise-bench-")
        command = [sys.executable, "-c", MAIN, "serve", "--port", "0", "--log", "error"]
        self.process = subprocess.Popen(
            [*command, "--state", f"{self._folder}/state", "--drain", "0.1", *words],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if line.startswith("# ready"):
                break
        found = re.search(r"EXCISE_URL=(\S+) EXCISE_API_KEY=(\S+)", said)
        if found is None:
            self._end()
            sys.exit("the service did not start")
        self.url, self.key = found.groups()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def resident_kib(self) -> int:
        """Its own memory, without what it shares with others."""
        lines = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()
        found = {words[0]: int(words[1]) for words in map(str.split, lines[1:])}
        return found["Private_Clean:"] + found["Private_Dirty:"]

    def _end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)
