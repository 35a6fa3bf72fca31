"""Where the agent itself is: one static program, carried by the package, that runs wherever it is put."""

from __future__ import annotations

import os
from pathlib import Path

from excise.errors import InputError

_PATH = Path(__file__).with_name("excise-agent")


def agent_binary() -> Path:
    """The program's path; wheels carry it, a checkout builds it."""
    if not os.access(_PATH, os.X_OK):
        build = "run native/build in the checkout (it needs a C compiler), or install a built wheel"
        raise InputError(f"the native program {_PATH} is not there: {build}")
    return _PATH
