"""Runs inside a sandbox: takes code on its input, one JSON line each, and says what comes of it, line by line.

Standard library only, and nothing of this package: the file itself is handed to the sandbox's own Python. Variables
stay from one piece of code to the next. The value of a last expression is printed, as at a prompt.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import traceback


def main() -> None:
    told = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    asked = os.fdopen(os.dup(0), "r", encoding="utf-8")
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(quiet, number)

    def tell(**words: object) -> None:
        told.write(json.dumps(words) + "\n")
        told.flush()

    class Stream(io.TextIOBase):
        def __init__(self, kind: str) -> None:
            self.kind = kind

        def writable(self) -> bool:
            return True

        def write(self, text: str) -> int:
            if text:
                tell(type=self.kind, text=text)
            return len(text)

    sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115  # open for good
    names: dict[str, object] = {"__name__": "__main__", "__builtins__": __builtins__}
    for line in asked:
        request = json.loads(line)
        before = {name: os.environ.get(name) for name in request.get("envs") or {}}
        os.environ.update(request.get("envs") or {})
        try:
            run(request["code"], names)
        except BaseException as error:  # noqa: BLE001  # the code's own: told, and the next may come
            tell(
                type="error",
                name=type(error).__name__,
                value=str(error),
                traceback=told_of(error),
            )
        finally:
            for name, value in before.items():
                with contextlib.suppress(KeyError):
                    os.environ.pop(name) if value is None else os.environ.update({name: value})
        tell(type="end")


def told_of(error: BaseException) -> str:
    """The traceback from the code's own first line on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != "<code>":
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def run(code: str, names: dict[str, object]) -> None:
    tree = ast.parse(code, "<code>")
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compile(tree, "<code>", "exec"), names)  # noqa: S102  # what it is for
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "<code>", "eval"), names)  # noqa: S307
        if value is not None:
            names["_"] = value
            sys.stdout.write(f"{value!r}\n")


main()
