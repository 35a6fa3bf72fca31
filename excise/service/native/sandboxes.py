"""Operations on sandboxes as wholes."""

from __future__ import annotations

from excise.errors import InputError
from excise.service.cloud import Cloud
from excise.service.idempotency import LONGEST_KEY
from excise.service.native.operation import Call, Operation, Query
from excise.service.sandbox import AtEnd, Sandbox, State, Wanted
from excise.service.templates import Template
from excise.substrates.remote import wire
from excise.substrates.remote.convert import spec_of

AFTER = Query("after", int, "Where the last part ended.", least=0, most=2**53)
MOST = Query("most", int, "How many at most.", least=1, most=1000)
LABEL = Query("label", str, "NAME=VALUE that they all have; repeatable.", most=2000)
STATE = Query("state", str, "Only those in this state.", most=20)
KEY = Query(
    "Idempotency-Key", str, "Asking again under it gives the same sandbox.", most=LONGEST_KEY
)


async def create_sandbox(call: Call) -> wire.SandboxWire:
    cloud, asked = call.desk.cloud, call.body
    if asked.spec is not None and asked.template is not None:
        raise InputError("a sandbox is made of a template or of a spec, not of both")
    spec = None if asked.spec is None else spec_of(asked.spec, cloud.policy.limits)
    wanted = Wanted(
        template=asked.template,
        spec=spec,
        name=asked.name,
        env=asked.env,
        labels=asked.labels,
        lifetime_s=asked.lifetime_s,
        idle_s=asked.idle_s,
        leased=asked.leased,
        at_end=AtEnd(asked.at_end),
    )
    key = call.request.headers.get(wire.IDEMPOTENCY_KEY)
    if key is not None and not 0 < len(key) <= LONGEST_KEY:
        raise InputError(f"an idempotency key is 1 to {LONGEST_KEY} characters")
    return told(cloud, await cloud.create(call.owner, wanted, key=key))


async def list_sandboxes(call: Call) -> wire.SandboxesWire:
    pairs = [text.partition("=") for text in call.request.query.getall("label", [])]
    if any(not equals for _, equals, _ in pairs):
        raise InputError("a label is asked for as label=NAME=VALUE")
    state = call.text("state")
    if state is not None and state not in set(State):
        raise InputError(f"state is one of {', '.join(State)}, not {state!r}")
    page = call.desk.cloud.page(
        call.owner,
        labels={name: value for name, _, value in pairs},
        states=None if state is None else frozenset({State(state)}),
        after=call.number("after") or 0,
        most=call.number("most") or 100,
    )
    return wire.SandboxesWire([told(call.desk.cloud, each) for each in page.items], page.next)


async def get_sandbox(call: Call) -> wire.SandboxWire:
    return told(call.desk.cloud, call.sandbox())


async def destroy_sandbox(call: Call) -> None:
    await call.desk.cloud.destroy(call.sandbox())


async def change_sandbox(call: Call) -> wire.SandboxWire:
    cloud, sandbox, asked = call.desk.cloud, call.sandbox(), call.body
    at_end = None if asked.at_end is None else AtEnd(asked.at_end)
    cloud.keep(sandbox, idle_s=asked.idle_s, at_end=at_end, labels=asked.labels)
    if asked.lifetime_s is not None:
        cloud.extend(sandbox, asked.lifetime_s)
    return told(cloud, sandbox)


async def renew_sandboxes(call: Call) -> wire.RenewedWire:
    gone = {}
    for id_ in call.body.ids:
        why = call.desk.cloud.renew_if_there(call.owner, id_)
        if why is not None:
            gone[id_] = why
    return wire.RenewedWire(gone)


async def pause_sandbox(call: Call) -> wire.SandboxWire:
    sandbox = call.sandbox()
    await call.desk.cloud.pause(sandbox)
    return told(call.desk.cloud, sandbox)


async def resume_sandbox(call: Call) -> wire.SandboxWire:
    sandbox = call.sandbox()
    await call.desk.cloud.resume(sandbox, call.body.lifetime_s)
    return told(call.desk.cloud, sandbox)


async def stop_sandbox(call: Call) -> wire.SandboxWire:
    sandbox = call.sandbox()
    await call.desk.cloud.stop(sandbox)
    return told(call.desk.cloud, sandbox)


