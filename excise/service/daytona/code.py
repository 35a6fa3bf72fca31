"""How code in one of the protocol's languages is run: a script for a shell that reads the code from its input. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from excise.errors import InputError

_PYTHON = (
    "exec python3 -u -c "
    '\'exec(compile(__import__("sys").stdin.buffer.read(), "<string>", "exec"))\''
)
_JAVASCRIPT = (
    "exec node -e "
    '\'require("vm").runInThisContext(require("fs").readFileSync(0, "utf8"), "[eval]")\' --'
)
_TYPESCRIPT = """\
code=$(mktemp -d) && cat > "$code/main.ts" || exit 1
if command -v ts-node >/dev/null; then run() { ts-node -T -O '{"module":"CommonJS"}' "$@"; }
elif command -v tsx >/dev/null; then run() { tsx "$@"; }
elif node --experimental-strip-types -e 0 2>/dev/null; then
  run() { node --no-warnings --experimental-strip-types "$@"; }
else run() { echo 'this sandbox has no TypeScript: install ts-node, tsx or Node.js 22.6'; return 127; }
fi
run "$code/main.ts"%s </dev/null
status=$?
rm -rf "$code"
exit $status
"""


def script_of(language: str, argv: Sequence[str]) -> str:
    """The script; the code is its input, and `argv` what the code finds as its arguments."""
    words = "".join(f" {shlex.quote(word)}" for word in argv)
    match language:
        case "python":
            return _PYTHON + words
        case "javascript":
            return _JAVASCRIPT + words
        case "typescript":
            return _TYPESCRIPT % words
    raise InputError(f"language {language[:40]!r}: give python, javascript or typescript")
