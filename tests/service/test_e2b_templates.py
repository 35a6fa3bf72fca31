"""Templates of the E2B door: built by the unmodified SDK's own builder, and environments that are named by their stages."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from e2b import AsyncSandbox, AsyncTemplate, BuildException, Sandbox, SandboxException, Template
from e2b.template.readycmd import wait_for_file

from excise.service.policy import Policy
from excise.service.template_file import templates_of

FIRST, SECOND = "one\n", "two\n"


@pytest.fixture
def repository(tmp_path):
    """A repository of two commits, and their ids."""
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*words):
        named = ("-c", "user.name=x", "-c", "user.email=x@y", "-C", str(folder))
        done = subprocess.run(("git", *named, *words), check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet")
    commits = []
    for text in (FIRST, SECOND):
        (folder / "file").write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "--message", text)
        commits.append(git("rev-parse", "HEAD"))
    return folder, commits


def test_a_template_is_built_of_every_kind_of_step(e2b_client, tmp_path):
    (tmp_path / "context" / "data" / "deep").mkdir(parents=True)
    (tmp_path / "context" / "data" / "deep" / "file").write_text("copied")
    (tmp_path / "context" / "one.txt").write_text("alone")

    def script(client):
        wanted = (
            Template(file_context_path=tmp_path / "context")
            .from_base_image()
            .set_envs({"A": "1"})
            .set_envs({"B": "$A and $HOME"})
            .run_cmd('echo "$HOME $USER $A $(id -un) $PWD" > ~/said')
            .copy("data", "/srv/data", user="root", mode=0o755)
            .copy("one.txt", "sub/renamed.txt")
            .make_dir("made", mode=0o700)
            .make_symlink("sub/renamed.txt", "link")
            .rename("made", "moved")
            .run_cmd("touch /etc/rooted", user="root")
            .set_workdir("/srv/work")
            .run_cmd("pwd > here")
            .set_user("root")
            .run_cmd("echo $HOME > /srv/roots")
            .set_user("user")
        )
        told = []
        built = Template.build(wanted, "mine:v1", on_build_logs=told.append, **client.alice)
        assert built.name == "mine:v1"
        assert any("FROM" in each.message for each in told)
        box = Sandbox.create("mine:v1", **client.alice)
        shown = box.commands.run(
            "cat ~/said /srv/data/deep/file ~/sub/renamed.txt ~/link /srv/work/here /srv/roots; pwd; echo $B;"
            "stat -c '%U %a' /srv/data/deep/file ~/moved /etc/rooted /srv/work"
        )
        assert shown.stdout == (
            "/home/user user 1 user /home/user\ncopiedalonealone/srv/work\n/root\n/srv/work\n1 and /home/user\n"
            "root 755\nuser 700\nroot 644\nuser 755\n"
        )

    e2b_client(script)


def test_what_is_built_has_names_tags_and_descendants(e2b_client):
    def script(client):
        base = Template().from_base_image().run_cmd("echo 1 > ~/version")
        built = Template.build(base, "family", tags=["one", "two"], **client.alice)
        assert Template.exists("family", **client.alice)
        assert not Template.exists("another", **client.alice)
        assert not Template.exists("family", **client.bob)
        above = (
            Template()
            .from_template("family")
            .run_cmd("echo 2 >> ~/version")
            .set_start_cmd("touch /tmp/begun; sleep 300", wait_for_file("/tmp/begun"))
        )
        Template.build(above, "descendant", **client.alice)
        box = Sandbox.create("descendant", **client.alice)
        assert box.files.read("version") == "1\n2\n"
        assert box.files.exists("/tmp/begun")
        Template.assign_tags("family:one", ["three"], **client.alice)
        found = {each.tag for each in Template.get_tags("family", **client.alice)}
        assert {"one", "two", "three"} <= found
        assert Sandbox.create("family:three", **client.alice).files.read("version") == "1\n"
        Template.remove_tags("family", "three", **client.alice)
        assert "three" not in {each.tag for each in Template.get_tags("family", **client.alice)}
        with pytest.raises(SandboxException):
            Sandbox.create("family", **client.bob)
        assert built.template_id

    e2b_client(script)


def test_a_build_that_fails_says_which_step_and_why(e2b_client, tmp_path):
    (tmp_path / "there").write_text("x")

    def script(client):
        told = []
        wrong = Template().from_base_image().run_cmd("true").run_cmd("echo so it is >&2; exit 3")
        with pytest.raises(BuildException, match="ended with 3: so it is") as failed:
            Template.build(wrong, "wrong", on_build_logs=told.append, **client.alice)
        assert "exit 3" in str(failed.traceback[-1].statement), "the SDK shows the step's own line"
        assert any("so it is" in each.message for each in told)
        assert not Template.exists("wrong", **client.alice)
        for wanted, said in (
            (Template().from_aws_registry("x", "k", "s", "r"), "behind a login"),
            (Template().from_base_image().set_user("no such:one"), "no name"),
            (Template().from_template("nothing-of-that-name"), "no template"),
        ):
            with pytest.raises(BuildException, match=said):
                Template.build(wanted, "wrong", **client.alice)

    e2b_client(script)


def test_builds_go_on_in_the_background_of_the_async_sdk(e2b_client):
    async def work(options):
        wanted = AsyncTemplate().from_base_image().run_cmd("echo built > ~/file")
        build = await AsyncTemplate.build_in_background(wanted, "later", **options)
        while (status := await AsyncTemplate.get_build_status(build, **options)).status != "ready":
            assert status.status in {"waiting", "building"}
        box = await AsyncSandbox.create("later", **options)
        assert await box.files.read("file") == "built\n"

    e2b_client(lambda client: asyncio.run(work(client.alice)))


def test_a_repository_is_named_by_the_template_or_the_metadata_and_kept_ready(
    e2b_client, repository
):
    folder, (first, second) = repository

    def script(client):
        cloud = client.served.cloud

        def found_ready():
            box = Sandbox.create(metadata=metadata, **client.alice)
            found = cloud.substrate.got(cloud.find("alice", box.sandbox_id).handle)
            box.kill()
            return "exact" in str(found)

        def shows(box):
            return box.commands.run(
                "cat file; pwd; id -un; git rev-parse HEAD; git status -s"
            ).stdout

        one = Sandbox.create(f"base?repo=ours&commit={first}", **client.alice)
        assert shows(one) == f"{FIRST}/work/repo\nroot\n{first}\n"
        metadata = {"excise.repo": "ours", "excise.commit": second, "mine": "x"}
        other = Sandbox.create(metadata=metadata, **client.alice)
        assert shows(other) == f"{SECOND}/work/repo\nroot\n{second}\n"
        assert other.get_info().metadata == metadata
        assert (
            other.commands.run("id -un; pwd", user="user", cwd="~").stdout == "user\n/home/user\n"
        )
        placed = Sandbox.create(f"base?repo=ours&commit={first}&path=/srv/it", **client.alice)
        assert placed.files.read("/srv/it/file") == FIRST
        assert placed.commands.run("pwd").stdout == "/srv/it\n"
        client.until(found_ready)
        for name, said in (
            ("base?repo=ours", "names its commit"),
            (f"base?repo=theirs&commit={first}", "no repository 'theirs'"),
            (f"base?repo=ours&commit={'0' * 40}", "no commit"),
            ("base?repo=ours&commit=main", "no full commit id"),
            ("base?what=x", "named by"),
            ("base?deps=six==1.17.0", "host's own programs"),
            ("base?" + "&".join(f"a{n}=1" for n in range(99)), "more is asked"),
        ):
            with pytest.raises(SandboxException, match=said):
                Sandbox.create(name, **client.alice)
        Template.build(Template().from_base_image().run_cmd("true"), "stepped", **client.alice)
        with pytest.raises(SandboxException, match="steps of its own"):
            Sandbox.create(f"stepped?repo=ours&commit={first}", **client.alice)

    e2b_client(script, policy=Policy(repositories={"ours": str(folder)}))


def test_a_host_that_nothing_stands_before_is_left_as_it_is(e2b_client, repository):
    folder, (first, _) = repository
    before = Path("/etc/passwd").read_bytes()

    def script(client):
        box = Sandbox.create(f"base?repo=ours&commit={first}", **client.alice)
        assert box.commands.run("git rev-parse HEAD", cwd=str(folder)).stdout
        assert Path("/etc/passwd").read_bytes() == before

    e2b_client(script, "local", Policy(repositories={"ours": str(folder)}))


def test_an_operators_template_of_stages_is_reached_by_its_name(
    e2b_client, repository, tmp_path, monkeypatch, write_wheel
):
    folder, (first, _) = repository
    index = tmp_path / "index"
    index.mkdir()
    write_wheel(index)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    (tmp_path / "templates.toml").write_text(
        f'[work]\nspec.repo = {{ source = "{folder}", commit = "{first}" }}\ndeps = ["alpha==1.0"]\n'
    )

    def script(client):
        for template in templates_of(tmp_path / "templates.toml"):
            client.wait(client.served.cloud.templates.put(template))
        box = Sandbox.create("work", **client.alice)
        assert box.commands.run("cat file; alpha").stdout == f"{FIRST}told by /opt/environment\n"
        assert box.commands.run("alpha", user="user").stdout == "told by /opt/environment\n"

    e2b_client(script)
