"""The plain blocking twin of `Session`, for callers without an event loop: one edge, no second implementation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from excise import session
from excise.clock import Clock
from excise.errors import InputError, LifecycleError
from excise.substrates.base import Closes, Substrate
from excise.tax.marks import Marks
from excise.types import Action, Observation, Spec

T = TypeVar("T")


class Session:
    """`with blocking.Session(substrate, spec) as s: obs = s.act(Action.shell("pytest -q"))`.

    It runs an event loop of its own while it is entered, so it cannot be used inside one. A substrate that
    keeps connections (`Closes`) is closed on leaving, because they belong to that loop.
    """

    def __init__(
        self, substrate: Substrate, spec: Spec | None = None, *, clock: Clock | None = None
    ) -> None:
        self._session = session.Session(substrate, spec, clock=clock)
        self._runner = asyncio.Runner()
        self._entered = False

    def __repr__(self) -> str:
        return f"<blocking {self._session!r}>"

    def __enter__(self) -> Self:
        _refuse_inside_a_loop()
        self._runner.__enter__()
        try:
            self._runner.run(self._session.__aenter__())
        except BaseException:
            self._close()
            raise
        self._entered = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._runner.run(self._session.__aexit__(kind, error, trace))
        finally:
            self._close()

    def act(self, action: Action) -> Observation:
        """Run one action; an interrupt (Ctrl-C) cancels it and is raised here."""
        return self._run(lambda: self._session.act(action))

    def open_shell(self) -> None:
        self._run(self._session.open_shell)

    def tell(self, script: str, *, timeout_s: float | None = 60.0) -> Observation:
        return self._run(lambda: self._session.tell(script, timeout_s=timeout_s))

    @property
    def marks(self) -> Marks:
        """All marks, once the session has ended well."""
        return self._session.marks

    def _run(self, verb: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if not self._entered:
            raise LifecycleError("a blocking session acts only inside its `with`")
        return self._runner.run(verb())

    def _close(self) -> None:
        self._entered = False
        try:
            if isinstance(self._session.substrate, Closes):
                self._runner.run(self._session.substrate.close())
        finally:
            self._runner.close()


def _refuse_inside_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InputError("there is an event loop here already: use `async with excise.Session(...)`")
