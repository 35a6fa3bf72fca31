"""The interpreter of an environment, kept warm for its jails: made in one of them, bound into all of them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from excise.errors import LayerError
from excise.jail.control import Bind
from excise.jail.depending import Ingredients
from excise.jail.runner import JailRunner
from excise.layers.store import Layer
from excise.types import Egress, Spec
from excise.warm.layer import COLD, Warmth, interpreter_of, warm_layer, warmth_of


def warm_up(
    spec: Spec,
    made: Ingredients,
    parents: Sequence[Layer],
    below: Sequence[Path],
    binds: Sequence[Bind],
    env: Mapping[str, str],
) -> Warmth:
    """What its jails get. An interpreter that cannot be kept warm is an environment as without, and says why."""
    if spec.warm is None:
        return COLD
    interpreter = interpreter_of(spec.warm, spec.deps)
    runner = JailRunner(made.spawner(), binds=binds, env=env, egress=Egress.NONE)
    on_host = _on_host(interpreter) if binds else ""
    try:
        layer = warm_layer(made.store, interpreter, parents, below, runner, on_host)
        return warmth_of(layer)
    except LayerError as error:
        return Warmth(why_not=str(error))


def _on_host(interpreter: str) -> str:
    """What decides the result where programs are the host's own and no layer."""
    found = shutil.which(interpreter)
    if found is None:
        return ""
    real = Path(found).resolve()
    return f"{real} {real.stat().st_mtime_ns}"
