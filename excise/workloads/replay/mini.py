"""mini-swe-agent's `.traj.json`: plain bash in fresh shells, with exit codes and times.

Format 1.1 carries the commands in `extra.actions`; older files one fenced block per reply, and the exit
code in the text of the observation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from excise.errors import InputError
from excise.workloads.replay.classify import classify
from excise.workloads.replay.form import Recorded, Recording, observed

SOURCE = "mini-swe-agent"
FORMATS = ("mini-swe-agent-1.1", "mini-swe-agent-1")

_BLOCK = re.compile(r"```(?:bash|sh|mswea_bash_command)[ \t]*\n(.*?)\n?```", re.DOTALL)
_CODE = re.compile(r"<returncode>(-?\d+)</returncode>")
_OUTPUT = re.compile(r"<output>\n?(.*?)\n?</output>", re.DOTALL)


def read(document: Mapping[str, Any]) -> Recording:
    """The recording in a decoded `.traj.json`."""
    stated = document.get("trajectory_format", FORMATS[1])
    if stated not in FORMATS:
        known = ", ".join(FORMATS)
        raise InputError(f"trajectory format {stated!r} is unknown; known: {known}")
    config = document.get("info", {}).get("config", {}).get("environment", {})
    timeout_s = float(config.get("timeout") or 60.0)
    root = str(config.get("cwd") or "/testbed")
    taken = list(_taken(document["messages"], timeout_s))
    actions = tuple(Recorded(i=i, **fields) for i, fields in enumerate(taken))
    return Recording(SOURCE, root, dict(config.get("env") or {}), actions)


def _taken(messages: Sequence[Mapping[str, Any]], timeout_s: float) -> Iterator[dict[str, Any]]:
    """The fields of each action, from each reply and the observations that follow it."""
    last_seen: float | None = None
    for place, message in enumerate(messages):
        extra = message.get("extra") or {}
        commands = _commands(message, extra)
        if not commands:
            last_seen = _time(extra) or last_seen
            continue
        follow = messages[place + 1 : place + 1 + len(commands)]
        asked = _time(extra)
        for number, command in enumerate(commands):
            seen = follow[number] if number < len(follow) else {}
            alone = _time(seen.get("extra") or {}) if len(commands) == 1 else None
            yield {
                "kind": classify(command),
                "command": command,
                "timeout_s": timeout_s,
                "think_s": _between(last_seen, asked) if number == 0 else None,
                "recorded_s": _between(asked, alone),
                **_outcome(seen),
            }


def _commands(message: Mapping[str, Any], extra: Mapping[str, Any]) -> list[str]:
    if "actions" in extra:
        return [str(action["command"]) for action in extra["actions"] if "command" in action]
    if message.get("role") != "assistant":
        return []
    blocks = _BLOCK.findall(_text(message))
    return blocks if len(blocks) == 1 else []


def _outcome(message: Mapping[str, Any]) -> dict[str, Any]:
    """Exit code and output, from the fields of 1.1 or from the text of older files."""
    extra = message.get("extra") or {}
    if message.get("role") == "exit":
        return {"rc": 0} if extra.get("exit_status") == "Submitted" else {}
    if "returncode" in extra:
        return {"rc": extra["returncode"], **observed(extra.get("raw_output"))}
    text = _text(message)
    code, output = _CODE.search(text), _OUTPUT.search(text)
    return {
        **({"rc": int(code[1])} if code else {}),
        **observed(output[1] if output else None),
    }


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def _time(extra: Mapping[str, Any]) -> float | None:
    stamp = extra.get("timestamp")
    return float(stamp) if isinstance(stamp, int | float) else None


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(0.0, end - start)
