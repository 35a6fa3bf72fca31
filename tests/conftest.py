"""For all tests: properties are held to what they say, never to how long a busy machine takes to try them; and what
a module set in the environment goes with it, or another module's commands would do something else after it."""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("untimed")

_AT_FIRST = dict(os.environ)


@pytest.fixture(autouse=True, scope="module")
def _environment_as_at_first() -> Iterator[None]:
    yield
    now = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    assert now == {n: v for n, v in _AT_FIRST.items() if n != "PYTEST_CURRENT_TEST"}, (
        "a test or a fixture wider than its module left this behind"
    )


@pytest.fixture(scope="session")
def write_wheel() -> Callable[[Path], None]:
    """Writes a package `alpha` of one module with one script into a folder that serves as index."""
    return _wheel


def _wheel(folder: Path) -> None:
    """A wheel of one module with one script."""
    info = "alpha-1.0.dist-info"
    files = {
        "alpha.py": "def main():\n    import sys\n    print('told by', sys.prefix)\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: alpha\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nalpha = alpha:main\n",
    }
    lines = (f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    with zipfile.ZipFile(folder / "alpha-1.0-py3-none-any.whl", "w") as archive:
        for path, text in {
            **files,
            f"{info}/RECORD": "".join(lines) + f"{info}/RECORD,,\n",
        }.items():
            archive.writestr(path, text)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
