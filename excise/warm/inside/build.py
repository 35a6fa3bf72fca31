"""Makes one interpreter of an environment warm: run by that interpreter, in a jail of the environment.

`build.py AGENT HOME`: HOME gets `frozen`, `python` (the real one), `shim` (to be put in its place) and `about.json`.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys

AGENT, HOME = sys.argv[1], sys.argv[2]
HERE = os.path.dirname(os.path.abspath(__file__))
FUNCTIONS = ("Py_RunMain", "PyRun_SimpleString", "Py_Exit")
MARK = b"EXC-WARM"
SEEDS = ("", "0")
"""Of hashes: by chance, and what those set who want runs to be alike."""
TEST = "import sys, os; print(sys.argv, sys.executable, sys.flags, sys.path, sorted(sys.modules), globals().get('__file__'))"


def die(why):
    sys.exit(f"cannot be kept warm: {why}")


def where(name):
    """The file that a function of the interpreter comes from, and where in that file it is."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, _rights, offset, _device, _inode, *path = line.split(maxsplit=5)
            start, end = (int(each, 16) for each in span.split("-"))
            if start <= address < end and path:
                return path[0].strip(), int(offset, 16) + address - start
    return die(f"{name} is nowhere")


def names_of(folder, real):
    """What the interpreter is called in its environment, and what `sys._base_executable` is under each name."""
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if (
            name.startswith("python")
            and os.path.realpath(path) == real
            and os.access(path, os.X_OK)
        ):
            said = subprocess.run(
                [path, "-I", "-c", "import sys; print(sys._base_executable)"],
                capture_output=True,
                text=True,
                check=True,
            )
            found[name] = said.stdout.strip()
    return found


def main():
    executable = sys.executable
    real = os.path.realpath(executable)
    folder = os.path.dirname(executable)
    with open(real, "rb") as file:
        if b"$ORIGIN" in file.read():
            die(f"{real} finds its libraries from where it is")
    os.makedirs(f"{HOME}/real", exist_ok=True)
    kept = f"{HOME}/real/{os.path.basename(real)}"
    shutil.copy2(real, kept)
    os.symlink(f"real/{os.path.basename(real)}", f"{HOME}/python")
    names = names_of(folder, real)
    places = [where(name) for name in FUNCTIONS]
    if len({path for path, _ in places}) != 1:
        die("its functions are in several files")
    thing = kept if places[0][0] == real else places[0][0]
    env = {
        **os.environ,
        "EXCISE_WARM_HOME": HOME,
        "EXCISE_WARM_TERMS": f"{HERE}/terms",
        "EXCISE_WARM_FOLDER": folder,
        "EXCISE_WARM_NAMES": " ".join(names),
        "EXCISE_WARM_BASES": repr(names),
    }
    boot = f"{HERE}/boot.py"
    code = f"exec(compile(open({boot!r}).read(), {boot!r}, 'exec'), {{'__name__': 'boot', '__file__': {boot!r}}})\n"
    for seed in SEEDS:
        image = f"{HOME}/frozen" + (f".{seed}" if seed else "")
        asked = [
            AGENT,
            "freeze",
            image,
            f"{HERE}/terms",
            thing,
            *(str(at) for _, at in places),
            code,
        ]
        told = {**env, "PYTHONHASHSEED": seed} if seed else env
        done = subprocess.run(
            [*asked, kept, executable, "-c", "pass"],
            env=told,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            die((done.stderr + done.stdout).strip()[-2000:] or "freezing failed")
    with open(AGENT, "rb") as file:
        program = file.read()
    at = program.index(MARK + b"\0") + len(MARK)
    path = os.fsencode(HOME)
    program = program[:at] + path + program[at + len(path) :]
    with open(f"{HOME}/shim", "wb") as file:
        file.write(program)
    os.chmod(f"{HOME}/shim", 0o755)
    check(executable)
    with open(f"{HOME}/modules.json") as file:
        modules = json.load(file)
    about = {"program": real, "executable": executable, "names": [*names], **modules}
    with open(f"{HOME}/about.json", "w") as file:
        json.dump(about, file)


def check(executable):
    """It does what the real one does, and it is served."""
    counts = f"{HOME}/../counts"
    open(counts, "wb").close()
    script = os.path.join(HERE, "check.py")
    with open(script, "w") as file:
        file.write(TEST)
    said = []
    for program in (f"{HOME}/python", f"{HOME}/shim"):
        for asked in (["-c", TEST, "a", "b"], ["./check.py"], ["-m", "check"]):
            run = [executable, *asked]
            done = subprocess.run(
                run, executable=program, capture_output=True, text=True, check=False, cwd=HERE
            )
            said.append((done.returncode, done.stdout, done.stderr))
    with open(counts, "rb") as file:
        counted = file.read()
    os.remove(counts)
    if said[:3] != said[3:] or counted != b"sss":
        die(f"a thawed one differs ({counted!r}): {said}")


main()
