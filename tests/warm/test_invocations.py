"""Whatever a program can learn of how it was started, it learns the same in a thawed interpreter."""

from __future__ import annotations

import itertools
import re

import pytest

from excise.types import Observation

from .conftest import Make, Place

pytestmark = pytest.mark.timeout(300)

# Limit 10 is what the agent tells actions apart by.
ASKED = r"""
import gc, locale, os, resource, signal, sys, threading, time
print("argv", sys.argv, sys.orig_argv)
print("path", sys.path)
print("flags", sys.flags, sys.warnoptions, sys._xoptions)
print("executable", sys.executable, sys._base_executable, sys.prefix, sys.base_prefix, sys.exec_prefix)
print("main", sorted((k, str(v)) for k, v in vars(sys.modules["__main__"]).items() if k.startswith("__") and "uiltins" not in k and k not in ("__loader__", "__spec__")))
print("spec", __spec__ and (__spec__.name, __spec__.origin, __spec__.parent, __spec__.cached, __spec__.has_location))
print("loader", type(__loader__), getattr(__loader__, "name", None), getattr(__loader__, "path", None))
print("streams", [(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.isatty(), s.newlines, s.buffer.raw.mode, s.buffer.raw.closefd) for s in (sys.stdin, sys.stdout, sys.stderr)])
print("same", sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__)
print("environ", list(os.environ.items()), os.environb == {os.fsencode(k): os.fsencode(v) for k, v in os.environ.items()})
print("cwd", os.getcwd(), oct(os.umask(0o22)))
print("ids", os.getuid(), os.getgid(), os.getgroups(), os.getsid(0) == os.getppid() or os.getpgrp() == os.getpgid(0))
print("signals", {s: str(signal.getsignal(s)) for s in signal.valid_signals()}, signal.pthread_sigmask(signal.SIG_BLOCK, []))
print("rlimits", [resource.getrlimit(n) for n in range(16) if n != 10])
print("locale", locale.setlocale(locale.LC_ALL), locale.getpreferredencoding(), sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
print("time", time.tzname, time.timezone, time.daylight)
print("threads", threading.active_count(), threading.main_thread().native_id == os.getpid(), threading.current_thread() is threading.main_thread())
print("limits", sys.getrecursionlimit(), sys.getswitchinterval(), gc.isenabled(), gc.get_threshold())
print("hooks", sys.excepthook is sys.__excepthook__, sys.gettrace(), sys.getprofile(), len(sys.meta_path), len(sys.path_hooks))
print("depth", len([f for f in iter(lambda f=[sys._getframe()]: f.__setitem__(0, f[0].f_back) or f[0], None)]))
print("modules", sorted(sys.modules))
print("open", sorted(os.listdir("/proc/self/fd")))
print("process", os.readlink("/proc/self/exe"), open("/proc/self/comm").read(), open("/proc/self/cmdline").read())
print("dont_write", sys.dont_write_bytecode, sys.pycache_prefix)
print("stdin", sys.stdin.read())
"""

STARTS = {
    "code": f"python -c '{ASKED}' a 'b c' --d",
    "a script": "python asked.py a 'b c'",
    "a script by its path": "/opt/environment/bin/python3 /work/asked.py",
    "a script beside": "cd /tmp; python ../work/asked.py",
    "a script below": "python ./asked.py x",
    "a module": "python -m asked a -m b",
    "a module in a package": "python -m package.asked a",
    "a package": "python -m package a",
    "stdin": "python - a b < asked.py",
    "stdin without a dash": "python < asked.py",
    "another name": "python3.11 asked.py",
    "a program": "./program a b",
    "an executable of the environment": "asked-tool a b",
    "a variable": "FOO=bar BAZ= python asked.py",
    "a path": "PYTHONPATH=src:other python asked.py",
    "a hash seed": "PYTHONHASHSEED=0 python asked.py",
    "no bytecode": "PYTHONDONTWRITEBYTECODE=1 python asked.py",
    "a time zone": "TZ=Asia/Tokyo python asked.py",
    "all of the locale": "LC_ALL=C.UTF-8 python asked.py",
    "a umask": "umask 077; python asked.py",
    "limits": "ulimit -n 100; ulimit -s 4096; ulimit -t 50; python asked.py",
    "another user": "su nobody -s /bin/sh -c 'PATH=/opt/environment/bin:$PATH LANG=C.UTF-8 python asked.py'",
    "an open file": "exec 7</dev/null; python asked.py",
    "output to a file": "python asked.py > /tmp/out 2>&1; cat /tmp/out",
    "nothing to read": "python asked.py < /dev/null",
    "exec": "exec python asked.py",
    "a pipe": "cat asked.py | python - | cat",
}

