"""The README's Python, run as it stands but for the engine and the image that it names."""

from __future__ import annotations

import asyncio
import re
import textwrap
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
HERE = {
    '"docker", pull="missing"': '"local"',
    'image="python:3.11"': "",
    '"python -V"': '"echo it ran"',
}


def test_the_readmes_six_lines_run(capsys):
    code = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[1]
    for there, here in HERE.items():
        assert code.count(there) == 1
        code = code.replace(there, here)
    assert len(code.splitlines()) == 6
    scope = {}
    exec(f"async def main():\n{textwrap.indent(code, '    ')}", scope)
    asyncio.run(scope["main"]())
    assert capsys.readouterr().out == "0 it ran\n\n"
