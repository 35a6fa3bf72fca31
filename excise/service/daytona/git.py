"""Repositories over HTTP, by the sandbox's own git."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from aiohttp import web

from excise.errors import InputError
from excise.service.daytona import asked, git_words, place
from excise.service.daytona.call import Inside, answer, nothing
from excise.service.daytona.process import run
from excise.types import Action

LONGEST_S = 1800.0
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}
_SCOPES = {"global": "--global", "local": "--local", "system": "--system"}
_MODES = frozenset({"soft", "mixed", "hard", "merge", "keep"})


async def clone(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Clone)
    path = await place.path(call, wanted.path)
    words = ["clone", "--quiet"]
    words += ["--branch", wanted.branch] if wanted.branch else []
    words += ["--depth", str(wanted.depth)] if wanted.depth else []
    options = _secret(wanted.password, wanted.url)
    options += ["-c", "http.sslVerify=false"] if wanted.insecure_skip_tls else []
    env = _credentials(wanted.username, wanted.password)
    await _git(call, "/", *options, *words, "--", wanted.url, path, env=env)
    if wanted.commit_id:
        await _git(call, path, "checkout", "--quiet", _ref(wanted.commit_id))
    return nothing(200)


async def status(call: Inside) -> web.StreamResponse:
    path = await place.path(call, call.query("path"))
    said = await _git(call, path, "status", "--porcelain=v2", "--branch", "-z")
    return answer(git_words.status(said))


async def add(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Add)
    await _git(call, await place.path(call, wanted.path), "add", "--", *wanted.files)
    return nothing(200)


async def commit(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Commit)
    path = await place.path(call, wanted.path)
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", wanted.author), ("EMAIL", wanted.email))
    }
    more = ["--allow-empty"] if wanted.allow_empty else []
    await _git(call, path, "commit", "--quiet", *more, "--message", wanted.message, env=who)
    said = await _git(call, path, "rev-parse", "HEAD")
    return answer({"hash": said.decode().strip()})


async def history(call: Inside) -> web.StreamResponse:
    path = await place.path(call, call.query("path"))
    return answer(git_words.history(await _git(call, path, "log", git_words.LOG_FORM)))


async def branches(call: Inside) -> web.StreamResponse:
    path = await place.path(call, call.query("path"))
    said = await _git(call, path, "for-each-ref", "--format=%(refname:short)", "refs/heads")
    current = await _git(call, path, "branch", "--show-current")
    return answer({"branches": said.decode().split(), "current": current.decode().strip()})


async def create_branch(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Branch)
    await _git(call, await place.path(call, wanted.path), "branch", _ref(wanted.name))
    return nothing(201)


async def delete_branch(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Branch)
    await _git(call, await place.path(call, wanted.path), "branch", "-D", _ref(wanted.name))
    return nothing()


async def checkout(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Checkout)
    await _git(
        call, await place.path(call, wanted.path), "checkout", "--quiet", _ref(wanted.branch)
    )
    return nothing(200)


async def push(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Exchange)
    path = await place.path(call, wanted.path)
    branch = wanted.branch
    if branch is None:
        branch = (await _git(call, path, "branch", "--show-current")).decode().strip() or "HEAD"
    more = ["--set-upstream"] if wanted.set_upstream else []
    await _exchanged(call, path, wanted, "push", *more, branch=branch)
    return nothing(200)


async def pull(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Exchange)
    path = await place.path(call, wanted.path)
    await _exchanged(call, path, wanted, "pull", "--no-rebase", branch=wanted.branch)
    return nothing(200)


async def _exchanged(
    call: Inside, path: str, wanted: asked.Exchange, *words: str, branch: str | None
) -> None:
    remote = _ref(wanted.remote or "origin")
    secret = _secret(wanted.password, "")
    where = [remote, *([_ref(branch)] if branch else [])]
    if words[0] == "pull" and branch is None and wanted.remote is None:
        where = []
    env = _credentials(wanted.username, wanted.password)
    await _git(call, path, *secret, *words, *where, env=env)


async def init(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Init)
    path = await place.path(call, wanted.path)
    more = ["--bare"] if wanted.bare else []
    more += ["--initial-branch", wanted.initial_branch] if wanted.initial_branch else []
    await _git(call, "/", "init", "--quiet", *more, "--", path)
    return nothing(201)


async def reset(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Reset)
    path = await place.path(call, wanted.path)
    if wanted.mode and wanted.mode not in _MODES:
        raise InputError(f"a reset is one of {', '.join(sorted(_MODES))}")
    target = [_ref(wanted.target)] if wanted.target else []
    if wanted.files:
        await _git(call, path, "reset", "--quiet", *target, "--", *wanted.files)
    else:
        mode = [f"--{wanted.mode}"] if wanted.mode else []
        await _git(call, path, "reset", "--quiet", *mode, *target)
    return nothing(200)


async def restore(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Restore)
    words = ["--staged"] if wanted.staged else []
    words += ["--worktree"] if wanted.worktree else []
    words += [f"--source={_ref(wanted.source)}"] if wanted.source else []
    path = await place.path(call, wanted.path)
    await _git(call, path, "restore", *words, "--", *wanted.files)
    return nothing(200)


async def add_remote(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Remote)
    path, name = await place.path(call, wanted.path), _ref(wanted.name)
    known = {each["name"] for each in git_words.remotes(await _remotes(call, path))}
    verb = ["set-url"] if wanted.overwrite and name in known else ["add"]
    await _git(call, path, "remote", *verb, "--", name, wanted.url)
    if wanted.fetch:
        await _git(call, path, "fetch", "--quiet", name)
    return nothing(201)


async def list_remotes(call: Inside) -> web.StreamResponse:
    path = await place.path(call, call.query("path"))
    return answer({"remotes": git_words.remotes(await _remotes(call, path))})


async def _remotes(call: Inside, path: str) -> bytes:
    await _git(call, path, "rev-parse", "--git-dir")
    words = ("config", "-z", "--get-regexp", r"^remote\..*\.url$")
    return await _git(call, path, *words, may_fail=True)


async def set_config(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Setting)
    await _set(call, wanted.scope, wanted.path, {wanted.key: wanted.value})
    return nothing(200)


async def get_config(call: Inside) -> web.StreamResponse:
    query = call.request.query
    words, path = await _scope(call, query.get("scope", "global"), query.get("path"))
    said = await _git(call, path, "config", words, "--get", _ref(call.query("key")), may_fail=True)
    return answer({"value": said.decode("utf-8", "replace").rstrip("\n") or None})


async def configure_user(call: Inside) -> web.StreamResponse:
    wanted = await call.body(asked.Author)
    values = {"user.name": wanted.name, "user.email": wanted.email}
    await _set(call, wanted.scope, wanted.path, values)
    return nothing(200)


async def authenticate(call: Inside) -> web.StreamResponse:
    """Kept in the sandbox as git itself keeps them, in the open: the SDK calls this dangerous, too."""
    wanted = await call.body(asked.Credentials)
    user, password = quote(wanted.username, safe=""), quote(wanted.password, safe="")
    host, protocol = wanted.host or "github.com", wanted.protocol or "https"
    if protocol not in {"http", "https"} or not host or set(host) & set("/\n@ "):
        raise InputError(f"{protocol}://{host[:80]} is no place to log in to")
    await _git(call, "/", "config", "--global", "credential.helper", "store")
    line = f"{protocol}://{user}:{password}@{host}\n"
    script = "umask 077; touch ~/.git-credentials && cat >> ~/.git-credentials"
    found = await run(call, Action.shell(script, stdin=line.encode(), cwd="/"))
    if not found.ok:
        raise git_words.refused(found.text, found.exit_code)
    return nothing(200)


async def _set(call: Inside, scope: str, path: str | None, values: Mapping[str, str]) -> None:
    words, where = await _scope(call, scope, path)
    for key, value in values.items():
        await _git(call, where, "config", words, _ref(key), value)


async def _scope(call: Inside, scope: str, path: str | None) -> tuple[str, str]:
    if scope not in _SCOPES:
        raise InputError(f"a scope is one of {', '.join(_SCOPES)}")
    if scope == "local" and not path:
        raise InputError("the scope local needs the path of a repository")
    return _SCOPES[scope], await place.path(call, path) if path else "/"


async def _git(
    call: Inside,
    path: str,
    *words: str,
    env: Mapping[str, str] | None = None,
    may_fail: bool = False,
) -> bytes:
    """What git says on its output; Told if it fails."""
    variables = place.variables(call, _QUIET | dict(env or {}))
    safe = ("-c", "safe.directory=*")
    action = Action(
        ("git", *safe, *words), cwd=posixpath.normpath(path), env=variables, timeout_s=LONGEST_S
    )
    found = await run(call, action)
    if found.exit_code and not (may_fail and found.exit_code == 1):
        raise git_words.refused(found.text, found.exit_code)
    return found.stdout


def _ref(name: str) -> str:
    """A name that git cannot take for an option."""
    if not name or name.startswith("-") or "\0" in name:
        raise InputError(f"{name[:80]!r} is no name that git takes")
    return name


def _credentials(username: str | None, password: str | None) -> dict[str, str]:
    """For this one command, in its variables: nothing of it is kept in the repository."""
    if not password:
        return {}
    return {"EXCISE_GIT_USER": username or "git", "EXCISE_GIT_PASSWORD": password}


def _secret(password: str | None, url: str) -> list[str]:
    if not password or (url and urlsplit(url).scheme not in {"http", "https"}):
        return []
    helper = '!f() { echo "username=$EXCISE_GIT_USER"; echo "password=$EXCISE_GIT_PASSWORD"; }; f'
    return ["-c", "credential.helper=", "-c", f"credential.helper={helper}"]
