"""Sandboxes, and what listens in them."""

from __future__ import annotations

import daytona
from calling import Called, exercise, fails


@exercise("sandboxes")
async def finds_what_it_made(client: Called, box: Called) -> None:
    params = daytona.CreateSandboxFromSnapshotParams(
        name="named", language="python", labels={"a": "b", "c": "d"}, env_vars={"E": "1 2"}
    )
    made = await client.create(params)
    try:
        assert str(made.inner.state.value) == "started"
        assert (await client.get("named")).id == made.id
        assert (await client.get(made.id)).labels["a"] == "b"
        assert (await made.process.exec("echo $E")).result.strip() == "1 2"
        await made.refresh_data()
    finally:
        await client.delete(made)
    await fails(lambda: client.get("named"), "DaytonaNotFoundError")


@exercise("sandboxes")
async def lists_by_labels(client: Called, box: Called) -> None:
    await box.set_labels({"team": "x y", "code-toolbox-language": "python"})
    query = getattr(daytona, "ListSandboxesQuery", None)
    ask = {"labels": {"team": "x y"}}
    found = await (client.list(query(**ask)) if query else client.list(**ask))
    items = getattr(found, "items", found)
    assert [each.id for each in items] == [box.id]
    none = {"labels": {"team": "nobody"}}
    found = await (client.list(query(**none)) if query else client.list(**none))
    assert not getattr(found, "items", found)


@exercise("sandboxes")
async def stops_and_starts_with_its_files(client: Called, box: Called) -> None:
    made = await client.create()
    try:
        await made.process.exec("echo kept > file")
        await made.stop()
        assert made.inner.state.value == "stopped"
        await made.wait_for_sandbox_stop()
        await fails(lambda: made.process.exec("true"), "DaytonaConflictError")
        await made.archive()
        await made.refresh_data()
        assert made.inner.state.value == "archived"
        await made.start()
        await made.wait_for_sandbox_start()
        assert (await made.process.exec("cat file")).result.strip() == "kept"
        await client.stop(made)
        await client.start(made)
        assert (await made.process.exec("cat file")).result.strip() == "kept"
    finally:
        await made.delete()


@exercise("sandboxes")
async def pauses(client: Called, box: Called) -> None:
    made = await client.create()
    try:
        await made.pause()
        assert made.inner.state.value == "paused"
        await made.start()
        assert (await made.process.exec("true")).exit_code == 0
    finally:
        await made.delete()


@exercise("sandboxes")
async def keeps_its_intervals(client: Called, box: Called) -> None:
    await box.set_autostop_interval(30)
    await box.set_auto_archive_interval(60)
    await box.set_auto_delete_interval(120)
    await box.refresh_data()
    assert (box.auto_stop_interval, box.auto_archive_interval, box.auto_delete_interval) == (
        30,
        60,
        120,
    )


@exercise("sandboxes")
async def pauses_when_idle(client: Called, box: Called) -> None:
    await box.set_auto_pause_interval(20)
    await box.refresh_data()
    assert box.auto_pause_interval == 20
    await box.set_auto_pause_interval(0)


@exercise("sandboxes")
async def has_an_end(client: Called, box: Called) -> None:
    await box.set_ttl(600)
    await box.refresh_data()
    assert box.inner.auto_destroy_at
    await box.set_ttl(0)


@exercise("sandboxes")
async def is_kept_alive(client: Called, box: Called) -> None:
    await box.refresh_activity()


@exercise("sandboxes")
async def is_public(client: Called, box: Called) -> None:
    await box.set_public(True)
    await box.refresh_data()
    assert box.public is True
    await box.set_public(False)


@exercise("sandboxes")
async def forks(client: Called, box: Called) -> None:
    await box.process.exec("echo forked > /work/forked")
    copy = await box.fork("a-copy")
    try:
        assert copy.name == "a-copy"
        assert (await copy.process.exec("cat /work/forked")).result == "forked\n"
        await copy.process.exec("echo other > /work/forked")
        assert (await box.process.exec("cat /work/forked")).result == "forked\n"
    finally:
        await copy.delete()


@exercise("sandboxes")
async def has_the_resources_it_asked_for(client: Called, box: Called) -> None:
    resources = daytona.Resources(cpu=2, memory=1, disk=3)
    made = await client.create(
        daytona.CreateSandboxFromImageParams(image="host", resources=resources)
    )
    try:
        assert (int(made.cpu), int(made.memory), int(made.disk)) == (2, 1, 3)
    finally:
        await made.delete()
    await fails(
        lambda: client.create(
            daytona.CreateSandboxFromImageParams(image="host", resources=daytona.Resources(gpu=1))
        ),
        "DaytonaError",
        "GPU",
    )


@exercise("sandboxes")
async def tells_where_it_works(client: Called, box: Called) -> None:
    assert await box.get_work_dir() == "/work"
    assert await box.get_user_home_dir() == "/root"


@exercise("sandboxes")
async def changes_the_environment(client: Called, box: Called) -> None:
    await box.update_env({"LATER": "now"})
    assert (await box.process.exec("echo $LATER")).result == "now\n"
    await box.update_env({}, unset=["LATER"])
    assert (await box.process.exec("echo ${LATER-gone}")).result == "gone\n"


@exercise("sandboxes")
async def keeps_its_network(client: Called, box: Called) -> None:
    await box.update_network_settings(network_block_all=True)
    await fails(
        lambda: box.update_network_settings(network_block_all=False),
        "DaytonaError",
        "when it is made",
    )


@exercise("previews")
async def shows_a_port(client: Called, box: Called) -> None:
    await _serving(box)
    link = await box.get_preview_link(8123)
    status, _ = await _fetched(link.url)
    assert status == 401
    status, text = await _fetched(f"{link.url}page?x=1", {"x-daytona-preview-token": link.token})
    assert (status, text) == (200, "GET /page?x=1")


@exercise("previews")
async def signs_links_to_a_port(client: Called, box: Called) -> None:
    await _serving(box)
    link = await box.create_signed_preview_url(8123, 60)
    assert (await _fetched(link.url))[0] == 200
    assert (await _fetched(link.url.replace("/8123", "/8124")))[0] == 401
    await box.expire_signed_preview_url(8123, link.token)
    assert (await _fetched(link.url))[0] == 401


async def _serving(box: Called) -> None:
    code = (
        "import http.server as s\n"
        "class H(s.BaseHTTPRequestHandler):\n"
        " def do_GET(self):\n"
        "  b=f'{self.command} {self.path}'.encode(); self.send_response(200)\n"
        "  self.send_header('Content-Length',str(len(b))); self.end_headers(); self.wfile.write(b)\n"
        " def log_message(self,*a): pass\n"
        "s.ThreadingHTTPServer.allow_reuse_address=True\n"
        "h=s.ThreadingHTTPServer(('127.0.0.1',8123),H); print('up',flush=True); h.serve_forever()\n"
    )
    await box.fs.upload_file(code.encode(), "/work/server.py")
    script = "[ -e /work/up ] || (setsid python3 /work/server.py > /work/up 2>&1 &); for i in $(seq 200); do grep -q up /work/up && break; sleep 0.05; done"
    assert (await box.process.exec(script)).exit_code == 0


async def _fetched(url: str, headers: dict[str, str] | None = None) -> tuple[int, str]:
    import httpx

    async with httpx.AsyncClient(timeout=30) as http:
        answer = await http.get(url, headers=headers or {})
        return answer.status_code, answer.text
