"""Which kind an action is, by a fixed list of rules on its first telling command; the first match wins."""

from __future__ import annotations

import re

_PREFIXES = re.compile(
    r"""(?:\s*(?:
        cd\s+(?:"[^"]*"|'[^']*'|[^\s;&|]+)\s*(?:&&|;)      # cd somewhere &&
      | timeout\s+(?:-\S+(?:\s+[A-Z0-9]+)?\s+)*[\d.]+[smhd]?\s # timeout 60
      | (?:export\s+)?[A-Za-z_]\w*=(?:"[^"]*"|'[^']*'|[^\s;&|]*)(?:\s*(?:&&|;)|\s)  # NAME=value
      | (?:source|\.)\s+\S+\s*(?:&&|;)                   # source activate &&
      | (?:env|time|sudo|nice|nohup)\s
    ))+""",
    re.VERBOSE,
)

_TEST = "|".join(  # noqa: FLY002 - one alternative per line
    (
        r"\S*python[\d.]*\s+(?:-\S+\s+)*-m\s+(?:pytest|unittest|nose2?|tox)\b",
        r"(?:\S*/)?(?:pytest|py\.test|tox|nosetests|ctest)\b",
        r"\S*python[\d.]*\s+\S*(?:runtests|test_\w+|\w+_test)\.py\b",
        r"(?:\./)?(?:bin/test|runtests\S*)\b",
        r"(?:npm|yarn|pnpm|cargo|go|make|mvn|gradle)\s+(?:run\s+)?(?:test|check)\b",
    )
)
_LOOK = "|".join(  # noqa: FLY002 - one alternative per line
    (
        r"(?:ls|ll|cat|head|tail|nl|less|more|tree|find|[ef]?grep|rg|ag|awk|sed|wc|stat|file|diff|cmp)\b",
        r"(?:sort|pwd|which|type|strings|xxd|od|du)\b",
        r"git\s+(?:log|show|diff|status|grep|blame|ls-files|branch|rev-parse|describe)\b",
    )
)
_CHANGE = "|".join(  # noqa: FLY002 - one alternative per line
    (
        r"sed\s+(?:-\S+\s+)*-\w*i",
        r"perl\s+-\w*i",
        r"(?:patch|tee|rm|mv|cp|mkdir|touch|chmod|ln|truncate)\b",
        r"git\s+(?:apply|checkout|restore|stash|reset|revert|am)\b",
        r"(?:cat|echo|printf)\b[^|\n]*(?:>>?|<<)(?!\s*/dev/null|&)",
    )
)

RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("test", re.compile(_TEST)),
    ("inspect", re.compile(r"str_replace_editor\s+view\b|(?:goto|scroll_up|scroll_down)\b")),
    ("inspect", re.compile(r"(?:open|find_file|search_file|search_dir)\b")),
    ("edit", re.compile(r"str_replace_editor\s+(?:create|str_replace|insert|undo_edit)\b")),
    ("edit", re.compile(r"(?:edit|create|insert|undo_edit)\b")),
    ("edit", re.compile(_CHANGE)),
    ("inspect", re.compile(_LOOK)),
)


def classify(command: str) -> str:
    """inspect, edit or test; command for everything else."""
    bare = _PREFIXES.sub("", command, count=1) if _PREFIXES.match(command) else command
    bare = bare.lstrip(" \t\n({")
    return next((kind for kind, rule in RULES if rule.match(bare)), "command")
