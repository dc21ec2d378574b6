"""The entry points `kaiweb top|why|queues|order|doctor|completion` and `kubectl kai`.

They start without Django, so that a command answers within a fraction of a second.
"""

from __future__ import annotations

import os
import sys

import click
from click.shell_completion import get_completion_class

from kaiweb.terminal.access import read_access
from kaiweb.terminal.doctor import CLUSTER_FLAG, doctor
from kaiweb.terminal.order import order
from kaiweb.terminal.queues import queues
from kaiweb.terminal.rest import Rest
from kaiweb.terminal.top import top
from kaiweb.terminal.why import why

COMPLETE = "_KAIWEB_COMPLETE"


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`kaiweb help` lists the commands of the server: up, group, simulate, snapshot, and more.",
)
@click.pass_context
def terminal(context: click.Context) -> None:
    """Look at queues, GPUs and waiting workloads, and edit queues, over REST.

    KAIWEB_URL and KAIWEB_TOKEN name the installation. Without them the one of `make run` or `kaiweb up` is used.
    """
    context.obj = lambda: Rest(read_access())


@terminal.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print the completion script of a shell, e.g. for `source <(kaiweb completion bash)`."""
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    click.echo(completion_class(terminal, {}, "kaiweb", COMPLETE).source())


for command in (top, why, queues, order, doctor):
    terminal.add_command(command)

NAMES = frozenset(terminal.commands)


def is_for_terminal(arguments: list[str]) -> bool:
    """Return whether the first argument names one of these commands or asks for help, or the shell asks for completions."""
    first = arguments[0] if arguments else ""
    if first == "doctor" and CLUSTER_FLAG in arguments:
        return False  # the management command, which reads the cluster with a kubeconfig
    return COMPLETE in os.environ or first in NAMES or first in ("-h", "--help")


def main(prog_name: str = "kaiweb") -> None:
    """Run one command and exit with its code."""
    terminal(prog_name=prog_name, complete_var=COMPLETE)


def kubectl_plugin() -> None:
    """Run as `kubectl kai`, which kubectl finds as a program named kubectl-kai."""
    main("kubectl kai")


def kubectl_completion() -> None:
    """Print completions as kubectl wants them of `kubectl_complete-kai`: one a line, then a directive."""
    arguments = sys.argv[1:] or [""]
    completion_class = get_completion_class("bash")
    assert completion_class is not None
    complete = completion_class(terminal, {}, "kai", COMPLETE)
    for item in complete.get_completions(arguments[:-1], arguments[-1]):
        click.echo(item.value)
    click.echo(":4")  # the directive NoFileComp of cobra: suggest no files
