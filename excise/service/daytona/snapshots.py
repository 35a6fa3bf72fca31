"""Snapshots over HTTP: templates of an owner, made of an image, of a Dockerfile or of a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from dataclasses import replace

from aiohttp import web

from excise.errors import ExciseError
from excise.service.catalogue import NoTemplate
from excise.service.daytona import describe
from excise.service.daytona.asked import Named, NewSnapshot
from excise.service.daytona.call import Call, answer
from excise.service.daytona.errors import API, Told
from excise.service.daytona.holding import FIRST_S, hold_s
from excise.service.daytona.images import shown, template_of
from excise.service.daytona.listing import LONGEST_PAGE, PAGE
from excise.service.daytona.makings import Making
from excise.service.daytona.room import room_of
from excise.service.daytona.sandboxes import found, told
from excise.service.daytona.terms import limits_of
from excise.service.errors import Conflict, Unsupported
from excise.service.policy import bounded
from excise.service.templates import Template, checked_name


async def create(call: Call) -> web.StreamResponse:
    """It is made while this is answered; if that takes long, the answer says how it stands."""
    asked = await call.body(NewSnapshot)
    checked_name(asked.name)
    if asked.gpu:
        raise Unsupported("this service has no GPUs")
    await _must_be_free(call, asked.name)
    template = template_of(call, asked.name, asked.build_info, asked.image_name)
    if asked.entrypoint:
        template = replace(template, start=shlex.join(asked.entrypoint))
    if asked.cpu or asked.memory or asked.disk:
        limits = limits_of(asked.cpu, asked.memory, asked.disk, template.spec.limits)
        limits = bounded(limits, call.cloud.policy.most)
        template = replace(template, spec=replace(template.spec, limits=limits))
    await call.cloud.templates.put(template)
    making = call.makings.make(call.cloud, template)
    await _held(making, FIRST_S)
    return answer(_told(call, template))


async def listed(call: Call) -> web.StreamResponse:
    number, limit = call.number("page", 1), call.number("limit", PAGE, most=LONGEST_PAGE)
    source = call.request.query.get("sourceSandboxId")
    items = [
        _told(call, each)
        for each in shown(call.cloud.templates.of(call.owner))
        if source is None or each.labels.get("sandbox") == source
    ]
    return answer(describe.page(items, number, limit))


async def get(call: Call) -> web.StreamResponse:
    """While it is being made, the answer is held for a while, in case that it is done."""
    template = _found(call)
    making = call.makings.of(template)
    if making is not None and not making.task.done():
        making.asked += 1
        await _held(making, hold_s(making.asked - 1))
    return answer(_told(call, template))


async def delete(call: Call) -> web.StreamResponse:
    template = _found(call)
    await call.makings.forget(template)
    await call.cloud.templates.remove(call.owner, template.id)
    return answer(describe.snapshot(template, state="removing"))


async def activate(call: Call) -> web.StreamResponse:
    """All that are made are active."""
    return answer(_told(call, _found(call)))


async def of_sandbox(call: Call) -> web.StreamResponse:
    """The files of a sandbox as a snapshot. Idle sessions of it go on where they were."""
    box, name = found(call), (await call.body(Named)).name or ""
    checked_name(name)
    await _must_be_free(call, name)
    await room_of(box).rested()
    await call.cloud.snapshot(box, name)
    return answer(told(call, box))


async def logs_url(call: Call) -> web.StreamResponse:
    template = _found(call)
    return answer({"url": f"{call.origin}/api/snapshots/{template.id}/build-logs"})


async def logs(call: Call) -> web.StreamResponse:
    """What its steps wrote; with `follow` as it comes."""
    making = call.makings.of(_found(call))
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    await response.prepare(call.request)
    at = 0
    while making is not None:
        over = making.task.done()
        new = (
            list(making.lines)[len(making.lines) - (making.written - at) :]
            if making.written > at
            else []
        )
        at = making.written
        if new:
            await response.write("".join(f"{line}\n" for line in new).encode("utf-8", "replace"))
        if over or not call.flag("follow"):
            break
        making.news.clear()
        await making.news.wait()
    await response.write_eof()
    return response


async def _held(making: Making, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.wait({making.task})


async def _must_be_free(call: Call, name: str) -> None:
    """A name that is used is a conflict, unless what has it could not be made."""
    for each in call.cloud.templates.of(call.owner):
        if each.owner == call.owner and each.name == name:
            making = call.makings.of(each)
            if making is None or making.error is None:
                raise Conflict(f"Snapshot with name {name!r} already exists")
            await call.makings.forget(each)
            with contextlib.suppress(ExciseError):
                await call.cloud.templates.remove(call.owner, each.id)


def _found(call: Call) -> Template:
    try:
        return call.cloud.templates.find(call.owner, call.words[0])
    except NoTemplate as error:
        raise Told(404, "NOT_FOUND", f"Snapshot {call.words[0][:100]} not found", API) from error


def _told(call: Call, template: Template) -> dict[str, object]:
    making = call.makings.of(template)
    state = "active" if making is None else making.state
    return describe.snapshot(template, state=state, error=making.error if making else None)
