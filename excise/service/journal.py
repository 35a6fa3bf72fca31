"""Where it is written down what sandboxes there are, for whoever comes after this process."""

from __future__ import annotations

from typing import Protocol


class Journal(Protocol):
    """Kept by `excise.service.state`, or by nobody."""

    def made(self, id_: str, owner: str, handle: str, made_s: float) -> None: ...
    def ended(self, id_: str, why: str, ended_s: float) -> None: ...
