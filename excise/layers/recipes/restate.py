"""Tells cached bytecode where its source will stand. Run by the environment's own interpreter, so standard library only.

compileall can do so itself; what pytest rewrites and caches it cannot, and would name a folder that is gone in
every traceback. Usage: python restate.py MADE_AS STANDS_AT
"""

import marshal
import sys
import types
from pathlib import Path

_HEADER = 16  # magic number, flags, time and size of the source: PEP 552


def restated(code: types.CodeType, made_as: str, stands_at: str) -> types.CodeType:
    """`code`, and all code in it, with the new place in its file's name."""
    constants = tuple(
        restated(part, made_as, stands_at) if isinstance(part, types.CodeType) else part
        for part in code.co_consts
    )
    name = code.co_filename
    if name.startswith(made_as):
        name = stands_at + name[len(made_as) :]
    return code.replace(co_consts=constants, co_filename=name)


def main(made_as: str, stands_at: str) -> None:
    """Rewrite each file that pytest cached below `made_as`; its time stays, which is what it is valid by."""
    for path in sorted(Path(made_as).rglob("__pycache__/*-pytest-*.pyc")):
        data = path.read_bytes()
        code = restated(marshal.loads(data[_HEADER:]), made_as, stands_at)  # noqa: S302  (we wrote it)
        path.write_bytes(data[:_HEADER] + marshal.dumps(code))


if __name__ == "__main__":
    main(*sys.argv[1:])