async def reset_sandbox(call: Call) -> wire.SandboxWire:
    sandbox = call.sandbox()
    await call.desk.cloud.reset(sandbox)
    return told(call.desk.cloud, sandbox)


async def prove_sandbox(call: Call) -> wire.ProofWire:
    proof = await call.desk.cloud.prove(call.sandbox())
    return wire.ProofWire(list(proof.files), list(proof.processes), list(proof.mounts))


async def snapshot_sandbox(call: Call) -> wire.TemplateWire:
    template = await call.desk.cloud.snapshot(call.sandbox(), call.body.name)
    return template_told(template, call.owner)


async def fork_sandbox(call: Call) -> wire.SandboxesWire:
    cloud, asked = call.desk.cloud, call.body
    made = await cloud.fork(call.sandbox(), asked.copies, lifetime_s=asked.lifetime_s)
    return wire.SandboxesWire([told(cloud, each) for each in made])


def told(cloud: Cloud, sandbox: Sandbox) -> wire.SandboxWire:
    """A sandbox as its owner sees it."""
    ends_ns = sandbox.deadline_ns
    return wire.SandboxWire(
        id=sandbox.id,
        state=sandbox.state.value,
        created_s=cloud.wall_s(sandbox.ready_ns),
        ends_s=None if ends_ns is None else cloud.wall_s(ends_ns),
        name=sandbox.name or None,
        template=sandbox.wanted.template,
        image=sandbox.spec.image,
        labels=sandbox.labels,
        idle_s=sandbox.idle_s,
        at_end=sandbox.at_end.value,
        user=sandbox.user,
        workdir=sandbox.workdir,
    )


def template_told(template: Template, owner: str) -> wire.TemplateWire:
    """A template as one of those who can use it sees it."""
    return wire.TemplateWire(
        name=template.name,
        spec=wire.SpecWire(template.spec.image),
        env=dict(template.spec.env),
        steps=[
            wire.StepWire(step.do.value, list(step.words), step.files) for step in template.steps
        ],
        user=template.user,
        workdir=template.workdir,
        start=template.start,
        id=template.id,
        mine=template.owner == owner,
    )


ONE = "/sandboxes/{id}"
OPERATIONS = (
    Operation(
        "POST", "/sandboxes", "Make a sandbox; it is ready when this answers.",
        create_sandbox, wire.CreateWire, wire.SandboxWire, 201, headers=(KEY,),
    ),
    Operation(
        "GET", "/sandboxes", "Those that live, oldest first.",
        list_sandboxes, None, wire.SandboxesWire, query=(LABEL, STATE, AFTER, MOST),
    ),
    Operation("GET", ONE, "One sandbox.", get_sandbox, None, wire.SandboxWire),
    Operation("DELETE", ONE, "End it and all that runs in it.", destroy_sandbox, status=204),
    Operation(
        "PATCH", ONE, "Change deadline, lease, labels, or what happens at the end.",
        change_sandbox, wire.KeepWire, wire.SandboxWire,
    ),
    Operation(
        "POST", "/renew", "Renew many leases at once.",
        renew_sandboxes, wire.RenewWire, wire.RenewedWire,
    ),
    Operation("POST", f"{ONE}/pause", "Hold every process still.", pause_sandbox, None, wire.SandboxWire),
    Operation(
        "POST", f"{ONE}/resume", "Let a paused or stopped one go on.",
        resume_sandbox, wire.ResumeWire, wire.SandboxWire,
    ),
    Operation(
        "POST", f"{ONE}/stop", "End what runs in it; its files stay.", stop_sandbox, None, wire.SandboxWire
    ),
    Operation(
        "POST", f"{ONE}/reset", "Back to the state it was made in.", reset_sandbox, None, wire.SandboxWire
    ),
    Operation(
        "GET", f"{ONE}/proof", "What differs from one just made.", prove_sandbox, None, wire.ProofWire
    ),
    Operation(
        "POST", f"{ONE}/snapshot", "Keep its files as a template.",
        snapshot_sandbox, wire.SnapshotWire, wire.TemplateWire, 201,
    ),
    Operation(
        "POST", f"{ONE}/fork", "Copies with the same files, all or none.",
        fork_sandbox, wire.ForkWire, wire.SandboxesWire, 201,
    ),
)  # fmt: skip
