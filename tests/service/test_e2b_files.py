"""Files, directories, watchers and signed addresses of the E2B door, through the unmodified SDK."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import urllib.error
import urllib.request

import pytest
from e2b import (
    AsyncSandbox,
    FilesystemEventType,
    FileType,
    InvalidArgumentException,
    NotFoundException,
    Sandbox,
    SandboxException,
)


def get(url):
    with urllib.request.urlopen(url) as answer:
        return answer.status, answer.read()


def refusal(url, data=None, headers=None):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, data, headers or {}))
    with refused.value:
        return refused.value.code, json.loads(refused.value.read())


def test_files_are_written_and_read_in_every_way_the_sdk_has(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        info = box.files.write("a/b.txt", "text")
        assert (info.name, info.path, info.type) == ("b.txt", "/home/user/a/b.txt", FileType.FILE)
        assert box.files.read("a/b.txt") == "text"
        assert box.files.read("~/a/b.txt", format="bytes") == b"text"
        every = bytes(range(256)) * 20_000
        box.files.write("large", every)
        assert box.files.read("large", format="bytes") == every
        assert b"".join(box.files.read("large", format="stream")) == every
        assert box.files.read("large", format="bytes", gzip=True) == every
        box.files.write("stream", (every[at : at + 70_000] for at in range(0, len(every), 70_000)))
        assert box.files.read("stream", format="bytes") == every
        box.files.write("squeezed", every, gzip=True)
        assert box.files.read("squeezed", format="bytes") == every
        box.files.write("io", io.BytesIO(b"of a file"), use_octet_stream=False)
        assert box.files.read("io") == "of a file"
        box.files.write("empty", b"")
        assert box.files.read("empty", format="bytes") == b""
        several = [{"path": "s/1", "data": "one"}, {"path": "/tmp/käse 'x' %22", "data": b"two"}]
        assert [each.path for each in box.files.write_files(several)] == [
            "/home/user/s/1",
            several[1]["path"],
        ]
        assert box.files.read("/tmp/käse 'x' %22") == "two"
        assert box.files.write_files([]) == []
        assert box.files.read("/proc/version").startswith("Linux")

    e2b_client(script)


def test_what_is_written_belongs_to_whom_it_was_written_for(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        box.files.write("new/deep/file", "x")
        box.files.write("/srv/roots", "x", user="root")
        assert box.commands.run("stat -c %U new new/deep new/deep/file /srv/roots").stdout.split() == [
            "user", "user", "user", "root",
        ]  # fmt: skip
        box.files.write("/srv/roots", "taken over")
        assert box.files.get_info("/srv/roots").owner == "user"

    e2b_client(script)


def test_entries_are_told_exactly(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        box.files.write("dir/file", "1234")
        box.commands.run(
            "ln -s file dir/link; ln -s nowhere dir/broken; mkdir dir/sub; chmod 640 dir/file"
        )
        found = {each.name: each for each in box.files.list("dir")}
        assert sorted(found) == ["file", "link", "sub"], "the SDK leaves out what leads nowhere"
        file, link, sub = found["file"], found["link"], found["sub"]
        assert (file.type, file.size, file.mode, file.permissions) == (
            FileType.FILE,
            4,
            0o640,
            "-rw-r-----",
        )
        assert (file.owner, file.group, file.symlink_target) == ("user", "user", None)
        assert (link.type, link.symlink_target) == (FileType.SYMLINK, "/home/user/dir/file")
        assert (sub.type, sub.permissions, sub.path) == (
            FileType.DIR,
            "drwxr-xr-x",
            "/home/user/dir/sub",
        )
        assert box.files.get_info("dir/broken").symlink_target == "/home/user/dir/nowhere"
        box.files.write("dir/sub/deep/x", "")
        assert len(box.files.list("dir", depth=1)) == 3
        assert [each.path for each in box.files.list("/home/user/dir/sub", depth=2)] == [
            "/home/user/dir/sub/deep", "/home/user/dir/sub/deep/x",
        ]  # fmt: skip

    e2b_client(script)


def test_things_are_made_moved_and_removed(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        assert box.files.make_dir("a/b") is True
        assert box.files.make_dir("a/b") is False
        assert box.files.exists("a/b")
        box.files.write("a/b/x", "x")
        assert box.files.rename("a/b/x", "c/d/y").path == "/home/user/c/d/y"
        assert not box.files.exists("a/b/x")
        box.files.remove("a")
        box.files.remove("a")
        assert not box.files.exists("a")
        with pytest.raises(InvalidArgumentException, match="not a directory"):
            box.files.make_dir("c/d/y")

    e2b_client(script)


def test_what_is_wrong_is_said_in_the_sdks_terms(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        for wrong in (
            lambda: box.files.read("none"),
            lambda: box.files.get_info("none"),
            lambda: box.files.list("none"),
            lambda: box.files.rename("none", "x"),
            lambda: box.files.watch_dir("none"),
        ):
            with pytest.raises(NotFoundException):
                wrong()
        box.files.write("file", "x")
        for wrong in (
            lambda: box.files.read("/home"),
            lambda: box.files.list("file"),
            lambda: box.files.watch_dir("file"),
            lambda: box.files.write("/home/user", "x"),
            lambda: box.files.read("~root/x"),
        ):
            with pytest.raises(InvalidArgumentException):
                wrong()
        with pytest.raises(SandboxException):
            box.files.write("file/below", "x")

    e2b_client(script)


def test_metadata_of_files_holds_as_long_as_their_contents_do(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        said = {"author": "ann", "purpose": "test"}
        assert box.files.write("f", "x", metadata=said).metadata == said
        assert box.files.get_info("f").metadata == said
        assert box.files.rename("f", "g").metadata == said
        assert [each.metadata for each in box.files.list(".")] == [said]
        box.commands.run("echo more >> g")
        assert box.files.get_info("g").metadata is None
        box.files.write("g", "y", metadata=said, use_octet_stream=True)
        box.files.write("g", "z")
        assert box.files.get_info("g").metadata is None

    e2b_client(script)


def test_a_directory_is_watched_by_asking(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        box.files.make_dir("w/sub")
        flat, deep = (
            box.files.watch_dir("w"),
            box.files.watch_dir("w", recursive=True, include_entry=True),
        )
        box.files.write("w/sub/x", "x")
        box.files.write("w/y", "y")
        kinds = [(each.type, each.name) for each in flat.get_new_events()]
        assert kinds == [(FilesystemEventType.CREATE, "y"), (FilesystemEventType.WRITE, "y")]
        events = deep.get_new_events()
        assert [each.name for each in events] == ["sub/x", "sub/x", "y", "y"]
        assert events[0].entry.path == "/home/user/w/sub/x"
        assert flat.get_new_events() == []
        box.commands.run("chmod 600 w/y; mv w/y w/z; rm w/sub/x")
        found = {(each.type, each.name) for each in deep.get_new_events()}
        assert {(FilesystemEventType.RENAME, "y"), (FilesystemEventType.REMOVE, "sub/x")} <= found
        flat.stop()
        deep.stop()
        with pytest.raises(SandboxException):
            flat.get_new_events()

    e2b_client(script)


def test_a_directory_is_watched_by_listening(e2b_client):
    async def work(options):
        box = await AsyncSandbox.create(**options)
        await box.files.make_dir("w")
        seen: asyncio.Queue = asyncio.Queue()
        handle = await box.files.watch_dir("w", on_event=seen.put_nowait, timeout=0)
        await box.files.write("w/x", "x")
        event = await asyncio.wait_for(seen.get(), 20)
        assert (event.type, event.name) == (FilesystemEventType.CREATE, "x")
        await handle.stop()
        ended: asyncio.Queue = asyncio.Queue()
        await box.files.watch_dir("w", on_event=print, on_exit=ended.put_nowait, timeout=0.3)
        await asyncio.wait_for(ended.get(), 20)
        await box.kill()

    e2b_client(lambda client: asyncio.run(work(client.alice)))


def test_signed_addresses_open_one_file_and_nothing_else(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        box.files.write("f", "signed")
        assert get(box.download_url("f")) == (200, b"signed")
        box.files.write("/root/f", "the root's", user="root")
        url = box.download_url("f", user="root", use_signature_expiration=60)
        assert get(url) == (200, b"the root's")
        assert refusal(box.download_url("f", use_signature_expiration=-60)) == (
            401, {"code": 401, "message": "signature is already expired"},
        )  # fmt: skip
        for forged in (
            box.download_url("f").replace("path=f", "path=g"),
            box.upload_url("f"),
            box.download_url("f") + "x",
            box.download_url("f") + "&username=root",
            box.download_url("f") + "&signature_expiration=99999999999",
        ):
            assert refusal(forged)[0] == 401
        form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="up"\r\n\r\nnew\r\n--b--\r\n'
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        with urllib.request.urlopen(urllib.request.Request(box.upload_url("up"), form, headers)):
            assert box.files.read("up") == "new"
        octets = {"Content-Type": "application/octet-stream", "Content-Encoding": "gzip"}
        body = gzip.compress(b"newer")
        with urllib.request.urlopen(urllib.request.Request(box.upload_url("up"), body, octets)):
            assert box.files.read("up") == "newer"

    e2b_client(script)


def test_malformed_uploads_are_refused_and_change_nothing(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        url = client.served.url + "/files"
        headers = {"E2b-Sandbox-Id": box.sandbox_id, "X-Access-Token": box._envd_access_token}
        multipart = headers | {"Content-Type": "multipart/form-data; boundary=b"}
        for path, body, kind in (
            ("", b"x", headers | {"Content-Type": "application/octet-stream"}),
            ("", b"", multipart),
            ("", b"--c\r\n", multipart),
            ("", b"x", headers | {"Content-Type": "multipart/form-data"}),
            (
                "",
                b'--b\r\nContent-Disposition: form-data; name="no"\r\n\r\nx\r\n--b--\r\n',
                multipart,
            ),
            ("?path=%00", b"x", headers | {"Content-Type": "application/octet-stream"}),
        ):
            code, told = refusal(url + path, body, kind)
            assert code == told["code"] == 400, told
        assert box.files.list(".") == []

    e2b_client(script)
