"""Sandboxes over HTTP: made, found, listed, stopped and ended."""

from __future__ import annotations

from dataclasses import replace

from aiohttp import web

from excise.errors import InputError
from excise.service.daytona import describe
from excise.service.daytona.asked import Labels, Named, Network, NewSandbox
from excise.service.daytona.call import Call, Control, answer, nothing, whole
from excise.service.daytona.errors import API, Told
from excise.service.daytona.images import template_for
from excise.service.daytona.listing import LONGEST_PAGE, PAGE, Query, page, shown
from excise.service.daytona.room import NOTE, Room, room_of
from excise.service.daytona.terms import NEVER, egress_of, limits_of, terms_of
from excise.service.errors import Unsupported
from excise.service.sandbox import Sandbox, State, Wanted
from excise.substrates.base import Quiets
from excise.types import Egress


async def create(call: Call) -> web.StreamResponse:
    """A sandbox that is started when it is answered: the SDK never has to ask again."""
    asked = await call.body(NewSandbox)
    terms = terms_of(asked, stops=isinstance(call.cloud.substrate, Quiets))
    template = await template_for(call, asked)
    limits = None
    if asked.cpu or asked.memory or asked.disk:
        limits = limits_of(asked.cpu, asked.memory, asked.disk, call.cloud.policy.limits)
    most = call.cloud.policy.egress
    egress = egress_of(terms, asked.network_allow_list, most)
    box = await call.cloud.create(
        call.owner,
        Wanted(
            template=template,
            name=asked.name or None,
            env=terms.env,
            labels=asked.labels or {},
            lifetime_s=terms.lifetime_s,
            idle_s=terms.idle_s,
            at_idle=terms.at_idle if terms.idle_s else None,
            rest_s=terms.rest_s,
            leased=True,
            limits=limits,
            egress=None if egress is Egress.NONE else egress,
            door="daytona",
        ),
    )
    box.notes[NOTE] = Room(terms)
    if terms.user and terms.user != box.user:
        try:
            await call.cloud.files(box).person(terms.user)
        except InputError:
            await call.cloud.destroy(box)
            raise
    return answer(told(call, box))


async def get(call: Call) -> web.StreamResponse:
    return answer(told(call, found(call)))


async def listed(call: Call) -> web.StreamResponse:
    """A part of those that live; the next cursor leads to the rest."""
    limit = call.number("limit", PAGE, most=LONGEST_PAGE)
    everything = _shown(call)
    items, after = page(everything, call.request.query.get("cursor"), limit)
    return answer({"items": items, "nextCursor": after, "total": len(everything)})


async def listed_by_number(call: Call) -> web.StreamResponse:
    """The same in numbered pages, as old versions ask for it."""
    number, limit = call.number("page", 1), call.number("limit", PAGE, most=LONGEST_PAGE)
    return answer(describe.page(_shown(call), number, limit))


def _shown(call: Call) -> list[dict[str, object]]:
    given = call.request.query
    query = Query(dict(given), {name: given.getall(name) for name in given})
    items: list[dict[str, object]] = []
    after: int | None = 0
    while after is not None:
        part = call.cloud.page(call.owner, labels=query.labels(), after=after, most=1000)
        items += [told(call, box) for box in part.items]
        after = part.next
    return shown(items, query)


async def delete(call: Call) -> web.StreamResponse:
    box = found(call)
    await call.cloud.destroy(box)
    return answer(told(call, box))


async def start(call: Call) -> web.StreamResponse:
    box = found(call)
    await call.cloud.resume(box)
    room_of(box).archived = False
    return answer(told(call, box))


async def stop(call: Call) -> web.StreamResponse:
    """Its files stay, unless it was to be deleted as soon as it stops."""
    box = found(call)
    room = room_of(box)
    if room.terms.auto_delete == 0:
        await call.cloud.destroy(box)
    else:
        await call.cloud.stop(box)
        room.emptied()
    return answer(told(call, box))


async def pause(call: Call) -> web.StreamResponse:
    box = found(call)
    await call.cloud.pause(box)
    return answer(told(call, box))


async def archive(call: Call) -> web.StreamResponse:
    """There is no other place to move its files to: it is told as archived, and starts as it would have."""
    box = found(call)
    if box.state is not State.STOPPED:
        raise Told(400, "BAD_REQUEST", "Sandbox is not stopped", API)
    room_of(box).archived = True
    return answer(told(call, box))


