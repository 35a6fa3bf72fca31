"""Proves on any substrate that a task is what it says: these tests fail before the fix and pass after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from excise.clock import Clock, SystemClock
from excise.errors import TaskError
from excise.session import Session
from excise.substrates.base import Substrate
from excise.tasks.descriptor import Check, Prepared
from excise.tasks.results import Results, read, telling
from excise.types import Observation, Spec
from excise.workloads.actions import Desk
from excise.workloads.base import Site, Step


@dataclass(frozen=True, slots=True)
class Found:
    """What one check gave before and after the fix."""

    check: Check
    before: Results
    after: Results

    @property
    def fail_to_pass(self) -> frozenset[str]:
        return self.after.passed - self.before.passed

    @property
    def pass_to_pass(self) -> frozenset[str]:
        return self.after.passed & self.before.passed


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found, and every way in which it is not what the descriptor says."""

    task: str
    substrate: str
    found: tuple[Found, ...]
    clone_s: float
    before_s: float
    after_s: float

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(problem for found in self.found for problem in differences(found))


def differences(found: Found) -> Iterator[str]:
    """Where a check's outcome differs from its description, in words that name the tests."""
    check, path = found.check, found.check.path
    if not (found.before.passed | found.before.failed | found.after.passed | found.after.failed):
        yield f"{path}: the runner reported no test; it said: {found.after.said[:300]}"
        return
    declared = frozenset(check.fail_to_pass)
    if unfixed := declared - found.after.passed:
        yield f"{path}: does not pass after the fix: {_list(unfixed)}"
    if unbroken := declared & found.before.passed:
        yield f"{path}: does not fail before the fix: {_list(unbroken)}"
    if undeclared := found.fail_to_pass - declared:
        yield f"{path}: also goes from failing to passing: {_list(undeclared)}"
    if broken := found.before.passed & found.after.failed:
        yield f"{path}: passes before the fix and fails after it: {_list(broken)}"
    if unknown := found.after.failed - broken - declared - frozenset(check.known_failing):
        yield f"{path}: fails before and after, and is not known_failing: {_list(unknown)}"
    if mended := frozenset(check.known_failing) - found.after.failed:
        yield f"{path}: is known_failing but does not fail: {_list(mended)}"
    if len(found.pass_to_pass) != check.pass_to_pass:
        counted = len(found.pass_to_pass)
        yield f"{path}: {counted} tests pass before and after, not {check.pass_to_pass}"


def _list(tests: frozenset[str]) -> str:
    return ", ".join(sorted(tests))


async def verify(
    prepared: Prepared,
    substrate: Substrate,
    spec: Spec,
    site: Site,
    *,
    clock: Clock | None = None,
) -> Verdict:
    """Clone, patch the tests, run the checks, apply the fix, run them again: in one sandbox."""
    task, desk, clock = prepared.task, Desk(prepared.task, site), clock or SystemClock()
    async with Session(substrate, spec, clock=clock) as session:
        started = clock.now_ns()
        await _must(session, site, desk.clone())
        revision = await _must(session, site, desk.step("inspect", "", "git rev-parse HEAD"))
        if revision.text.strip() != prepared.commit:
            raise TaskError(f"{task.id}: the clone is at {revision.text.strip()[:60]!r}")
        await _must(session, site, desk.apply("test-patch", prepared.test_patch))
        cloned = clock.now_ns()
        before = [await _results(session, site, desk, check) for check in task.checks]
        failed = clock.now_ns()
        await _must(session, site, desk.apply("gold-patch", prepared.gold_patch))
        after = [await _results(session, site, desk, check) for check in task.checks]
        passed = clock.now_ns()
    return Verdict(
        task=task.id,
        substrate=substrate.name,
        found=tuple(map(Found, task.checks, before, after)),
        clone_s=(cloned - started) / 1e9,
        before_s=(failed - cloned) / 1e9,
        after_s=(passed - failed) / 1e9,
    )


async def _must(session: Session, site: Site, step: Step) -> Observation:
    """A step that has to succeed for anything after it to mean something."""
    observed = await session.act(step.action(site.env))
    if not observed.ok:
        said = observed.text.strip().splitlines() or [f"exit code {observed.exit_code}"]
        raise TaskError(f"{step.what or step.script} failed: {said[-1][:300]}")
    return observed


async def _results(session: Session, site: Site, desk: Desk, check: Check) -> Results:
    """One run of a check, made to name every test."""
    step = desk.test("check", check.path, exit_code=0)
    script, more = telling(step.script, desk.task.results)
    observed = await session.act(replace(step, script=script).action({**site.env, **more}))
    if observed.timed_out:
        raise TaskError(f"{check.path} did not end within {step.timeout_s:.0f} s")
    return read(observed.text, desk.task.results)
