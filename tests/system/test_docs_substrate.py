"""The page that shows how to add a substrate is itself run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "add-a-substrate.md"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_toy_on_the_page_conforms_as_the_page_says(tmp_path):
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    toy = code[: code.index("class TestToy")]
    assert len(toy.splitlines()) < 60
    (tmp_path / "test_toy.py").write_text(code)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--timeout=120", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    listed = code.count('": "')
    assert f" {listed} xfailed" in ran.stdout, ran.stdout[-500:]
