"""Templates made real: their steps run once in a sandbox, whose snapshot the next ones are made of."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from excise.errors import InputError
from excise.service.archives import folder_of
from excise.service.errors import Unsupported
from excise.service.files import Files
from excise.service.templates import Do, Stand, Step, Template, outcome
from excise.substrates.base import Snapshots, Substrate
from excise.types import MIB, Action, Handle, Spec

STEP_S = 1800.0
"""How long one step may take."""

OUTPUT_BYTES = MIB
Log = Callable[[str], None]


class BuildFailed(InputError):
    """A step ended badly: the caller's steps are at fault, not the infrastructure."""

    step: int | None = None
    """Its number, from 1."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to create a sandbox of, and what is still to be done in each (nothing, where snapshots can be had)."""

    spec: Spec
    stand: Stand
    left: tuple[Step, ...] = ()
    owner: str | None = None


class Builds:
    """Builds each revision of a template once, however many ask for it."""

    def __init__(self, substrate: Substrate, archives: Path) -> None:
        self._substrate = substrate
        self._archives = archives
        self._built: dict[str, asyncio.Task[Prepared]] = {}

    async def prepared(self, template: Template, log: Log | None = None) -> Prepared:
        """What its sandboxes are made of; builds it if nobody has."""
        if not template.needs_building:
            return _as_it_is(template)
        building = self._built.get(template.revision)
        if building is None:
            building = asyncio.create_task(self._build(template, log or (lambda _: None)))
            self._built[template.revision] = building
        try:
            return await asyncio.shield(building)
        except BaseException:
            if building.done():
                self._built.pop(template.revision, None)
            raise

    async def forget(self, template: Template) -> None:
        """It is not used any more: neither is its snapshot."""
        building = self._built.pop(template.revision, None)
        built = None
        if building is not None:
            building.cancel()
            (built,) = await asyncio.gather(building, return_exceptions=True)
        if isinstance(self._substrate, Snapshots):
            for reference in {template.snapshot, _snapshot_of(built, template)} - {None}:
                assert reference is not None
                await self._substrate.forget(reference)

    async def complete(self, prepared: Prepared, box: Handle, base: Stand) -> None:
        """Do in a fresh sandbox what could not be done once for all."""
        await self._steps(prepared.owner, box, prepared.left, base, lambda _: None)

    async def _build(self, template: Template, log: Log) -> Prepared:
        stand = outcome(template)
        base = Stand(env=template.spec.env)
        first = (Step(Do.USER, (template.user,)),) if template.user else ()
        place = (Step(Do.WORKDIR, (template.workdir,)),) if template.workdir else ()
        steps = (*first, *place, *template.steps)
        if not isinstance(self._substrate, Snapshots):
            if any(step.do is Do.EXPAND for step in steps):
                raise Unsupported(
                    "without snapshots, a template's variables cannot refer to others"
                )
            return Prepared(_spec(template.spec, stand), stand, steps, template.owner)
        log(f"FROM {template.spec.image}")
        box = await self._substrate.create(template.spec)
        try:
            await self._substrate.ready(box)
            stand = await self._steps(template.owner, box, steps, base, log)
            reference = await self._substrate.snapshot(box)
        finally:
            await self._substrate.destroy(box)
        log("built")
        made_of = replace(template.spec, image=reference, repo=None, deps=())
        return Prepared(_spec(made_of, stand), stand)

    async def _steps(
        self, owner: str | None, box: Handle, steps: tuple[Step, ...], stand: Stand, log: Log
    ) -> Stand:
        """Do them, and tell what holds after them."""
        archives = folder_of(self._archives, owner)
        for number, step in enumerate(steps, 1):
            log(f"[{number}/{len(steps)}] {step.do.upper()} {' '.join(step.words)[:200]}")
            try:
                stand = await self._step(box, archives, stand, step, log)
            except InputError as error:
                failed = error if isinstance(error, BuildFailed) else BuildFailed(str(error))
                failed.step = number
                raise failed from error.__cause__
        return stand

    async def _step(
        self, box: Handle, archives: Path, before: Stand, step: Step, log: Log
    ) -> Stand:
        files, stand = Files(self._substrate, box), before.after(step)
        if step.do is Do.USER:
            name = step.words[0].partition(":")[0]
            await (files.person(name) if name.isdigit() else files.add_person(name))
        elif step.do is Do.WORKDIR:
            assert stand.workdir is not None
            await self._must(box, Stand(), f"mkdir -p {shlex.quote(stand.workdir)}", step, log)
            if stand.user not in {None, "root"}:
                owner = f"chown {shlex.quote(stand.user or '')} {shlex.quote(stand.workdir)}"
                await self._must(box, Stand(), owner, step, log)
        elif step.do is Do.RUN:
            await self._must(box, await _at_home(files, stand), step.words[0], step, log)
        elif step.do is Do.COPY:
            await self._copy(box, files, archives / (step.files or ""), stand, step, log)
        elif step.do is Do.EXPAND:
            return before.after(await self._expanded(box, await _at_home(files, before), step))
        return stand

    async def _expanded(self, box: Handle, stand: Stand, step: Step) -> Step:
        """The step with values as the sandbox's shell understands them, where it stands."""
        values = (value.replace('"', '\\"').replace("`", "\\`") for value in step.words[1::2])
        script = "printf '%s\\0' " + " ".join(f'"{value}"' for value in values)
        action = replace(
            Action.shell(script, cwd=stand.workdir, env=stand.env), user=stand.user or None
        )
        found = await self._substrate.run(box, action)
        expanded = found.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
        if not found.ok or len(expanded) * 2 != len(step.words):
            said = found.stderr.decode("utf-8", "replace").strip()[:200]
            raise BuildFailed(f"ENV {' '.join(step.words)[:200]}: {said or 'no such values'}")
        names = step.words[::2]
        return Step(Do.ENV, tuple(w for pair in zip(names, expanded, strict=True) for w in pair))

    async def _copy(
        self, box: Handle, files: Files, archive: Path, stand: Stand, step: Step, log: Log
    ) -> None:
        """The archive is unpacked inside, by the sandbox's own tar: what is wrong with it stays in there."""
        if not step.files or not step.files.isalnum() or not _is_there(archive):
            raise BuildFailed(f"the files of COPY {' '.join(step.words)} were not uploaded")
        to, mode, *_ = (*step.words, "")
        place = "/tmp/.excise-copy"  # noqa: S108  # in the sandbox
        with archive.open("rb") as opened:
            await files.write(place, iter(lambda: opened.read(MIB), b""))
        if not to.startswith("/"):
            to = f"{stand.workdir or '/'}/{to}"
        script = (
            f"mkdir -p {shlex.quote(to)} && tar -xf {place} --no-same-owner -C {shlex.quote(to)}"
        )
        if mode:
            script += f" && chmod -R {shlex.quote(mode)} {shlex.quote(to)}"
        if stand.user not in {None, "root"}:
            script += f" && chown -R {shlex.quote(stand.user or '')} {shlex.quote(to)}"
        await self._must(box, Stand(), f"{script} && rm -f {place}", step, log)

    async def _must(self, box: Handle, stand: Stand, script: str, step: Step, log: Log) -> None:
        action = replace(
            Action.shell(script, merge=True, cwd=stand.workdir, env=stand.env, timeout_s=STEP_S),
            user=stand.user,
            output_limit_bytes=OUTPUT_BYTES,
        )
        found = await self._substrate.run(box, action)
        for line in found.stdout.decode("utf-8", "replace").splitlines():
            log(line)
        if found.timed_out:
            raise BuildFailed(
                f"{step.do.upper()} {' '.join(step.words)[:200]}: not done in {STEP_S:g} s"
            )
        if not found.ok:
            last = found.stdout.decode("utf-8", "replace").strip().splitlines()[-1:]
            said = f": {last[0]}" if last else ""
            what = f"{step.do.upper()} {' '.join(step.words)[:200]}"
            raise BuildFailed(f"{what} ended with {found.exit_code}{said}")


async def _at_home(files: Files, stand: Stand) -> Stand:
    """Where it acts as somebody, programs find out by the environment, too, who that is."""
    if stand.user in {None, "root"}:
        return stand
    person = await files.person((stand.user or "").partition(":")[0])
    who = {"HOME": person.home, "USER": person.name, "LOGNAME": person.name}
    return replace(stand, env={**who, **stand.env})


def _is_there(archive: Path) -> bool:
    return archive.is_file()


def _as_it_is(template: Template) -> Prepared:
    stand = outcome(template)
    spec = template.spec
    if template.snapshot is not None:
        spec = replace(spec, image=template.snapshot, repo=None, deps=())
    return Prepared(_spec(spec, stand), stand)


def _spec(spec: Spec, stand: Stand) -> Spec:
    return replace(spec, env={**spec.env, **stand.env}, user=stand.user or spec.user)


def _snapshot_of(built: object, template: Template) -> str | None:
    if isinstance(built, Prepared) and built.spec.image != template.spec.image:
        return built.spec.image
    return None
