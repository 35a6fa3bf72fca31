"""Excise: measure the rollout infrastructure tax of coding-agent reinforcement learning, and remove it.

Public names are imported when they are first used, so that `import excise` costs next to nothing: not even
`typing`, which would be most of its cost, is imported for it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from excise.clock import Clock, FakeClock, SystemClock
    from excise.errors import (
        DeadlineExceeded,
        ExciseError,
        InputError,
        LifecycleError,
        Overloaded,
        Phase,
        SandboxGone,
        SubstrateError,
        SubstrateUnavailable,
    )
    from excise.pools.pool import Pool
    from excise.pools.rules import Rules
    from excise.pools.size import Budget
    from excise.pools.through import pooled
    from excise.session import Session
    from excise.substrates.base import Substrate
    from excise.substrates.fake import Fake, Latencies
    from excise.substrates.local import Local
    from excise.substrates.registry import open_substrate
    from excise.substrates.remote import connect
    from excise.types import (
        Action,
        Allow,
        Deps,
        Egress,
        Fault,
        Handle,
        Isolation,
        Limits,
        Observation,
        Repo,
        Spec,
    )

__version__ = "0.1.0"

_HOMES = {
    "excise.types": (
        "Action",
        "Allow",
        "Deps",
        "Egress",
        "Fault",
        "Handle",
        "Isolation",
        "Limits",
        "Observation",
        "Repo",
        "Spec",
    ),
    "excise.session": ("Session",),
    "excise.pools.pool": ("Pool",),
    "excise.pools.rules": ("Rules",),
    "excise.pools.size": ("Budget",),
    "excise.pools.through": ("pooled",),
    "excise.substrates.base": ("Substrate",),
    "excise.substrates.fake": ("Fake", "Latencies"),
    "excise.substrates.local": ("Local",),
    "excise.substrates.registry": ("open_substrate",),
    "excise.substrates.remote": ("connect",),
    "excise.clock": ("Clock", "FakeClock", "SystemClock"),
    "excise.errors": (
        "DeadlineExceeded",
        "ExciseError",
        "InputError",
        "LifecycleError",
        "Overloaded",
        "Phase",
        "SandboxGone",
        "SubstrateError",
        "SubstrateUnavailable",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    # what one passes in and gets back
    "Action",
    "Allow",
    "Deps",
    "Egress",
    "Fault",
    "Handle",
    "Isolation",
    "Limits",
    "Observation",
    "Repo",
    "Spec",
    # where it runs
    "Session",
    "Substrate",
    "connect",
    "open_substrate",
    "Fake",
    "Latencies",
    "Local",
    # ready before it is asked for
    "Budget",
    "Pool",
    "Rules",
    "pooled",
    # time
    "Clock",
    "FakeClock",
    "SystemClock",
    # what can go wrong
    "DeadlineExceeded",
    "ExciseError",
    "InputError",
    "LifecycleError",
    "Overloaded",
    "Phase",
    "SandboxGone",
    "SubstrateError",
    "SubstrateUnavailable",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'excise' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])
