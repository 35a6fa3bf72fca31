"""The spawner without root: what works with one's own id alone, and what is said where it does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.agent.binary import agent_binary

from .conftest import refuse

SOMEBODY = 1000
DRIVER = Path(__file__).with_name("rootless_driver.py")


@pytest.fixture
def place(layer: Path) -> Iterator[Path]:
    """A folder of the user's own that he can get at, with the program and a layer that belongs to him."""
    if os.geteuid() != 0:
        refuse("needs root, to become somebody else")
    if not Path("/usr/bin/python3").exists():
        refuse("needs a Python that everybody can run, at /usr/bin/python3")
    folder = Path("/var/tmp") / f"excise-rootless-{os.getpid()}"
    folder.mkdir()
    shutil.copytree(layer, folder / "layer", symlinks=True)
    shutil.copy2(agent_binary(), folder / "excise-agent")
    shutil.copy2(DRIVER, folder / "driver.py")
    (folder / "lease/scratch").mkdir(parents=True)
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(at, name), SOMEBODY, SOMEBODY, follow_symlinks=False)
    os.chown(folder, SOMEBODY, SOMEBODY)
    yield folder
    shutil.rmtree(folder)


def drive(
    folder: Path, layer: Path, *scripts: str, more: str = "", before: str = ""
) -> list[dict[str, object]]:
    who = f"setpriv --reuid={SOMEBODY} --regid={SOMEBODY} --clear-groups"
    words = ["unshare", "-m", "sh", "-c", f'{before} exec {who} /usr/bin/python3 "$@"', "sh"]
    words += [str(folder / "driver.py"), str(folder), str(layer), *scripts]
    env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "SPAWNER_WORDS": more}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env, timeout=50)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_somebody_without_root_can_make_a_jail_of_his_own_files(place: Path) -> None:
    answers = drive(
        place, place / "layer",
        "id -u; cat /proc/self/uid_map | tr -s ' '", "echo new > /etc/new; rm /etc/hosts; ls /etc/hosts /etc/new 2>/dev/null",
        "ls /proc | grep -c '^[0-9]'", "umount /proc || echo refused", "cat /proc/self/oom_score_adj",
    )  # fmt: skip
    assert answers[0]["text"] == "0\n 0 0 1\n"
    assert answers[1]["text"] == "/etc/new\n"
    assert int(str(answers[2]["text"])) < 8
    assert str(answers[3]["text"]).endswith("refused\n")
    assert answers[4]["text"] == "300\n"
    assert (place / "layer/etc/hosts").exists()
    assert answers[-1] == {"end": 0, "lease": False}


def test_without_cgroups_processes_are_limited_by_what_the_kernel_has_else(place: Path) -> None:
    answers = drive(
        place,
        place / "layer",
        "bash -c 'ulimit -u; ulimit -v'",
        "for i in $(seq 60); do sleep 9 & done; echo all",
    )
    assert answers[0]["text"] == "40\n524288\n"
    assert "all" not in str(answers[1]["text"]) or "fork" in str(answers[1]["text"]).lower()


def test_a_layer_of_somebody_else_is_refused_in_words(place: Path, layer: Path) -> None:
    other = place / "layer"
    os.chown(other, 0, 0)
    other.chmod(0o755)
    answers = drive(place, other, "true")
    assert answers[0]["failed"] == "upper"


def test_somebody_with_subordinate_ids_has_more_than_one_user_inside(place: Path) -> None:
    if not all(map(shutil.which, ("newuidmap", "newgidmap"))):
        refuse("needs newuidmap (Debian: apt install uidmap)", "uidmap")
    tables = ("/etc/subuid", "/etc/subgid", "/etc/passwd", "/etc/group")
    before = ""
    for table in tables:
        mine = place / table.rpartition("/")[2]
        if not Path(table).exists():
            refuse(f"needs a file {table}", "uidmap")
        row = (
            "somebody:300000:65536"
            if "sub" in table
            else f"somebody:x:{SOMEBODY}:{SOMEBODY}::/:/bin/sh"
        )
        mine.write_text(
            f"{row}\n" if "passwd" not in table else f"{row}\nroot:x:0:0::/root:/bin/sh\n"
        )
        before += f"mount --bind {mine} {table} && "
    answers = drive(
        place, place / "layer", "tr -s ' ' < /proc/self/uid_map",
        "touch /root/x && chown 5:7 /root/x && stat -c %u:%g /root/x /etc/passwd",
        more="--subordinate 300000:300000", before=before,
    )  # fmt: skip
    assert answers[0]["text"] == " 0 0 1\n 1 1 65535\n"
    assert answers[1]["text"] == "5:7\n0:0\n"
    assert answers[-1] == {"end": 0, "lease": False}
