"""Every operation of the native API."""

from __future__ import annotations

from excise.service.native import about, actions, processes, sandboxes, templates, tree

OPERATIONS = (
    *sandboxes.OPERATIONS,
    *actions.OPERATIONS,
    *processes.OPERATIONS,
    *tree.OPERATIONS,
    *templates.OPERATIONS,
    *about.OPERATIONS,
)
