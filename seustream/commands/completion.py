"""`seustream completion`: prints a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse

EXAMPLES = """\
examples:
  eval "$(seustream completion bash)"
  seustream completion zsh > "${fpath[1]}/_seustream"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell")


def run(arguments: argparse.Namespace) -> int:
    import shtab

    print(shtab.complete(arguments.all_commands(), arguments.shell))
    return 0
