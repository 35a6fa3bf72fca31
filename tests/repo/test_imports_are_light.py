"""Start-up is held as counts of imported modules: a wall time would depend on the machine."""

from __future__ import annotations

import json
import subprocess
import sys

MODULES_OF_IMPORT = 3
MODULES_OF_HELP = 180
HEAVY = {"numpy", "scipy", "matplotlib", "pyarrow", "aiodocker", "aiohttp", "msgspec"}


def modules_after(code: str) -> set[str]:
    report = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    code = f"import sys\nbefore = set(sys.modules)\n{code}\n{report}"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(out.stdout.splitlines()[-1]))


def test_import_excise_stays_quick() -> None:
    bare = modules_after("pass")
    mine = modules_after("import excise") - bare
    assert len(mine) <= MODULES_OF_IMPORT, sorted(mine)
    assert "asyncio" not in mine


def test_help_stays_quick() -> None:
    code = "from excise.cli import main\nmain(['--help'])"
    mine = modules_after(code) - modules_after("pass")
    assert len(mine) <= MODULES_OF_HELP, len(mine)
    assert not {m.split(".")[0] for m in mine} & HEAVY


def test_every_public_name_can_be_imported() -> None:
    modules_after("import excise\nfor n in excise.__all__: getattr(excise, n)")
