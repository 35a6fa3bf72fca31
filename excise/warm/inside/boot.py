"""Run by `freeze` in an interpreter that has just made itself ready, and again by whoever becomes it.

Before: import what the environment has, hide it again, stop. After: take over what the new process was started with, so
that `Py_RunMain`, to which all of this returns, does what it would have done.
"""

import os
import sys

BASE = dict(sys.modules)
HERE = os.path.dirname(__file__)
HOME = os.environ["EXCISE_WARM_HOME"]
SETTLED = {"SETUPTOOLS_USE_DISTUTILS"}
"""Variables that are read before anything is asked for, and must be what they were."""


def source(name, shown=None):
    """The names that a file beside this one defines."""
    path = os.path.join(HERE, name)
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), shown or path, "exec")
    names = {"__name__": name.partition(".")[0]}
    exec(code, names)
    return names


WATCH = source("watch.py")
PROBE = source("probe.py")
RESUME = source("resume.py")
KEEP = source("keep.py", "<frozen importlib._bootstrap>")
for _name in [name for name in sys.modules if name not in BASE]:
    del sys.modules[_name]  # ours; whoever imports it again is watched


def gather(kept):
    """Import what may be kept, in this process, and nothing else."""
    found = PROBE["probed"](BASE, WATCH)
    watch = WATCH["Watch"](strict=False)
    with watch:
        WATCH["import_all"](found["plain"])
        first = dict(watch.entries)
        hook = PROBE["rewriting"](found["hooked"])
        if hook is not None:
            sys.meta_path.insert(0, hook)
            WATCH["import_all"](found["rewritten"])
            sys.meta_path.remove(hook)
    good = {*found["plain"], *found["rewritten"]}
    second = {name: entry for name, entry in watch.entries.items() if name not in first}
    kept.add({name: entry for name, entry in (first | second).items() if name in good})
    kept.close()
    return found


def hide(kept):
    """Leave the interpreter as it was when it had made itself ready."""
    for name in [name for name in sys.modules if name not in BASE]:
        module = sys.modules.pop(name)
        parent, _, child = name.rpartition(".")
        above = BASE.get(parent) or (
            kept.entries[parent].module if parent in kept.entries else None
        )
        if name in kept.entries and above is not None and vars(above).get(child) is module:
            delattr(above, child)
    inside = tuple(each for each in sys.path if os.path.isdir(each))
    for path in [path for path in sys.path_importer_cache if not path.startswith(inside)]:
        del sys.path_importer_cache[path]


def terms(libc):
    """What the stand-in holds a new process against."""
    import ctypes
    import site

    address = ctypes.c_ulong()
    if libc.prctl(40, ctypes.byref(address), 0, 0, 0) != 0:  # PR_GET_TID_ADDRESS
        raise RuntimeError("the kernel does not tell where the thread's number is")
    started = RESUME["initial"]()
    names = SETTLED | ({"HOME"} if site.ENABLE_USER_SITE else set())
    locale = next((v for v in map(started.get, ("LC_ALL", "LC_CTYPE", "LANG")) if v), "")
    words = [f"C{locale}", f"D{os.environ['EXCISE_WARM_FOLDER']}"]
    words += [f"N{name}" for name in os.environ["EXCISE_WARM_NAMES"].split()]
    words += [
        f"E{name}={started[name]}" if name in started else f"A{name}" for name in sorted(names)
    ]
    words += [f"W{path}" for path in read_so_far(site)]
    words.append(f"T{address.value}")
    with open(os.environ["EXCISE_WARM_TERMS"], "wb") as file:
        file.write("".join(f"{word}\0" for word in words).encode())


def read_so_far(site):
    """Files and folders that an interpreter looks at before it does what it is asked for."""
    found = [getattr(module, "__file__", None) for module in BASE.values()]
    folders = [
        *site.getsitepackages(),
        *([site.getusersitepackages()] if site.ENABLE_USER_SITE else []),
    ]
    for folder in folders:
        if os.path.isdir(folder):
            found.append(folder)
            found += [
                os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".pth")
            ]
    found.append(os.path.join(os.path.dirname(os.environ["EXCISE_WARM_FOLDER"]), "pyvenv.cfg"))
    return [path for path in dict.fromkeys(found) if path and os.path.exists(path)]


def main():
    kept = KEEP["Kept"](BASE)
    found = gather(kept)
    import ctypes
    import gc
    import json

    libc = ctypes.CDLL(None, use_errno=True)
    resume = RESUME["Resume"](BASE)
    terms(libc)
    with open(f"{HOME}/modules.json", "w") as file:
        json.dump({"kept": [*kept.entries], "bad": found["bad"]}, file)
    ctypes.pythonapi.Py_IncRef(
        ctypes.py_object(kept)
    )  # nor taken apart, one by one, when the process ends
    del ctypes, json, libc
    hide(kept)
    if len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("an import has left a thread")
    sys.modules["_frozen_importlib"]._load_unlocked = kept.load
    vars(sys.modules["__main__"]).pop("__warningregistry__", None)
    gc.collect()
    gc.freeze()
    os.kill(os.getpid(), 19)
    try:
        resume()
    except BaseException:  # counted by fall_back, and done by the real interpreter
        RESUME["fall_back"](HOME)


main()
