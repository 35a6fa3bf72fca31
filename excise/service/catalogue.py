"""The templates there are, and whose: by name or id, the operator's and each owner's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from excise.errors import InputError, Phase
from excise.service.builds import Builds
from excise.service.errors import Conflict, Refused
from excise.service.policy import Policy, allowed
from excise.service.templates import Template, checked_name
from excise.types import Spec

DEFAULT = "base"
MOST_PER_OWNER = 1000
_decode = msgspec.json.Decoder(Template).decode


class NoTemplate(InputError):
    """There is no template of that name for that owner."""


class Journal(Protocol):
    """Where templates are kept for the next process."""

    def put_template(self, owner: str, name: str, body: bytes) -> None: ...
    def remove_template(self, owner: str, name: str) -> None: ...


class Catalogue:
    """Who asks for a name gets his own template of that name, or the operator's, or one that is public."""

    def __init__(self, builds: Builds) -> None:
        self._builds = builds
        self._by_owner: dict[str | None, dict[str, Template]] = {None: {}}
        self._by_id: dict[str, Template] = {}
        self.journal: Journal | None = None

    async def put(self, template: Template) -> Template:
        """Keep it under its name, in place of the owner's older one."""
        checked_name(template.name)
        mine = self._by_owner.setdefault(template.owner, {})
        if len(mine) >= MOST_PER_OWNER and template.name not in mine:
            raise Refused(
                f"{MOST_PER_OWNER} templates are an owner's most: remove some",
                phase=Phase.CREATE,
                retry_after_s=60.0,
                theirs=True,
            )
        before = mine.get(template.name)
        mine[template.name] = template
        self._by_id[template.id] = template
        if before is not None and before.id != template.id:
            self._by_id.pop(before.id, None)
        if before is not None and before.revision != template.revision:
            await self._let_go(before)
        if self.journal is not None and template.owner is not None and template.snapshot is None:
            body = msgspec.json.encode(template)
            self.journal.put_template(template.owner, template.name, body)
        return template

    async def put_again(self, body: bytes) -> Template:
        """One that was kept by a process before this one."""
        try:
            return await self.put(_decode(body))
        except msgspec.MsgspecError as error:
            raise InputError(f"a template of another version: {error}") from error

    async def remove(self, owner: str, name: str) -> None:
        """It is not used any more. Sandboxes made of it live on."""
        template = self.find(owner, name)
        if template.owner != owner:
            raise Conflict(f"template {name} is the operator's")
        del self._by_owner[owner][template.name]
        self._by_id.pop(template.id, None)
        if self.journal is not None:
            self.journal.remove_template(owner, template.name)
        await self._let_go(template)

    async def _let_go(self, template: Template) -> None:
        """What was built of it is not kept, unless it goes by another name, too."""
        others = (each.revision for each in self._by_id.values())
        if template.revision not in others:
            await self._builds.forget(template)

    def find(self, owner: str, name: str) -> Template:
        """By name or id; a tag that is not known means the template itself."""
        bare = name.partition(":")[0]
        for each in (name, bare):
            for whose in (owner, None):
                if (found := self._by_owner.get(whose, {}).get(each)) is not None:
                    return found
            if (found := self._by_id.get(each)) is not None and found.seen_by(owner):
                return found
        raise NoTemplate(f"there is no template {name[:80]!r}")

    def of(self, owner: str) -> list[Template]:
        """Those an owner can use, his own first."""
        mine: Iterable[Template] = self._by_owner.get(owner, {}).values()
        return [*mine, *self._by_owner[None].values()]

    def resolve(self, owner: str, name: str | None, policy: Policy) -> Template:
        """The template of that name, or one for an image of that name where the policy lets callers name them."""
        try:
            return self.find(owner, name or DEFAULT)
        except NoTemplate:
            if name is None or name == DEFAULT:
                spec = Spec(limits=policy.limits)
                return Template(DEFAULT, None, spec, id=DEFAULT, revision=DEFAULT)
        try:
            spec = allowed(Spec(image=name, limits=policy.limits), policy)
        except InputError as error:
            raise NoTemplate(
                f"there is no template {name[:80]!r}, and as an image: {error}"
            ) from error
        return Template("", owner, spec, id=name, revision=f"image {name}")
