"""How the agent's program comes into a pod, decided here and done elsewhere.

By exec: the program is the first thing that is sent over the very connection that it then answers on, so placing it
costs no more than a first command does. An image without sh and head gets it as a volume, which any cluster can
mount from a ConfigMap; for that the kubelet takes its time.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = "/.excise"
PROGRAM = f"{FOLDER}/agent"
ARRIVED = b"\n"
"""Said once the program is there and about to speak: what is sent before might be lost in a reader's buffer."""

_PLACES = ("/", "/tmp/", "/var/tmp/", "/work/")  # noqa: S108  # in the pod


def by_exec(size: int) -> tuple[str, ...]:
    """Takes the program from its input and becomes it.

    `true` and not `:`, with which a shell ends where it cannot write: that one is a special builtin.
    """
    script = (
        f"for at in {' '.join(_PLACES)}; do "
        'it=$at.excise-agent; { true > "$it"; } 2>/dev/null || continue; '
        f'head -c {size} > "$it" && chmod 555 "$it" && echo && exec "$it" agent --stdio; '
        "exit 126; done; echo 'no folder can be written' >&2; exit 126"
    )
    return ("sh", "-c", script)


def by_volume() -> tuple[str, ...]:
    return (PROGRAM, "agent", "--stdio")


def config_map(program: Path) -> dict[str, Any]:
    """The program as an object of the cluster; one for all pods, named by what it holds."""
    data = program.read_bytes()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"excise-agent-{hashlib.sha256(data).hexdigest()[:12]}",
            "labels": {"excise": "1"},
        },
        "binaryData": {"agent": base64.b64encode(data).decode()},
    }


def with_volume(pod: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The pod with the program in it; its first process is the program too, as there may be no other."""
    spec = pod["spec"]
    container = spec["containers"][0]
    mounts = [*container.get("volumeMounts", ()), {"name": "agent", "mountPath": FOLDER}]
    volume = {"name": "agent", "configMap": {"name": name, "defaultMode": 0o555}}
    return {
        **pod,
        "spec": {
            **spec,
            "volumes": [*spec.get("volumes", ()), volume],
            "containers": [
                {
                    **container,
                    "command": [PROGRAM, "agent", "--stdio"],
                    "stdin": True,
                    "volumeMounts": mounts,
                }
            ],
        },
    }