async def recover(call: Call) -> web.StreamResponse:
    box = found(call)
    raise Told(400, "BAD_REQUEST", f"Sandbox {box.id} is not in an error state", API)


async def resize(call: Call) -> web.StreamResponse:
    found(call)
    raise Unsupported("a sandbox keeps the size it was made with: make one with other resources")


async def fork(call: Call) -> web.StreamResponse:
    """A copy with the same files. Idle sessions of the original go on where they were."""
    box, name = found(call), (await call.body(Named)).name
    room = room_of(box)
    await room.rested()
    (copy,) = await call.cloud.fork(box, name=name or None)
    copy.notes[NOTE] = Room(room.terms, env=dict(room.env), unset=set(room.unset))
    return answer(told(call, copy))


async def labels(call: Call) -> web.StreamResponse:
    box, wanted = found(call), (await call.body(Labels)).labels
    call.cloud.keep(box, labels=wanted)
    return answer({"labels": wanted})


async def public(call: Call) -> web.StreamResponse:
    box = found(call)
    room = room_of(box)
    room.terms = replace(room.terms, public=call.words[1].lower() == "true")
    return answer(told(call, box))


async def network(call: Call) -> web.StreamResponse:
    """What a sandbox reaches is decided when it is made; asking for what holds already is no change."""
    box, wanted = found(call), await call.body(Network)
    blocked = box.spec.egress is Egress.NONE
    lists = wanted.network_allow_list or wanted.domain_allow_list
    if lists or wanted.network_block_all not in {None, blocked}:
        raise Unsupported(
            "what a sandbox reaches is decided when it is made: give network_block_all or"
            " domain_allow_list to create"
        )
    return answer(told(call, box))


async def activity(call: Call) -> web.StreamResponse:
    call.cloud.renew(found(call))
    return nothing(201)


def interval(field: str) -> Control:
    """The handler that sets one interval; `field` is its name in the terms."""

    async def set_interval(call: Call) -> web.StreamResponse:
        box = found(call)
        minutes = whole(call.words[1], field, NEVER, 2**31)
        room = room_of(box)
        terms = room.terms.after(field, minutes)
        call.cloud.keep(
            box,
            idle_s=terms.idle_s or 0.0,
            at_idle=terms.at_idle if terms.idle_s else None,
            rest_s=terms.rest_s or 0.0,
        )
        if field == "ttl":
            call.cloud.extend(box, terms.lifetime_s)
        if box.state is State.STOPPED and field == "auto_delete" and minutes == 0:
            await call.cloud.destroy(box)
        room.terms = terms
        return answer(told(call, box))

    return set_interval


async def proxy_url(call: Call) -> web.StreamResponse:
    found(call)
    return answer({"url": f"{call.origin}/toolbox"})


async def signing_key(call: Call) -> web.StreamResponse:
    """What the SDK signs addresses of files with."""
    box = found(call)
    call.shares.add(box)
    return answer(room_of(box).signing_key)


async def rotate_key(call: Call) -> web.StreamResponse:
    box = found(call)
    call.shares.add(box)
    return answer(room_of(box).new_signing_key())


async def config(call: Call) -> web.StreamResponse:
    """What old versions ask before anything else."""
    origin = call.origin
    return answer(
        {
            "version": describe.DAEMON_VERSION,
            "oidc": {"issuer": origin, "clientId": "excise", "audience": "excise"},
            "linkedAccountsEnabled": False,
            "announcements": {},
            "proxyTemplateUrl": f"{origin}/preview/{{{{sandboxId}}}}/{{{{PORT}}}}",
            "proxyToolboxUrl": f"{origin}/toolbox",
            "defaultSnapshot": "base",
            "dashboardUrl": origin,
            "maxAutoArchiveInterval": 30 * 24 * 60,
            "maintananceMode": False,
            "environment": "excise",
        }
    )


def found(call: Call) -> Sandbox:
    """The owner's sandbox of the id or name in the path."""
    return call.cloud.find(call.owner, call.words[0])


def told(call: Call, box: Sandbox) -> dict[str, object]:
    """The sandbox as the SDK reads it."""
    room, cloud = room_of(box), call.cloud
    return describe.sandbox(
        box,
        room.terms,
        proxy_url=f"{call.origin}/toolbox",
        created_s=cloud.wall_s(box.asked_ns),
        used_s=cloud.wall_s(box.used_ns),
        ends_s=None if box.deadline_ns is None else cloud.wall_s(box.deadline_ns),
        archived=room.archived,
    )
