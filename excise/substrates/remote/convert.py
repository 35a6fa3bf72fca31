"""Between the values of this package and the words of the native API. Pure."""

from __future__ import annotations

from excise.errors import InputError
from excise.substrates.base import Entry, EntryKind
from excise.substrates.remote.wire import (
    ActionWire,
    EntryWire,
    LimitsWire,
    ObservationWire,
    RepoWire,
    SpecWire,
)
from excise.types import Action, Allow, Egress, Fault, Limits, Observation, Repo, Spec


def observation_of(wire: ObservationWire) -> Observation:
    return Observation(
        wire.exit_code,
        wire.stdout,
        wire.stderr,
        wire.timed_out,
        wire.truncated,
        wire.oom,
        Fault(wire.fault) if wire.fault else None,
        wire.inside_ns,
        wire.cpu_ns,
        wire.stdout_bytes,
        wire.stderr_bytes,
    )


def wire_of(found: Observation) -> ObservationWire:
    return ObservationWire(
        found.exit_code,
        found.stdout,
        found.stderr,
        found.timed_out,
        found.truncated,
        found.oom,
        None if found.fault is None else found.fault.value,
        found.inside_ns,
        found.cpu_ns,
        found.stdout_bytes,
        found.stderr_bytes,
    )


def action_of(wire: ActionWire) -> Action:
    """The command; InputError unless it is said in exactly one of the two ways."""
    if (wire.argv is None) == (wire.script is None):
        raise InputError("an action has either argv or a script")
    argv = tuple(wire.argv) if wire.argv is not None else ("bash", "-c", wire.script or "")
    return Action(
        argv,
        wire.cwd,
        wire.env,
        wire.stdin,
        wire.user,
        wire.timeout_s,
        wire.output_limit_bytes,
    )


def action_wire(action: Action) -> ActionWire:
    return ActionWire(
        list(action.argv),
        None,
        action.cwd,
        dict(action.env),
        action.stdin,
        action.user,
        action.timeout_s,
        action.output_limit_bytes,
    )


def spec_of(wire: SpecWire, limits: Limits) -> Spec:
    """`limits` where the caller has named none."""
    asked = wire.limits
    if asked is not None:
        limits = Limits(asked.cpus, asked.memory_bytes, asked.pids, asked.disk_bytes)
    repo = None if wire.repo is None else Repo(wire.repo.source, wire.repo.commit, wire.repo.path)
    egress = Allow(tuple(wire.egress)) if isinstance(wire.egress, list) else Egress(wire.egress)
    return Spec(wire.image, repo, limits, egress, user=wire.user)


def spec_wire(spec: Spec) -> SpecWire:
    if spec.limits.cpuset is not None:
        raise InputError("a service chooses the cores itself: leave Limits.cpuset out")
    limits = spec.limits
    repo = (
        None if spec.repo is None else RepoWire(spec.repo.source, spec.repo.commit, spec.repo.path)
    )
    return SpecWire(
        spec.image,
        repo,
        LimitsWire(limits.cpus, limits.memory_bytes, limits.pids, limits.disk_bytes),
        list(spec.egress.targets) if isinstance(spec.egress, Allow) else spec.egress.value,
        spec.user,
    )


def entry_wire(path: str, entry: Entry) -> EntryWire:
    return EntryWire(
        path,
        entry.name,
        entry.kind.value,
        entry.size,
        entry.mode,
        entry.uid,
        entry.gid,
        entry.modified_ns,
        entry.target,
    )


def entry_of(wire: EntryWire) -> Entry:
    kind = EntryKind(wire.kind)
    return Entry(
        wire.name, kind, wire.size, wire.mode, wire.uid, wire.gid, wire.modified_ns, wire.target
    )
