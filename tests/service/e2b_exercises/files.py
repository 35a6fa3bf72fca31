"""Files, watchers, signed addresses."""

from __future__ import annotations

import asyncio
import urllib.request
from typing import Any

from calling import Absent, Sdk, exercise, member


@exercise
async def texts_bytes_and_streams(sdk: Sdk, box: Any) -> None:
    await sdk(box.files.write, "a/b.txt", "käse")
    assert await sdk(box.files.read, "a/b.txt") == "käse"
    every = bytes(range(256)) * 5000
    await sdk(box.files.write, "/tmp/large", every)
    assert await sdk(box.files.read, "/tmp/large", format="bytes") == every
    stream = await sdk(box.files.read, "/tmp/large", format="stream")
    parts = list(stream) if sdk.blocking else [part async for part in stream]
    assert b"".join(parts) == every


@exercise
async def many_files_at_once(sdk: Sdk, box: Any) -> None:
    several = [{"path": "s/1", "data": "one"}, {"path": "s/2", "data": b"two"}]
    write = getattr(box.files, "write_files", None) or box.files.write
    found = await sdk(write, several)
    assert [each.path for each in found] == ["/home/user/s/1", "/home/user/s/2"]
    assert await sdk(box.files.read, "s/2") == "two"


@exercise
async def listing_and_describing(sdk: Sdk, box: Any) -> None:
    await sdk(box.files.write, "dir/file", "1234")
    await sdk(box.commands.run, "mkdir dir/sub; ln -s file dir/link")
    found = {each.name: each for each in await sdk(box.files.list, "dir")}
    assert sorted(found) == ["file", "link", "sub"]
    assert found["sub"].type.value == "dir"
    assert len(await sdk(box.files.list, "/home/user", depth=2)) >= 4
    info = await sdk(member(box.files, "get_info"), "dir/file")
    assert (info.size, info.owner, info.permissions) == (4, "user", "-rw-r--r--")


@exercise
async def making_moving_and_removing(sdk: Sdk, box: Any) -> None:
    assert await sdk(box.files.make_dir, "made/deep") is True
    assert await sdk(box.files.make_dir, "made/deep") is False
    await sdk(box.files.write, "made/x", "x")
    assert (await sdk(box.files.rename, "made/x", "made/y")).path == "/home/user/made/y"
    await sdk(box.files.remove, "made")
    assert await sdk(box.files.exists, "made") is False


@exercise
async def what_is_not_there(sdk: Sdk, box: Any) -> None:
    await sdk.fails("NotFoundException", box.files.read, "none")
    await sdk.fails("NotFoundException", box.files.list, "none")
    await sdk.fails("InvalidArgumentException", box.files.read, "/home")


@exercise
async def watching(sdk: Sdk, box: Any) -> None:
    await sdk(box.files.make_dir, "watched")
    if sdk.blocking:
        watcher = await sdk(box.files.watch_dir, "watched")
        await sdk(box.files.write, "watched/x", "x")
        names = {each.name for each in await sdk(watcher.get_new_events)}
    else:
        seen: asyncio.Queue[Any] = asyncio.Queue()
        watcher = await sdk(box.files.watch_dir, "watched", on_event=seen.put_nowait)
        await sdk(box.files.write, "watched/x", "x")
        names = {(await asyncio.wait_for(seen.get(), 20)).name}
    assert names == {"x"}
    await sdk(watcher.stop)


@exercise
async def signed_addresses(sdk: Sdk, box: Any) -> None:
    await sdk(box.files.write, "signed", "by its owner")
    if not getattr(box, "_envd_access_token", None):
        raise Absent("a token of the sandbox's own")
    url = await sdk(box.download_url, "signed", use_signature_expiration=60)
    with await asyncio.to_thread(urllib.request.urlopen, url) as answer:
        assert answer.read() == b"by its owner"
