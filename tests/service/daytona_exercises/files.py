"""Files and repositories."""

from __future__ import annotations

import inspect

import daytona
from calling import Called, everything, exercise, fails


@exercise("files")
async def takes_and_gives_files(client: Called, box: Called) -> None:
    data = bytes(range(256)) * 5000
    await box.fs.upload_file(data, "deep/er/data.bin")
    assert await box.fs.download_file("/work/deep/er/data.bin") == data
    await box.fs.upload_file(b"", "/work/empty")
    assert await box.fs.download_file("/work/empty") == b""
    error = await fails(lambda: box.fs.download_file("/work/none"), "DaytonaError", "none")
    assert error is not None


@exercise("files")
async def takes_and_gives_many_files(client: Called, box: Called) -> None:
    upload = daytona.common.filesystem.FileUpload
    names = ["/work/many/plain", "/work/many/with space"]
    transfer = getattr(daytona.common, "file_transfer", None)
    if hasattr(transfer, "parse_content_disposition"):  # older ones cannot read such names
        names += ["/work/many/ümläut", '/work/many/quo"te']
    await box.fs.upload_files([upload(name.encode(), name) for name in names])
    download = daytona.common.filesystem.FileDownloadRequest
    found = await box.fs.download_files([download(source=name) for name in [*names, "/work/no"]])
    assert [each.result for each in found[:-1]] == [name.encode() for name in names]
    assert found[-1].error


@exercise("files")
async def streams_files(client: Called, box: Called) -> None:
    data = b"0123456789" * 300_000
    await box.fs.upload_file_stream(data, "/work/streamed")
    stream = box.inner.fs.download_file_stream("/work/streamed")
    stream = await stream if inspect.iscoroutine(stream) else stream
    assert b"".join(await everything(stream)) == data
    box.notes.works.add("FileSystem.download_file_stream")


@exercise("files")
async def lists_and_describes(client: Called, box: Called) -> None:
    await box.fs.create_folder("/work/made/below", "750")
    await box.fs.upload_file(b"12345", "/work/made/file")
    listed = await box.fs.list_files("/work/made")
    assert sorted((each.name, each.is_dir) for each in listed) == [("below", True), ("file", False)]
    info = await box.fs.get_file_info("/work/made/below")
    assert (info.mode, info.permissions, info.owner) == ("drwxr-x---", "0750", "0")
    assert (await box.fs.get_file_info("/work/made/file")).size == 5


@exercise("files")
async def lists_deeply(client: Called, box: Called) -> None:
    await box.fs.upload_file(b"1", "/work/tree/a/b/c")
    listed = await box.fs.list_files("/work/tree", depth=2)
    assert [each.path for each in listed] == ["/work/tree/a", "/work/tree/a/b"]


@exercise("files")
async def moves_deletes_and_changes_permissions(client: Called, box: Called) -> None:
    await box.fs.upload_file(b"x", "/work/from")
    await box.fs.move_files("/work/from", "/work/new/to")
    await box.fs.set_file_permissions("/work/new/to", mode="640", owner="nobody", group="nogroup")
    found = await box.process.exec("stat -c '%a %U %G' /work/new/to")
    assert found.result.strip() == "640 nobody nogroup"
    await fails(lambda: box.fs.delete_file("/work/new"), "DaytonaError", "recursive")
    await box.fs.delete_file("/work/new/to")
    await box.fs.delete_file("/work/new", recursive=True)
    await fails(lambda: box.fs.get_file_info("/work/new"), "DaytonaNotFoundError")


@exercise("files")
async def searches_and_replaces(client: Called, box: Called) -> None:
    await box.fs.upload_file(b"one two\nthree [two]\n", "/work/s/a.txt")
    await box.fs.upload_file(b"two\n", "/work/s/sub/b.py")
    found = await box.fs.find_files("/work/s", "[two]")
    assert [(each.file, each.line, each.content) for each in found] == [
        ("/work/s/a.txt", 2, "three [two]")
    ]
    assert (await box.fs.search_files("/work/s", "**/*.{py,txt}")).files == [
        "/work/s/a.txt",
        "/work/s/sub/b.py",
    ]
    told = await box.fs.replace_in_files(["/work/s/a.txt", "/work/s/none"], "two", "2")
    assert [each.success for each in told] == [True, False]
    assert await box.fs.download_file("/work/s/a.txt") == b"one 2\nthree [2]\n"


