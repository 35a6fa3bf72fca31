"""The tree of commands."""

from __future__ import annotations

import typer

from excise.cli.doctor import doctor
from excise.cli.image import image
from excise.cli.key import key
from excise.cli.layer import layer
from excise.cli.layer_build import build
from excise.cli.live import live, top
from excise.cli.pool import pool
from excise.cli.project import project
from excise.cli.replay import replay
from excise.cli.report import report
from excise.cli.run import run
from excise.cli.serve import serve
from excise.cli.shell import shell
from excise.cli.study import study
from excise.cli.sweep import sweep
from excise.cli.task import task

app = typer.Typer(
    name="excise",
    help="Measure the rollout infrastructure tax of coding-agent RL, and remove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command("doctor")(doctor)
app.command("run", context_settings={"allow_interspersed_args": False})(run)
app.command("shell", context_settings={"allow_interspersed_args": False})(shell)
app.command("project")(project)
app.command("replay")(replay)
app.command("sweep")(sweep)
app.command("serve")(serve)
app.command("top")(top)
study.command("report")(report)
study.command("live")(live)
app.add_typer(study)
app.add_typer(task)
app.add_typer(image)
layer.add_typer(build)
app.add_typer(layer)
app.add_typer(key)
app.add_typer(pool)