ENDS = {
    "an exit code": "python -c 'import sys; sys.exit(3)'; echo $?",
    "a message": "python -c 'import sys; sys.exit(\"no\")'; echo $?",
    "an exception": "python -c 'import json; json.loads(\"{\")'; echo $?",
    "an exception in a script": "python raises.py; echo $?",
    "an exception in a module": "python -m raises; echo $?",
    "a module that is not there": "python -m nothing.here; echo $?",
    "a script that is not there": "python nothing.py; echo $?",
    "a syntax error": "python -c 'a b'; echo $?",
    "an import that fails": "python -c 'import nothing_here'; echo $?",
    "os._exit": "python -c 'import os; os._exit(9)'; echo $?",
    "a kill": "python -c 'import os; os.kill(os.getpid(), 9)'; echo $?",
    "a termination": "python -c 'import os; os.kill(os.getpid(), 15)'; echo $?",
    "an interrupt": "python -c 'import os, time; os.kill(os.getpid(), 2); time.sleep(1)'; echo $?",
    "an abort": "python -c 'import os; os.abort()'; echo $?",
    "atexit": "python -c 'import atexit; atexit.register(print, \"bye\"); print(1)'",
    "a finalizer": "python -c 'import weakref\nclass A: pass\na = A(); weakref.finalize(a, print, 2)'",
    "a thread at the end": "python -c 'import threading, time; threading.Thread(target=lambda: (time.sleep(.1), print(3))).start()'",
    "a closed pipe": "python -c 'print(\"x\" * 10**6)' | head -c 3; echo ${PIPESTATUS[0]}",
    "a signal handler": "python -c 'import os, signal; signal.signal(10, lambda *a: print(a[0])); os.kill(os.getpid(), 10)'",
    "a deep recursion": "python -c 'f = lambda n: n and f(n - 1)\nprint(f(900))\ntry: f(10**6)\nexcept RecursionError: print(4)'",
    "subprocess": 'python -c \'import subprocess, sys; print(subprocess.run([sys.executable, "-c", "print(5)"], capture_output=True))\'',
    "fork": "python -c 'import os\nif os.fork() == 0: print(6); raise SystemExit(4)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))'",
    "multiprocessing by fork": "python pools.py fork",
    "multiprocessing by spawn": "python pools.py spawn",
    "multiprocessing by a server": "python pools.py forkserver",
    "a thread pool": "python -c 'from concurrent.futures import ThreadPoolExecutor as T\nwith T(4) as t: print(sum(t.map(int, range(99))))'",
    "asyncio": "python -c 'import asyncio; print(asyncio.run(asyncio.sleep(.01, 7)))'",
    "a set of strings": "PYTHONHASHSEED=0 python -c 'print(set(map(str, range(50))), hash(\"a\"))'",
    "warnings": 'python -c \'import warnings; warnings.warn("w"); warnings.warn("d", DeprecationWarning)\'',
    "an attribute of a package that nobody imported": 'python -c \'import xml; print(hasattr(xml, "etree")); import xml.etree; print(hasattr(xml.etree, "ElementTree"))\'',
    "the modules that an import brings": "python -c 'import sys; a = set(sys.modules); import json; print(sorted(set(sys.modules) - a))'",
    "the modules that pytest brings": "python -c 'import sys; a = set(sys.modules); import pytest; print(sorted(set(sys.modules) - a))'",
    "a module of one's own in place of a library's": "cd shadow; python -c 'import iniconfig, json; print(iniconfig.mine, json.__file__)'",
    "a large heap": "python -c 'print(sum(len(bytes(n)) for n in range(0, 10**6, 999)), len([object() for _ in range(10**6)]))'",
    "an environment changed": 'python -c \'import os, subprocess; os.environ["A"] = "1"; del os.environ["HOME"]; subprocess.run(["env"])\' | sort',
}

