"""The test files of real packages, from their source archives, both ways: the same words and the same exit code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from excise.tasks import fetch
from excise.tasks.descriptor import Release

from .conftest import Place

pytestmark = pytest.mark.timeout(300)

PYTEST = "python -m pytest -p no:cacheprovider"
PACKAGES = {
    "attrs": ("25.3.0", "75d7cefc7fb576747b2c81b4442d4d4a1ce0900973527c011d1030fd3bf4af1b", "src", (
        f"{PYTEST} -q tests/test_cmp.py tests/test_filters.py tests/test_setattr.py tests/test_hooks.py",
        f"{PYTEST} -v tests/test_abc.py tests/test_config.py",
        f"{PYTEST} -q --cov=attr --cov-report=term-missing tests/test_filters.py",
        f"{PYTEST} -q -n 2 tests/test_cmp.py",
        "coverage run --rcfile=/dev/null --source=src/attr -m pytest -q tests/test_abc.py; coverage report --rcfile=/dev/null",
    )),
    "pluggy": ("1.6.0", "7dcc130b76258d33b90f61b658791dede3486c3e6bfb003ee5c9bfb396dd22f3", "src", (
        f"{PYTEST} -q testing/test_hookcaller.py testing/test_multicall.py",
        "python -c 'import pluggy, sys; print(pluggy.__file__)'",
    )),
    "packaging": ("25.0", "d443872c98d677bf60f6a1f2f8c1cb748e8fe762d2bf9d3148b5599295b0fc4f", "src", (
        f"{PYTEST} -q tests/test_utils.py tests/test_structures.py tests/test_elffile.py",
    )),
    "itsdangerous": ("2.2.0", "e0050c0b7da1eea53ffaf149c0cfbb5c6e2e2b69c4bef22c81fa6eb73e5f6173", "src", (
        f"{PYTEST} -q tests/test_itsdangerous/test_encoding.py tests/test_itsdangerous/test_signer.py",
    )),
    "sqlparse": ("0.5.3", "09f67787f56a0b16ecdbde1bfc7f5d9c3371ca683cfeaa8e6ff60b4807ec9272", ".", (
        "python -m pytest -q tests/test_tokenize.py tests/test_cli.py",
        "python -m sqlparse --help",
    )),
    "cachetools": ("5.5.2", "1a661caa9175d26759571b2e19580f9d6393969e5dfca11fdb1f947a23e640d4", "src", (
        "python -m unittest tests.test_lru tests.test_func",
        f"{PYTEST} -q --durations=0 tests/test_keys.py -x",
    )),
    "click": ("8.2.1", "27c491cc05d968d271d5a1db13e3b5a184636d9d930f148c50b038f0d0646202", "src", (
        f"{PYTEST} -q tests/test_basic.py tests/test_termui.py",
    )),
}  # fmt: skip
"""Version and digest of the archive, what PYTHONPATH is, and what is run."""

VARYING = (
    (re.compile(r"\d+\.\d\ds( setup| call| teardown)?"), "TIME"),
    (re.compile(r"\b\d+\.\d{3}s"), "TIME"),
    (re.compile(r"=+ (.*?) =+"), r"= \1 ="),
    (re.compile(r"0x[0-9a-f]{6,}"), "ADDRESS"),
    (re.compile(r"pytest-of-root/pytest-\d+"), "FOLDER"),
    (re.compile(r"gw[01] [IC](?: \[\d+\])?(?: / gw1 [IC](?: \[\d+\])?)?"), "WORKERS"),
)


def settled(text: str) -> list[str]:
    """Without what differs between two runs of one interpreter as well."""
    for pattern, instead in VARYING:
        text = pattern.sub(instead, text)
    return [
        line
        for line in text.splitlines()
        if not line.startswith(("TIME ", "(", "bringing up", "created:"))
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_tested_the_same(
    both: tuple[Place, Place], archives: Path, package: str
) -> None:
    version, sha256, path, commands = PACKAGES[package]
    packed = fetch.fetch(package, Release(version, sha256, ""), archives).read_bytes()
    for place in both:
        place.write(f"/tmp/{package}.tar.gz", packed)
        place.says(
            f"mkdir -p {package}; tar xzf /tmp/{package}.tar.gz -C {package} --strip-components 1"
        )
    cold, warm = both
    for command in commands:
        script = f"cd {package}; {command}; rm -rf .coverage .pytest_cache .hypothesis"
        script = script.replace("; rm", "; code=$?; rm") + "; exit $code"
        env = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "COLUMNS": "100"}
        expected = cold.sh(script, **env)
        seen, counted = warm.became(script, **env)
        assert settled(seen.stdout.decode()) == settled(expected.stdout.decode())
        assert settled(seen.stderr.decode()) == settled(expected.stderr.decode())
        assert seen.exit_code == expected.exit_code
        assert expected.exit_code == 0, expected.text
        assert counted.get("served", 0) >= 1, counted
