"""Templates over HTTP: built of an image and steps, looked up, tagged, listed, removed; and snapshots, which are such."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Any

from aiohttp import web

from excise.errors import InputError
from excise.service.archives import folder_of, keep_archive
from excise.service.catalogue import NoTemplate
from excise.service.doors import Desk, bearer
from excise.service.e2b import asked, told
from excise.service.e2b.building import Building
from excise.service.e2b.naming import OF_THE_BASE
from excise.service.e2b.recipe import Recipe, recipe_of
from excise.service.e2b.wire import message
from excise.service.errors import Unauthorized
from excise.service.policy import allowed, bounded
from excise.service.templates import Template, checked_name
from excise.types import MIB, Limits, Spec

PATIENCE_S = 2.0
"""How long a question for a build's status waits for its end: clients ask again only after a pause."""

OF = "snapshot_of"
DEFAULT_TAG = "default"


class Templates:
    """The handlers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._cloud = desk.cloud
        self._building = Building(desk.cloud)
        self._secret = secrets.token_bytes(32)

    def routes(self) -> Iterable[web.RouteDef]:
        one = "/templates/{template}"
        yield web.post("/v3/templates", self._open)
        yield web.post(f"/v2{one}/builds/{{build}}", self._start)
        yield web.get(f"{one}/builds/{{build}}/status", self._status, allow_head=False)
        yield web.get(f"{one}/files/{{hash}}", self._files, allow_head=False)
        yield web.put(f"{one}/files/{{hash}}/{{proof}}", self._upload)
        yield web.get("/templates/aliases/{alias}", self._alias, allow_head=False)
        yield web.get("/templates", self._list, allow_head=False)
        yield web.get("/v2/templates", self._list, allow_head=False)
        yield web.post("/templates/tags", self._tag)
        yield web.delete("/templates/tags", self._untag)
        yield web.get(f"{one}/tags", self._tags, allow_head=False)
        yield web.delete(one, self._remove)
        yield web.get(one, self._one, allow_head=False)
        yield web.post("/sandboxes/{sandbox}/snapshots", self._snapshot)
        yield web.get("/snapshots", self._snapshots, allow_head=False)

    # Builds.

    async def _open(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        given = message(await request.read())
        name = asked.maybe_text(given, "name") or asked.text(given, "alias")
        tags = asked.words(given, "tags")
        family = name.partition(":")[0]
        names = tuple(dict.fromkeys((checked_name(name), *(f"{family}:{tag}" for tag in tags))))
        for each in names:
            checked_name(each)
        policy = self._cloud.policy
        cpus, memory_mib = (
            asked.maybe_whole(given, "cpuCount"),
            asked.maybe_whole(given, "memoryMB"),
        )
        limits = bounded(
            Limits(
                cpus=float(cpus) if cpus else policy.limits.cpus,
                memory_bytes=memory_mib * MIB if memory_mib else policy.limits.memory_bytes,
                pids=policy.limits.pids,
                disk_bytes=policy.limits.disk_bytes,
            ),
            policy.most,
        )
        build = self._building.open(owner, names, limits)
        answer = {
            "templateID": build.template_id,
            "buildID": build.id,
            "public": False,
            "names": list(names),
            "tags": tags or [name.partition(":")[2] or DEFAULT_TAG],
            "aliases": [family],
        }
        return web.json_response(answer, status=202)

    async def _start(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        where = request.match_info
        build = self._building.find(owner, where["template"], where["build"])
        recipe = recipe_of(message(await request.read()))
        self._building.start(build, recipe, lambda limits: self._spec(recipe, limits))
        return web.Response(status=202)

    def _spec(self, recipe: Recipe, limits: Limits) -> Spec:
        policy = self._cloud.policy
        image = recipe.image or ""
        if image in OF_THE_BASE:
            base = self._cloud.templates.resolve("", None, policy)
            return replace(base.spec, limits=limits, egress=policy.egress)
        return allowed(Spec(image=image, limits=limits, egress=policy.egress), policy)

    async def _status(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        build = self._building.find(
            owner, request.match_info["template"], request.match_info["build"]
        )
        since = asked.whole(request.query, "logsOffset", 0)
        if not build.over and build.task is not None:
            await asyncio.wait([build.task], timeout=PATIENCE_S)
        lines = build.lines[since : since + 100]
        answer: dict[str, Any] = {
            "templateID": build.template_id,
            "buildID": build.id,
            "status": build.status,
            "logs": [each["message"] for each in lines],
            "logEntries": lines,
        }
        if build.reason is not None:
            answer["reason"] = build.reason | {"logEntries": build.lines[-10:]}
        return web.json_response(answer)

    # Files for builds.

    async def _files(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        digest = request.match_info["hash"]
        folder = folder_of(self._cloud.folder / "archives", owner)
        present = digest.isalnum() and (folder / digest).is_file()
        proof = f"{owner.encode().hex()}.{self._proof(owner, digest)}"
        base = f"{request.scheme}://{request.host}"
        url = f"{base}/templates/{request.match_info['template']}/files/{digest}/{proof}"
        return web.json_response({"present": present, "url": url}, status=201)

    async def _upload(self, request: web.Request) -> web.Response:
        """Whoever has the address has it from an owner. The name is the client's own hash of what it copies."""
        digest = request.match_info["hash"]
        hexed, _, proof = request.match_info["proof"].partition(".")
        try:
            owner = bytes.fromhex(hexed).decode()
        except ValueError:
            raise Unauthorized("no such place for an upload") from None
        if not hmac.compare_digest(proof.encode(), self._proof(owner, digest).encode()):
            raise Unauthorized("no such place for an upload")
        folder = folder_of(self._cloud.folder / "archives", owner)
        await keep_archive(folder, digest, request.content.iter_any(), proven=False)
        return web.Response(status=200)

    def _proof(self, owner: str, digest: str) -> str:
        return hmac.new(self._secret, f"{owner}\0{digest}".encode(), sha256).hexdigest()

    # Names.

    def _found(self, owner: str, name: str) -> Template:
        try:
            if name in OF_THE_BASE:
                return self._cloud.templates.resolve(owner, None, self._cloud.policy)
            return self._cloud.templates.find(owner, name)
        except NoTemplate as error:
            raise FileNotFoundError(2, str(error)) from error

    async def _alias(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        found = self._found(owner, request.match_info["alias"])
        return web.json_response({"templateID": found.id, "public": found.owner is None})

    async def _one(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        found = self._found(owner, request.match_info["template"])
        return web.json_response(told.template(found) | {"builds": []})

    async def _list(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        return web.json_response([told.template(each) for each in self._cloud.templates.of(owner)])

    async def _remove(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        found = self._found(owner, request.match_info["template"])
        await self._cloud.templates.remove(owner, found.id)
        return web.Response(status=204)

    async def _tag(self, request: web.Request) -> web.Response:
        """The same template by more names."""
        owner = self._desk.owner(bearer(request))
        given = message(await request.read())
        found = self._found(owner, asked.text(given, "target"))
        tags = asked.words(given, "tags")
        for tag in tags:
            name = tag if ":" in tag else f"{_family(found)}:{tag}"
            tagged = replace(found, name=checked_name(name), owner=owner, id=secrets.token_hex(10))
            await self._cloud.templates.put(tagged)
        return web.json_response({"buildID": told.build_id(found), "tags": tags}, status=201)

    async def _untag(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        given = message(await request.read())
        family = asked.text(given, "name").partition(":")[0]
        names = [f"{family}:{tag}" for tag in asked.words(given, "tags")]
        mine = {each.name for each in self._cloud.templates.of(owner) if each.owner == owner}
        if missing := [each for each in names if each not in mine]:
            raise FileNotFoundError(2, f"there is no {missing[0][:80]}")
        for name in names:
            await self._cloud.templates.remove(owner, name)
        return web.Response(status=204)

    async def _tags(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        family = _family(self._found(owner, request.match_info["template"]))
        tagged = [
            {
                "tag": each.name.partition(":")[2] or DEFAULT_TAG,
                "buildID": told.build_id(each),
                "createdAt": told.template(each)["createdAt"],
            }
            for each in self._cloud.templates.of(owner)
            if _family(each) == family
        ]
        return web.json_response(tagged)

    # Snapshots.

    async def _snapshot(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        sandbox = self._cloud.find(owner, request.match_info["sandbox"])
        given = message(await request.read())
        name = asked.maybe_text(given, "name")
        if name is not None:
            checked_name(name)
        kept = await self._cloud.snapshot(sandbox, name)
        kept = replace(kept, labels={**kept.labels, OF: sandbox.id})
        await self._cloud.templates.put(kept)
        return web.json_response({"snapshotID": kept.id, "names": [kept.name]}, status=201)

    async def _snapshots(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        query = request.query
        sandbox_id, name = query.get("sandboxID"), query.get("name")
        found = [
            each
            for each in self._cloud.templates.of(owner)
            if OF in each.labels
            and sandbox_id in {None, each.labels[OF]}
            and name in {None, each.name, each.id}
        ]
        most, start = asked.whole(query, "limit", 100), asked.whole(query, "nextToken", 0)
        if not 1 <= most <= 1000:
            raise InputError("a page has 1 to 1000 snapshots")
        headers = {"X-Next-Token": str(start + most)} if start + most < len(found) else {}
        page = [
            {"snapshotID": each.id, "names": [each.name]} for each in found[start : start + most]
        ]
        return web.json_response(page, headers=headers)


def _family(template: Template) -> str:
    return template.name.partition(":")[0]
