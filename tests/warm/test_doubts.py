"""On any doubt the real interpreter is run, the answer is right all the same, and the reason is counted."""

from __future__ import annotations

import pytest

from .conftest import Make, Place

pytestmark = pytest.mark.timeout(300)

SITE = "/opt/environment/lib/python3.11/site-packages"
DOUBTS = {
    "flags": "python -u -c 'print(1)'",
    "variables": "PYTHONWARNINGS=error python -c 'print(1)'",
    "variables: a hash seed": "PYTHONHASHSEED=7 python -c 'print(1)'",
    "variables: a library": "LD_LIBRARY_PATH=/nowhere python -c 'print(1)'",
    "variables: coverage of processes": "COVERAGE_PROCESS_START=x python -c 'print(1)'",
    "locale": "LC_ALL=C python -c 'print(1)'",
    "elsewhere": "/usr/bin/python3 -c 'print(1)'",
    "elsewhere: a relative path": "cd /opt/environment; bin/python -c 'print(1)'",
    "elsewhere: another environment": "/usr/bin/python3 -m venv --without-pip /tmp/v >/dev/null; /tmp/v/bin/python -c 'print(1)'",
    "signals": "trap '' HUP; python -c 'print(1)'",
    "descriptors": "python -c 'print(1)' <&-",
    "failed": "PYTHONUNBUFFERED=1 python -c 'print(1)'",
    "failed: a folder that changes every start": "mkdir -p x; touch x/sitecustomize.py; PYTHONPATH=x python -c 'print(1)'",
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_doubt_is_counted_and_the_answer_is_right(both: tuple[Place, Place], doubt: str) -> None:
    _, warm = both
    seen, counted = warm.became(DOUBTS[doubt])
    assert (seen.exit_code, seen.stdout, seen.stderr) == (0, b"1\n", b"")
    assert counted.get(doubt.partition(":")[0]), counted


CHANGES = {
    "a package that was installed": f"mkdir {SITE}/new && echo 'x = 1' > {SITE}/new/__init__.py",
    "a package that was removed": f"rm -r {SITE}/execnet",
    "a path file": f"echo 'import sys' > {SITE}/new.pth",
    "the environment's settings": "echo 'x = y' >> /opt/environment/pyvenv.cfg",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_environment_is_served_no_more(make: Make, change: str) -> None:
    warm = make()
    assert warm.became("python -c 'print(1)'")[1] in ({"served": 1}, {"addresses": 1})
    warm.says(CHANGES[change])
    seen, counted = warm.became("python -c 'print(1)'")
    assert seen.stdout == b"1\n"
    assert counted == {"changed": 1}


def test_a_changed_module_is_run_anew(make: Make) -> None:
    """It was written to in its place, so the folder of packages looks as ever."""
    warm = make()
    warm.says(
        f"echo 'print(\"changed\")' >> {SITE}/pluggy/__init__.py; rm -rf {SITE}/pluggy/__pycache__"
    )
    assert warm.says("python -c 'import pluggy'") == "changed\n"
    assert "changed" in warm.says("python -m pytest --version")


DAMAGES = {
    "cut off": "truncate -s 100000 {0}",
    "empty": ": > {0}",
    "not there": "rm {0}",
    "something else": "head -c 1000000 /dev/urandom > {0}",
    "of another version": "printf '\\xff' | dd of={0} bs=1 seek=8 conv=notrunc status=none",
    "a link": "mv {0} /tmp/moved; ln -s /tmp/moved {0}",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_not_thawed(make: Make, damage: str) -> None:
    """The stand-in and all beside it, where a jail's root can write: as a folder of his own."""
    warm = make()
    warm.says("mkdir -p /tmp/w && cp -r /var/lib/excise/warm /tmp/w/home && touch /tmp/w/counts")
    stand_in = "/tmp/w/home/shim"
    place = "/var/lib/excise/warm"
    moved = f"""python - <<'END'
from pathlib import Path
shim = Path({stand_in!r})
shim.write_bytes(shim.read_bytes().replace({place!r}.encode() + b"\\0", b"/tmp/w/home\\0".ljust({len(place) + 1}, b"\\0"), 1))
END"""
    warm.says(moved)
    run = f"exec -a /opt/environment/bin/python {stand_in} -c 'print(1)'"
    assert warm.says(f"({run}); cat /tmp/w/counts") == "1\ns"
    warm.says(
        f"rm /tmp/w/counts; touch /tmp/w/counts; {DAMAGES[damage].format('/tmp/w/home/frozen')}"
    )
    assert warm.says(f"({run}); cat /tmp/w/counts") == "1\nu"


def test_an_interpreter_that_cannot_be_frozen_leaves_an_environment_as_without(make: Make) -> None:
    cold = make(warm="/bin/true")
    assert cold.says("python -c 'print(1)'") == "1\n"
    assert cold.told() == {}
    sandbox = cold.jail._boxes[cold.box]
    assert sandbox.origin.ground.warmth.why_not