FILES = {
    "asked.py": ASKED,
    "package/__init__.py": "",
    "package/__main__.py": ASKED,
    "package/asked.py": ASKED,
    "program": "#!/opt/environment/bin/python\n" + ASKED,
    "/opt/environment/bin/asked-tool": "#!/opt/environment/bin/python3\n" + ASKED,
    "raises.py": "def f():\n    import nothing_at_all\n\nf()\n",
    "src/one.py": "",
    "other/two.py": "",
    "shadow/iniconfig.py": "mine = 1\n",
    "pools.py": "import multiprocessing as m, sys\ndef f(n): return n * n\nif __name__ == '__main__':\n"
    "    with m.get_context(sys.argv[1]).Pool(2) as p: print(p.map(f, range(5)))\n",
}


@pytest.fixture(scope="module")
def laid(both: tuple[Place, Place]) -> tuple[Place, Place]:
    for place in both:
        place.says("mkdir -p package src other shadow")
        for name, text in FILES.items():
            place.write(name, text)
        place.says("chmod 755 program; chmod 755 /opt/environment/bin/asked-tool")
    return both


def told(seen: Observation) -> list[str]:
    """Its lines, without the number that a shell tells of a process that was killed."""
    text = re.sub(r"(line \d+: +)\d+ ", r"\1", seen.stdout.decode() + seen.stderr.decode())
    return [f"exit code {seen.exit_code}", *text.splitlines()]


def others(seen: Observation, expected: Observation) -> list[tuple[str, str]]:
    """The lines that differ, theirs first."""
    pairs = itertools.zip_longest(told(expected), told(seen), fillvalue="")
    return [(one, other) for one, other in pairs if one != other]


@pytest.mark.parametrize("start", STARTS)
def test_a_program_learns_the_same_of_its_start(laid: tuple[Place, Place], start: str) -> None:
    cold, warm = laid
    seen, counted = warm.became(STARTS[start], stdin=b"typed")
    assert others(seen, cold.sh(STARTS[start], stdin=b"typed")) == []
    assert counted in ({"served": 1}, {"addresses": 1})


@pytest.mark.parametrize("end", ENDS)
def test_a_program_ends_the_same(laid: tuple[Place, Place], end: str) -> None:
    cold, warm = laid
    seen, counted = warm.became(ENDS[end])
    assert others(seen, cold.sh(ENDS[end])) == []
    assert counted.get("served") or counted.get("addresses"), counted


def test_nearly_every_run_is_served(both: tuple[Place, Place]) -> None:
    """The kernel chooses addresses by chance, and now and then those that are needed."""
    _, warm = both
    seen, counted = warm.became("for n in $(seq 50); do python -c 'import json'; done")
    assert seen.ok
    assert sum(counted.values()) == 50
    assert counted["served"] >= 47
    assert set(counted) <= {"served", "addresses"}


def test_a_run_is_of_the_shell_that_started_it(make: Make) -> None:
    """Parent, group, session and job control are those of any program."""
    warm = make()
    script = "import os; print(os.getppid(), os.getpgrp(), os.getsid(0))"
    said = warm.says(
        f"echo $$ $(ps -o pgid=,sid= -p $$ 2>/dev/null || cut -d' ' -f5,6 /proc/$$/stat); python -c '{script}'; true"
    )
    shell, run = said.splitlines()
    assert shell.split() == run.split()


def test_killing_a_run_ends_it(make: Make) -> None:
    warm = make()
    said = warm.says(
        "python -c 'import time; print(1, flush=True); time.sleep(60)' & sleep 0.3; kill -9 $!; wait $!; echo $?; "
        "timeout 0.3 python -c 'import time; time.sleep(60)'; echo $?; ls /proc | grep -c '^[0-9]'"
    )
    assert "137" in said.split()
    assert "124" in said.split()
