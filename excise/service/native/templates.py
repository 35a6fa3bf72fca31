"""Operations on templates, and on the archives that their steps copy."""

from __future__ import annotations

import asyncio

from aiohttp import web

from excise.service.archives import folder_of, keep_archive
from excise.service.native.lines import Lines
from excise.service.native.operation import Call, Operation
from excise.service.native.refusal import told_of
from excise.service.native.sandboxes import template_told
from excise.service.policy import allowed
from excise.service.templates import Do, Step, Template, outcome
from excise.substrates.remote import wire
from excise.substrates.remote.convert import spec_of
from excise.types import Spec


async def put_template(call: Call) -> wire.TemplateWire:
    cloud, asked = call.desk.cloud, call.body
    limits = cloud.policy.limits
    spec = Spec(limits=limits) if asked.spec is None else spec_of(asked.spec, limits)
    spec = allowed(spec, cloud.policy)
    template = Template(
        asked.name,
        call.owner,
        Spec(spec.image, spec.repo, spec.limits, spec.egress, asked.env, spec.user),
        tuple(Step(Do(step.do), tuple(step.words), step.files) for step in asked.steps),
        asked.user,
        asked.workdir,
        asked.start,
        made_s=cloud.wall_s(cloud.now_ns()),
    )
    outcome(template)
    return template_told(await cloud.templates.put(template), call.owner)


async def list_templates(call: Call) -> wire.TemplatesWire:
    found = call.desk.cloud.templates.of(call.owner)
    return wire.TemplatesWire([template_told(each, call.owner) for each in found])


async def get_template(call: Call) -> wire.TemplateWire:
    return template_told(_template(call), call.owner)


async def remove_template(call: Call) -> None:
    await call.desk.cloud.templates.remove(call.owner, call.request.match_info["name"])


async def build_template(call: Call) -> web.StreamResponse:
    """The build goes on when its listener leaves."""
    cloud, template = call.desk.cloud, _template(call)
    said: asyncio.Queue[str | None] = asyncio.Queue()
    building = asyncio.ensure_future(cloud.builds.prepared(template, said.put_nowait))
    building.add_done_callback(lambda _: said.put_nowait(None))
    async with Lines(call) as lines:
        while (line := await said.get()) is not None:
            await lines.say({"log": line})
        try:
            await building
        except Exception as error:  # noqa: BLE001  # told to the client as the last line
            await lines.say({"error": told_of(call.request, error)})
        else:
            await lines.say({"built": template.id})
    return lines.response


async def put_archive(call: Call) -> None:
    folder = folder_of(call.desk.cloud.folder / "archives", call.owner)
    parts = call.request.content.iter_any()
    await keep_archive(folder, call.request.match_info["digest"], parts)


def _template(call: Call) -> Template:
    return call.desk.cloud.templates.find(call.owner, call.request.match_info["name"])


ALL = "/templates"
ONE = f"{ALL}/{{name}}"
OPERATIONS = (
    Operation("PUT", ALL, "Make or replace one of yours.", put_template, wire.TemplateWire, wire.TemplateWire),
    Operation("GET", ALL, "Those you can use.", list_templates, None, wire.TemplatesWire),
    Operation("GET", ONE, "One template.", get_template, None, wire.TemplateWire),
    Operation("DELETE", ONE, "Remove one of yours.", remove_template, status=204),
    Operation(
        "POST", f"{ONE}/build", "Build it now; what its steps say, line by line.",
        build_template, None, dict[str, str], lines=True,
    ),
    Operation(
        "PUT", "/archives/{digest}", "Upload a tar archive for COPY steps, by its SHA-256.",
        put_archive, bytes, status=204,
    ),
)  # fmt: skip
