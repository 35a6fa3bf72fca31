"""The page in a real browser: no errors, and nothing runs out of the window on a laptop or a tablet."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from excise.report.figures import draw
from excise.report.html import page
from excise.report.summary import summarise
from excise.report.tables import tables

PROBE = """
<script>
window.addEventListener("load", function () {
  document.getElementById("theme").click();
  var wide = [].filter.call(document.querySelectorAll("body *"), function (e) {
    return !e.closest(".scroll") && !e.closest("svg") && e.getBoundingClientRect().right > innerWidth + 1;
  });
  var root = document.documentElement;
  root.setAttribute("data-probe", [root.scrollWidth - innerWidth, wide.length, window.failed || 0, root.dataset.theme].join(" "));
});
</script>
"""
LISTEN = '<script>window.addEventListener("error", function () { window.failed = (window.failed || 0) + 1; });</script>'


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(
        (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))),
        None,
    )
    if found is None:
        if "browser" in os.environ.get("EXCISE_REQUIRE", "").split(","):
            pytest.fail("EXCISE_REQUIRE asks for a browser, and there is no chromium")
        pytest.skip("no chromium to open the page in")
    return found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parents[1] / "unit" / "report" / "conftest.py"
    spec = importlib.util.spec_from_file_location("written_down", source)
    built = importlib.util.module_from_spec(spec)
    sys.modules["written_down"] = built
    spec.loader.exec_module(built)
    labels = ("bare", "bare-again", "hosted", "docker", "kubernetes", "vm")
    summary = summarise(*built.study(labels, blocks=6, fail={"vm": 0.2}))
    text = page(summary, draw(summary), tables(summary))
    probed = text.replace("<head>", f"<head>{LISTEN}", 1).replace("</body>", f"{PROBE}</body>")
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(probed)
    return path


@pytest.mark.timeout(120)
@pytest.mark.parametrize("width", [1280, 800])
def test_the_page_fits_its_window_and_reports_no_error(
    browser: str, report: Path, tmp_path: Path, width: int
) -> None:
    done = subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--enable-logging=stderr", f"--user-data-dir={tmp_path}", f"--window-size={width},900",
            "--virtual-time-budget=3000", "--dump-dom", report.as_uri(),
        ],
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    probe = re.search(r'data-probe="(\S+) (\S+) (\S+) (\w+)"', done.stdout)
    assert probe, "the page's script did not run to its end"
    overflow, outside, failed, theme = probe.groups()
    assert float(overflow) <= 0
    assert outside == "0"
    assert failed == "0"
    assert theme in {"dark", "light"}, "the switch between light and dark works"
    assert "CONSOLE" not in done.stderr
