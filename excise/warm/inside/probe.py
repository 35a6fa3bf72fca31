"""Finds out, in a process that is then thrown away, what can be imported and what of it may be kept."""

import os
import sys

STDLIB = (
    "__future__ abc argparse array ast asyncio base64 bdb binascii bisect bz2 calendar cmath cmd code "
    "codecs codeop collections.abc concurrent.futures configparser contextlib contextvars copy copyreg "
    "csv ctypes ctypes.util dataclasses datetime decimal difflib dis doctest email.message email.parser "
    "email.policy enum errno faulthandler fcntl filecmp fnmatch fractions ftplib functools gc getpass "
    "gettext glob graphlib grp gzip hashlib heapq hmac html.parser http.client importlib.abc "
    "importlib.machinery importlib.metadata importlib.resources importlib.util inspect io ipaddress "
    "itertools json keyword linecache locale logging logging.handlers lzma math mimetypes mmap numbers "
    "opcode operator optparse pathlib pdb pickle pkgutil platform plistlib pprint profile pstats pwd "
    "py_compile queue quopri random re reprlib resource runpy sched secrets select selectors shelve shlex "
    "shutil signal site socket socketserver sqlite3 ssl stat statistics string stringprep struct "
    "subprocess sysconfig tarfile tempfile termios textwrap threading timeit token tokenize tomllib trace "
    "traceback tty types typing unicodedata unittest unittest.mock urllib.parse urllib.request uuid "
    "warnings weakref xml.dom.minidom xml.etree.ElementTree zipfile zlib zoneinfo"
).split()
PYTEST = (
    "assertion cacheprovider capture compat config debugging deprecated doctest faulthandler fixtures "
    "freeze_support helpconfig hookspec junitxml legacypath logging main mark monkeypatch nodes outcomes "
    "pastebin pathlib pytester python python_api python_path recwarn reports runner scope setuponly "
    "setupplan skipping stash stepwise subtests terminal threadexception timing tmpdir tracemalloc "
    "unittest unraisableexception warning_types warnings"
).split()
SKIPPED = {"pip", "setuptools", "pkg_resources", "wheel", "antigravity", "this", "idlelib", "uv"}


def wanted():
    """Plain modules, then those that pytest rewrites, and the names by which it knows these."""
    from importlib.metadata import distributions

    plain, plugins, rewritten = [], [], []
    for dist in distributions():
        try:
            points = [e for e in dist.entry_points if e.group == "pytest11"]
            files = [str(each) for each in dist.files or ()]
        except Exception:  # a distribution without a readable record has nothing to import
            continue
        tops = sorted({top for top in map(_top, files) if top})
        if points:
            plugins += [e.value.partition(":")[0] for e in points] + tops
            rewritten += tops
        else:
            plain += tops
    if "pytest" in plain:
        plain += [f"_pytest.{name}" for name in PYTEST]
    if "pygments" in plain:
        plain += ["pygments.lexers.python", "pygments.formatters.terminal", "pygments.lexers.diff"]
    plain = [n for n in plain if n not in SKIPPED]
    return [*STDLIB, *plain], plugins, rewritten


def _top(file):
    """The module that a file of a distribution makes importable by its first name."""
    first, slash, _rest = file.partition("/")
    name = first if slash else first[:-3] if first.endswith(".py") else ""
    is_package = not slash or file == f"{first}/__init__.py"
    return name if is_package and name.isidentifier() else ""


class _Nothing:
    """All that the rewriting of pytest asks of its configuration."""

    def __init__(self, key):
        self.stash = {key: self}

    def trace(self, *_):
        pass

    def getini(self, name):
        if name == "python_files":
            raise ValueError(name)
        return False


def rewriting(names):
    """The finder with which pytest would load these, or None."""
    rewrite = sys.modules.get("_pytest.assertion.rewrite")
    if rewrite is None:
        return None
    hook = rewrite.AssertionRewritingHook(_Nothing(rewrite.assertstate_key))
    hook._must_rewrite.update(names)
    return hook


def probe(base, tools):
    """In a process of its own: what could be imported, in which order, and what may be kept of that."""
    sys.stdout, sys.stderr = base["io"].StringIO(), base["io"].StringIO()
    first = watched(lambda: tools["import_all"](wanted()[0]), tools)
    _, plugins, rewritten = wanted()
    bad = tools["spoilt"](first, set(base))
    second = {}
    hook = rewriting(rewritten)
    if hook is not None:
        sys.meta_path.insert(0, hook)
        second = watched(lambda: tools["import_all"](plugins), tools)
    worse = tools["spoilt"](second, (set(first) - bad) | set(base))
    return {
        "plain": [name for name in first if name not in bad],
        "rewritten": [name for name in second if name not in worse],
        "hooked": rewritten,
        "bad": {
            name: (entry.flaws or ["stands on what is not kept"])[0]
            for entries, names in ((first, bad), (second, worse))
            for name, entry in entries.items()
            if name in names
        },
    }


def watched(importing, tools):
    """What is imported, with all that it warns of."""
    watch = tools["Watch"](strict=True)
    with watch:
        import warnings

        with warnings.catch_warnings(record=True) as watch.warned:
            warnings.simplefilter("always")
            importing()
    return watch.entries


def probed(base, tools):
    """Ask a child, whose imports are gone with it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = repr(probe(base, tools))
        except BaseException:  # told to the parent, who raises
            import traceback

            text = repr({"failed": traceback.format_exc()})
        with os.fdopen(writer, "w") as file:
            file.write(text)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(child, 0)
    found = eval(text)
    if "failed" in found:
        raise RuntimeError(found["failed"])
    return found
