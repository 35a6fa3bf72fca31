"""The tools people use today, each doing what it does best: make a sandbox, run `true` in it, remove it."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bench.convention import Sample, interleaved
from bench.host.baseline import TRUE, Baseline
from excise.jail.blocking import Jail
from excise.types import Action, Spec

BOUNDS = {"bwrap": (1.5, 2), "crun": (2.5, 3), "runc": (8, 10), "docker run": (80, 150)}
GET = 'apt install bubblewrap crun runc; for docker: lab/docker up; eval "$(lab/docker env)"'
IMAGE = "excise-bench"
RUN = ("run", "--rm", "--network=none", IMAGE, "/bin/true")
NO_HYBRID = (
    *("unshare", "--mount", "--propagation", "private", "sh", "-c"),
    'umount -l /sys/fs/cgroup/unified 2>/dev/null; exec "$0" "$@"',
)
"""crun refuses hosts with cgroups of both versions: it is shown one."""

PAUSE_S = 0.02
"""Before each: what the one before left to be done behind its back falls into nobody's time."""

Rival = tuple[str, float, float, Sample, Sample]


def rivals(jail: Jail, spec: Spec) -> Iterator[Rival]:
    """Name, bounds, our times and theirs; each pair taken in one interleaved run, theirs timed in C."""
    true = Action(TRUE)

    def ours() -> int:
        time.sleep(PAUSE_S)
        start = time.perf_counter_ns()
        with jail.create(spec) as box:
            box.run(true)
        return time.perf_counter_ns() - start

    with tempfile.TemporaryDirectory(prefix="excise-bench-") as scratch:
        for name, command in _tools(Path(scratch)):
            with Baseline(command, within=NO_HYBRID if name == "crun" else ()) as theirs:

                def other(theirs: Baseline = theirs) -> int:
                    time.sleep(PAUSE_S)
                    return theirs.spawn_ns()

                rounds = 10 if name == "docker run" else 60
                taken = interleaved({"ours": ours, "theirs": other}, rounds=rounds)
            yield name, *BOUNDS[name], taken["ours"], taken["theirs"]


def _tools(scratch: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    found = {tool: shutil.which(tool) or "" for tool in ("bwrap", "crun", "runc", "docker")}
    missing = [tool for tool, place in found.items() if not place]
    if missing:
        sys.exit(f"to be compared with and not here: {', '.join(missing)}; {GET}")
    root = _root(scratch / "rootfs")
    for runtime in ("crun", "runc"):
        _configure(scratch / runtime, found[runtime], root)
    alone = "--unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp /bin/true"
    yield "bwrap", (found["bwrap"], *alone.split())
    run = ("run", "--bundle")
    yield "crun", (found["crun"], "--cgroup-manager=disabled", *run, str(scratch / "crun"), "bench")
    yield "runc", (found["runc"], *run, str(scratch / "runc"), "bench")
    with _docker_image(root):
        yield "docker run", (found["docker"], *RUN)


def docker_runs(count: int) -> float | None:
    """Microseconds until so many `docker run`, all at once, have ended; None where there is no engine."""
    docker = shutil.which("docker")
    asked = docker and subprocess.run([docker, "info"], capture_output=True, check=False)
    if not docker or not asked or asked.returncode != 0:
        return None
    with (
        tempfile.TemporaryDirectory(prefix="excise-bench-") as scratch,
        _docker_image(_root(Path(scratch, "rootfs"))),
    ):
        start = time.perf_counter_ns()
        running = [subprocess.Popen([docker, *RUN]) for _ in range(count)]
        failed = sum(each.wait() != 0 for each in running)
        took_us = (time.perf_counter_ns() - start) / 1000
    if failed:
        sys.exit(f"{failed} of {count} `docker run` failed")
    return took_us


def _root(root: Path) -> Path:
    """As little as there can be: a static program called true, which starts faster than the host's own."""
    for folder in ("bin", "proc", "dev", "sys"):
        (root / folder).mkdir(parents=True)
    code = "int main(void) { return 0; }\n"
    cc = ["cc", "-O2", "-static", "-x", "c", "-", "-o", str(root / "bin/true")]
    subprocess.run(cc, input=code, text=True, check=True)
    return root


def _configure(folder: Path, runtime: str, root: Path) -> None:
    """The runtime's own default configuration; without a view of cgroups, which runc cannot give here."""
    folder.mkdir()
    subprocess.run([runtime, "spec"], cwd=folder, check=True)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["process"] |= {"terminal": False, "args": ["/bin/true"]}
    config["root"] = {"path": str(root), "readonly": True}
    config["mounts"] = [each for each in config["mounts"] if each["type"] != "cgroup"]
    path.write_text(json.dumps(config))


@contextlib.contextmanager
def _docker_image(root: Path) -> Iterator[None]:
    pack = ["tar", "-C", str(root), "-c", "."]
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as tar:
        _docker("import", "-", IMAGE, stdin=tar.stdout)
    try:
        yield
    finally:
        _docker("image", "rm", "--force", IMAGE)


def _docker(*words: str, stdin: IO[bytes] | None = None) -> None:
    done = subprocess.run(
        ["docker", *words], stdin=stdin, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"docker {words[0]}: {done.stderr.strip()}; {GET}")