@exercise("files")
async def signs_addresses_of_files(client: Called, box: Called) -> None:
    import httpx

    await box.fs.upload_file(b"signed", "/work/signed file")
    url = await box.download_url("/work/signed file", 60)
    async with httpx.AsyncClient(timeout=30) as http:
        assert (await http.get(url)).content == b"signed"
        assert (await http.get(url.replace("signed+file", "other"))).status_code == 401
        up = await box.upload_url("/work/sent", 60)
        sent = await http.post(up, files={"file": ("sent", b"body")})
        assert sent.status_code == 200
        await box.rotate_signing_key()
        assert (await http.get(url)).status_code == 401
    assert await box.fs.download_file("/work/sent") == b"body"


@exercise("repositories")
async def works_in_a_repository(client: Called, box: Called) -> None:
    await box.process.exec("git init -q --bare -b main /work/origin.git")
    await box.process.exec(
        "git init -q -b main /work/seed && cd /work/seed && git -c user.name=n -c user.email=e commit -q"
        " --allow-empty -m first && git push -q /work/origin.git main"
    )
    git = box.git
    await git.clone("/work/origin.git", "/work/clone")
    await box.fs.upload_file(b"text", "/work/clone/file.txt")
    status = await git.status("/work/clone")
    assert status.current_branch == "main"
    assert [(each.name, each.worktree.value) for each in status.file_status] == [
        ("file.txt", "Untracked")
    ]
    await git.add("/work/clone", ["file.txt"])
    made = await git.commit("/work/clone", "a message", "Author", "a@example.org")
    assert len(made.sha) == 40
    await git.push("/work/clone")
    status = await git.status("/work/clone")
    assert (status.ahead, status.behind, status.branch_published) == (0, 0, True)
    await git.create_branch("/work/clone", "side")
    await git.checkout_branch("/work/clone", "side")
    assert sorted((await git.branches("/work/clone")).branches) == ["main", "side"]
    await git.checkout_branch("/work/clone", "main")
    await git.delete_branch("/work/clone", "side")
    await box.process.exec(
        "cd /work/seed && git pull -q /work/origin.git main && git -c user.name=n -c user.email=e"
        " commit -q --allow-empty -m more && git push -q /work/origin.git main"
    )
    await git.pull("/work/clone")
    assert "more" in (await box.process.exec("git -C /work/clone log --oneline")).result


@exercise("repositories")
async def says_what_went_wrong(client: Called, box: Called) -> None:
    await fails(lambda: box.git.status("/work"), "DaytonaNotFoundError", "not a git repository")
    await fails(lambda: box.git.clone("/work/nothing", "/work/x"), "DaytonaNotFoundError")


@exercise("repositories")
async def makes_and_mends_a_repository(client: Called, box: Called) -> None:
    git = box.git
    await git.init("/work/own", initial_branch="trunk")
    await git.configure_user("Somebody", "s@example.org", scope="local", path="/work/own")
    assert await git.get_config("user.name", scope="local", path="/work/own") == "Somebody"
    await git.set_config("core.abbrev", "12", scope="local", path="/work/own")
    assert await git.get_config("core.none", scope="local", path="/work/own") is None
    await box.fs.upload_file(b"1", "/work/own/f")
    await git.add("/work/own", ["f"])
    await git.commit("/work/own", "first", "A", "a@example.org")
    await box.fs.upload_file(b"2", "/work/own/f")
    await git.restore("/work/own", ["f"], worktree=True)
    assert await box.fs.download_file("/work/own/f") == b"1"
    await box.fs.upload_file(b"3", "/work/own/f")
    await git.reset("/work/own", mode="hard")
    assert await box.fs.download_file("/work/own/f") == b"1"
    await git.remote_add("/work/own", "up", "/work/elsewhere")
    await git.remote_add("/work/own", "up", "/work/there", overwrite=True)
    assert await git.remote_get("/work/own", "up") == "/work/there"
    assert [each.name for each in (await git.remotes("/work/own")).remotes] == ["up"]


@exercise("repositories")
async def keeps_a_password(client: Called, box: Called) -> None:
    await box.git.dangerously_authenticate("user", "p@ss", host="example.org")
    found = await box.process.exec("cat ~/.git-credentials; stat -c %a ~/.git-credentials")
    assert found.result == "https://user:p%40ss@example.org\n600\n"
