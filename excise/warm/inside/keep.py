"""Modules that were imported before the interpreter was frozen, handed out when they are imported again.

Finders run as ever, so a module is found where this process would find it; only running it is spared, and only if that
would make what is kept: the same file, unchanged, by a loader of the same kind, with the same variables, and all that
it stands on is kept or was there from the start.
"""

import os
import sys
from importlib import _bootstrap


def _started(logging):
    began = logging._startTime
    logging._startTime = logging.time.time_ns() if isinstance(began, int) else logging.time.time()


def _at_home(configuration):
    name = "__hypothesis_home_directory_default"
    if name in vars(configuration):
        vars(configuration)[name] = configuration.Path.cwd() / ".hypothesis"


def _seen(observability):
    if hasattr(observability, "_imported_at"):
        observability._imported_at = observability.time.time()


ANEW = {
    "hypothesis.internal.observability": _seen,
    "hypothesis.configuration": _at_home,
    "logging": _started,
    "platform": lambda platform: setattr(platform, "_uname_cache", None),
    "random": lambda random: random._inst.seed(),
    "threading": lambda threading: threading._main_thread._set_native_id(),
}
"""What of a module is of the process that imports it."""


class Kept:
    """Takes the place of `importlib._bootstrap._load_unlocked`."""

    def __init__(self, known):
        self.known = known
        self.entries = {}
        self.verdicts = {}
        self.load_really = _bootstrap._load_unlocked

    def add(self, entries):
        """Entries that are not spoilt, in the order in which their modules ended."""
        for name, entry in entries.items():
            self.entries[name] = entry

    def close(self):
        """Work out what each brings along: all below it, in the order in which they were loaded."""
        order = {name: number for number, name in enumerate(self.entries)}
        for name, entry in self.entries.items():
            found = {}
            waiting = [name]
            while waiting:
                each = waiting.pop()
                if each not in found and each in self.entries:
                    found[each] = None
                    waiting.extend(self.entries[each].needs)
            members = sorted(found, key=order.__getitem__)
            entry.closure = tuple(self.entries[each] for each in members)
            entry.modules = tuple(
                (each, sys.modules[each])
                for member in entry.closure
                for each in member.needs
                if each not in self.entries and each in sys.modules
            )

    def load(self, spec):
        entry = self.entries.get(spec.name)
        if entry is None:
            return self.load_really(spec)
        specs = self.specs(entry, spec)
        if specs is None:
            return self.load_really(spec)
        for each, found in specs:
            self.hand_out(each, found)
        for each, _ in specs:
            parent, _, child = each.name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, each.module)
        return entry.module

    def specs(self, entry, spec):
        """Of all that is to be handed out, where this process finds it; None: it is not what is kept."""
        if not self.is_good(entry, spec):
            return None
        for name, module in entry.modules:
            if sys.modules.get(name) is not module:
                return None
        found = []
        for each in entry.closure:
            present = sys.modules.get(each.name)
            if present is not None:
                if present is not each.module:
                    return None
                continue
            theirs = spec if each is entry else self.find(each)
            if theirs is None or not self.is_good(each, theirs):
                return None
            found.append((each, theirs))
        return found

    def find(self, entry):
        parent = entry.name.rpartition(".")[0]
        path = None
        if parent:
            above = self.entries.get(parent)
            path = (sys.modules[parent] if above is None else above.module).__path__
        return _bootstrap._find_spec(entry.name, path)

    def is_good(self, entry, spec):
        """Whether it is unchanged. Variables may change in a process; files that were read are read no more."""
        if type(spec.loader).__name__ != entry.kind:
            return False
        if entry.stamp is not None:
            if spec.origin != entry.origin:
                return False
            verdict = self.verdicts.get(entry.name)
            if verdict is None:
                seen = os.stat(entry.origin)
                verdict = self.verdicts[entry.name] = entry.stamp == (
                    seen.st_mtime_ns,
                    seen.st_size,
                )
            if not verdict:
                return False
        data = os.environ._data
        for key, value in entry.read.items():
            if data.get(key) != value:
                return False
        return all(map(self.is_absent, entry.absent))

    def is_absent(self, name):
        parent = name.rpartition(".")[0]
        if name in sys.modules or parent:
            return name not in sys.modules
        return _bootstrap._find_spec(name, None) is None

    def hand_out(self, entry, spec):
        module = entry.module
        module.__spec__ = spec
        module.__loader__ = spec.loader
        sys.modules[entry.name] = module
        sys.modules.update(entry.aliases)
        if entry.name in ANEW:
            ANEW[entry.name](module)
        rewritten = getattr(spec.loader, "_rewritten_names", None)
        if rewritten is not None:
            rewritten[entry.name] = (
                type(next(iter(rewritten.values())))(spec.origin) if rewritten else spec.origin
            )
