"""From the records of a study to its tables, its figures and one page; reads a study directory, nothing else."""

from __future__ import annotations

from typing import Literal

Format = Literal["html", "md", "figures"]
FORMATS: tuple[Format, ...] = ("html", "md", "figures")
