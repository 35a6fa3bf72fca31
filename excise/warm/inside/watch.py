"""Imports modules and notes, of each, what it stood on and whether another process may have it as it is.

A module may be kept if running it again would make the same of it: if it read no variable that differs, asked
neither clock nor process nor chance, and changed nothing outside of itself.
"""

import _signal
import _warnings
import atexit
import builtins
import gc
import importlib
import os
import sys
from importlib import _bootstrap

MADE_ANEW = {
    *("logging", "platform", "random", "threading", "uuid"),
    *("hypothesis.configuration", "hypothesis.internal.observability"),
}
"""May ask, because `keep` makes what they have of the answer anew when it hands them out."""

ASKING = {
    ("posix", name)
    for name in (
        "getpid getppid getcwd getcwdb urandom getrandom isatty getuid geteuid getgid getegid "
        "getlogin uname getloadavg sched_getaffinity cpu_count times umask fork"
    ).split()
} | {
    ("time", name)
    for name in "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns".split()
}
"""Built-in functions whose answer is another in another process."""


class Entry:
    """One module that was imported: what it needs, and what speaks against keeping it."""

    def __init__(self, name, spec, kind):
        self.name = name
        self.kind = kind
        self.origin = spec.origin if spec.has_location else None
        self.module = None
        self.needs = {}
        self.absent = {}
        self.aliases = {}
        self.read = {}
        self.flaws = []
        self.mark = None
        self.closure = ()
        self.stamp = self._stamp()

    def _stamp(self):
        if self.origin is None:
            return None
        seen = os.stat(self.origin)
        return (seen.st_mtime_ns, seen.st_size)


class _Variables(dict):
    """The environment, which tells who read what of it."""

    def __init__(self, data, watch):
        super().__init__(data)
        self.watch = watch

    def __getitem__(self, key):
        self.watch.has_read(key, dict.get(self, key))
        return super().__getitem__(key)

    def __contains__(self, key):
        self.watch.has_read(key, dict.get(self, key))
        return super().__contains__(key)

    def __iter__(self):
        self.watch.flaw("reads all variables")
        return super().__iter__()


class Watch:
    """While it is on, every import is noted in `entries`, by name, in the order in which they ended."""

    def __init__(self, strict):
        self.strict = strict
        self.entries = {}
        self.owners = {}
        self.seen = set(sys.modules)
        self.loading = []
        self.warned = []
        self.excused = 0
        self._load = _bootstrap._load_unlocked
        self._gcd_import = _bootstrap._gcd_import
        self._import = builtins.__import__
        self._data = os.environ._data

    def __enter__(self):
        _bootstrap._load_unlocked = self.load
        _bootstrap._gcd_import = self.gcd_import
        builtins.__import__ = self.import_
        os.environ._data = _Variables(self._data, self)
        if self.strict:
            sys.setprofile(self.profile)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)
        _bootstrap._load_unlocked = self._load
        _bootstrap._gcd_import = self._gcd_import
        builtins.__import__ = self._import
        os.environ._data = self._data
        for entry in self.entries.values():
            entry.needs = dict.fromkeys(self.owners.get(need, need) for need in entry.needs)
            entry.needs.pop(entry.name, None)

    def load(self, spec):
        entry = Entry(spec.name, spec, type(spec.loader).__name__)
        if self.loading:
            self.loading[-1].needs.setdefault(spec.name)
        parent = spec.name.rpartition(".")[0]
        if parent:
            entry.needs[parent] = None
        self.compare()
        self.seen.add(spec.name)
        self.loading.append(entry)
        entry.mark = self.mark()
        try:
            module = self._load(spec)
        except BaseException:
            self.loading.pop()
            if self.loading:
                self.loading[-1].flaws.append(f"{spec.name} could not be imported")
                self.loading[-1].mark = self.mark()
            raise
        entry.module = module
        self.inspect(entry)
        self.loading.pop()
        if self.loading:
            self.loading[-1].mark = self.mark()
        for name in [name for name in sys.modules if name not in self.seen]:
            self.seen.add(name)  # put there by hand
            self.owners[name] = spec.name
            entry.aliases[name] = sys.modules[name]
        self.entries.pop(spec.name, None)
        self.entries[spec.name] = entry
        return module

    def mark(self):
        return self.surroundings() if self.strict else None

    def compare(self):
        """What the innermost has changed since it was last looked at is its own doing."""
        if not self.strict or not self.loading:
            return
        entry, now = self.loading[-1], self.surroundings()
        if entry.name == "logging" and now["atexit"] == entry.mark["atexit"] + 1:
            self.excused += 1
            now["atexit"] -= 1
        entry.flaws += [f"changes {what}" for what in now if now[what] != entry.mark[what]]

    def inspect(self, entry):
        self.compare()
        if not isinstance(entry.module, type(sys)):
            entry.flaws.append("is no module")
        elif self.strict:
            held = [*vars(entry.module).values()]
            streams = {id(each) for each in (sys.stdout, sys.stderr, sys.stdin)}
            if any(id(value) in streams for value in held):
                entry.flaws.append("holds a stream")
            if any(
                type(value) in {list, tuple} and [*value] in (sys.path, sys.argv) for value in held
            ):
                entry.flaws.append("holds a copy of the path or the arguments")

    def import_(self, name, globals=None, locals=None, fromlist=(), level=0):
        try:
            module = self._import(name, globals, locals, fromlist, level)
        except ModuleNotFoundError as error:
            if self.loading and error.name:
                self.loading[-1].absent[error.name] = None
            raise
        if self.loading:
            self.needed(name, globals, fromlist, level)
        return module

    def gcd_import(self, name, package=None, level=0):
        module = self._gcd_import(name, package, level)
        if self.loading:
            self.loading[-1].needs.setdefault(module.__name__)
        return module

    def needed(self, name, globals, fromlist, level):
        """All that an import statement leads to: packages on the way, and what it names that is a module."""
        if level:
            package = globals.get("__package__") or globals["__name__"].rpartition(".")[0]
            for _ in range(level - 1):
                package = package.rpartition(".")[0]
            name = f"{package}.{name}" if name else package
        needs = self.loading[-1].needs
        parts = name.split(".")
        for number in range(1, len(parts) + 1):
            needs.setdefault(".".join(parts[:number]))
        for each in fromlist or ():
            if f"{name}.{each}" in sys.modules:
                needs.setdefault(f"{name}.{each}")

    def has_read(self, key, value):
        if self.loading:
            for each in self.loading:
                each.read.setdefault(key, value)

    def flaw(self, what):
        if self.loading and self.loading[-1].name not in MADE_ANEW:
            self.loading[-1].flaws.append(what)

    def profile(self, _frame, event, function):
        if event == "c_call" and self.loading:
            asked = (getattr(function, "__module__", None), getattr(function, "__name__", None))
            if asked in ASKING:
                self.flaw(f"asks {asked[1]}")

    def surroundings(self):
        """What a module should leave as it found it."""
        sys.setprofile(None)
        try:
            return {
                "sys.path": list(sys.path),
                "finders": [id(each) for each in (*sys.meta_path, *sys.path_hooks)],
                "hooks": [sys.excepthook, sys.displayhook, sys.breakpointhook, sys.unraisablehook],
                "streams": [sys.stdin, sys.stdout, sys.stderr],
                "output": [sys.stdout.tell(), sys.stderr.tell()],
                "recursion": sys.getrecursionlimit(),
                "builtins": [*vars(builtins).items()],
                "variables": dict(self._data),
                "warnings": len(self.warned),
                "filters": [*sys.modules.get("warnings", _warnings).filters],
                "signals": [_signal.getsignal(each) for each in range(1, 65)],
                "atexit": atexit._ncallbacks() - self.excused,
                "threads": len(os.listdir("/proc/self/task")),
                "files": len(os.listdir("/proc/self/fd")),
                "collector": (gc.get_threshold(), gc.isenabled(), len(gc.callbacks)),
                "directory": os.readlink("/proc/self/cwd"),
            }
        finally:
            sys.setprofile(self.profile)


def spoilt(entries, known):
    """Names of those that may not be kept: of flaws of their own, or because they stand on such a one."""
    bad = {name for name, entry in entries.items() if entry.flaws}
    grown = True
    while grown:
        more = {
            name
            for name, entry in entries.items()
            if name not in bad
            and any(need in bad or not (need in entries or need in known) for need in entry.needs)
        }
        bad |= more
        grown = bool(more)
    return bad


def import_all(names):
    """Each that can be; what cannot be imported is nobody's loss."""
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException:  # an entry of whoever imported it says so
            continue
